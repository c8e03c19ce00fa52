#include "stream.h"
#include "autotune/base/array.h"
#include "devices/virtual/record/stream.h"
#include <stdlib.h>

struct plim_capture {
    uint64_t id;
    struct plim_graph *graph;
    bool own_graph; /* created for this capture */
    bool broken;    /* an operation that captures forbid was called: no graph results */
    struct plim_node *last;
    PLIM_ARRAY(struct plim_stream *) streams;
    struct plim_capture *older; /* list of captures in progress */
};

static struct plim_capture *captures;

static void remove_stream(struct plim_capture *capture, const struct plim_stream *stream)
{
    struct plim_stream **items = capture->streams.items;
    size_t kept = 0;
    for (size_t i = 0; i < capture->streams.count; i++)
        if (items[i] != stream) items[kept++] = items[i];
    capture->streams.count = kept;
}

static struct plim_capture *find_capture(uint64_t id)
{
    plim_self_lock();
    struct plim_capture *capture = captures;
    while (capture && capture->id != id) capture = capture->older;
    plim_self_unlock();
    return capture;
}

/* --- streams ---------------------------------------------------------------------------------- */

int plim_stream_create(unsigned flags, int priority, struct plim_stream **out)
{
    int failed = plim_self_use_current();
    *out = NULL;
    if (failed) return failed;
    struct plim_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) return GPU_OUT_OF_MEMORY;
    *stream = (struct plim_stream){.device = plim_self_device(), .priority = priority,
                                   .flags = flags, .id = plim_self_new_id()};
    *out = stream;
    return GPU_OK;
}

int plim_stream_destroy(struct plim_stream *stream)
{
    if (!stream || (uintptr_t)stream <= GPU_STREAM_PER_THREAD) return GPU_INVALID_HANDLE;
    if (stream->capture) remove_stream(stream->capture, stream);
    free(stream);
    return GPU_OK;
}

struct plim_stream *plim_stream_of(void *handle)
{
    static struct plim_stream legacy[PLIM_MACHINE_GPUS];
    if ((uintptr_t)handle > GPU_STREAM_PER_THREAD) return handle;
    struct plim_stream *stream = &legacy[plim_self_device()];
    stream->device = plim_self_device();
    return stream;
}

int plim_stream_synchronize(struct plim_stream *stream)
{
    if (!stream->capture) return GPU_OK;
    stream->capture->broken = true;
    return GPU_CAPTURE_UNSUPPORTED;
}

/* --- events ----------------------------------------------------------------------------------- */

int plim_event_create(unsigned flags, struct plim_event **out)
{
    int failed = plim_self_use_current();
    *out = NULL;
    if (failed) return failed;
    struct plim_event *event = calloc(1, sizeof(*event));
    if (!event) return GPU_OUT_OF_MEMORY;
    event->device = plim_self_device();
    event->flags = flags;
    *out = event;
    return GPU_OK;
}

int plim_event_destroy(struct plim_event *event)
{
    if (!event) return GPU_INVALID_HANDLE;
    free(event);
    return GPU_OK;
}

static _Atomic int64_t lost_nanoseconds;

void plim_event_lose(int64_t nanoseconds) { lost_nanoseconds += nanoseconds; }

int plim_event_record(struct plim_event *event, struct plim_stream *stream)
{
    if (!event) return GPU_INVALID_HANDLE;
    event->capture_id = stream->capture ? stream->capture->id : 0;
    event->recorded = true;
    const struct plim_machine_process *process = plim_self_process();
    event->launches = process ? process->launches : 0;
    event->lost_nanoseconds = lost_nanoseconds;
    return GPU_OK;
}

/* A program that times kernels repeats those that take little time, and chooses by the difference that remains. */
int plim_event_seconds(const struct plim_event *from, const struct plim_event *to, double *out)
{
    const double of_launch = 0.01, of_nothing = 1e-6;
    *out = 0;
    if (!from || !to || !from->recorded || !to->recorded) return GPU_INVALID_HANDLE;
    if ((from->flags | to->flags) & GPU_EVENT_WITHOUT_TIME) return GPU_INVALID_HANDLE;
    *out = (double)(to->launches - from->launches) * of_launch +
           1e-9 * (double)(to->lost_nanoseconds - from->lost_nanoseconds) + of_nothing;
    return GPU_OK;
}

