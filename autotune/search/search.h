/* The state of a search, on which the files of this folder work. */
#ifndef PLIM_AUTOTUNE_SEARCH_SEARCH_H
#define PLIM_AUTOTUNE_SEARCH_SEARCH_H

#include "decide.h"

struct plim_search {
    const struct plim_question *question;
    struct plim_known known;
    struct plim_prober *prober;
    struct plim_decision
        *decision; /* the rule, the points, their edges and candidates; the answer */
    size_t first, end; /* the points being searched: one level of a waterfall, or all */
    struct plim_error *err;
};

/* Initialises a search; `decision` must be zeroed. Fails as plim_batch_rule_init(). */
enum plim_status plim_search_init(struct plim_search *search, const struct plim_question *question,
                                  struct plim_prober *prober, struct plim_decision *decision,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Replaces the points, and their edges, by those of the question, with the given sequence lengths (NULL: the
 * question's). The search for an edge starts at that of the plan (NULL: none). */
enum plim_status plim_search_points(struct plim_search *search, const int64_t *seqs,
                                    size_t seq_count,
                                    const struct plim_decision *plan) PLIM_MUST_CHECK;

/* Returns the setting for a micro-batch of a point, as it is run while searching. */
struct plim_setting plim_search_setting(const struct plim_search *search, size_t point,
                                        int64_t micro_batch);

enum plim_status plim_search_no_memory(struct plim_search *search);

#endif
