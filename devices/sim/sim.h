/* The simulated device: a GPU of the catalogue, or a generic one, without hardware.
 *
 * Memory is counted, not allocated: a segment takes what cudaMalloc would (multiples of 2 MiB), pages take their own
 * size, and both get the addresses that the driver would choose (address_space.h). Time is given by the roofline clock
 * (roofline.h). Operations compute nothing; reads return zeros.
 *
 * A device is one small allocation, and opening one from a known GPU takes about a microsecond, so a search may open
 * one device for each GPU, or a single one and change its capacity between replays. */
#ifndef PLIM_DEVICES_SIM_H
#define PLIM_DEVICES_SIM_H

#include "devices/catalogue/catalogue.h"
#include "devices/device.h"
#include "score.h"

/* Opens the device named by the text after "sim:" in a URI:
 *   "RTX-4090"               a GPU of the catalogue, with the total that CUDA reports on it
 *   "RTX-4090,memory=20GiB"  the same GPU with another total; ",placement=ascending": catalogue.h
 *   "24GiB"                  a generic GPU of that size, otherwise an A100-SXM4-40GB: it
 *                            allocates as compute capability 8.0 does, at that GPU's speeds
 * PLIM_NODEVICE with the nearest names for an unknown GPU, PLIM_INVALID for a bad option. */
enum plim_status plim_sim_open(const char *uri_tail, struct plim_device **out,
                               struct plim_error *err) PLIM_MUST_CHECK;

/* Opens a simulated `gpu`, which is copied and need not be in the catalogue. `memory_bytes` is the
 * total memory; 0: the GPU's own. */
enum plim_status plim_sim_open_gpu(const struct plim_gpu *gpu, int64_t memory_bytes,
                                   struct plim_device **out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the GPU that a device simulates. */
const struct plim_gpu *plim_sim_gpu(const struct plim_device *device);

/* Sets how fast the host launches; see plim_roofline_host(). */
void plim_sim_host(struct plim_device *device, double share, bool is_known);

/* Records the events of the clock, from the next reset on (NULL: stops recording). The caller owns the recorder. */
void plim_sim_record(struct plim_device *device, struct plim_score_recorder *recorder);

/* Computes the readings that this device's clock would have given. The device is not changed. */
size_t plim_sim_play(struct plim_device *device, const struct plim_score *score,
                     struct plim_score_reading readings[PLIM_SCORE_READINGS]);

#endif
