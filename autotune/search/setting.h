/* The axes that a search may vary, and a setting, which is one choice.
 *
 * An axis is one thing that can be chosen: a sequence length, a precision, a `--axis` of the user's
 * own program. The search knows only two things about its axes: which one counts tokens, and when
 * two settings are equal. Everything that needs an axis's name or its values as text (the report,
 * JSON, the worker's protocol, placeholders in a command) goes through this table, so that a new
 * axis is one row where the question is made (run/spec_question.c for a spec, exec/program_question.c for a
 * program).
 *
 * The micro-batch and the accumulation are not axes: the search computes them (batch.h).
 */
#ifndef PLIM_AUTOTUNE_SEARCH_SETTING_H
#define PLIM_AUTOTUNE_SEARCH_SETTING_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLIM_AXES = 16, PLIM_AXIS_TEXT = 64 };

/* One axis. Names and values belong to the maker of the question. */
struct plim_axis {
    char name[32];            /* as in reports and JSON: "precision" */
    const char *unit;         /* "tokens"; "": none */
    const char *const *names; /* a value is an index into these; NULL: a value is a number */
    size_t count;             /* number of values, at least 1 */
    const int64_t *values;    /* the values, in the order of preference, without repetition */
    bool is_users;            /* an axis of the user's own program: reports list these as sizes */
    bool is_hidden;           /* not reported: its only value is known from the spec */
};

struct plim_setting;

struct plim_axes {
    size_t count;
    struct plim_axis axis[PLIM_AXES];
    int seq; /* the axis that gives the tokens of a row; -1: none */
    int64_t rows; /* rows of a sample, each with that many tokens; 0: one */
    int64_t more_tokens; /* further tokens of each row: those of its target */
    /* The waterfall: axes in the order in which their values are given up until something fits (space.h). */
    size_t waterfall_count;
    size_t waterfall[PLIM_AXES];
    /* Sets values that follow from others; NULL: none do. Settings that are equal afterwards count as
     * one. */
    void (*normalize)(struct plim_setting *setting);
    /* Does this point exist? NULL: all do. Others are left out of the search. */
    bool (*has)(const void *user, const struct plim_setting *point);
    const void *has_user;
};

/* One choice: samples per GPU and micro-step, micro-steps per optimizer step, and a value along each
 * axis (0 beyond the last). */
struct plim_setting {
    int64_t micro_batch, accumulation;
    int64_t value[PLIM_AXES];
};

bool plim_setting_equal(const struct plim_setting *a, const struct plim_setting *b);

/* Are they equal except for micro-batch and accumulation? */
bool plim_setting_same_point(const struct plim_setting *a, const struct plim_setting *b);

/* Makes the values of the axes consistent (struct plim_axes, normalize). */
void plim_axes_normalize(const struct plim_axes *axes, struct plim_setting *setting);

/* The index of an axis, or -1. */
int plim_axes_find(const struct plim_axes *axes, const char *name);

/* Reads the waterfall: names of axes with several values each, separated by commas. PLIM_INVALID: no
 * such axis, or one with a single value, or named twice. */
enum plim_status plim_axes_waterfall(struct plim_axes *axes, const char *list,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Tokens of a sample; 1 where no axis counts them. */
int64_t plim_axes_seq(const struct plim_axes *axes, const struct plim_setting *setting);
/* Tokens of all rows of a sample; 1 where nothing counts them */
int64_t plim_axes_tokens(const struct plim_axes *axes, const struct plim_setting *setting);

/* The value along an axis as text. `room` is used for numbers. */
const char *plim_axes_text(const struct plim_axes *axes, const struct plim_setting *setting,
                           size_t axis, char room[PLIM_AXIS_TEXT]);

#endif
