/* The plan of the changes that `apply` makes to a set of files, made for all files first; nothing here writes.
 *
 * A file is recognised (framework.h), and its sizes are found (config_roles.h) and become edits of its bytes. If one
 * file is refused, all are. If every size of the job is filled in or computed by something else, there are no edits,
 * and `overrides` says how to set the sizes instead. */
#ifndef PLIM_REPORTS_CONFIGS_PATCH_PLAN_H
#define PLIM_REPORTS_CONFIGS_PATCH_PLAN_H

#include "autotune/base/text_stream.h"
#include "framework.h"
#include "config_places.h"
#include "reports/result.h"

enum { PLIM_CONFIG_FILES = 64, PLIM_CONFIG_SETS = 16 };

/* The user's request. Texts are owned by the caller. */
struct plim_config_ask {
    struct plim_config_sizes sizes;
    size_t phase_count; /* the answer's accumulation by epoch; 0: a single number */
    struct plim_result_phase phases[PLIM_RESULT_PHASES];
    /* The answer's setting besides its sizes; empty: unknown. `chose`: whether the search had a choice of this
     * value. */
    struct plim_result_setting setting;
    bool chose[PLIM_RESULT_VALUES];
    char use_reentrant[8]; /* "true" or "false", for checkpointing; "": none, or unknown */
    int64_t tokens;        /* micro-batch in tokens, for keys in that unit; 0: not given */
    const char *framework; /* name; NULL: recognised by its keys */
    const char *format;    /* name; NULL: by the file */
    const char *select;    /* section, line, or Hydra's group=name; NULL: none */
    size_t set_count;
    struct {
        const char *path;
        enum plim_config_role role;
    } sets[PLIM_CONFIG_SETS]; /* --set: the path of a size, for any framework */
};

/* Bytes to be replaced; an insertion has begin == end. Sorted by position. */
struct plim_config_edit {
    size_t begin, end;
    const char *text;                /* in the document's arena */
    const char *path;                /* of the value */
    const char *old, *new;           /* of the value; old NULL: the key is added */
    struct plim_config_node *node;   /* the value; NULL: added */
    struct plim_config_node *parent; /* added: the mapping to which it is added */
    const char *key;                 /* added: its key */
    int line;                        /* 1-based, before the edit */
    bool filler; /* a comma or line end that makes room for an added key */
};

struct plim_config_file {
    const char *path; /* as given */
    struct plim_config_document document;
    const struct plim_config_framework *framework; /* NULL: none of its keys was found */
    PLIM_ARRAY(struct plim_config_edit) edits;
    bool sized;      /* a size was found here, whether correct or to be edited */
    char *after;     /* the text with the edits; NULL: unchanged */
    size_t after_length;
};

struct plim_config_plan {
    size_t count;
    struct plim_config_file files[PLIM_CONFIG_FILES];
    struct plim_text_stream notes_stream;
    FILE *notes_file;  /* while planning */
    char *notes;       /* lines: values that follow, things to check; allocated with malloc */
    char *overrides;   /* lines for stdout; NULL: none needed */
    bool changes;      /* there is an edit */
    bool leave_open;   /* while planning: a file with "auto" everywhere leaves its sizes to the other files */
    struct plim_config_places places; /* while planning */
};

/* Makes the plan. PLIM_SPEC: refused, with place and reason; PLIM_IO; PLIM_NOMEM. Call plim_config_plan_finish() in any
 * case. */
enum plim_status plim_config_plan_make(const struct plim_config_ask *ask,
                                       const char *const *paths, size_t count,
                                       struct plim_config_plan *plan,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_plan_finish(struct plim_config_plan *plan);

/* Adds a line to `notes`. */
void plim_config_note(struct plim_config_plan *plan, const char *fmt, ...) PLIM_PRINTF(2, 3);

#endif
