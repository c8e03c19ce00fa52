#include "xz.h"
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

enum {
    PRESET = 6,                /* xz's default: a dictionary of 8 MiB, 94 MiB of memory */
    UNPACK_MEMORY = 128 << 20, /* files of `xz -9` need 65 MiB */
    FIRST_ROOM = 1 << 16,      /* first size of the output buffer */
};

static const char magic[] = "\xfd"
                            "7zXZ";

enum plim_status plim_xz_pack(const char *text, size_t length, char **packed, size_t *packed_bytes,
                              struct plim_error *err)
{
    lzma_options_lzma options;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    size_t most = lzma_stream_buffer_bound(length);
    *packed = NULL;
    if (lzma_lzma_preset(&options, PRESET)) return plim_no_memory(err);
    if (length < options.dict_size) options.dict_size = (uint32_t)length;
    if (options.dict_size < LZMA_DICT_SIZE_MIN) options.dict_size = LZMA_DICT_SIZE_MIN;
    *packed = malloc(most);
    *packed_bytes = 0;
    if (*packed &&
        lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text, length,
                                  (uint8_t *)*packed, packed_bytes, most) == LZMA_OK)
        return PLIM_OK;
    free(*packed);
    *packed = NULL;
    return plim_no_memory(err);
}

bool plim_xz_is(const char *bytes, size_t count)
{
    return count >= sizeof(magic) && !memcmp(bytes, magic, sizeof(magic));
}

/* Converts the result of lzma_code() to a status. */
static enum plim_status status_of(const char *source_name, const lzma_stream *z, lzma_ret returned,
                                  size_t max_bytes, struct plim_error *err)
{
    if (z->total_out > max_bytes)
        return plim_fail(err, PLIM_SPEC, "%s: it unpacks to more than %zu bytes", source_name,
                         max_bytes);
    if (returned == LZMA_STREAM_END && !z->avail_in) return PLIM_OK;
    if (returned == LZMA_MEM_ERROR) return plim_no_memory(err);
    return plim_fail(err, PLIM_SPEC, "%s: %s", source_name,
                     returned == LZMA_STREAM_END  ? "more follows behind the xz data"
                     : returned == LZMA_BUF_ERROR ? "the xz data is cut off"
                     : returned == LZMA_MEMLIMIT_ERROR
                         ? "the xz data needs more memory than `xz -9` uses"
                         : "the xz data is damaged");
}

/* Unpacks into a growing buffer with room for a terminator. At most one byte more than allowed is unpacked, which shows
 * that there is too much. */
static enum plim_status decode_all(const char *source_name, lzma_stream *z, size_t max_bytes,
                                   char **out, struct plim_error *err)
{
    size_t room = 0;
    lzma_ret returned;
    do {
        room = room ? 4 * room : FIRST_ROOM;
        if (room > max_bytes) room = max_bytes + 1;
        char *larger = realloc(*out, room + 1);
        if (!larger) return plim_no_memory(err);
        *out = larger;
        z->next_out = (uint8_t *)larger + z->total_out;
        z->avail_out = room - z->total_out;
        returned = lzma_code(z, LZMA_FINISH);
    } while (returned == LZMA_OK && z->total_out <= max_bytes);
    return status_of(source_name, z, returned, max_bytes, err);
}

enum plim_status plim_xz_unpack(const char *source_name, const char *packed, size_t packed_bytes,
                                size_t max_bytes, char **text, size_t *length,
                                struct plim_error *err)
{
    lzma_stream z = LZMA_STREAM_INIT;
    char *out = NULL;
    *text = NULL;
    if (lzma_stream_decoder(&z, UNPACK_MEMORY, 0) != LZMA_OK) return plim_no_memory(err);
    z.next_in = (const uint8_t *)packed;
    z.avail_in = packed_bytes;
    enum plim_status st = decode_all(source_name, &z, max_bytes, &out, err);
    lzma_end(&z);
    if (st) {
        free(out);
        return st;
    }
    *length = z.total_out;
    out[*length] = '\0';
    *text = out;
    return PLIM_OK;
}
