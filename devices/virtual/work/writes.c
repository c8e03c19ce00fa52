#include "writes.h"
#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/memory/readable.h"
#include <stdlib.h>
#include <string.h>

/* Bound for structures of unknown size: few launches have larger parameters (from CUDA 12.1 on 32 KiB are allowed). A
 * parameter also ends where the next one in memory starts. */
enum { STRUCTURE_BYTES = 4096, PAGE_BYTES = 4096 };

/* Returns how many bytes of argument i can be searched. `launch_bytes`: the size that the launch determines; 0: not
 * known. */
static size_t room_of(const struct plim_signature *signature, void *const *arguments, int i, size_t launch_bytes)
{
    uintptr_t at = (uintptr_t)arguments[i];
    size_t known = launch_bytes ? launch_bytes : signature->structure_bytes[i], room = known ? known : STRUCTURE_BYTES,
           page = PAGE_BYTES - at % PAGE_BYTES;
    for (int k = 0; k < signature->parameters && k < 32; k++) {
        uintptr_t other = (uintptr_t)arguments[k];
        if (other > at && other - at < room) room = other - at;
    }
    if (room > page && !plim_is_readable(arguments[i], PLIM_UNKNOWN_BYTES, page, room - page))
        room = page;
    return room;
}

static uintptr_t word_at(const void *structure, size_t i)
{
    uintptr_t word;
    memcpy(&word, (const char *)structure + i * sizeof(word), sizeof(word));
    return word;
}

/* True if `at` holds the offsets of so many sequences (cu_seqlens): known, ascending and starting with 0. */
static bool are_ends(uintptr_t at, int32_t sequences)
{
    size_t count = (size_t)sequences + 1;
    int32_t *ends = plim_heap_is_device(at) ? malloc(count * sizeof(*ends)) : NULL;
    bool holds = ends && !(plim_shadow_load(at, ends, NULL, count * sizeof(*ends)) & PLIM_SOME_UNKNOWN) && !ends[0] &&
                 ends[sequences] > 0;
    for (int32_t i = 0; i < sequences && holds; i++) holds = ends[i] <= ends[i + 1];
    free(ends);
    return holds;
}

/* Returns the index of the word of FlashAttention's parameters that is cu_seqlens_q, which cu_seqlens_k follows; both
 * are only read. They follow the number of sequences, six or eight to nine lengths, and two scales (flash.h, versions
 * 2.0 to 2.8, in PyTorch and flash-attn). Returns `words` if they are not found. */
static size_t find_ends(const void *structure, size_t words)
{
    static const size_t before[] = {6, 5};
    enum { MOST_SEQUENCES = 1 << 20 };
    for (size_t i = before[0]; i + 1 < words; i++)
        for (size_t k = 0; k < sizeof(before) / sizeof(before[0]); k++) {
            int32_t sequences = (int32_t)word_at(structure, i - before[k]);
            if (sequences < 1 || sequences > MOST_SEQUENCES) continue;
            if (are_ends(word_at(structure, i), sequences) && are_ends(word_at(structure, i + 1), sequences)) return i;
        }
    return words;
}

static size_t find_addresses(const struct plim_kernel *kernel, const void *structure, size_t bytes, uintptr_t *out,
                             size_t room)
{
    size_t count = 0, words = bytes / sizeof(*out);
    size_t ends = kernel->name && strstr(kernel->name, "16Flash_") ? find_ends(structure, words) : words;
    for (size_t i = 0; i < words && count < room; i++) {
        if (i == ends || i == ends + 1) continue;
        out[count] = word_at(structure, i);
        count += plim_heap_is_device(out[count]);
    }
    return count;
}

size_t plim_writes_plain(const struct plim_kernel *kernel, void *const *arguments,
                         uintptr_t out[32])
{
    size_t count = 0;
    const struct plim_signature *signature = &kernel->signature;
    for (int i = 0; arguments && i < signature->parameters && i < 32; i++) {
        if (!(signature->written >> i & 1)) continue;
        memcpy(&out[count], arguments[i], sizeof(*out));
        count += plim_heap_is_device(out[count]);
    }
    return count;
}

uintptr_t plim_writes_in_place(const struct plim_kernel *kernel, void *const *arguments)
{
    const struct plim_signature *signature = &kernel->signature;
    for (int i = 0; arguments && i < signature->parameters && i < 32; i++) {
        if (!(signature->written >> i & 1)) continue;
        const uintptr_t *operands = arguments[i];
        for (size_t k = 1; k < signature->structure_bytes[i] / sizeof(*operands); k++)
            if (operands[k] == operands[0]) return operands[0];
    }
    return 0;
}

size_t plim_writes_find(const struct plim_kernel *kernel, const struct gpu_dim3 *grid, void *const *arguments,
                        uintptr_t *out)
{
    const struct plim_signature *signature = &kernel->signature;
    size_t count = plim_writes_plain(kernel, arguments, out);
    size_t launch_bytes = plim_family_bytes(kernel->plan, grid, arguments);
    for (int i = 0; arguments && i < signature->parameters && i < 32; i++)
        if (signature->structures >> i & 1)
            count += find_addresses(kernel, arguments[i], room_of(signature, arguments, i, i ? 0 : launch_bytes),
                                    out + count, PLIM_WRITES - count);
    return count;
}

void plim_writes_spoil(const uintptr_t *written, size_t count, const char *writer)
{
    for (size_t i = 0; i < count; i++) {
        struct plim_block block = plim_block_find(written[i]);
        plim_shadow_spoil(block.at, block.bytes, writer);
    }
}
