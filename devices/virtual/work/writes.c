#include "writes.h"
#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/memory/readable.h"
#include <string.h>

/* A structure's size is not known: few launches have more than this (from CUDA 12.1 on 32 KiB are allowed), and
 * one parameter ends where the next that lies behind it begins. */
enum { STRUCTURE_BYTES = 4096, PAGE_BYTES = 4096 };

/* `told`: what the launch tells of it; 0: nothing. */
static size_t room_of(const struct plim_signature *signature, void *const *arguments, int i, size_t told)
{
    uintptr_t at = (uintptr_t)arguments[i];
    size_t known = told ? told : signature->structure_bytes[i], room = known ? known : STRUCTURE_BYTES,
           page = PAGE_BYTES - at % PAGE_BYTES;
    for (int k = 0; k < signature->parameters && k < 32; k++) {
        uintptr_t other = (uintptr_t)arguments[k];
        if (other > at && other - at < room) room = other - at;
    }
    if (room > page && !plim_is_readable(arguments[i], PLIM_UNKNOWN_BYTES, page, room - page))
        room = page;
    return room;
}

static size_t look_through(const void *structure, size_t bytes, uintptr_t *out, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i + sizeof(uintptr_t) <= bytes && count < room; i += sizeof(uintptr_t)) {
        memcpy(&out[count], (const char *)structure + i, sizeof(*out));
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
    size_t count = plim_writes_plain(kernel, arguments, out), told = plim_family_bytes(kernel->plan, grid, arguments);
    for (int i = 0; arguments && i < signature->parameters && i < 32; i++)
        if (signature->structures >> i & 1)
            count += look_through(arguments[i], room_of(signature, arguments, i, i ? 0 : told), out + count,
                                  PLIM_WRITES - count);
    return count;
}

void plim_writes_spoil(const uintptr_t *written, size_t count, const char *writer)
{
    for (size_t i = 0; i < count; i++) {
        struct plim_block block = plim_block_find(written[i]);
        plim_shadow_spoil(block.at, block.bytes, writer);
    }
}
