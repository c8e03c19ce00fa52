#include "plan.h"
#include "autotune/base/clock.h"
#include "outcome.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 16 };

/* One card's part. */
struct part {
    struct plim_card_order order;
    struct plim_card card;
    size_t class; /* index of the first card of its class */
    struct plim_result result;
    struct plim_error error;
    enum plim_status status;
};

struct planner {
    const struct plim_plan *plan;
    struct part *parts;
    size_t count;
    struct plim_memo *memos;  /* by class */
    struct plim_edge *hints;  /* of the first card */
    size_t hint_count;
    atomic_size_t next_class;
};

/* The twin's decision, which the card then proves; none where the card is simulated itself. */
static enum plim_status plan_ahead(struct planner *p, struct part *part,
                                   struct plim_decision *decision)
{
    struct plim_memo memo = {0};
    struct plim_prober prober = {
        .runner = &part->card.planner, .memo = &memo, .stop = p->plan->stop};
    struct plim_tuning tuning = {
        .spec = p->plan->spec, .objective = p->plan->objective, .prober = &prober};
    enum plim_status st = plim_tune(&tuning, decision, &part->error);
    plim_prober_finish(&prober);
    plim_memo_finish(&memo);
    return st;
}

static enum plim_status decide(struct planner *p, struct part *part, bool give_hints)
{
    struct plim_decision plan = {0}, decision = {0};
    bool real = part->card.planner.run != NULL;
    struct plim_prober prober = {.runner = &part->card.runner,
                                 .memo = &p->memos[part->class],
                                 .stop = p->plan->stop,
                                 .on_run = p->plan->on_run,
                                 .on_run_user = p->plan->user};
    struct plim_tuning tuning = {.spec = p->plan->spec,
                                 .objective = p->plan->objective,
                                 .prober = &prober,
                                 .hints = p->hints,
                                 .hint_count = p->hint_count,
                                 .plan = real ? &plan : NULL};
    enum plim_status st = real ? plan_ahead(p, part, &plan) : PLIM_OK;
    if (!st) st = plim_tune(&tuning, &decision, &part->error);
    if (!st)
        st = plim_outcome_decision(&part->card, p->plan->spec, &prober, &decision, &part->result,
                                   &part->error);
    if (!st && give_hints) {
        p->hints = decision.edges.items;
        p->hint_count = decision.edges.count;
        decision.edges.items = NULL;
    }
    plim_decision_finish(&decision);
    plim_decision_finish(&plan);
    plim_prober_finish(&prober);
    return st;
}

static void run_part(struct planner *p, size_t index)
{
    struct part *part = &p->parts[index];
    double start = plim_clock_seconds();
    /* Hints are by point, so every card needs the same points. */
    bool same_space = p->plan->objective != PLIM_OBJECTIVE_LONGEST_SEQUENCE;
    part->status = decide(p, part, index == 0 && same_space && p->count > 1);
    part->result.seconds = plim_clock_seconds() - start;
    plim_card_close(&part->card);
    part->card = (struct plim_card){0};
    if (p->plan->on_card) p->plan->on_card(p->plan->user);
}

/* Takes whole classes, in order, so that nobody waits for a memo. The first card is through
 * already. */
static void *work(void *user)
{
    struct planner *p = user;
    for (size_t class; (class = atomic_fetch_add(&p->next_class, 1)) < p->count;) {
        for (size_t i = class; i < p->count; i++)
            if (p->parts[i].class == class && i > 0) run_part(p, i);
        plim_memo_finish(&p->memos[class]);
    }
    return NULL;
}

static void run_others(struct planner *p)
{
    pthread_t threads[MAX_THREADS];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = processors < 1             ? 1
                    : processors > MAX_THREADS ? MAX_THREADS
                                               : (size_t)processors,
           started = 0;
    if (wanted > p->count - 1) wanted = p->count - 1;
    /* This thread works too; threads that cannot be started are not missed. */
    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, work, p)) started++;
    work(p);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

static enum plim_status open_cards(struct planner *p, const char *const *uris,
                                   struct plim_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        struct part *part = &p->parts[i];
        part->order = (struct plim_card_order){.uri = uris[i],
                                               .allowance = p->plan->allowance,
                                               .spec = p->plan->spec,
                                               .stop = p->plan->stop,
                                               .log = p->plan->log,
                                               .timing_seconds = p->plan->timing_seconds};
        enum plim_status st = plim_card_open(&part->card, &part->order, err);
        if (st) return st;
        part->class = i;
        for (size_t j = 0; j < i && part->class == i; j++)
            if (plim_card_same_class(&part->card, &p->parts[j].card))
                part->class = p->parts[j].class;
    }
    return PLIM_OK;
}

static enum plim_status collect(struct planner *p, struct plim_report *report,
                                struct plim_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        struct part *part = &p->parts[i];
        if (part->status) {
            if (err) *err = part->error;
            return part->status;
        }
        if (PLIM_ARRAY_PUSH(&report->results, part->result) != PLIM_OK)
            return plim_fail(err, PLIM_NOMEM, "out of host memory");
        part->result = (struct plim_result){0}; /* the report owns it now */
    }
    return PLIM_OK;
}

enum plim_status plim_plan_run(const struct plim_plan *plan, const char *const *uris, size_t count,
                               struct plim_report *report, struct plim_error *err)
{
    struct planner p = {.plan = plan, .count = count};
    enum plim_status st = PLIM_OK;
    p.parts = calloc(count, sizeof(*p.parts));
    p.memos = calloc(count, sizeof(*p.memos));
    if (!p.parts || !p.memos) st = plim_fail(err, PLIM_NOMEM, "out of host memory");
    if (!st) st = open_cards(&p, uris, err);
    if (!st && count) run_part(&p, 0);
    if (!st && count > 1 && !p.parts[0].status) run_others(&p);
    if (!st) st = collect(&p, report, err);
    for (size_t i = 0; p.parts && i < count; i++) {
        plim_card_close(&p.parts[i].card);
        plim_result_finish(&p.parts[i].result);
    }
    for (size_t i = 0; p.memos && i < count; i++) plim_memo_finish(&p.memos[i]);
    free(p.parts);
    free(p.memos);
    free(p.hints);
    return st;
}
