/* The reference model of TRL's DPOTrainer and GRPOTrainer (1.16), which scores the same rows as the trained model,
 * without gradients. With adapters the trained model without them is the reference. */
#ifndef PLIM_TRAIN_REFERENCE_H
#define PLIM_TRAIN_REFERENCE_H

#include "workloads/models/model.h"

/* Zeroed: there is no separate reference model. */
struct reference {
    struct plim_train_setting setting;
    struct decoder model; /* family NULL: there is no reference model */
};

/* Creates the reference, after the trained model, with the same setting, which is copied. Does nothing in other loops,
 * with adapters, or if the setting asks for no reference. */
enum plim_status reference_create(struct engine *e, const struct plim_model_config *config,
                                  const struct plim_train_setting *setting,
                                  struct reference *reference) PLIM_MUST_CHECK;
void reference_finish(struct reference *reference); /* frees host memory only */

#endif
