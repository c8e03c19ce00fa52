#include "minimum.h"
#include "toolkit.h"

const struct plim_cuda_minimum plim_cuda_minimum = {PLIM_CUDA_LEAST, PLIM_DRIVER_LEAST,
                                                    PLIM_CAPABILITY_LEAST};
