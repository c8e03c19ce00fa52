#include "shadow.h"
#include "autotune/base/array.h"
#include <stdlib.h>
#include <string.h>

/* The bytes of a write, shared by the entries that cover parts of it. */
struct value {
    int references;
    uint64_t age; /* increases with every value */
    size_t bytes;
    unsigned char *known;             /* one state per byte; NULL: the entry's state applies to all */
    struct plim_shadow_source source; /* if read is not NULL, computes the bytes when they are read */
    unsigned char data[];
};

enum kind { SPOILT, FILLED, HELD, LATER };

/* A range of one kind. Bytes between entries were never written. */
struct entry {
    uintptr_t at;
    size_t bytes;
    struct value *value; /* HELD, LATER: the entry covers it from `offset` on */
    size_t offset;       /* FILLED: where in the pattern the range starts */
    uint64_t pattern;
    const char *writer;
    enum kind kind;
    unsigned char known;
};

static struct {
    PLIM_ARRAY(struct entry) entries; /* sorted by address; they do not overlap */
    size_t held_bytes;
    uint64_t age; /* age of the newest value */
} shadow;

/* --- values ----------------------------------------------------------------------------------- */

static void release(struct value *value)
{
    if (!value || --value->references) return;
    if (value->source.release) value->source.release(value->source.user);
    shadow.held_bytes -= value->bytes;
    free(value);
}

/* Makes the range of an entry unknown. */
static void lose(struct entry *entry)
{
    release(entry->value);
    entry->value = NULL;
    entry->kind = SPOILT;
    entry->known = PLIM_UNKNOWN;
}

/* Drops the oldest large value. Returns false if there is none. */
static bool lose_oldest(void)
{
    uint64_t oldest = UINT64_MAX;
    struct entry *entries = shadow.entries.items;
    for (size_t i = 0; i < shadow.entries.count; i++) {
        const struct value *value = entries[i].value;
        bool is_large = value && value->bytes >= SHADOW_LARGE_BYTES;
        if (is_large && value->age < oldest) oldest = value->age;
    }
    for (size_t i = 0; i < shadow.entries.count; i++)
        if (entries[i].value && entries[i].value->age == oldest) lose(&entries[i]);
    return oldest != UINT64_MAX;
}

