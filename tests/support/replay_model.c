#include "replay_model.h"
#include "workloads/spec/spec.h"
#include <criterion/criterion.h>

void replay_make_small(struct plim_model_config *model)
{
    model->vocab_size = 96;
    model->hidden_size = 32;
    model->intermediate_size = 48;
    model->layers = 2;
    model->heads = 4;
    model->kv_heads = 2;
    model->head_dim = 8;
}

void replay_model(struct plim_device *device, const char *name, int64_t layers,
                  const struct plim_train_setting *setting, struct plim_replay *out)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_spec_load(name, &spec, &err), PLIM_OK, "%s", err.text);
    spec.model.layers = layers;
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK, "%s", err.text);
    plim_replayer_destroy(&replayer);
}
