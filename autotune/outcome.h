/* From what the search found to what the report says (reports/result.h), with its reasons. */
#ifndef PLIM_AUTOTUNE_OUTCOME_H
#define PLIM_AUTOTUNE_OUTCOME_H

#include "card.h"
#include "explain.h"
#include "tune.h"

/* Fill the zeroed `result`, which then stands on its own. PLIM_NOMEM is the only failure. */
enum plim_status plim_outcome_decision(const struct plim_card *card, const struct plim_spec *spec,
                                       const struct plim_prober *prober,
                                       const struct plim_decision *decision,
                                       struct plim_result *result,
                                       struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_outcome_explanation(const struct plim_card *card,
                                          const struct plim_spec *spec,
                                          const struct plim_explanation *explanation,
                                          struct plim_result *result,
                                          struct plim_error *err) PLIM_MUST_CHECK;

#endif
