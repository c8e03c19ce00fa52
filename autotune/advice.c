#include "advice.h"
#include "workloads/spec/family.h"
#include <inttypes.h>
#include <stdio.h>

/* --- the changes ------------------------------------------------------------------------------ */

/* A change of one setting. `apply` says what it did in `text`, or returns false where there is
 * nothing to change. In the order of how little they ask of the user. */
struct change {
    bool (*apply)(const struct plim_spec *spec, struct plim_setting *s, char *text, size_t size);
    bool combines; /* may be part of a combination */
};

static bool use_sdpa(const struct plim_spec *spec, struct plim_setting *s, char *text, size_t size)
{
    (void)spec;
    if (s->attention != PLIM_ATTENTION_EAGER) return false;
    s->attention = PLIM_ATTENTION_SDPA;
    snprintf(text, size, "attention sdpa");
    return true;
}

static bool use_checkpointing(const struct plim_spec *spec, struct plim_setting *s, char *text,
                              size_t size)
{
    (void)spec;
    if (s->checkpointing == PLIM_CHECKPOINTING_FULL) return false;
    s->checkpointing = PLIM_CHECKPOINTING_FULL;
    snprintf(text, size, "checkpointing full");
    return true;
}

static bool use_fused(const struct plim_spec *spec, struct plim_setting *s, char *text, size_t size)
{
    (void)spec;
    if (s->optimizer != PLIM_OPTIMIZER_ADAMW) return false;
    s->optimizer = PLIM_OPTIMIZER_ADAMW_FUSED;
    snprintf(text, size, "optimizer adamw-fused");
    return true;
}

static bool use_autocast(const struct plim_spec *spec, struct plim_setting *s, char *text,
                         size_t size)
{
    (void)spec;
    if (s->precision != PLIM_PRECISION_FP32 && s->precision != PLIM_PRECISION_TF32) return false;
    s->precision = PLIM_PRECISION_BF16_MIXED;
    snprintf(text, size, "precision bf16-mixed");
    return true;
}

static bool use_8bit(const struct plim_spec *spec, struct plim_setting *s, char *text, size_t size)
{
    (void)spec;
    if (s->optimizer != PLIM_OPTIMIZER_ADAMW && s->optimizer != PLIM_OPTIMIZER_ADAMW_FUSED)
        return false;
    s->optimizer = PLIM_OPTIMIZER_ADAMW_8BIT;
    snprintf(text, size, "optimizer adamw-8bit");
    return true;
}

static bool use_bf16(const struct plim_spec *spec, struct plim_setting *s, char *text, size_t size)
{
    (void)spec;
    if (s->precision == PLIM_PRECISION_BF16 || s->precision == PLIM_PRECISION_FP16) return false;
    s->precision = PLIM_PRECISION_BF16;
    snprintf(text, size, "precision bf16");
    return true;
}

/* Adapters where peft puts them when it is not told. */
static bool use_lora(const struct plim_spec *spec, struct plim_setting *s, char *text, size_t size)
{
    const char *const *targets = plim_family_info(spec->model.family)->lora_default;
    size_t used = (size_t)snprintf(text, size, "LoRA r=16 on");
    if (s->lora.r || !targets[0]) return false;
    s->lora = (struct plim_lora){.r = 16};
    for (; targets[s->lora.target_count]; s->lora.target_count++) {
        const char *name = targets[s->lora.target_count];
        snprintf(s->lora.targets[s->lora.target_count], sizeof(s->lora.targets[0]), "%s", name);
        if (used < size) used += (size_t)snprintf(text + used, size - used, " %s", name);
    }
    return true;
}

static const struct change changes[] = {
    {use_sdpa, true}, {use_fused, false}, {use_checkpointing, true}, {use_autocast, true},
    {use_8bit, true}, {use_bf16, true},   {use_lora, true},
};

/* --- asking ----------------------------------------------------------------------------------- */

struct adviser {
    struct plim_prober *prober;
    const struct plim_spec *spec;
    struct plim_advices *advices;
    struct plim_error *err;
};

static void set_peak(struct plim_advice *advice, const struct plim_replay *replay)
{
    advice->peak_allocated_bytes = replay->peak_allocated_bytes;
    advice->peak_reserved_bytes = replay->peak_reserved_bytes;
}

/* Does it fit, and what does it need? `known` is false for what cannot run at all. */
static enum plim_status ask(struct adviser *a, struct plim_advice *advice, bool *known)
{
    const struct plim_sample *sample;
    const struct plim_memo_entry *entry;
    enum plim_status st = plim_probe_need(a->prober, &advice->setting, &entry, a->err);
    *known = !st && entry;
    if (!*known) return st;
    set_peak(advice, &entry->replay);
    st = plim_probe(a->prober, &advice->setting, PLIM_WANT_VERDICT, &sample, a->err);
    if (st) return st;
    advice->fits = sample->verdict == PLIM_OK;
    if (advice->fits) set_peak(advice, &sample->replay);
    return PLIM_OK;
}

/* More micro-steps than are searched with need no more memory (space.h). */
static int64_t probed(int64_t accumulation)
{
    return accumulation < PLIM_PROBED_STEPS ? accumulation : PLIM_PROBED_STEPS;
}

