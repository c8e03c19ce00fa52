#include "weights.h"
#include <stdlib.h>

enum { WRITTEN_FIRST = 1, READ_FIRST = 2, READ_TWICE = 4, UPDATED = 8 };
enum { ROW = 4 }; /* tensors written in place in a row that no layer would write */

bool plim_weights_init(struct plim_weights *w)
{
    *w = (struct plim_weights){.table = plim_seen_create(), .epoch = 1};
    return w->table != NULL;
}

void plim_weights_finish(struct plim_weights *w) { free(w->table); }

static struct plim_seen *find(struct plim_weights *w, uintptr_t at)
{
    struct plim_seen *entry = plim_seen_find(w->table, at);
    if (entry->when == w->epoch) return entry;
    entry->when = w->epoch;
    entry->flags = 0;
    return entry;
}

/* True if most weights were written. A few could be so by chance, unless other tensors are written in place before and
 * after them, as in programs that update one parameter after the other themselves. */
static bool are_most_updated(struct plim_weights *w)
{
    enum { FEWEST = 8, SHARE = 2, SHARE_IN_ROW = 4 };
    bool is_row = w->row >= ROW;
    if (w->updated < (is_row ? 1 : FEWEST)) return false;
    if ((is_row ? SHARE_IN_ROW : SHARE) * w->updated < w->found) return false;
    w->are_updated = true;
    return true;
}

bool plim_weights_write(struct plim_weights *w, uintptr_t at)
{
    struct plim_seen *entry = find(w, at);
    if (!entry->flags) entry->flags = WRITTEN_FIRST;
    if ((entry->flags & (READ_TWICE | UPDATED)) != READ_TWICE) return false;
    entry->flags |= UPDATED;
    w->updated++;
    w->silent = 0;
    return are_most_updated(w);
}

bool plim_weights_write_in_place(struct plim_weights *w, uintptr_t at)
{
    if (find(w, at)->flags & WRITTEN_FIRST) return false;
    if (at != w->row_end) w->row++;
    w->row_end = at;
    return w->updated && are_most_updated(w);
}

void plim_weights_result(struct plim_weights *w, uintptr_t at)
{
    struct plim_seen *entry = find(w, at);
    if (!entry->flags) entry->flags = WRITTEN_FIRST;
}

void plim_weights_read(struct plim_weights *w, uintptr_t at, uint64_t reader)
{
    struct plim_seen *entry = find(w, at);
    if (!entry->flags) {
        entry->flags = READ_FIRST;
        entry->first = reader;
    } else if (entry->flags == READ_FIRST && entry->first != reader) {
        entry->flags |= READ_TWICE;
        w->found++;
    }
}

static void begin_epoch(struct plim_weights *w, bool is_whole)
{
    enum { PATIENCE = 8 };
    w->epoch++;
    w->epoch_is_whole = is_whole;
    w->epoch_end = (is_whole ? PATIENCE : 2) * w->calls;
    w->found = 0;
    w->are_updated = false;
}

void plim_weights_call(struct plim_weights *w, bool are_known)
{
    enum { FIRST_EPOCH = 256, SILENCE = 2 };
    bool ends_row = w->row >= ROW;
    w->row = 0;
    if (++w->silent > SILENCE || ends_row) {
        w->updated = 0;
        if (w->are_updated) begin_epoch(w, true);
    }
    if (w->calls++ == 0) begin_epoch(w, false);
    if (are_known || w->calls < FIRST_EPOCH) return;
    if (w->calls >= w->epoch_end) begin_epoch(w, false);
}

void plim_weights_end_row(struct plim_weights *w) { w->row = 0; }
