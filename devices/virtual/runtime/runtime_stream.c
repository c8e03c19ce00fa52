/* The CUDA runtime: streams, events, captures. */
#include "devices/virtual/memory/ipc.h"
#include "devices/virtual/memory/pool.h"
#include "runtime.h"
#include "devices/virtual/work/stream.h"
#include "devices/virtual/work/transfer.h"
#include "devices/virtual/machine/version.h"

/* --- streams ---------------------------------------------------------------------------------- */

static int create(void **out, unsigned flags, int priority)
{
    struct plim_stream *stream;
    int failed = plim_stream_create(flags, priority, &stream);
    *out = stream;
    return plim_self_error(failed);
}

ANSWER int cudaStreamCreate(void **out) { return create(out, 0, 0); }
ANSWER int cudaStreamCreateWithFlags(void **out, unsigned flags) { return create(out, flags, 0); }

ANSWER int cudaStreamCreateWithPriority(void **out, unsigned flags, int priority)
{
    return create(out, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
}

ANSWER int cudaStreamDestroy(void *stream)
{
    return plim_self_error(plim_stream_destroy(stream));
}

ANSWER int cudaStreamGetPriority(void *stream, int *priority)
{
    *priority = plim_stream_of(stream)->priority;
    return GPU_OK;
}
PER_THREAD(cudaStreamGetPriority, _ptsz)

ANSWER int cudaStreamGetFlags(void *stream, unsigned *flags)
{
    *flags = plim_stream_of(stream)->flags;
    return GPU_OK;
}
PER_THREAD(cudaStreamGetFlags, _ptsz)

ANSWER int cudaStreamGetId(void *stream, unsigned long long *id)
{
    *id = plim_stream_of(stream)->id;
    return GPU_OK;
}
PER_THREAD(cudaStreamGetId, _ptsz)

ANSWER int cudaStreamGetDevice(void *stream, int *device)
{
    *device = plim_stream_of(stream)->device;
    return GPU_OK;
}
PER_THREAD(cudaStreamGetDevice, _ptsz)

ANSWER int cudaStreamQuery(void *stream)
{
    return plim_self_error(plim_stream_synchronize(plim_stream_of(stream)));
}
PER_THREAD(cudaStreamQuery, _ptsz)

ANSWER int cudaStreamSynchronize(void *handle)
{
    struct plim_stream *stream = plim_stream_of(handle);
    int failed = plim_self_use_current();
    if (!failed) failed = plim_stream_synchronize(stream);
    if (!failed) failed = plim_transfer_wait();
    if (!failed) plim_pool_release_unused(stream->device);
    return plim_self_error(failed);
}
PER_THREAD(cudaStreamSynchronize, _ptsz)

ANSWER int cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    return plim_self_error(plim_stream_wait(plim_stream_of(stream), event));
}
PER_THREAD(cudaStreamWaitEvent, _ptsz)

/* All earlier work is already complete. */
ANSWER int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *user)
{
    if (!plim_capture_add(plim_stream_of(stream), PLIM_NODE_HOST)) function(user);
    return GPU_OK;
}
PER_THREAD(cudaLaunchHostFunc, _ptsz)

ANSWER int cudaStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *user,
                                 unsigned flags)
{
    (void)flags;
    function(stream, GPU_OK, user);
    return GPU_OK;
}
PER_THREAD(cudaStreamAddCallback, _ptsz)

/* Access policy, priority and so on; not stored. */
ANSWER int cudaStreamSetAttribute(void *stream, int attribute, const void *value)
{
    (void)stream;
    (void)attribute;
    (void)value;
    return GPU_OK;
}
PER_THREAD(cudaStreamSetAttribute, _ptsz)

ANSWER int cudaStreamCopyAttributes(void *to, void *from)
{
    (void)to;
    (void)from;
    return GPU_OK;
}
PER_THREAD(cudaStreamCopyAttributes, _ptsz)

/* --- events ----------------------------------------------------------------------------------- */

ANSWER int cudaEventCreateWithFlags(void **out, unsigned flags)
{
    struct plim_event *event;
    int failed = plim_event_create(flags, &event);
    *out = event;
    return plim_self_error(failed);
}

ANSWER int cudaEventCreate(void **out) { return cudaEventCreateWithFlags(out, 0); }
ANSWER int cudaEventDestroy(void *event) { return plim_self_error(plim_event_destroy(event)); }

ANSWER int cudaEventRecord(void *event, void *stream)
{
    return plim_self_error(plim_event_record(event, plim_stream_of(stream)));
}
PER_THREAD(cudaEventRecord, _ptsz)

ANSWER int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    (void)flags;
    return cudaEventRecord(event, stream);
}
PER_THREAD(cudaEventRecordWithFlags, _ptsz)

ANSWER int cudaEventQuery(void *event)
{
    return plim_self_error(event ? GPU_OK : GPU_INVALID_HANDLE);
}

