/* The CUDA runtime: copies and fills. The "kind" of a copy is ignored; the addresses determine the direction. */
#include "runtime.h"
#include "devices/virtual/memory/symbol.h"
#include "devices/virtual/work/transfer.h"

static int copy(void *to, const void *from, size_t bytes, void *stream)
{
    return plim_self_error(plim_transfer_plain(to, from, bytes, plim_stream_of(stream)));
}

ANSWER int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    (void)kind;
    return copy(to, from, bytes, NULL);
}
PER_THREAD(cudaMemcpy, _ptds)

ANSWER int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    (void)kind;
    return copy(to, from, bytes, stream);
}
PER_THREAD(cudaMemcpyAsync, _ptsz)

ANSWER int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    (void)to_device;
    (void)from_device;
    return copy(to, from, bytes, NULL);
}

ANSWER int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                               size_t bytes, void *stream)
{
    (void)to_device;
    (void)from_device;
    return copy(to, from, bytes, stream);
}

static int copy_rows(const struct plim_transfer *transfer, void *stream)
{
    return plim_self_error(plim_transfer(transfer, plim_stream_of(stream)));
}

ANSWER int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                             size_t width, size_t height, int kind, void *stream)
{
    (void)kind;
    return copy_rows(&(struct plim_transfer){to, from, to_pitch, from_pitch, width, height},
                     stream);
}
PER_THREAD(cudaMemcpy2DAsync, _ptsz)

ANSWER int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                        size_t height, int kind)
{
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}
PER_THREAD(cudaMemcpy2D, _ptds)

/* --- variables of modules ----------------------------------------------------------------------- */

static int symbol_at(const void *symbol, size_t offset, size_t bytes, char **at)
{
    uintptr_t address = 0;
    size_t size = 0;
    int failed = plim_symbol_find(symbol, &address, &size);
    if (!failed && (offset > size || bytes > size - offset)) failed = GPU_INVALID_VALUE;
    *at = (char *)address + offset;
    return plim_self_error(failed);
}

ANSWER int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                   int kind, void *stream)
{
    char *at;
    (void)kind;
    int failed = symbol_at(symbol, offset, bytes, &at);
    return failed ? failed : copy(at, from, bytes, stream);
}
PER_THREAD(cudaMemcpyToSymbolAsync, _ptsz)

ANSWER int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                              int kind)
{
    return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, NULL);
}
PER_THREAD(cudaMemcpyToSymbol, _ptds)

ANSWER int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                     int kind, void *stream)
{
    char *at;
    (void)kind;
    int failed = symbol_at(symbol, offset, bytes, &at);
    return failed ? failed : copy(to, at, bytes, stream);
}
PER_THREAD(cudaMemcpyFromSymbolAsync, _ptsz)

ANSWER int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, NULL);
}
PER_THREAD(cudaMemcpyFromSymbol, _ptds)

/* --- fills ------------------------------------------------------------------------------------ */

ANSWER int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
    return plim_self_error(plim_fill(to, (uint8_t)value, 1, bytes, plim_stream_of(stream)));
}
PER_THREAD(cudaMemsetAsync, _ptsz)

ANSWER int cudaMemset(void *to, int value, size_t bytes)
{
    return cudaMemsetAsync(to, value, bytes, NULL);
}
PER_THREAD(cudaMemset, _ptds)

ANSWER int cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                             void *stream)
{
    int failed = GPU_OK;
    for (size_t row = 0; row < height && !failed; row++)
        failed = cudaMemsetAsync((char *)to + row * pitch, value, width, stream);
    return failed;
}
PER_THREAD(cudaMemset2DAsync, _ptsz)

ANSWER int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return cudaMemset2DAsync(to, pitch, value, width, height, NULL);
}
PER_THREAD(cudaMemset2D, _ptds)
