/* The axes that a search may vary, and settings, which are one choice of values.
 *
 * An axis is a parameter that can be chosen: the sequence length, the precision, a `--axis` of the user's program. The
 * search knows only two things about its axes: which one counts tokens, and when two settings are equal. Whatever needs
 * the name of an axis or its values as text (the report, JSON, the worker's protocol, placeholders in a command) uses
 * this table, so a new axis is one row in the code that makes the question (run/spec_question.c for a spec,
 * exec/program_question.c for a program).
 *
 * The micro-batch and the accumulation are not axes: the search computes them (batch.h). */
#ifndef PLIM_AUTOTUNE_SEARCH_SETTING_H
#define PLIM_AUTOTUNE_SEARCH_SETTING_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLIM_AXES = 16, PLIM_AXIS_TEXT = 64 };

/* An axis. Names and values are owned by the maker of the question. */
struct plim_axis {
    char name[32];            /* as in reports and JSON: "precision" */
    const char *unit;         /* "tokens"; "": none */
    const char *const *names; /* values are indices into these; NULL: values are numbers */
    size_t count;             /* number of values, at least 1 */
    const int64_t *values;    /* distinct, in order of preference */
    bool is_users;            /* an axis of the user's own program */
    bool is_hidden;           /* not reported, since its only value is known from the spec */
};

struct plim_setting;

struct plim_axes {
    size_t count;
    struct plim_axis axis[PLIM_AXES];
    int seq; /* index of the axis of sequence lengths, the tokens of a row; -1: none */
    int64_t rows; /* rows of a sample, each of that many tokens; 0: one */
    int64_t more_tokens; /* additional tokens of each row, those of its target */
    /* The waterfall: axes in the order in which their preferred values are given up until a setting fits (space.h). */
    size_t waterfall_count;
    size_t waterfall[PLIM_AXES];
    /* Sets values that follow from others; may be NULL. Settings that are equal afterwards count as one. */
    void (*normalize)(struct plim_setting *setting);
    /* True if this point exists; others are left out of the search. NULL: all exist. */
    bool (*has)(const void *user, const struct plim_setting *point);
    const void *has_user;
};

/* A setting: samples per GPU and micro-step, micro-steps per optimizer step, and a value along each axis (0 beyond the
 * last axis). */
struct plim_setting {
    int64_t micro_batch, accumulation;
    int64_t value[PLIM_AXES];
};

bool plim_setting_equal(const struct plim_setting *a, const struct plim_setting *b);

/* True if they are equal except for micro-batch and accumulation. */
bool plim_setting_same_point(const struct plim_setting *a, const struct plim_setting *b);

/* Makes the values of the axes consistent (struct plim_axes, normalize). */
void plim_axes_normalize(const struct plim_axes *axes, struct plim_setting *setting);

/* Returns the index of an axis by name, or -1. */
int plim_axes_find(const struct plim_axes *axes, const char *name);

/* Reads the waterfall, a comma-separated list of axes. PLIM_INVALID: an axis does not exist, has a single value, or is
 * named twice. */
enum plim_status plim_axes_waterfall(struct plim_axes *axes, const char *list,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the sequence length of a setting; 1 without an axis of sequence lengths. */
int64_t plim_axes_seq(const struct plim_axes *axes, const struct plim_setting *setting);
/* Returns the number of tokens of a sample, in all its rows; 1 if tokens are not counted. */
int64_t plim_axes_tokens(const struct plim_axes *axes, const struct plim_setting *setting);

/* Returns the value along an axis as text, in `room` if it is a number. */
const char *plim_axes_text(const struct plim_axes *axes, const struct plim_setting *setting,
                           size_t axis, char room[PLIM_AXIS_TEXT]);

#endif
