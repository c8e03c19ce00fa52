#include "dropout.h"
#include <pthread.h>
#include <string.h>

/* The library can set these descriptors only with a handle of its own, but its other functions accept unset ones; so
 * the values are stored here. Programs create few descriptors, and a descriptor at a reused address is set again. */
enum { KEPT = 256 };
static struct { const void *descriptor; struct plim_dnn_dropout dropout; } kept[KEPT];
static size_t kept_count, next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct plim_dnn_dropout plim_dnn_dropout_of(const void *descriptor)
{
    struct plim_dnn_dropout dropout = {0};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < kept_count; i++)
        if (kept[i].descriptor == descriptor) dropout = kept[i].dropout;
    pthread_mutex_unlock(&lock);
    return dropout;
}

static void store_descriptor(const void *descriptor, const struct plim_dnn_dropout *dropout)
{
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < kept_count && kept[i].descriptor != descriptor) i++;
    if (i == kept_count && kept_count < KEPT) kept_count++;
    else if (i == kept_count) i = next++ % KEPT;
    kept[i].descriptor = descriptor;
    kept[i].dropout = *dropout;
    pthread_mutex_unlock(&lock);
}

/* cuRAND's XORWOW state, 48 bytes, for each thread of one block per multiprocessor (H200: 6,488,064 bytes). */
enum { STATE_BYTES = 48, THREADS = 1024 };

ANSWER int cudnnDropoutGetStatesSize(const struct plim_handle *handle, size_t *bytes)
{
    if (!handle || !bytes) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    const struct plim_machine_gpu *gpu = plim_self_gpu(handle->device);
    *bytes = (size_t)gpu->multiprocessors * THREADS * STATE_BYTES;
    return 0;
}

/* A kernel initialises the states. Without states only the probability is set. */
ANSWER int cudnnSetDropoutDescriptor(void *descriptor, const struct plim_handle *handle,
                                     float probability, void *states, size_t bytes,
                                     unsigned long long seed)
{
    (void)bytes;
    if (!descriptor || !handle) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    store_descriptor(descriptor, &(struct plim_dnn_dropout){probability, states, seed});
    return states ? plim_dnn_launch(handle, "cudnnSetDropoutDescriptor", 0,
                                    (const void *const *)&states, 1, NULL)
                  : 0;
}

ANSWER int cudnnRestoreDropoutDescriptor(void *descriptor, const struct plim_handle *handle,
                                         float probability, void *states, size_t bytes,
                                         unsigned long long seed)
{
    (void)bytes;
    if (!descriptor || !handle) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    store_descriptor(descriptor, &(struct plim_dnn_dropout){probability, states, seed});
    return 0;
}

ANSWER int cudnnGetDropoutDescriptor(const void *descriptor, const struct plim_handle *handle,
                                     float *probability, void **states, unsigned long long *seed)
{
    if (!descriptor || !handle) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    struct plim_dnn_dropout dropout = plim_dnn_dropout_of(descriptor);
    if (probability) *probability = dropout.probability;
    if (states) *states = dropout.states;
    if (seed) *seed = dropout.seed;
    return 0;
}
