/* Streams, events and captures. Nothing runs in them, so work in a stream is complete at once. Only what a program can
 * query is kept: flags, priorities, whether a stream captures and into which graph, and when an event was recorded (the
 * time is not that of a GPU: event_time.h).
 *
 * All int results are CUDA error codes. A stream that is being captured collects its work in a graph, and so do streams
 * that wait for an event recorded there, until the capture ends. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_STREAM_H
#define PLIM_DEVICES_VIRTUAL_WORK_STREAM_H

#include "cuda_graph.h"

struct plim_stream {
    int device, priority;
    unsigned flags;
    uint64_t id;
    struct plim_capture *capture; /* NULL: not capturing */
    bool began_capture;           /* the capture began on this stream and must end on it */
};

struct plim_event {
    int device;
    unsigned flags;
    bool recorded;
    int64_t launches, lost_nanoseconds; /* of the process when the event was recorded (event_time.h) */
    uint64_t capture_id; /* capture in which it was recorded; 0: none */
};

/* The program owns streams and events until it destroys them. */
int plim_stream_create(unsigned flags, int priority, struct plim_stream **out);
int plim_stream_destroy(struct plim_stream *stream);
/* Returns the object of a stream handle; default streams are created when first used. */
struct plim_stream *plim_stream_of(void *handle);

int plim_event_create(unsigned flags, struct plim_event **out);
int plim_event_destroy(struct plim_event *event);
int plim_event_record(struct plim_event *event, struct plim_stream *stream);
int plim_event_seconds(const struct plim_event *from, const struct plim_event *to, double *out);
/* The current launch takes this much longer than others, in nanoseconds (event_time.h). */
void plim_event_lose(int64_t nanoseconds);
int plim_stream_wait(struct plim_stream *stream, const struct plim_event *event);

/* Synchronising is forbidden during a capture and invalidates it: ending it then gives GPU_CAPTURE_INVALIDATED. */
int plim_stream_synchronize(struct plim_stream *stream);

int plim_capture_begin(struct plim_stream *stream, struct plim_graph *into);
int plim_capture_end(struct plim_stream *stream, struct plim_graph **out);
enum gpu_capture_status plim_capture_status(const struct plim_stream *stream, uint64_t *id,
                                            struct plim_graph **graph);
/* Returns the node on which new work of the stream will depend, or NULL. */
struct plim_node **plim_capture_last(const struct plim_stream *stream);
/* Add work to a stream. Return true if it was captured into a graph and must not happen now. */
bool plim_capture_add(struct plim_stream *stream, enum plim_node_type type);
bool plim_capture_add_graph(struct plim_stream *stream, const struct plim_graph *child);

/* Records for the last captured launch what it says about steps (steps_class.h), and whether a library made it. */
void plim_capture_record_class(struct plim_stream *stream, enum plim_steps_class steps_class,
                               bool is_library);
/* Records where it may write. */
void plim_capture_writes(struct plim_stream *stream, const uintptr_t *written, size_t count);
/* Records its cost. */
void plim_capture_cost(struct plim_stream *stream, const struct plim_cost *cost);

#endif
