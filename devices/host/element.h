/* The elements of a strided array on the host, in row-major order of its shape.
 *
 * Whatever an array's strides and type, its elements `first` to `first + count` are read into, or written from,
 * contiguous numbers. A broadcast operand is a view with strides of 0; a matrix of a batch, or a row of the last
 * dimension, is a range of elements.
 *
 * Numbers are doubles, or int64 if operands and results are integers (then nothing is rounded). A double is stored with
 * op.h's rounding: to 16 bits via fp32, as on a device that computes in fp32. A float outside an integer's range
 * becomes the nearest end of the range and NaN becomes 0; an integer that is too large for a narrower type loses its
 * upper bits. */
#ifndef PLIM_DEVICES_HOST_ELEMENT_H
#define PLIM_DEVICES_HOST_ELEMENT_H

#include "autotune/base/status.h"
#include "devices/op.h"

/* Number of elements that elementwise operations process at a time. */
enum { PLIM_ELEMENTS_RUN = 256 };

void plim_elements_read(const struct plim_array *a, int64_t first, int64_t count, double *to);
void plim_elements_write(const struct plim_array *a, int64_t first, int64_t count,
                         const double *from);

/* The same for integer arrays. */
void plim_elements_read_integers(const struct plim_array *a, int64_t first, int64_t count,
                                 int64_t *to);
void plim_elements_write_integers(const struct plim_array *a, int64_t first, int64_t count,
                                  const int64_t *from);

/* True for int64, int32, uint8 and bool. */
bool plim_elements_are_integers(const struct plim_array *a);

/* Returns the number in a scalar, or in any array of one element. */
double plim_elements_scalar(const struct plim_array *a);

/* Broadcasts `a` to the shape of `like`. PLIM_INVALID if that is impossible. */
enum plim_status plim_elements_broadcast(const struct plim_array *a, const struct plim_array *like,
                                         struct plim_array *view) PLIM_MUST_CHECK;

bool plim_elements_same_shape(const struct plim_array *a, const struct plim_array *b);

/* Returns the size of the last dimension; 1 for a scalar. */
int64_t plim_elements_last(const struct plim_array *a);

#endif
