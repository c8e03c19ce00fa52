/* The values set in dropout descriptors. */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_DROPOUT_H
#define PLIM_DEVICES_VIRTUAL_DNN_DROPOUT_H

#include "dnn.h"

struct plim_dnn_dropout {
    float probability;
    void *states;
    unsigned long long seed;
};

/* Returns the values; all zero if they were never set. */
struct plim_dnn_dropout plim_dnn_dropout_of(const void *descriptor);

#endif
