#include "machine.h"
#include "devices/catalogue/architecture.h"
#include <stdio.h>
#include <string.h>

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
    const struct plim_architecture *of = plim_architecture_of(gpu->compute_capability);
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
