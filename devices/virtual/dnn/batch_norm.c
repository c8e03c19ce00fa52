#include "dnn.h"

/* The workspace of cuDNN's persistent batch normalization in channels-last layout. It is undocumented; these numbers
 * are exactly those that cuDNN 9.10.2 and 9.19 returned for 27 shapes, and 9.19 for 19 more, whatever the GPU (the
 * functions were given the properties of a GPU instead of a handle, on a machine without one).
 *
 * A kernel processes a tile of channels and a number of rows (elements of a channel) at a time. It leaves two sums of 4
 * bytes per channel and, in the forward pass, a flag that they are ready. These follow a header and a counter per
 * tile. */
enum { BACKWARD_ROWS = 96, SUMS_BYTES = 8, SUMS_ALIGNMENT = 32, WORD = 4, FEW_CHANNELS = 4 };
enum { FORWARD_HEADER = 1072, BACKWARD_HEADER = 1056 };

struct kernel {
    int64_t channels, mark_bytes; /* of a tile */
};

static int64_t pieces(int64_t size, int64_t of) { return (size + of - 1) / of; }
static int64_t align(int64_t bytes, int64_t to) { return pieces(bytes, to) * to; }

static const struct kernel *kernel_for(int64_t channels)
{
    static const struct kernel wide = {64, WORD}, odd = {16, WORD}, few = {1, 1};
    if (channels % 4 == 0) return &wide;
    return channels < FEW_CHANNELS ? &few : &odd;
}

int64_t plim_dnn_batch_norm_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x)
{
    if (!plim_dnn_channels_last(x) || x->type == DNN_DOUBLE) return 0;
    int64_t channels = x->dimension[1], elements = 1;
    for (int i = 0; i < x->count; i++) elements *= x->dimension[i];
    const struct kernel *kernel = kernel_for(channels);
    int64_t tiles = channels < FEW_CHANNELS ? 1 : pieces(channels, kernel->channels);
    int64_t forward_rows = x->type == DNN_FLOAT ? 64 : 160;
    int64_t rows = pass == PLIM_DNN_FORWARD ? forward_rows : BACKWARD_ROWS;
    int64_t blocks = tiles * pieces(elements / channels, rows);
    int64_t sums = align(blocks * kernel->channels * SUMS_BYTES, SUMS_ALIGNMENT);
    if (pass != PLIM_DNN_FORWARD) return BACKWARD_HEADER + tiles * WORD + sums;
    return FORWARD_HEADER + tiles * WORD + sums + align(blocks * kernel->mark_bytes, WORD);
}
