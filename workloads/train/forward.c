#include "forward.h"

bool forward_is_mixed(const struct training_run *r)
{
    enum plim_precision p = r->setting.precision;
    return (p == PLIM_PRECISION_BF16_MIXED || p == PLIM_PRECISION_FP16_MIXED) && !r->fsdp.model;
}

void forward_autocast(struct training_run *r, bool enters)
{
    bool is_fp16 = r->setting.precision == PLIM_PRECISION_FP16_MIXED;
    if (!forward_is_mixed(r)) return;
    if (enters) autocast_enter(r->e, is_fp16 ? PLIM_F16 : PLIM_BF16);
    else autocast_leave(r->e);
}

struct decoder *forward_model(struct training_run *r, bool by_reference)
{
    bool has_own = by_reference && r->reference.model.family;
    r->e->adapters_off = by_reference && !has_own;
    r->reference.setting.micro_batch = r->model.setting->micro_batch; /* which differs in evaluations */
    return has_own ? &r->reference.model : &r->model;
}

void forward_end_fsdp(struct training_run *r, struct tensor **output)
{
    fsdp_after_forward(r->e, &r->fsdp, *output, &output, 1);
}

struct tensor *forward_logits(struct training_run *r, struct decoder *m, const struct batch *batch, bool reduces,
                              struct tensor **logits)
{
    struct engine *e = r->e;
    struct batch given = *batch;
    fsdp_before_forward(e, &r->fsdp, reduces, &given);
    zero_before_forward(e, &r->zero, &given);
    forward_autocast(r, true);
    struct tensor *loss = decoder_loss(e, m, &given, logits);
    forward_autocast(r, false);
    *logits = trainer_loop_widen(e, m, *logits, forward_is_mixed(r));
    forward_end_fsdp(r, loss ? &loss : logits);
    zero_leave_model(e, &r->zero, 1);
    return loss;
}
