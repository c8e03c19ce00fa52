/* The job that a trainer's config describes, as keys of a spec: what jobs.yaml knows of its framework.
 *
 * Nothing is computed or filled in: a value that something else fills in is a matter for the user, who may say the key
 * himself.
 */
#ifndef PLIM_REPORTS_CONFIGS_JOB_H
#define PLIM_REPORTS_CONFIGS_JOB_H

#include "patch_plan.h"

enum { PLIM_CONFIG_JOB_KEYS = 48, PLIM_CONFIG_JOB_NOTES = 16 };

struct plim_config_job_key {
    const char *key, *value; /* of the spec, the value as YAML */
    const char *place;       /* "train.yaml:12: bf16", for messages; of a default the file's name */
    bool mild;         /* left out where it does not go with the rest of the job */
};

/* What the user says himself: no rule for these keys is looked at. A section ("train.lora") is all of its keys. */
struct plim_config_job_ask {
    const char *const *given; /* keys of the spec */
    size_t given_count;
    bool model_given;
};

struct plim_config_job {
    const struct plim_config_framework
        *framework;              /* NULL: no job was found, and nothing below is set */
    const char *title;                         /* of whose config it is: "axolotl" */
    const struct plim_config_framework *other; /* whose config it is, where its jobs are not known; NULL: nobody's */
    bool is_script;  /* it is a launch script or a program in Python */
    bool is_jobless; /* no framework, and no spec either: such a script, or a config that names a model */
    const char *model;           /* as it stands there; NULL: it is given, or not named */
    const char *model_file;      /* the file that names it */
    int64_t micro, accumulation; /* of a GPU; 0: not known */
    int64_t effective; /* the batch of all GPUs, of which the accumulation is worked out; 0: there is none */
    int64_t world;               /* 0: not said */
    size_t key_count, note_count;
    struct plim_config_job_key keys[PLIM_CONFIG_JOB_KEYS];
    const char *notes[PLIM_CONFIG_JOB_NOTES]; /* what is in no plan, a sentence each, */
    char unplanned[256];                      /* and their keys: "torch_compile, use_unsloth" */
    struct plim_arena arena;                  /* of the texts */
    struct plim_config_plan plan;             /* the files */
};

/* Reads the config `path` and the files that it names. Where it is none of a framework whose jobs are known, or no
 * config at all, `framework` is NULL. PLIM_SPEC: it is one, and a value in it has no place in a spec; or it is a script
 * that cannot be read. Finish it in any case. */
enum plim_status plim_config_job_read(const char *path, const struct plim_config_job_ask *ask,
                                      struct plim_config_job *out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_job_finish(struct plim_config_job *job); /* NULL and zeroed are fine */

#endif
