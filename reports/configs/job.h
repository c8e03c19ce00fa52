/* The job that a trainer's config describes, as keys of a spec, by the rules of jobs.yaml for its framework.
 *
 * Nothing is computed or filled in: if something else fills in a value, the user may give the key on the command
 * line. */
#ifndef PLIM_REPORTS_CONFIGS_JOB_H
#define PLIM_REPORTS_CONFIGS_JOB_H

#include "patch_plan.h"

enum { PLIM_CONFIG_JOB_KEYS = 48, PLIM_CONFIG_JOB_NOTES = 16 };

struct plim_config_job_key {
    const char *key, *value; /* of the spec; the value as YAML */
    const char *place;       /* "train.yaml:12: bf16", for messages; for a default, the name of the file */
    bool mild;         /* omitted if it conflicts with the rest of the job */
};

/* Keys that the user gives; their rules are skipped. A section ("train.lora") stands for all its keys. */
struct plim_config_job_ask {
    const char *const *given; /* keys of the spec */
    size_t given_count;
    bool model_given;
};

struct plim_config_job {
    const struct plim_config_framework
        *framework;              /* NULL: no job was found, and the following fields are not set */
    const char *title;                         /* of the config's framework: "axolotl" */
    const struct plim_config_framework *other; /* the config's framework, if jobs.yaml has no rules for it; otherwise
                                                * NULL */
    bool is_script;  /* a launch script or a Python program */
    bool is_jobless; /* neither a known framework nor a spec, but a script or program, or a config that names a model */
    const char *model;           /* as written; NULL: given by the user, or not named */
    const char *model_file;      /* the file that names it */
    int64_t micro, accumulation; /* per GPU; 0: unknown */
    int64_t effective; /* batch of all GPUs from which the accumulation is computed; 0: none */
    int64_t world;               /* 0: not given */
    size_t key_count, note_count;
    struct plim_config_job_key keys[PLIM_CONFIG_JOB_KEYS];
    const char *notes[PLIM_CONFIG_JOB_NOTES]; /* settings that a plan does not model, one sentence each */
    char unplanned[256];                      /* the keys of those settings: "torch_compile, use_unsloth" */
    struct plim_arena arena;                  /* owns the texts */
    struct plim_config_plan plan;             /* the files */
};

/* Reads the config `path` and the files it names. `framework` is NULL if it is not a config, or jobs.yaml has no rules
 * for its framework. PLIM_SPEC if a value cannot be expressed in a spec, or a script cannot be parsed. Call
 * plim_config_job_finish() in any case. */
enum plim_status plim_config_job_read(const char *path, const struct plim_config_job_ask *ask,
                                      struct plim_config_job *out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_job_finish(struct plim_config_job *job); /* NULL and zeroed jobs are allowed */

#endif
