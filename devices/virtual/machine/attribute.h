/* Device attributes. One set of numbers serves the driver, the runtime and cudaDeviceProp, as on a real GPU:
 * cudaDeviceAttr and CUdevice_attribute have the same values. */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_ATTRIBUTE_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_ATTRIBUTE_H

#include "self.h"

/* The attributes used by plimsoll itself; attribute.c has all of them. */
enum gpu_attribute {
    GPU_ATTRIBUTE_PCI_BUS = 33,
    GPU_ATTRIBUTE_PCI_DEVICE = 34,
    GPU_ATTRIBUTE_PCI_DOMAIN = 50,
    GPU_ATTRIBUTE_MAJOR = 75,
    GPU_ATTRIBUTE_MINOR = 76,
};

/* Stores the value of an attribute; 0 for features that the GPU lacks. GPU_INVALID_DEVICE; GPU_INVALID_VALUE for an
 * attribute that no version of CUDA has. */
int plim_attribute_read(int device, int attribute, int *value);

/* Fills in cudaDeviceProp in the layout of CUDA 11, 12 (also for cudaGetDeviceProperties_v2) or 13. */
int plim_attribute_properties(int device, int cuda_major, void *out);

/* Writes the PCI address, as "0000:01:00.0". */
void plim_attribute_bus_id(int device, char *out, size_t size);
/* Returns the GPU at a PCI address, given as "domain:bus:device.function", "domain:bus:device" or "bus:device.function"
 * in hexadecimal; -1 if there is none. */
int plim_attribute_device_at(const char *bus_id);

#endif
