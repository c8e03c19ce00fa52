/* The state while a recording's file is read, shared by the files that read it. */
#ifndef PLIM_WORKLOADS_RECORDING_READER_H
#define PLIM_WORKLOADS_RECORDING_READER_H

#include "autotune/base/yaml.h"
#include "recording.h"

struct plim_reader {
    struct plim_yaml yaml;
    struct plim_recording *out;
    struct plim_error *err;
    size_t events; /* of the streams read so far */
};

enum plim_status plim_reader_no_memory(const struct plim_reader *r);

/* plim_reader_get() gets a required key of this kind; plim_reader_int() reads an integer within bounds. Fail with
 * PLIM_SPEC. */
enum plim_status plim_reader_get(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                 const char *key, enum plim_yaml_kind kind,
                                 const struct plim_yaml_node **out) PLIM_MUST_CHECK;
enum plim_status plim_reader_int(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                 const char *key, int64_t least, int64_t most,
                                 int64_t *out) PLIM_MUST_CHECK;

/* Fails on unknown keys, because they may be essential. `known` is terminated by NULL. */
enum plim_status plim_reader_refuse_others(const struct plim_reader *r,
                                           const struct plim_yaml_node *mapping,
                                           const char *const *known) PLIM_MUST_CHECK;

/* Reads a number up to 2^60 at `*at`, and advances `*at`. Returns false if there are no digits or the number is
 * larger. */
bool plim_reader_number(const char **at, int64_t *out);

/* True if the node is exactly this text. */
bool plim_reader_is(const struct plim_yaml_node *node, const char *text);

/* Reads the launches of a stream, after its sizes (read_launches.c). */
enum plim_status plim_reader_launches(const struct plim_reader *r,
                                      const struct plim_yaml_node *mapping,
                                      struct plim_recorded_stream *stream) PLIM_MUST_CHECK;

/* Reads the next stream (read_stream.c). */
enum plim_status plim_reader_stream(struct plim_reader *r,
                                    const struct plim_yaml_node *node) PLIM_MUST_CHECK;

#endif