static enum plim_status keep(struct adviser *a, const struct plim_advice *advice)
{
    if (PLIM_ARRAY_PUSH(&a->advices->list, *advice) != PLIM_OK)
        return plim_fail(a->err, PLIM_NOMEM, "out of host memory");
    return PLIM_OK;
}

static enum plim_status single_changes(struct adviser *a, const struct plim_setting *setting)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct plim_advice advice = {.setting = *setting};
        bool known;
        advice.setting.accumulation = probed(setting->accumulation);
        if (!changes[i].apply(a->spec, &advice.setting, advice.change, sizeof(advice.change)))
            continue;
        enum plim_status st = ask(a, &advice, &known);
        if (!st && known) st = keep(a, &advice);
        if (st) return st;
    }
    return PLIM_OK;
}

/* The largest smaller micro-batch that fits, with more micro-steps for the same effective
 * batch; the smallest one when none does. */
static enum plim_status smaller_batch(struct adviser *a, const struct plim_setting *setting)
{
    int64_t samples = setting->micro_batch * setting->accumulation;
    struct plim_advice advice = {0};
    bool known = false;
    for (int64_t b = setting->micro_batch - 1; b > 0 && !(known && advice.fits); b--) {
        if (samples % b) continue;
        advice = (struct plim_advice){.setting = *setting};
        advice.setting.micro_batch = b;
        advice.setting.accumulation = probed(samples / b);
        snprintf(advice.change, sizeof(advice.change),
                 "micro-batch %" PRId64 ", accumulation %" PRId64, b, samples / b);
        enum plim_status st = ask(a, &advice, &known);
        if (st) return st;
    }
    return known ? keep(a, &advice) : PLIM_OK;
}

/* The sequence halved until it fits, at most to an eighth. */
static enum plim_status shorter_sequence(struct adviser *a, const struct plim_setting *setting)
{
    struct plim_advice advice = {0};
    bool known = false;
    for (int64_t part = 2; part <= 8 && setting->seq / part >= 64 && !(known && advice.fits);
         part *= 2) {
        advice = (struct plim_advice){.setting = *setting};
        advice.setting.seq = setting->seq / part;
        advice.setting.accumulation = probed(setting->accumulation);
        snprintf(advice.change, sizeof(advice.change), "sequence %" PRId64, advice.setting.seq);
        enum plim_status st = ask(a, &advice, &known);
        if (st) return st;
    }
    return known ? keep(a, &advice) : PLIM_OK;
}

static void append_text(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? " + " : "", more);
}

/* One sample at a time and the changes on top of each other, until it fits. */
static enum plim_status combination(struct adviser *a, const struct plim_setting *setting)
{
    struct plim_advice advice = {.setting = *setting};
    bool known = false;
    int applied = 0;
    advice.setting.accumulation = probed(setting->accumulation);
    if (setting->micro_batch > 1) {
        advice.setting.micro_batch = 1;
        advice.setting.accumulation = probed(setting->micro_batch * setting->accumulation);
        append_text(advice.change, sizeof(advice.change), "micro-batch 1");
        applied++;
    }
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char text[64];
        struct plim_advice next = advice;
        if (!changes[i].combines || !changes[i].apply(a->spec, &next.setting, text, sizeof(text)))
            continue;
        append_text(next.change, sizeof(next.change), text);
        bool runs = true;
        if (++applied > 1) {
            enum plim_status st = ask(a, &next, &runs);
            if (st) return st;
        }
        if (!runs) continue;
        advice = next;
        known = applied > 1;
        if (advice.fits) break;
    }
    return known ? keep(a, &advice) : PLIM_OK;
}

static bool any_fits(const struct plim_advices *advices)
{
    for (size_t i = 0; i < advices->list.count; i++)
        if (advices->list.items[i].fits) return true;
    return false;
}

/* What fits to the front; otherwise the order stays. */
static void put_fitting_first(struct plim_advices *advices)
{
    struct plim_advice *list = advices->list.items;
    size_t front = 0;
    for (size_t i = 0; i < advices->list.count; i++) {
        if (!list[i].fits) continue;
        struct plim_advice found = list[i];
        memmove(&list[front + 1], &list[front], (i - front) * sizeof(list[0]));
        list[front++] = found;
    }
}

enum plim_status plim_advise(struct plim_prober *prober, const struct plim_spec *spec,
                             const struct plim_setting *setting, struct plim_advices *advices,
                             struct plim_error *err)
{
    struct adviser a = {.prober = prober, .spec = spec, .advices = advices, .err = err};
    if (prober->runner->budget_bytes <= 0) return PLIM_OK;
    enum plim_status st = smaller_batch(&a, setting);
    if (!st) st = single_changes(&a, setting);
    if (!st) st = shorter_sequence(&a, setting);
    if (!st && !any_fits(advices)) st = combination(&a, setting);
    put_fitting_first(advices);
    return st;
}

void plim_advices_finish(struct plim_advices *advices)
{
    if (advices) PLIM_ARRAY_FINISH(&advices->list);
}