ANSWER int cudaEventSynchronize(void *event)
{
    return plim_self_error(event ? plim_transfer_wait() : GPU_INVALID_HANDLE);
}

ANSWER int cudaEventElapsedTime(float *milliseconds, void *from, void *to)
{
    double seconds;
    int failed = plim_event_seconds(from, to, &seconds);
    *milliseconds = (float)(seconds * 1000);
    return plim_self_error(failed);
}

ANSWER int cudaEventElapsedTime_v2(float *milliseconds, void *from, void *to)
{
    return cudaEventElapsedTime(milliseconds, from, to);
}

ANSWER int cudaIpcGetEventHandle(void *handle, void *event)
{
    return plim_self_error(plim_ipc_event_export(event, handle));
}

ANSWER int cudaIpcOpenEventHandle(void **event, struct plim_ipc_handle handle)
{
    (void)handle;
    int failed = cudaEventCreateWithFlags(event, 0);
    return failed ? failed : cudaEventRecord(*event, NULL);
}

/* --- captures --------------------------------------------------------------------------------- */

static _Thread_local int capture_mode;

ANSWER int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return GPU_OK;
}

ANSWER int cudaStreamBeginCapture(void *stream, int mode)
{
    (void)mode;
    if ((uintptr_t)stream <= GPU_STREAM_LEGACY) return plim_self_error(GPU_CAPTURE_UNSUPPORTED);
    return plim_self_error(plim_capture_begin(plim_stream_of(stream), NULL));
}
PER_THREAD(cudaStreamBeginCapture, _ptsz)

ANSWER int cudaStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies,
                                         const void *edges, size_t count, int mode)
{
    (void)dependencies;
    (void)edges;
    (void)count;
    (void)mode;
    return plim_self_error(plim_capture_begin(plim_stream_of(stream), graph));
}
PER_THREAD(cudaStreamBeginCaptureToGraph, _ptsz)

ANSWER int cudaStreamEndCapture(void *stream, void **graph)
{
    struct plim_graph *captured;
    int failed = plim_capture_end(plim_stream_of(stream), &captured);
    *graph = captured;
    return plim_self_error(failed);
}
PER_THREAD(cudaStreamEndCapture, _ptsz)

ANSWER int cudaStreamIsCapturing(void *stream, int *status)
{
    *status = (int)plim_capture_status(plim_stream_of(stream), NULL, NULL);
    return GPU_OK;
}
PER_THREAD(cudaStreamIsCapturing, _ptsz)

struct capture_out {
    int *status;
    unsigned long long *id;
    void **graph;
    struct plim_node ***dependencies;
    size_t *count;
};

static int capture_info(void *handle, const struct capture_out *out)
{
    struct plim_stream *stream = plim_stream_of(handle);
    struct plim_graph *graph;
    uint64_t id;
    *out->status = (int)plim_capture_status(stream, &id, &graph);
    struct plim_node **last = plim_capture_last(stream);
    if (out->id) *out->id = id;
    if (out->graph) *out->graph = graph;
    if (out->dependencies) *out->dependencies = last;
    if (out->count) *out->count = last != NULL;
    return GPU_OK;
}

/* In CUDA 13 the plain name has edges; before, it returned only status and id. */
ANSWER int cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id,
                                       void **graph, struct plim_node ***dependencies,
                                       const void **edges, size_t *count)
{
    if (edges) *edges = NULL;
    return capture_info(stream, &(struct capture_out){status, id, graph, dependencies, count});
}
PER_THREAD(cudaStreamGetCaptureInfo_v3, _ptsz)

ANSWER int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id,
                                       void **graph, struct plim_node ***dependencies,
                                       size_t *count)
{
    return capture_info(stream, &(struct capture_out){status, id, graph, dependencies, count});
}
PER_THREAD(cudaStreamGetCaptureInfo_v2, _ptsz)

ANSWER int cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph,
                                    struct plim_node ***dependencies, const void **edges,
                                    size_t *count)
{
    if (plim_version_runtime() >= 13000)
        return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count);
    return capture_info(stream, &(struct capture_out){.status = status, .id = id});
}
PER_THREAD(cudaStreamGetCaptureInfo, _ptsz)

/* Dependencies are kept as one chain, so there is nothing to change. */
ANSWER int cudaStreamUpdateCaptureDependencies(void *stream)
{
    return plim_self_error(plim_stream_of(stream)->capture ? GPU_OK : GPU_CAPTURE_UNMATCHED);
}
PER_THREAD(cudaStreamUpdateCaptureDependencies, _ptsz)

ANSWER int cudaStreamUpdateCaptureDependencies_v2(void *stream)
{
    return cudaStreamUpdateCaptureDependencies(stream);
}
PER_THREAD(cudaStreamUpdateCaptureDependencies_v2, _ptsz)
