/* A recording's file while it is read: what the files that read it share. */
#ifndef PLIM_WORKLOADS_RECORDING_READER_H
#define PLIM_WORKLOADS_RECORDING_READER_H

#include "autotune/base/yaml.h"
#include "recording.h"

struct plim_reader {
    struct plim_yaml yaml;
    struct plim_recording *out;
    struct plim_error *err;
    size_t events; /* of the streams that were read */
};

enum plim_status plim_reader_no_memory(const struct plim_reader *r);

/* A key that has to be there, of this kind; a whole number within bounds. PLIM_SPEC. */
enum plim_status plim_reader_get(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                 const char *key, enum plim_yaml_kind kind,
                                 const struct plim_yaml_node **out) PLIM_MUST_CHECK;
enum plim_status plim_reader_int(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                 const char *key, int64_t least, int64_t most,
                                 int64_t *out) PLIM_MUST_CHECK;

/* Keys that are not known may mean what a reader must not miss. `known` ends with NULL. */
enum plim_status plim_reader_refuse_others(const struct plim_reader *r,
                                           const struct plim_yaml_node *mapping,
                                           const char *const *known) PLIM_MUST_CHECK;

/* Digits at `*at`, which moves behind them, to at most 2^60; false: none, or more than that. */
bool plim_reader_number(const char **at, int64_t *out);

/* Is the node this very text? */
bool plim_reader_is(const struct plim_yaml_node *node, const char *text);

/* What a stream launches, behind its sizes (read_launches.c). */
enum plim_status plim_reader_launches(const struct plim_reader *r,
                                      const struct plim_yaml_node *mapping,
                                      struct plim_recorded_stream *stream) PLIM_MUST_CHECK;

/* The next stream (read_stream.c). */
enum plim_status plim_reader_stream(struct plim_reader *r,
                                    const struct plim_yaml_node *node) PLIM_MUST_CHECK;

#endif
