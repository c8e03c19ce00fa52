/* Placing parts in scratch blocks; see placement.h. */
#include "placement.h"
#include "autotune/base/round.h"

/* Lays out the parts assigned to a block. Returns the space left; negative: too little. */
static int64_t lay_out(const struct plim_array *block, int number, struct plim_piece *pieces,
                       const int *block_of, int count)
{
    uint64_t at = block->data, end = at + (uint64_t)plim_array_bytes(block);
    bool done[PLIM_MAX_PIECES] = {false};
    for (int round = 0; round < count; round++) {
        int next = -1;
        for (int i = 0; i < count; i++)
            if (block_of[i] == number && !done[i] &&
                (next < 0 || pieces[i].alignment > pieces[next].alignment))
                next = i;
        if (next < 0) break;
        at = pieces[next].address = plim_round_up(at, pieces[next].alignment);
        at += (uint64_t)pieces[next].bytes;
        done[next] = true;
    }
    return (int64_t)(end - at);
}

static int largest_unplaced(const struct plim_piece *pieces, const int *block_of, int count)
{
    int largest = -1;
    for (int i = 0; i < count; i++)
        if (pieces[i].bytes && block_of[i] < 0 &&
            (largest < 0 || pieces[i].bytes > pieces[largest].bytes))
            largest = i;
    return largest;
}

bool plim_place(const struct plim_op *op, struct plim_piece *pieces, int count)
{
    int block_of[PLIM_MAX_PIECES] = {-1, -1, -1, -1};
    for (int i = 0; i < count; i++) pieces[i].address = 0;
    for (int piece; (piece = largest_unplaced(pieces, block_of, count)) >= 0;) {
        int best = -1;
        int64_t best_rest = INT64_MAX;
        for (int block = 0; block < op->n_scratch; block++) {
            block_of[piece] = block;
            int64_t rest = lay_out(op->scratch[block], block, pieces, block_of, count);
            if (rest < 0 || rest >= best_rest) continue;
            best = block;
            best_rest = rest;
        }
        if (best < 0) return false;
        block_of[piece] = best;
    }
    for (int block = 0; block < op->n_scratch; block++)
        lay_out(op->scratch[block], block, pieces, block_of, count);
    return true;
}