int plim_stream_wait(struct plim_stream *stream, const struct plim_event *event)
{
    if (!event) return GPU_INVALID_HANDLE;
    struct plim_capture *capture = event->capture_id ? find_capture(event->capture_id) : NULL;
    if (!capture || stream->capture == capture) return GPU_OK;
    if (stream->capture) return GPU_CAPTURE_MERGE;
    stream->capture = capture;
    return PLIM_ARRAY_PUSH(&capture->streams, stream) == PLIM_OK ? GPU_OK
                                                                        : GPU_OUT_OF_MEMORY;
}

/* --- captures --------------------------------------------------------------------------------- */

int plim_capture_begin(struct plim_stream *stream, struct plim_graph *into)
{
    if (stream->capture) return GPU_CAPTURE_UNMATCHED;
    if (plim_stream_is_on())
        plim_self_note("a CUDA graph: a recording has no pools of PyTorch's cache for it, without which "
                       "torch.compile's mode=\"reduce-overhead\" fails; exec runs it");
    struct plim_capture *capture = calloc(1, sizeof(*capture));
    if (!capture) return GPU_OUT_OF_MEMORY;
    capture->id = plim_self_new_id();
    capture->own_graph = !into;
    capture->graph = into ? into : plim_graph_create();
    if (!capture->graph || PLIM_ARRAY_PUSH(&capture->streams, stream) != PLIM_OK) {
        if (capture->own_graph) plim_graph_destroy(capture->graph);
        free(capture);
        return GPU_OUT_OF_MEMORY;
    }
    stream->capture = capture;
    stream->began_capture = true;
    plim_self_lock();
    capture->older = captures;
    captures = capture;
    plim_self_unlock();
    return GPU_OK;
}

int plim_capture_end(struct plim_stream *stream, struct plim_graph **out)
{
    struct plim_capture *capture = stream->capture;
    *out = NULL;
    if (!capture || !stream->began_capture) return GPU_CAPTURE_UNMATCHED;
    for (size_t i = 0; i < capture->streams.count; i++) capture->streams.items[i]->capture = NULL;
    stream->began_capture = false;
    bool broken = capture->broken;
    if (!broken) *out = capture->graph;
    else if (capture->own_graph) plim_graph_destroy(capture->graph);
    plim_self_lock();
    struct plim_capture **place = &captures;
    while (*place != capture) place = &(*place)->older;
    *place = capture->older;
    plim_self_unlock();
    PLIM_ARRAY_FINISH(&capture->streams);
    free(capture);
    return broken ? GPU_CAPTURE_INVALIDATED : GPU_OK;
}

enum gpu_capture_status plim_capture_status(const struct plim_stream *stream, uint64_t *id,
                                            struct plim_graph **graph)
{
    const struct plim_capture *capture = stream->capture;
    if (id) *id = capture ? capture->id : 0;
    if (graph) *graph = capture ? capture->graph : NULL;
    return !capture ? GPU_CAPTURE_NONE : capture->broken ? GPU_CAPTURE_BROKEN : GPU_CAPTURE_ACTIVE;
}

struct plim_node **plim_capture_last(const struct plim_stream *stream)
{
    return stream->capture && stream->capture->last ? &stream->capture->last : NULL;
}

/* Captured work depends on all work captured before it. */
static void append(struct plim_stream *stream, struct plim_node *node)
{
    node->before = stream->capture->last;
    stream->capture->last = node;
}

bool plim_capture_add(struct plim_stream *stream, enum plim_node_type type)
{
    struct plim_node *node;
    if (!stream->capture) return false;
    if (plim_graph_add(stream->capture->graph, type, &node) == GPU_OK) append(stream, node);
    return true;
}

bool plim_capture_add_graph(struct plim_stream *stream, const struct plim_graph *child)
{
    struct plim_node *node;
    if (!stream->capture) return false;
    if (plim_graph_add_child(stream->capture->graph, child, &node) == GPU_OK) append(stream, node);
    return true;
}

void plim_capture_record_class(struct plim_stream *stream, enum plim_steps_class steps_class,
                               bool is_library)
{
    if (stream->capture) plim_graph_record_class(stream->capture->graph, steps_class, is_library);
}

void plim_capture_writes(struct plim_stream *stream, const uintptr_t *written, size_t count)
{
    if (stream->capture) plim_graph_record_writes(stream->capture->graph, written, count);
}

void plim_capture_cost(struct plim_stream *stream, const struct plim_cost *cost)
{
    if (stream->capture) plim_graph_record_cost(stream->capture->graph, cost);
}
