/* A job replayed once on a device: link with replay_model_lib. */
#ifndef PLIM_TEST_REPLAY_MODEL_H
#define PLIM_TEST_REPLAY_MODEL_H

#include "workloads/train/replay.h"

/* Of a model of the zoo with so many of its layers. A verdict is in *out; any other failure fails the test. */
void replay_model(struct plim_device *device, const char *name, int64_t layers,
                  const struct plim_train_setting *setting, struct plim_replay *out);

#endif
