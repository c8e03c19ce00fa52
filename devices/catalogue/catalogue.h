/* The table of known GPUs. One YAML file (gpus.yaml), embedded in the executable at build time.
 *
 * Unknown values of a GPU are absent: 0 here means "unknown" (or "not supported" for a rate), never a measured zero.
 * Rates are dense tensor-core rates with fp32 accumulation, in FLOP/s. */
#ifndef PLIM_DEVICES_CATALOGUE_H
#define PLIM_DEVICES_CATALOGUE_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_gpu {
    char name[48];       /* without spaces: "RTX-4090" */
    char match[64];      /* the driver's name: "NVIDIA GeForce RTX 4090" */
    int compute_capability; /* 10 * major + minor */
    int multiprocessors;
    int64_t total_bytes;     /* as reported by cudaMemGetInfo (low end if it varies); if unknown, nvidia-smi's total;
                              * otherwise the marketing size */
    double bandwidth;        /* bytes per second */
    double fp32, tf32, fp16, bf16, fp8; /* FLOP/s */
    double matmul_bf16_seen; /* FLOP/s: best large bf16 matmul reported by others; 0: none */
    double matmul_fp16_seen; /* the same in fp16, for GPUs whose tensor cores have no bf16 */
    double matmul_fp32_seen; /* the same in fp32, without TF32 */
    int64_t l2_bytes;
    int boost_mhz;
    double nvlink_bandwidth; /* bytes per second, both directions; 0: none */
    double pcie_bandwidth;   /* the same for the PCIe slot */
    int tdp_watts;
    bool ascending; /* simulated: each new segment is placed above all earlier ones, as on the virtual GPU of the golden
                     * runs, and not where the driver would place it (address_space.h) */
};

/* Returns the bytes per second that a GPU sends to the next one in an all-reduce among the GPUs of one machine; 0 if
 * unknown. An estimate: 0.8 of one direction of NVLink (nccl-tests reach 0.78 of an A100's and 0.8 of an H100's), or of
 * the PCIe slot if there is no NVLink. */
double plim_gpu_link_bandwidth(const struct plim_gpu *gpu);

/* Returns the bytes per second between the GPU and pinned host memory; 0 if unknown. An estimate: 0.8 of one direction
 * of the PCIe slot (CUDA's bandwidthTest: 12.5 of 16 GB/s on PCIe 3; from memory, no source at hand). */
double plim_gpu_host_bandwidth(const struct plim_gpu *gpu);

/* Returns the number of GPUs, in the order of the file, which is parsed on first use, by whichever thread is first. The
 * GPUs live as long as the program. The count is 0 if the table itself is broken; plim_catalogue_find() then reports
 * where. */
size_t plim_catalogue_count(void);

/* Returns PLIM_OK if the table could be read; fails only if host memory runs out. */
enum plim_status plim_catalogue_check(struct plim_error *err) PLIM_MUST_CHECK;
const struct plim_gpu *plim_catalogue_at(size_t index);

/* Finds a GPU by name, ignoring case, spaces, '-' and '_'; also by the driver's name, and by a short form that omits
 * the brand, the form factor or the memory size if that still identifies one GPU ("4090", "H200-NVL"). PLIM_NODEVICE
 * with the candidates in `err` if a short form ("A100") is ambiguous, with the nearest names if there is none. */
enum plim_status plim_catalogue_find(const char *name, const struct plim_gpu **out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
