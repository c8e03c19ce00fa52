#include "longest.h"

struct seeker {
    struct plim_prober *prober;
    const struct plim_spec *spec;
    const struct plim_batch_rule *rule;
    struct plim_error *err;
};

/* Does a sequence fit with any of the other settings, at the smallest micro-batch? */
static enum plim_status fits_somehow(const struct seeker *s, int64_t seq, bool *fits)
{
    struct plim_space space = {0};
    struct plim_batch batch;
    const struct plim_sample *sample;
    const struct plim_int_axis one = {.count = 1, .values = {seq}};
    *fits = false;
    plim_batch_allowed(s->rule, plim_batch_next(s->rule, 0), &batch);
    enum plim_status st = plim_space_build(&space, s->spec, &one, s->err);
    for (size_t i = 0; i < space.points.count && !st && !*fits; i++) {
        struct plim_setting setting = plim_space_setting(&space.points.items[i], &batch);
        st = plim_probe(s->prober, &setting, PLIM_WANT_VERDICT, &sample, s->err);
        if (!st) *fits = sample->verdict == PLIM_OK;
    }
    plim_space_finish(&space);
    return st;
}

static enum plim_status longest_of_list(const struct seeker *s, const struct plim_int_axis *list,
                                        int64_t *longest)
{
    int64_t below = INT64_MAX, shortest = INT64_MAX;
    for (size_t n = 0; n < list->count; n++) {
        int64_t seq = 0;
        bool fits;
        for (size_t i = 0; i < list->count; i++) {
            if (list->values[i] < below && list->values[i] > seq) seq = list->values[i];
            if (list->values[i] < shortest) shortest = list->values[i];
        }
        below = *longest = seq;
        enum plim_status st = fits_somehow(s, seq, &fits);
        if (st || fits) return st;
    }
    *longest = shortest;
    return PLIM_OK;
}

/* Doubling, then bisection on the raster; the model's own limit is tried as it is. */
static enum plim_status longest_up_to(const struct seeker *s, int64_t limit, int64_t *longest)
{
    int64_t good = 0, bad = 0;
    bool fits;
    *longest = limit < PLIM_SEQ_RASTER ? limit : PLIM_SEQ_RASTER;
    for (int64_t seq = *longest; !bad && good < limit; seq = seq * 2 < limit ? seq * 2 : limit) {
        enum plim_status st = fits_somehow(s, seq, &fits);
        if (st) return st;
        if (fits) good = seq;
        else bad = seq;
    }
    while (good && bad && bad - good > PLIM_SEQ_RASTER) {
        int64_t middle = (good + (bad - good) / 2) / PLIM_SEQ_RASTER * PLIM_SEQ_RASTER;
        if (middle <= good) middle = good + PLIM_SEQ_RASTER;
        enum plim_status st = fits_somehow(s, middle, &fits);
        if (st) return st;
        if (fits) good = middle;
        else bad = middle;
    }
    if (good) *longest = good;
    return PLIM_OK;
}

enum plim_status plim_longest_sequence(struct plim_prober *prober, const struct plim_spec *spec,
                                       const struct plim_batch_rule *rule,
                                       struct plim_int_axis *seqs, struct plim_error *err)
{
    struct seeker s = {.prober = prober, .spec = spec, .rule = rule, .err = err};
    int64_t longest = 0, positions = spec->model.positions;
    enum plim_status st =
        spec->seq.count ? longest_of_list(&s, &spec->seq, &longest)
                        : longest_up_to(&s, positions > 0 ? positions : PLIM_SEQ_MAX, &longest);
    if (!st) *seqs = (struct plim_int_axis){.count = 1, .values = {longest}};
    return st;
}
