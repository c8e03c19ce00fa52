#include "fat_binary.h"
#include "devices/virtual/memory/readable.h"
#include <stdlib.h>
#include <string.h>

/* Fat binaries as nvcc writes them, little-endian and unaligned. The wrapper is defined in <fatbinary_section.h>; the
 * rest was inferred from the output of nvcc 11.8 to 13.0. */
enum { WRAPPER_MAGIC = 0x466243b1, KIND_PTX = 1, KIND_ELF = 2 };
enum { HEADER_BYTES = 16, ENTRY_BYTES = 32, WRAPPER_BYTES = 16 };
static const uint32_t FAT_MAGIC = 0xba55ed50;

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
    return value;
}

static void add(uint64_t *set, unsigned capability)
{
    if (capability < 192) set[capability / 64] |= (uint64_t)1 << capability % 64;
}

static bool has(const uint64_t *set, int capability)
{
    return set[capability / 64] >> capability % 64 & 1;
}

/* Header: magic (4 bytes), version (2), its own size (2), bytes that follow it (8). Each entry: kind (2), version (2),
 * size of its header (4), bytes that follow that header (8), ..., compute capability (4, at offset 28). */
static bool read_fat(struct plim_fat_binary *binary, const unsigned char *at, size_t bytes)
{
    if (!plim_is_readable(at, bytes, 0, HEADER_BYTES)) return false;
    const unsigned char *entry = at + number(at + 6, 2);
    uint64_t left = number(at + 8, 8);
    if (!plim_is_readable(at, bytes, (size_t)(entry - at), left)) return false;
    while (left >= ENTRY_BYTES) {
        uint64_t kind = number(entry, 2), header = number(entry + 4, 4),
                 size = number(entry + 8, 8);
        if (header < ENTRY_BYTES || header > left || size > left - header) return false;
        if (kind == KIND_ELF) add(binary->binaries, (unsigned)number(entry + 28, 4));
        if (kind == KIND_PTX) add(binary->ptx, (unsigned)number(entry + 28, 4));
        entry += header + size;
        left -= header + size;
    }
    return true;
}

struct plim_fat_binary *plim_fat_binary_read(const void *image, size_t bytes)
{
    struct plim_fat_binary *binary = calloc(1, sizeof(*binary));
    if (binary) *binary = (struct plim_fat_binary){.image = image, .bytes = bytes};
    return binary;
}

static bool begins_with(const unsigned char *at, size_t bytes, uint32_t magic)
{
    return at && plim_is_readable(at, bytes, 0, 4) && number(at, 4) == magic;
}

static void parse(struct plim_fat_binary *binary)
{
    const unsigned char *at = binary->image;
    size_t bytes = binary->bytes;
    bool is_wrapped = begins_with(at, bytes, WRAPPER_MAGIC) &&
                      plim_is_readable(at, bytes, 0, WRAPPER_BYTES);
    if (is_wrapped) {
        memcpy(&at, at + 8, sizeof(at));
        bytes = PLIM_UNKNOWN_BYTES;
    }
    bool understood = begins_with(at, bytes, FAT_MAGIC) && read_fat(binary, at, bytes);
    binary->unknown = !understood;
    binary->is_read = true;
}

/* Machine code runs on GPUs of the same major version with the same or a later minor version; PTX runs on every GPU
 * that is not older. */
int plim_fat_binary_code(struct plim_fat_binary *binary, int compute_capability)
{
    if (!binary) return compute_capability;
    if (!binary->is_read) parse(binary);
    if (binary->unknown) return compute_capability;
    for (int c = compute_capability; c / 10 == compute_capability / 10; c--)
        if (has(binary->binaries, c)) return c;
    for (int c = compute_capability; c > 0; c--)
        if (has(binary->ptx, c)) return compute_capability;
    return 0;
}
