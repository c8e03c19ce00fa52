/* Streams, events and captures. Nothing runs in them, so work in a stream is complete
 * at once; only what a program can query is kept: flags, priorities, whether and into
 * what a stream captures, and when an event was recorded (see event_time.h: the time is not
 * that of a GPU).
 *
 * All results are CUDA error codes. A stream that is being captured takes its work into a graph,
 * and so do streams that wait for an event recorded there, until the capture ends.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_STREAM_H
#define PLIM_DEVICES_VIRTUAL_WORK_STREAM_H

#include "cuda_graph.h"

struct plim_stream {
    int device, priority;
    unsigned flags;
    uint64_t id;
    struct plim_capture *capture; /* NULL: none */
    bool began_capture;           /* this is where it has to end */
};

struct plim_event {
    int device;
    unsigned flags;
    bool recorded;
    int64_t launches, lost_nanoseconds; /* of the process up to the event (event_time.h) */
    uint64_t capture_id; /* recorded in this capture; 0: in none */
};

/* The program owns streams and events until it destroys them. */
int plim_stream_create(unsigned flags, int priority, struct plim_stream **out);
int plim_stream_destroy(struct plim_stream *stream);
/* The object behind a handle; default streams are created when first used. */
struct plim_stream *plim_stream_of(void *handle);

int plim_event_create(unsigned flags, struct plim_event **out);
int plim_event_destroy(struct plim_event *event);
int plim_event_record(struct plim_event *event, struct plim_stream *stream);
int plim_event_seconds(const struct plim_event *from, const struct plim_event *to, double *out);
/* The current launch takes this much longer than others (event_time.h). */
void plim_event_lose(int64_t nanoseconds);
int plim_stream_wait(struct plim_stream *stream, const struct plim_event *event);

/* Synchronising is forbidden in a capture and breaks it: ending it then gives GPU_CAPTURE_INVALIDATED. */
int plim_stream_synchronize(struct plim_stream *stream);

int plim_capture_begin(struct plim_stream *stream, struct plim_graph *into);
int plim_capture_end(struct plim_stream *stream, struct plim_graph **out);
enum gpu_capture_status plim_capture_status(const struct plim_stream *stream, uint64_t *id,
                                            struct plim_graph **graph);
/* The node that new work of the stream will depend on; NULL: none. */
struct plim_node **plim_capture_last(const struct plim_stream *stream);
/* Work for a stream. True: it was captured into a graph and must not happen now. */
bool plim_capture_take(struct plim_stream *stream, enum plim_node_type type);
bool plim_capture_take_graph(struct plim_stream *stream, const struct plim_graph *child);

/* Notes what the launch that was captured last says about steps (steps_class.h): its class, and whether it
 * is a library's. */
void plim_capture_note(struct plim_stream *stream, enum plim_steps_class steps_class,
                       bool is_library);
/* And where it may write. */
void plim_capture_writes(struct plim_stream *stream, const uintptr_t *written, size_t count);
/* And what it costs. */
void plim_capture_cost(struct plim_stream *stream, const struct plim_cost *cost);

#endif
