#include "fat_binary.h"
#include <stdlib.h>
#include <string.h>

/* Fat binaries as nvcc writes them; <fatbinary_section.h> has the wrapper, the rest was read off the
 * output of nvcc 11.8 to 13.0. Little-endian, unaligned. */
enum { WRAPPER_MAGIC = 0x466243b1, KIND_PTX = 1, KIND_ELF = 2 };
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

/* Header: magic 4, version 2, its own size 2, bytes that follow 8. Each entry: kind 2, version 2,
 * its header's size 4, bytes that follow it 8, ..., at 28 the compute capability 4. */
static bool read_fat(struct plim_fat_binary *binary, const unsigned char *at)
{
    const unsigned char *entry = at + number(at + 6, 2), *end = entry + number(at + 8, 8);
    while (entry + 32 <= end) {
        uint64_t kind = number(entry, 2), header = number(entry + 4, 4), size = number(entry + 8, 8);
        if (header < 32 || size > (uint64_t)(end - entry)) return false;
        if (kind == KIND_ELF) add(binary->binaries, (unsigned)number(entry + 28, 4));
        if (kind == KIND_PTX) add(binary->ptx, (unsigned)number(entry + 28, 4));
        entry += header + size;
    }
    return true;
}

struct plim_fat_binary *plim_fat_binary_read(const void *image)
{
    struct plim_fat_binary *binary = calloc(1, sizeof(*binary));
    if (binary) binary->image = image;
    return binary;
}

static void look(struct plim_fat_binary *binary)
{
    const unsigned char *at = binary->image;
    if (at && number(at, 4) == WRAPPER_MAGIC) memcpy(&at, at + 8, sizeof(at));
    bool understood = at && number(at, 4) == FAT_MAGIC && read_fat(binary, at);
    binary->unknown = !understood;
    binary->is_read = true;
}

/* Machine code runs on the same major version and the same minor or a later one; PTX on everything
 * that is not older. */
int plim_fat_binary_code(struct plim_fat_binary *binary, int compute_capability)
{
    if (!binary) return compute_capability;
    if (!binary->is_read) look(binary);
    if (binary->unknown) return compute_capability;
    for (int c = compute_capability; c / 10 == compute_capability / 10; c--)
        if (has(binary->binaries, c)) return c;
    for (int c = compute_capability; c > 0; c--)
        if (has(binary->ptx, c)) return compute_capability;
    return 0;
}
