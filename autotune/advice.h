/* What would make a setting fit: each change replayed, with what it would need. */
#ifndef PLIM_AUTOTUNE_ADVICE_H
#define PLIM_AUTOTUNE_ADVICE_H

#include "probe.h"
#include "space.h"

struct plim_advice {
    char change[128];      /* "checkpointing full", "micro-batch 4, accumulation 4" */
    struct plim_setting setting;
    bool fits;
    int64_t peak_allocated_bytes,
        peak_reserved_bytes; /* under the budget if it fits, else what it would need */
};

struct plim_advices {
    PLIM_ARRAY(struct plim_advice)
    list; /* what fits first; else in the order of how little it changes */
};

/* Appends advice for `setting`, which does not fit. Single changes come first; only when none
 * of them is enough are they combined, until the sum fits. The effective batch stays as it is. */
enum plim_status plim_advise(struct plim_prober *prober, const struct plim_spec *spec,
                             const struct plim_setting *setting, struct plim_advices *advices,
                             struct plim_error *err) PLIM_MUST_CHECK;

void plim_advices_finish(struct plim_advices *advices); /* NULL and zeroed are fine */

#endif
