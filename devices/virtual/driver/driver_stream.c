/* The CUDA driver: streams, events, captures. */
#include "driver_context.h"
#include "devices/virtual/memory/ipc.h"
#include "devices/virtual/work/transfer.h"

/* --- streams ---------------------------------------------------------------------------------- */

LIKE_RUNTIME(cuStreamCreate, cudaStreamCreateWithFlags, (void **out, unsigned flags), (out, flags))
LIKE_RUNTIME(cuStreamCreateWithPriority, cudaStreamCreateWithPriority,
             (void **out, unsigned flags, int priority), (out, flags, priority))
LIKE_RUNTIME(cuStreamDestroy_v2, cudaStreamDestroy, (void *stream), (stream))
ALSO(cuStreamDestroy_v2, cuStreamDestroy)
LIKE_RUNTIME(cuStreamGetPriority, cudaStreamGetPriority, (void *stream, int *priority),
             (stream, priority))
PER_THREAD(cuStreamGetPriority, _ptsz)
LIKE_RUNTIME(cuStreamGetFlags, cudaStreamGetFlags, (void *stream, unsigned *flags), (stream, flags))
PER_THREAD(cuStreamGetFlags, _ptsz)
LIKE_RUNTIME(cuStreamGetId, cudaStreamGetId, (void *stream, unsigned long long *id), (stream, id))
PER_THREAD(cuStreamGetId, _ptsz)
LIKE_RUNTIME(cuStreamGetDevice, cudaStreamGetDevice, (void *stream, int *device), (stream, device))
PER_THREAD(cuStreamGetDevice, _ptsz)
LIKE_RUNTIME(cuStreamQuery, cudaStreamQuery, (void *stream), (stream))
PER_THREAD(cuStreamQuery, _ptsz)
LIKE_RUNTIME(cuStreamSynchronize, cudaStreamSynchronize, (void *stream), (stream))
PER_THREAD(cuStreamSynchronize, _ptsz)
LIKE_RUNTIME(cuStreamWaitEvent, cudaStreamWaitEvent, (void *stream, void *event, unsigned flags),
             (stream, event, flags))
PER_THREAD(cuStreamWaitEvent, _ptsz)
LIKE_RUNTIME(cuLaunchHostFunc, cudaLaunchHostFunc,
             (void *stream, void (*function)(void *), void *user), (stream, function, user))
PER_THREAD(cuLaunchHostFunc, _ptsz)
LIKE_RUNTIME(cuStreamAddCallback, cudaStreamAddCallback,
             (void *stream, void (*function)(void *, int, void *), void *user, unsigned flags),
             (stream, function, user, flags))
PER_THREAD(cuStreamAddCallback, _ptsz)
LIKE_RUNTIME(cuStreamSetAttribute, cudaStreamSetAttribute,
             (void *stream, int attribute, const void *value), (stream, attribute, value))
PER_THREAD(cuStreamSetAttribute, _ptsz)
LIKE_RUNTIME(cuStreamCopyAttributes, cudaStreamCopyAttributes, (void *to, void *from), (to, from))
PER_THREAD(cuStreamCopyAttributes, _ptsz)

ANSWER int cuStreamAttachMemAsync(void) { return plim_driver_enter(); }
PER_THREAD(cuStreamAttachMemAsync, _ptsz)

ANSWER int cuStreamGetCtx(void *stream, void **context)
{
    int failed = plim_driver_enter();
    if (!failed) *context = plim_driver_context(plim_stream_of(stream)->device);
    return failed;
}
PER_THREAD(cuStreamGetCtx, _ptsz)

ANSWER int cuStreamGetCtx_v2(void *stream, void **context, void **green)
{
    *green = NULL;
    return cuStreamGetCtx(stream, context);
}
PER_THREAD(cuStreamGetCtx_v2, _ptsz)

/* --- stream memory operations ----------------------------------------------------------------- */

/* Waits return at once: nothing else could write the value, and all earlier work of the stream is complete. */
ANSWER int cuStreamWaitValue32(void) { return plim_driver_enter(); }
PER_THREAD(cuStreamWaitValue32, _ptsz)
ALSO(cuStreamWaitValue32, cuStreamWaitValue32_v2)
ALSO(cuStreamWaitValue32, cuStreamWaitValue32_v2_ptsz)
ALSO(cuStreamWaitValue32, cuStreamWaitValue64)
ALSO(cuStreamWaitValue32, cuStreamWaitValue64_ptsz)
ALSO(cuStreamWaitValue32, cuStreamWaitValue64_v2)
ALSO(cuStreamWaitValue32, cuStreamWaitValue64_v2_ptsz)

