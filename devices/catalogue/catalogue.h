/* The table of known GPUs. One YAML file (gpus.yaml), embedded in the executable at build time.
 *
 * What is not known of a GPU is absent: 0 here means "not known" (or "not supported" for a rate),
 * never a measured zero. Rates are dense tensor-core rates with fp32 accumulation, in FLOP/s.
 */
#ifndef PLIM_DEVICES_CATALOGUE_H
#define PLIM_DEVICES_CATALOGUE_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_gpu {
    char name[48];       /* without spaces: "RTX-4090" */
    char match[64];      /* as the driver calls it: "NVIDIA GeForce RTX 4090" */
    int compute_capability; /* 10 * major + minor */
    int multiprocessors;
    int64_t total_bytes;     /* as cudaMemGetInfo reports it (low end where it varies); where that
                                is not known, nvidia-smi's total; else the marketing size */
    double bandwidth;        /* bytes per second */
    double fp32, tf32, fp16, bf16, fp8; /* FLOP/s */
    double matmul_bf16_seen; /* FLOP/s: best large bf16 matmul that others reported; 0: none */
    double matmul_fp16_seen; /* the same in fp16, for GPUs whose tensor cores have no bf16 */
    double matmul_fp32_seen; /* the same in fp32, without TF32 */
    int64_t l2_bytes;
    int boost_mhz;
    double nvlink_bandwidth; /* bytes per second, both directions; 0: none */
    double pcie_bandwidth;   /* the same for the PCIe slot */
    int tdp_watts;
    bool ascending; /* simulated: each new segment lies above all earlier ones, as on the virtual GPU that
                       made the golden runs, and not where the driver would place it (address_space.h) */
};

/* Bytes per second that a GPU sends to the next one in an all-reduce among the GPUs of one machine;
 * 0: not known. An estimate: 0.8 of one direction of NVLink (nccl-tests reach 0.78 of an A100's and
 * 0.8 of an H100's), or of the PCIe slot where there is no NVLink. */
double plim_gpu_link_bandwidth(const struct plim_gpu *gpu);

/* Bytes per second between the GPU and pinned host memory; 0: not known. An estimate: 0.8 of one direction of the
 * PCIe slot (CUDA's bandwidthTest: 12.5 of 16 GB/s on PCIe 3; from memory, no source at hand). */
double plim_gpu_host_bandwidth(const struct plim_gpu *gpu);

/* All GPUs, in the order of the file. Parsed on first use, by whichever thread is first. The GPUs
 * live as long as the program. The count is 0 if the table itself is broken; plim_catalogue_find()
 * then says where. */
size_t plim_catalogue_count(void);

/* PLIM_OK where the table could be read; fails only for lack of host memory. */
enum plim_status plim_catalogue_check(struct plim_error *err) PLIM_MUST_CHECK;
const struct plim_gpu *plim_catalogue_at(size_t index);

/* By name, ignoring case and without regard to spaces, '-' and '_'; also by the driver's name, and by
 * a short form that leaves out the brand, the form factor or the memory size where that still names
 * one GPU ("4090", "H200-NVL"). PLIM_NODEVICE with the candidates in `err` when a short form
 * ("A100") means several, with the nearest names when there is none. */
enum plim_status plim_catalogue_find(const char *name, const struct plim_gpu **out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