/* Returns a new value of `bytes` bytes, followed by one state per byte if `has_states`; NULL if it is too large. */
static struct value *make_value(size_t bytes, bool has_states)
{
    size_t room = has_states ? 2 * bytes : bytes;
    if (bytes > SHADOW_BYTES) return NULL;
    while (room > SHADOW_TOTAL_BYTES - shadow.held_bytes)
        if (!lose_oldest()) return NULL;
    struct value *value = malloc(sizeof(*value) + room);
    if (!value) return NULL;
    *value = (struct value){.references = 1, .age = ++shadow.age, .bytes = room};
    if (has_states) value->known = value->data + bytes;
    shadow.held_bytes += room;
    return value;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Returns the index of the first entry that ends after `at`. */
static size_t find(uintptr_t at)
{
    size_t low = 0, high = shadow.entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct entry *entry = &shadow.entries.items[middle];
        if (entry->at + entry->bytes <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the part of an entry that lies in [from, to). */
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

/* Out of memory for another entry: forgets everything. */
static void lose_all(void)
{
    for (size_t i = 0; i < shadow.entries.count; i++) release(shadow.entries.items[i].value);
    shadow.entries.count = 0;
}

/* Replaces the entries from `first` to `end` by `count` others, whose references it takes over. */
static void splice(size_t first, size_t end, const struct entry *with, size_t count)
{
    size_t rest = shadow.entries.count - end;
    if (PLIM_ARRAY_RESERVE(&shadow.entries, first + count + rest) != PLIM_OK) {
        for (size_t i = 0; i < count; i++) release(with[i].value);
        lose_all();
        return;
    }
    struct entry *items = shadow.entries.items;
    for (size_t i = first; i < end; i++) release(items[i].value);
    memmove(&items[first + count], &items[end], rest * sizeof(*items));
    memcpy(&items[first], with, count * sizeof(*items));
    shadow.entries.count = first + count + rest;
}

/* Replaces the range by `entry`, or clears it if that is NULL. Entries that reach beyond the range keep their outer
 * parts. */
static void insert_locked(uintptr_t at, size_t bytes, const struct entry *entry)
{
    struct entry with[3];
    size_t count = 0, first = find(at), end = first;
    const struct entry *items = shadow.entries.items;
    while (end < shadow.entries.count && items[end].at < at + bytes) end++;
    if (end > first && items[first].at < at) with[count++] = part_of(&items[first], 0, at);
    if (entry) with[count++] = *entry;
    if (end > first && items[end - 1].at + items[end - 1].bytes > at + bytes)
        with[count++] = part_of(&items[end - 1], at + bytes, UINTPTR_MAX);
    for (size_t i = 0; i < count; i++)
        if (with[i].value && (!entry || with[i].at != at)) with[i].value->references++;
    splice(first, end, with, count);
}

static void insert(const struct entry *entry)
{
    plim_self_lock();
    insert_locked(entry->at, entry->bytes, entry);
    plim_self_unlock();
}

void plim_shadow_clear_locked(uintptr_t at, size_t bytes)
{
    size_t i = bytes ? find(at) : 0;
    if (bytes && i < shadow.entries.count && shadow.entries.items[i].at < at + bytes)
        insert_locked(at, bytes, NULL);
}

void plim_shadow_clear(uintptr_t at, size_t bytes)
{
    plim_self_lock();
    plim_shadow_clear_locked(at, bytes);
    plim_self_unlock();
}

/* --- writing ---------------------------------------------------------------------------------- */

void plim_shadow_spoil_as(uintptr_t at, size_t bytes, unsigned char unknown, const char *writer)
{
    if (bytes)
        insert(&(struct entry){.at = at, .bytes = bytes, .writer = writer, .kind = SPOILT, .known = unknown});
}

void plim_shadow_spoil(uintptr_t at, size_t bytes, const char *writer)
{
    plim_shadow_spoil_as(at, bytes, PLIM_UNKNOWN, writer);
}

/* True if the same 8 bytes repeat, as is common for masks and counters. */
static bool is_even(const void *from, size_t bytes)
{
    const char *data = from;
    return bytes > sizeof(uint64_t) && !memcmp(data, data + sizeof(uint64_t), bytes - sizeof(uint64_t));
}

static void store_entry(uintptr_t at, const void *from, const unsigned char *known, unsigned char all,
                        size_t bytes, const char *writer)
{
    if (!known && is_even(from, bytes)) {
        plim_shadow_fill(at, from, sizeof(uint64_t), all, bytes);
        return;
    }
    plim_self_lock();
    struct value *value = make_value(bytes, known != NULL);
    if (value) memcpy(value->data, from, bytes);
    if (value && known) memcpy(value->known, known, bytes);
    insert_locked(at, bytes,
                  &(struct entry){.at = at,
                               .bytes = bytes,
                               .value = value,
                               .writer = writer,
                               .kind = value ? HELD : SPOILT,
                               .known = value ? all : PLIM_UNKNOWN});
    plim_self_unlock();
}

void plim_shadow_write(uintptr_t at, const void *from, size_t bytes)
{
    if (bytes) store_entry(at, from, NULL, PLIM_KNOWN, bytes, NULL);
}

void plim_shadow_store(uintptr_t at, const void *from, const unsigned char *known, size_t bytes,
                       const char *writer)
{
    if (!bytes) return;
    bool is_even = !memcmp(known, known + 1, bytes - 1);
    if (is_even && known[0] == PLIM_NEVER)
        plim_shadow_clear(at, bytes);
    else if (is_even && !(known[0] & PLIM_KNOWN))
        plim_shadow_spoil_as(at, bytes, known[0], writer);
    else
        store_entry(at, from, is_even ? NULL : known, known[0], bytes, writer);
}

void plim_shadow_fill(uintptr_t at, const void *element, size_t element_bytes, unsigned char known,
                      size_t bytes)
{
    uint64_t pattern = 0;
    if (!bytes) return;
    for (size_t i = 0; i < sizeof(pattern); i += element_bytes)
        memcpy((char *)&pattern + i, element, element_bytes);
    insert(&(struct entry){
           .at = at, .bytes = bytes, .pattern = pattern, .kind = FILLED, .known = known});
}

void plim_shadow_write_later(uintptr_t at, const struct plim_shadow_source *source, unsigned char known, size_t bytes,
                             const char *writer)
{
    plim_self_lock();
    struct value *value = make_value(0, false);
    if (value) value->source = *source;
    if (bytes)
        insert_locked(at, bytes,
                      &(struct entry){.at = at,
                                   .bytes = bytes,
                                   .value = value,
                                   .writer = writer,
                                   .kind = value ? LATER : SPOILT,
                                   .known = value ? known : PLIM_UNKNOWN});
    plim_self_unlock();
    if (!value) source->release(source->user);
}

void plim_shadow_copy(uintptr_t to, uintptr_t from, size_t bytes)
{
    PLIM_ARRAY(struct entry) found = {0};
    if (!bytes) return;
    plim_self_lock();
    for (size_t i = find(from); i < shadow.entries.count; i++) {
        struct entry part = shadow.entries.items[i];
        if (part.at >= from + bytes) break;
        part = part_of(&part, from, from + bytes);
        part.at = part.at - from + to;
        if (PLIM_ARRAY_PUSH(&found, part) != PLIM_OK) break; /* out of memory: the rest counts as never written */
        if (part.value) part.value->references++;
    }
    plim_shadow_clear_locked(to, bytes);
    for (size_t i = 0; i < found.count; i++)
        insert_locked(found.items[i].at, found.items[i].bytes, &found.items[i]);
    plim_self_unlock();
    PLIM_ARRAY_FINISH(&found);
}

/* --- reading ---------------------------------------------------------------------------------- */

static unsigned bits_of(unsigned char known)
{
    return known & PLIM_KNOWN ? known : known | PLIM_SOME_UNKNOWN;
}

static unsigned bits_of_all(const unsigned char *known, size_t count)
{
    unsigned bits = 0;
    for (size_t i = 0; i < count; i++) bits |= bits_of(known[i]);
    return bits;
}

static void write_pattern(const struct entry *entry, unsigned char *out)
{
    const unsigned char *pattern = (const unsigned char *)&entry->pattern;
    for (size_t i = 0; i < entry->bytes; i++)
        out[i] = pattern[(entry->offset + i) % sizeof(entry->pattern)];
}

/* Reads a part of an entry; the caller holds a reference to its value. */
static unsigned read_part(const struct entry *part, unsigned char *out, unsigned char *known)
{
    unsigned char all = part->known;
    const struct value *value = part->value;
    if (part->kind == FILLED) write_pattern(part, out);
    if (part->kind == HELD) memcpy(out, value->data + part->offset, part->bytes);
    if (part->kind == HELD && value->known) {
        if (known) memcpy(known, value->known + part->offset, part->bytes);
        for (size_t i = 0; i < part->bytes; i++)
            if (!(value->known[part->offset + i] & PLIM_KNOWN)) out[i] = 0;
        return bits_of_all(value->known + part->offset, part->bytes);
    }
    if (part->kind == LATER &&
        !value->source.read(value->source.user, part->offset, out, part->bytes)) {
        memset(out, 0, part->bytes);
        all = PLIM_UNKNOWN;
    }
    if (known) memset(known, all, part->bytes);
    return bits_of(all);
}

/* Returns the part of an entry that starts at `at`, at most `bytes` long, with a reference to its value. Before the
 * next entry: a part of kind SPOILT with state PLIM_NEVER. */
static struct entry retain_part(uintptr_t at, size_t bytes)
{
    plim_self_lock();
    size_t i = find(at);
    struct entry gap = {.at = at, .bytes = bytes, .kind = SPOILT, .known = PLIM_NEVER};
    const struct entry *entry = i < shadow.entries.count ? &shadow.entries.items[i] : NULL;
    struct entry part = gap;
    if (entry && entry->at <= at)
        part = part_of(entry, at, at + bytes);
    else if (entry && entry->at < at + bytes)
        part.bytes = entry->at - at;
    if (part.value) part.value->references++;
    plim_self_unlock();
    return part;
}

static void release_part(const struct entry *part)
{
    if (!part->value) return;
    plim_self_lock();
    release(part->value);
    plim_self_unlock();
}

unsigned plim_shadow_load(uintptr_t at, void *out, unsigned char *known, size_t bytes)
{
    unsigned bits = 0;
    unsigned char *to = out;
    memset(out, 0, bytes);
    for (size_t done = 0; done < bytes;) {
        struct entry part = retain_part(at + done, bytes - done);
        bits |= read_part(&part, to + done, known ? known + done : NULL);
        release_part(&part);
        done += part.bytes;
    }
    return bits;
}

unsigned plim_shadow_survey(uintptr_t at, size_t bytes)
{
    unsigned bits = 0;
    uintptr_t reached = at;
    plim_self_lock();
    for (size_t i = find(at); i < shadow.entries.count && reached < at + bytes; i++) {
        const struct entry *entry = &shadow.entries.items[i];
        if (entry->at > reached) bits |= bits_of(PLIM_NEVER);
        if (entry->at >= at + bytes) break;
        struct entry part = part_of(entry, at, at + bytes);
        bool is_mixed = part.kind == HELD && part.value->known;
        bits |= is_mixed ? bits_of_all(part.value->known + part.offset, part.bytes)
                         : bits_of(part.known);
        reached = part.at + part.bytes;
    }
    plim_self_unlock();
    return reached < at + bytes ? bits | bits_of(PLIM_NEVER) : bits;
}

bool plim_shadow_is_filled(uintptr_t at, size_t bytes, size_t element_bytes, void *element,
                           unsigned char *known)
{
    struct entry part = retain_part(at, bytes);
    unsigned char pattern[sizeof(part.pattern)];
    bool is_filled = part.kind == FILLED && part.bytes == bytes;
    if (is_filled) {
        part.bytes = sizeof(pattern);
        write_pattern(&part, pattern);
        is_filled = !memcmp(pattern, pattern + element_bytes, sizeof(pattern) - element_bytes);
        memcpy(element, pattern, element_bytes);
        *known = part.known;
    }
    release_part(&part);
    return is_filled;
}

bool plim_shadow_is_spoilt(uintptr_t at, size_t bytes, unsigned char *known)
{
    struct entry part = retain_part(at, bytes);
    release_part(&part);
    *known = part.known;
    return part.kind == SPOILT && part.bytes == bytes;
}

const char *plim_shadow_writer(uintptr_t at, size_t bytes)
{
    const char *writer = NULL;
    plim_self_lock();
    for (size_t i = find(at); i < shadow.entries.count && !writer; i++) {
        const struct entry *entry = &shadow.entries.items[i];
        if (entry->at >= at + bytes) break;
        writer = entry->writer;
    }
    plim_self_unlock();
    return writer;
}