static int write_value(void *stream, void *at, const void *value, size_t bytes)
{
    int failed = plim_driver_enter();
    return failed ? failed : plim_transfer_plain(at, value, bytes, plim_stream_of(stream));
}

ANSWER int cuStreamWriteValue32(void *stream, void *at, uint32_t value, unsigned flags)
{
    (void)flags;
    return write_value(stream, at, &value, sizeof(value));
}
PER_THREAD(cuStreamWriteValue32, _ptsz)
ALSO(cuStreamWriteValue32, cuStreamWriteValue32_v2)
ALSO(cuStreamWriteValue32, cuStreamWriteValue32_v2_ptsz)

ANSWER int cuStreamWriteValue64(void *stream, void *at, uint64_t value, unsigned flags)
{
    (void)flags;
    return write_value(stream, at, &value, sizeof(value));
}
PER_THREAD(cuStreamWriteValue64, _ptsz)
ALSO(cuStreamWriteValue64, cuStreamWriteValue64_v2)
ALSO(cuStreamWriteValue64, cuStreamWriteValue64_v2_ptsz)

/* --- events ----------------------------------------------------------------------------------- */

LIKE_RUNTIME(cuEventCreate, cudaEventCreateWithFlags, (void **out, unsigned flags), (out, flags))
LIKE_RUNTIME(cuEventDestroy_v2, cudaEventDestroy, (void *event), (event))
ALSO(cuEventDestroy_v2, cuEventDestroy)
LIKE_RUNTIME(cuEventRecord, cudaEventRecord, (void *event, void *stream), (event, stream))
PER_THREAD(cuEventRecord, _ptsz)
LIKE_RUNTIME(cuEventRecordWithFlags, cudaEventRecordWithFlags,
             (void *event, void *stream, unsigned flags), (event, stream, flags))
PER_THREAD(cuEventRecordWithFlags, _ptsz)
LIKE_RUNTIME(cuEventQuery, cudaEventQuery, (void *event), (event))
LIKE_RUNTIME(cuEventSynchronize, cudaEventSynchronize, (void *event), (event))
LIKE_RUNTIME(cuEventElapsedTime, cudaEventElapsedTime, (float *milliseconds, void *from, void *to),
             (milliseconds, from, to))
ALSO(cuEventElapsedTime, cuEventElapsedTime_v2)

/* --- captures --------------------------------------------------------------------------------- */

LIKE_RUNTIME_ANYWHERE(cuThreadExchangeStreamCaptureMode, cudaThreadExchangeStreamCaptureMode,
                      (int *mode), (mode))
LIKE_RUNTIME(cuStreamBeginCapture_v2, cudaStreamBeginCapture, (void *stream, int mode),
             (stream, mode))
PER_THREAD(cuStreamBeginCapture_v2, _ptsz)
ALSO(cuStreamBeginCapture_v2, cuStreamBeginCapture)
ALSO(cuStreamBeginCapture_v2, cuStreamBeginCapture_ptsz)
LIKE_RUNTIME(cuStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph,
             (void *stream, void *graph, const void *dependencies, const void *edges, size_t count,
              int mode),
             (stream, graph, dependencies, edges, count, mode))
PER_THREAD(cuStreamBeginCaptureToGraph, _ptsz)
LIKE_RUNTIME(cuStreamEndCapture, cudaStreamEndCapture, (void *stream, void **graph),
             (stream, graph))
PER_THREAD(cuStreamEndCapture, _ptsz)
LIKE_RUNTIME(cuStreamIsCapturing, cudaStreamIsCapturing, (void *stream, int *status),
             (stream, status))
PER_THREAD(cuStreamIsCapturing, _ptsz)

LIKE_RUNTIME(cuStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo_v3,
             (void *stream, int *status, unsigned long long *id, void **graph,
              struct plim_node ***dependencies, const void **edges, size_t *count),
             (stream, status, id, graph, dependencies, edges, count))
PER_THREAD(cuStreamGetCaptureInfo_v3, _ptsz)

ANSWER int cuStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id,
                                     void **graph, struct plim_node ***dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}
PER_THREAD(cuStreamGetCaptureInfo_v2, _ptsz)

ANSWER int cuStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}
PER_THREAD(cuStreamGetCaptureInfo, _ptsz)

LIKE_RUNTIME(cuStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies,
             (void *stream), (stream))
PER_THREAD(cuStreamUpdateCaptureDependencies, _ptsz)
ALSO(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2)
ALSO(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2_ptsz)
