/* The second model of TRL's DPOTrainer and GRPOTrainer (1.16), which judges what the one that is trained judges, too,
 * without gradients. Beside adapters it is the same model without them. */
#ifndef PLIM_TRAIN_REFERENCE_H
#define PLIM_TRAIN_REFERENCE_H

#include "workloads/models/model.h"

/* Zeroed: there is no reference of its own. */
struct reference {
    struct plim_train_setting setting;
    struct decoder model; /* family NULL: there is none */
};

/* Behind the model that is trained, whose setting this is; `setting` is copied. Nothing in other loops, beside adapters
 * and where the setting asks for none. */
enum plim_status reference_create(struct engine *e, const struct plim_model_config *config,
                                  const struct plim_train_setting *setting,
                                  struct reference *reference) PLIM_MUST_CHECK;
void reference_finish(struct reference *reference); /* host memory only */

#endif
