#include "machine.h"
#include <stdio.h>
#include <string.h>

/* What the catalogue does not have, because every card of a compute capability has the same: the
 * table "Technical Specifications per Compute Capability" of the CUDA C Programming Guide. The
 * last row that is not above a card's is its own. Shared memory in KiB. */
static const struct architecture {
    int compute_capability, threads, blocks, shared_kib, shared_block_kib;
} architectures[] = {
    {60, 2048, 32, 64, 48},   {61, 2048, 32, 96, 48},   {70, 2048, 32, 96, 96},
    {75, 1024, 16, 64, 64},   {80, 2048, 32, 164, 163}, {86, 1536, 16, 100, 99},
    {87, 1536, 16, 164, 163}, {89, 1536, 24, 100, 99},  {90, 2048, 32, 228, 227},
    {110, 1536, 24, 228, 227}, {120, 1536, 24, 100, 99},
};

static const struct architecture *architecture_of(int compute_capability)
{
    const struct architecture *found = &architectures[0];
    for (size_t i = 1; i < sizeof(architectures) / sizeof(architectures[0]); i++)
        if (architectures[i].compute_capability <= compute_capability) found = &architectures[i];
    return found;
}

/* Data-sheet bandwidth is bus width x data rate; programs only multiply the two again. HBM's bus is
 * taken as 5120 bits, others' as 384. The clock that CUDA tells is half of the data rate. */
static void fill_memory_clock(struct plim_machine_card *card, const struct plim_gpu *gpu)
{
    card->memory_bus_bits = gpu->bandwidth > 1.3e12 ? 5120 : 384;
    card->memory_clock_khz =
        (int32_t)(gpu->bandwidth * 8 / card->memory_bus_bits / 2 / 1000);
}

void plim_machine_card_fill(struct plim_machine_card *card, const struct plim_gpu *gpu, int index)
{
    const struct architecture *of = architecture_of(gpu->compute_capability);
    *card = (struct plim_machine_card){
        .compute_capability = gpu->compute_capability,
        .multiprocessors = gpu->multiprocessors,
        .threads_per_multiprocessor = of->threads,
        .blocks_per_multiprocessor = of->blocks,
        .shared_per_multiprocessor = of->shared_kib << 10,
        .shared_per_block_optin = of->shared_block_kib << 10,
        .l2_bytes = (int32_t)gpu->l2_bytes,
        .clock_khz = gpu->boost_mhz * 1000,
        .total_bytes = gpu->total_bytes,
    };
    snprintf(card->name, sizeof(card->name), "%s", gpu->match);
    fill_memory_clock(card, gpu);
    memcpy(card->uuid, "plimsoll-virtual", sizeof(card->uuid));
    card->uuid[15] = (uint8_t)index;
}
