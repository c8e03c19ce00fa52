/* Axes of choices of a spec. */
#ifndef PLIM_WORKLOADS_SPEC_AXIS_H
#define PLIM_WORKLOADS_SPEC_AXIS_H

#include <stddef.h>
#include <stdint.h>

enum { PLIM_MAX_CHOICES = 64 };

/* The choices along one axis, in the given order of preference. count 0: plimsoll chooses.
 * Enumerated axes are never empty after loading: a missing key has its default. */
struct plim_int_axis { size_t count; int64_t values[PLIM_MAX_CHOICES]; };
struct plim_enum_axis { size_t count; int values[PLIM_MAX_CHOICES]; };

#endif
