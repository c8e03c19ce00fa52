#include "shadow.h"
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 512 };

/* A value, held by the entries that show parts of it. */
struct value {
    int references;
    struct plim_shadow_source source; /* read == NULL: the bytes are here */
    unsigned char bytes[];
};

struct entry {
    uintptr_t at;
    size_t bytes, offset; /* this much of the value, from there on */
    struct value *value;  /* NULL: a free entry */
    uint64_t written;     /* launches so far when it was made */
};

static struct {
    struct entry entries[ENTRIES]; /* in order of their age from `next` on */
    size_t next, live;
    uint64_t launches;
} shadow;

static void release(struct value *value)
{
    if (--value->references) return;
    if (value->source.release) value->source.release(value->source.user);
    free(value);
}

static void drop(struct entry *entry)
{
    if (!entry->value) return;
    release(entry->value);
    entry->value = NULL;
    shadow.live--;
}

static void put(const struct entry *entry)
{
    struct entry *place = &shadow.entries[shadow.next++ % ENTRIES];
    drop(place);
    *place = *entry;
    place->value->references++;
    shadow.live++;
}

static bool is_fresh(const struct entry *entry)
{
    return entry->value && shadow.launches - entry->written < SHADOW_LAUNCHES;
}

static bool overlaps(const struct entry *entry, uintptr_t at, size_t bytes)
{
    return entry->at < at + bytes && at < entry->at + entry->bytes;
}

/* The part of an entry in [from, to). */
static struct entry part_of(const struct entry *entry, uintptr_t from, uintptr_t to)
{
    struct entry part = *entry;
    uintptr_t end = entry->at + entry->bytes;
    if (from < entry->at) from = entry->at;
    if (to > end) to = end;
    part.offset += from - entry->at;
    part.at = from;
    part.bytes = to - from;
    return part;
}

void plim_shadow_forget_locked(uintptr_t at, size_t bytes)
{
    if (!shadow.live || !bytes) return;
    for (size_t i = 0; i < ENTRIES; i++) {
        struct entry *place = &shadow.entries[i], entry = *place;
        if (!entry.value || !overlaps(&entry, at, bytes)) continue;
        entry.value->references++;
        drop(place);
        if (entry.at < at) {
            struct entry before = part_of(&entry, entry.at, at);
            put(&before);
        }
        if (entry.at + entry.bytes > at + bytes) {
            struct entry after = part_of(&entry, at + bytes, entry.at + entry.bytes);
            put(&after);
        }
        release(entry.value);
    }
}

void plim_shadow_forget(uintptr_t at, size_t bytes)
{
    plim_self_lock();
    plim_shadow_forget_locked(at, bytes);
    plim_self_unlock();
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_value(uintptr_t at, struct value *value, size_t bytes)
{
    plim_self_lock();
    plim_shadow_forget_locked(at, bytes);
    if (value) {
        put(&(struct entry){
            .at = at, .bytes = bytes, .value = value, .written = shadow.launches});
        release(value);
    }
    plim_self_unlock();
}

static struct value *make_value(size_t bytes)
{
    struct value *value = bytes <= SHADOW_BYTES ? malloc(sizeof(*value) + bytes) : NULL;
    if (value) *value = (struct value){.references = 1};
    return value;
}

void plim_shadow_write(uintptr_t at, const void *from, size_t bytes)
{
    if (!bytes) return;
    struct value *value = make_value(bytes);
    if (value) memcpy(value->bytes, from, bytes);
    write_value(at, value, bytes);
}

void plim_shadow_set(uintptr_t at, int byte, size_t bytes)
{
    if (!bytes) return;
    /* Zero is what is read where nothing is known. */
    struct value *value = byte ? make_value(bytes) : NULL;
    if (value) memset(value->bytes, byte, bytes);
    write_value(at, value, bytes);
}

void plim_shadow_write_later(uintptr_t at, const struct plim_shadow_source *source, size_t bytes)
{
    struct value *value = make_value(0);
    if (value) value->source = *source;
    else source->release(source->user);
    write_value(at, value, bytes);
}

void plim_shadow_copy(uintptr_t to, uintptr_t from, size_t bytes)
{
    struct entry found[ENTRIES];
    size_t count = 0;
    if (!shadow.live) return;
    plim_self_lock();
    for (size_t i = 0; i < ENTRIES; i++) {
        const struct entry *entry = &shadow.entries[(shadow.next + i) % ENTRIES];
        if (!is_fresh(entry) || !overlaps(entry, from, bytes)) continue;
        found[count] = part_of(entry, from, from + bytes);
        found[count++].value->references++;
    }
    plim_shadow_forget_locked(to, bytes);
    for (size_t i = 0; i < count; i++) {
        struct value *value = found[i].value;
        found[i].at = found[i].at - from + to;
        found[i].written = shadow.launches;
        put(&found[i]);
        release(value);
    }
    plim_self_unlock();
}

void plim_shadow_launched(const uintptr_t *written, size_t count)
{
    plim_self_lock();
    shadow.launches++;
    for (size_t i = 0; shadow.live && i < count; i++)
        for (size_t k = 0; k < ENTRIES; k++)
            if (shadow.entries[k].value &&
                overlaps(&shadow.entries[k], written[i], SHADOW_BLOCK_BYTES))
                drop(&shadow.entries[k]);
    plim_self_unlock();
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The entries that a read sees, oldest first, each with a reference of its own. */
static size_t collect(uintptr_t at, size_t bytes, struct entry *found)
{
    size_t count = 0;
    plim_self_lock();
    for (size_t i = 0; shadow.live && i < ENTRIES; i++) {
        const struct entry *entry = &shadow.entries[(shadow.next + i) % ENTRIES];
        if (!is_fresh(entry) || !overlaps(entry, at, bytes)) continue;
        found[count] = part_of(entry, at, at + bytes);
        found[count++].value->references++;
    }
    plim_self_unlock();
    return count;
}

bool plim_shadow_read(uintptr_t at, void *out, size_t bytes)
{
    struct entry found[ENTRIES];
    size_t count = collect(at, bytes, found);
    bool known = false;
    memset(out, 0, bytes);
    for (size_t i = 0; i < count; i++) {
        struct value *value = found[i].value;
        unsigned char *to = (unsigned char *)out + (found[i].at - at);
        if (!value->source.read) memcpy(to, value->bytes + found[i].offset, found[i].bytes);
        known |= !value->source.read ||
                 value->source.read(value->source.user, found[i].offset, to, found[i].bytes);
    }
    plim_self_lock();
    for (size_t i = 0; i < count; i++) release(found[i].value);
    plim_self_unlock();
    return known;
}
