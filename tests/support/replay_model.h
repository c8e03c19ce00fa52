/* Jobs replayed on a device: link with replay_model_lib. */
#ifndef PLIM_TEST_REPLAY_MODEL_H
#define PLIM_TEST_REPLAY_MODEL_H

#include "workloads/train/replay.h"

/* Two layers of four heads, so small that it trains on the host. */
void replay_make_small(struct plim_model_config *model);

/* Of a model of the zoo with so many of its layers. A verdict is in *out; any other failure fails the test. */
void replay_model(struct plim_device *device, const char *name, int64_t layers,
                  const struct plim_train_setting *setting, struct plim_replay *out);

#endif
