#include "steps_verdict.h"
#include <stddef.h>

int64_t plim_steps_needed(enum plim_steps_rule rule, int64_t wanted, int accumulation)
{
    enum {
        SOME = 16,
        MANY = 130, /* more than anyone accumulates */
    };
    int64_t unclear = rule <= PLIM_STEPS_BY_GRADIENTS ? MANY
                      : rule == PLIM_STEPS_BY_LISTS   ? SOME
                                                      : 0;
    int64_t known = (wanted + 2) * accumulation;
    if (unclear && accumulation > 0) unclear = known > SOME ? known : SOME;
    return wanted > unclear ? wanted : unclear;
}

static int64_t steady_needed(const struct plim_steps_state *state, int wanted, int accumulation)
{
    enum { UNLIKE = 10 }; /* factor for steps that differ */
    int64_t alike = wanted < 1 ? 1 : wanted;
    int64_t needed = plim_steps_needed(state->rule, alike, accumulation);
    /* A kind that first occurred at step N must have had the time to occur again. */
    int64_t fresh = state->steps - state->alike;
    bool is_unlike = state->alike < alike || state->alike < fresh || state->moves;
    return is_unlike && needed < UNLIKE * alike ? UNLIKE * alike : needed;
}

bool plim_steps_is_steady(const struct plim_steps_state *state, int wanted, int accumulation)
{
    return state->rule != PLIM_STEPS_BY_NOTHING && state->steps >= 2 &&
           state->steady >= steady_needed(state, wanted, accumulation);
}

const char *plim_steps_rule_name(enum plim_steps_rule rule)
{
    static const char *const names[] = {
        [PLIM_STEPS_BY_NOTHING] = "nothing",
        [PLIM_STEPS_BY_PERIOD] = "repeated launches",
        [PLIM_STEPS_BY_GRADIENTS] = "clipping or unscaling of gradients",
        [PLIM_STEPS_BY_LISTS] = "sums of tensor lists",
        [PLIM_STEPS_BY_WEIGHTS] = "writes to weights",
        [PLIM_STEPS_BY_OPTIMIZER] = "optimizer kernels",
        [PLIM_STEPS_BY_REPORT] = "its optimizer's own word",
    };
    size_t index = (size_t)rule; /* read from the program's memory, so it may have any value */
    return names[index < sizeof(names) / sizeof(names[0]) ? index : PLIM_STEPS_BY_NOTHING];
}
