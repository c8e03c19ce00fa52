#include "memo.h"
#include "autotune/base/file_range.h"
#include "autotune/base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* cuDNN's plans take 75 to 220 KB. */
enum { KEY_BYTES = 4096, VALUE_BYTES = 4 << 20, FILE_BYTES = 128 << 20 };

static const uint64_t magic = 0x31736e616c706c70u;

/* The header of an entry in the file, followed by its key and its value. */
struct record {
    uint64_t magic, value_bytes, checksum; /* of key and value */
    uint32_t key_bytes, in_use;
};

struct key {
    struct {
        char kind[16], gpu[sizeof(((struct plim_memo *)0)->gpu)];
        int64_t version;
    } head;
    unsigned char shape[KEY_BYTES];
    size_t size;
};

/* --- keys ------------------------------------------------------------------------------------- */

static uint64_t sum_of(const struct key *key, const void *value, size_t size)
{
    uint64_t sum = plim_hash(PLIM_HASH_START, &key->head, key->size);
    sum = plim_hash(sum, &size, sizeof(size));
    return plim_hash(sum, value, size);
}

/* --- records ---------------------------------------------------------------------------------- */

/* Returns false if the shape is too large. */
static bool make_key(const struct plim_memo *memo, const struct plim_memo_question *q,
                     struct key *out)
{
    if (!memo || memo->fd < 0 || q->shape_bytes > sizeof(out->shape)) return false;
    memset(out, 0, sizeof(*out));
    snprintf(out->head.kind, sizeof(out->head.kind), "%s", q->kind);
    memcpy(out->head.gpu, memo->gpu, sizeof(out->head.gpu));
    out->head.version = q->version;
    memcpy(out->shape, q->shape, q->shape_bytes);
    out->size = sizeof(out->head) + q->shape_bytes;
    return true;
}

static bool read_record(const struct plim_memo *memo, int64_t at, struct record *out)
{
    return at < FILE_BYTES && plim_file_read(memo->fd, at, out, sizeof(*out)) && out->magic == magic &&
           out->key_bytes <= sizeof(struct key) && out->value_bytes <= VALUE_BYTES;
}

static int64_t next_record(int64_t at, const struct record *r)
{
    return at + (int64_t)(sizeof(*r) + r->key_bytes + r->value_bytes);
}

static bool has_key(const struct plim_memo *memo, int64_t at, const struct record *r,
                    const struct key *key)
{
    struct key other;
    return r->key_bytes == key->size && plim_file_read(memo->fd, at + (int64_t)sizeof(*r), &other, key->size) &&
           memcmp(&other, key, key->size) == 0;
}

static void mark(const struct plim_memo *memo, int64_t at, uint32_t in_use)
{
    int64_t field = at + (int64_t)offsetof(struct record, in_use);
    (void)plim_file_write(memo->fd, field, &in_use, sizeof(in_use));
}

/* --- questions and answers -------------------------------------------------------------------- */

bool plim_memo_find(const struct plim_memo *memo, const struct plim_memo_question *question,
                    struct plim_memo_answer *out)
{
    struct key key;
    struct record r, found = {.in_use = 1};
    *out = (struct plim_memo_answer){0};
    if (!make_key(memo, question, &key)) return false;
    for (int64_t at = 0; read_record(memo, at, &r); at = next_record(at, &r)) {
        if (!has_key(memo, at, &r, &key)) continue;
        found = r;
        out->at = at;
    }
    if (found.in_use) return false;
    out->size = (size_t)found.value_bytes;
    out->bytes = malloc(out->size + 1);
    int64_t value = out->at + (int64_t)(sizeof(found) + found.key_bytes);
    if (out->bytes && plim_file_read(memo->fd, value, out->bytes, out->size) &&
        sum_of(&key, out->bytes, out->size) == found.checksum) {
        mark(memo, out->at, 1);
        return true;
    }
    free(out->bytes);
    *out = (struct plim_memo_answer){0};
    return false;
}

void plim_memo_release(const struct plim_memo *memo, struct plim_memo_answer *answer)
{
    if (!answer->bytes) return;
    mark(memo, answer->at, 0);
    free(answer->bytes);
    *answer = (struct plim_memo_answer){0};
}

/* The header is written last: an entry whose writer was killed has none. */
void plim_memo_store(const struct plim_memo *memo, const struct plim_memo_question *question,
                     const void *bytes, size_t size)
{
    struct key key;
    struct record r;
    int64_t end = 0;
    if (size > VALUE_BYTES || !make_key(memo, question, &key)) return;
    while (read_record(memo, end, &r)) end = next_record(end, &r);
    r = (struct record){.magic = magic,
                        .value_bytes = size,
                        .checksum = sum_of(&key, bytes, size),
                        .key_bytes = (uint32_t)key.size};
    int64_t value = end + (int64_t)(sizeof(r) + key.size);
    if (next_record(end, &r) <= FILE_BYTES &&
        plim_file_write(memo->fd, end + (int64_t)sizeof(r), &key, key.size) &&
        plim_file_write(memo->fd, value, bytes, size))
        (void)plim_file_write(memo->fd, end, &r, sizeof(r));
}
