#include "search.h"

enum plim_status plim_search_no_memory(struct plim_search *search)
{
    return plim_no_memory(search->err);
}

enum plim_status plim_search_init(struct plim_search *search, const struct plim_question *question,
                                  struct plim_prober *prober, struct plim_decision *decision,
                                  struct plim_error *err)
{
    *search = (struct plim_search){
        .question = question, .prober = prober, .decision = decision, .err = err};
    decision->question = question;
    return plim_batch_rule_init(&decision->rule, &question->batch, err);
}

enum plim_status plim_search_points(struct plim_search *search, const int64_t *seqs,
                                    size_t seq_count, const struct plim_decision *plan)
{
    struct plim_decision *out = search->decision;
    enum plim_status st =
        plim_space_build(&out->space, &search->question->axes, seqs, seq_count, search->err);
    if (st) return st;
    search->first = 0;
    search->end = out->searched = out->space.points.count;
    out->edges.count = 0;
    for (size_t i = 0; i < out->space.points.count; i++) {
        struct plim_edge edge = {0};
        if (plan && plan->edges.items[i].exact) edge.planned = plan->edges.items[i].fits;
        if (i < search->known.hint_count) {
            edge.reserved = search->known.hints[i].reserved;
            edge.requested = search->known.hints[i].requested;
        }
        if (PLIM_ARRAY_PUSH(&out->edges, edge) != PLIM_OK) return plim_search_no_memory(search);
    }
    return PLIM_OK;
}

struct plim_setting plim_search_setting(const struct plim_search *search, size_t point,
                                        int64_t micro_batch)
{
    struct plim_batch batch;
    plim_batch_allowed(&search->decision->rule, micro_batch, &batch);
    return plim_space_setting(&search->decision->space.points.items[point], &batch,
                              search->prober->runner);
}
