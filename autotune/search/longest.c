#include "longest.h"
#include "search.h"

/* Sets *fits if the sequence length fits with any values of the other axes, at the smallest micro-batch. */
static enum plim_status fits_somehow(struct plim_search *s, int64_t seq, bool *fits)
{
    struct plim_space space = {0};
    struct plim_batch batch;
    const struct plim_sample *sample;
    *fits = false;
    plim_batch_allowed(&s->decision->rule, plim_batch_next(&s->decision->rule, 0), &batch);
    enum plim_status st = plim_space_build(&space, &s->question->axes, &seq, 1, s->err);
    for (size_t i = 0; i < space.points.count && !st && !*fits; i++) {
        struct plim_setting setting =
            plim_space_setting(&space.points.items[i], &batch, s->prober->runner);
        st = plim_probe(s->prober, &setting, PLIM_WANT_VERDICT, &sample, s->err);
        if (!st) *fits = sample->verdict == PLIM_OK;
    }
    plim_space_finish(&space);
    return st;
}

static enum plim_status longest_of_list(struct plim_search *s, const struct plim_axis *list,
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

/* Doubles from PLIM_SEQ_RASTER, then bisects in steps of it; the limit itself is tried too. */
static enum plim_status longest_up_to(struct plim_search *s, int64_t limit, int64_t *longest)
{
    int64_t good = 0, bad = 0;
    bool fits;
    *longest = limit < PLIM_SEQ_RASTER ? limit : PLIM_SEQ_RASTER;
    for (int64_t seq = *longest; !bad && good < limit; seq = seq * 2 < limit ? seq * 2 : limit) {
        enum plim_status st = fits_somehow(s, seq, &fits);
        if (st) return st;
        if (fits)
            good = seq;
        else
            bad = seq;
    }
    while (good && bad && bad - good > PLIM_SEQ_RASTER) {
        int64_t middle = (good + (bad - good) / 2) / PLIM_SEQ_RASTER * PLIM_SEQ_RASTER;
        if (middle <= good) middle = good + PLIM_SEQ_RASTER;
        enum plim_status st = fits_somehow(s, middle, &fits);
        if (st) return st;
        if (fits)
            good = middle;
        else
            bad = middle;
    }
    if (good) *longest = good;
    return PLIM_OK;
}

enum plim_status plim_longest_sequence(struct plim_search *s, int64_t *longest)
{
    const struct plim_question *q = s->question;
    return q->seq_by_default ? longest_up_to(s, q->seq_most, longest)
                             : longest_of_list(s, &q->axes.axis[q->axes.seq], longest);
}
