/* Bytes as a function of batch and sequence length. */
#include "recording.h"

typedef __int128 wide; /* for products of sizes up to 2^60 and coefficients, whose ranges are checked explicitly */

/* A term above 2^100 is out of range whatever the others are; sums of eight do not overflow. */
static const wide WIDEST = (wide)1 << 100;

static const struct { int b, s; } powers[PLIM_RECORDED_TERMS] = {{0, 0}, {1, 0}, {0, 1}, {1, 1},
                                                                 {0, 2}, {1, 2}, {2, 0}, {3, 0}};
enum { DEGREES = 4, SQUARE_OF_BATCH = 6, CUBE_OF_BATCH = 7 };

/* --- evaluation ------------------------------------------------------------------------------- */

static bool multiply(wide *value, int64_t factor)
{
    if (*value > WIDEST / (factor ? factor : 1) || *value < -WIDEST / (factor ? factor : 1))
        return false;
    *value *= factor;
    return true;
}

/* Returns false if the value is out of range. The point is positive. */
static bool polynomial_at(const int64_t *terms, struct plim_recorded_point p, int64_t *out)
{
    wide sum = 0;
    for (int i = 0; i < PLIM_RECORDED_TERMS; i++) {
        wide term = terms[i];
        for (int k = 0; k < powers[i].b; k++)
            if (!multiply(&term, p.batch)) return false;
        for (int k = 0; k < powers[i].s; k++)
            if (!multiply(&term, p.seq)) return false;
        sum += term;
    }
    int64_t divisor = terms[PLIM_RECORDED_TERMS];
    if (divisor > 1) sum = sum / divisor + (sum % divisor > 0);
    if (sum > PLIM_MOST_BYTES || sum < -(wide)PLIM_MOST_BYTES) return false;
    *out = (int64_t)sum;
    return true;
}

/* True if a block exists at every batch, never shrinks with it, and grows. */
static bool grows(const struct plim_recorded_size *size)
{
    const struct plim_recorded_entry *e = size->entries;
    bool never_shrinks = size->count && e[0].bytes > 0;
    for (size_t i = 1; i < size->count && never_shrinks; i++)
        never_shrinks = e[i].point.batch == e[i - 1].point.batch || e[i].bytes >= e[i - 1].bytes;
    return never_shrinks && e[size->count - 1].bytes > e[0].bytes;
}

/* Returns the bytes beyond the last entry. */
static int64_t beyond_table(const struct plim_recorded_size *size, struct plim_recorded_point p)
{
    const struct plim_recorded_entry *last = &size->entries[size->count - 1];
    if (p.batch <= last->point.batch || !grows(size)) return last->bytes;
    wide bytes = (wide)last->bytes * p.batch / last->point.batch;
    return bytes > PLIM_MOST_BYTES ? -1 : (int64_t)bytes;
}

/* Returns the bytes of the smallest entry that is at least as large in both dimensions. */
static int64_t table_at(const struct plim_recorded_size *size, struct plim_recorded_point p)
{
    const struct plim_recorded_entry *best = NULL;
    for (size_t i = 0; i < size->count; i++) {
        const struct plim_recorded_entry *e = &size->entries[i];
        if (e->point.batch < p.batch || e->point.seq < p.seq) continue;
        if (!best || e->point.batch < best->point.batch ||
            (e->point.batch == best->point.batch && e->point.seq < best->point.seq))
            best = e;
    }
    return best ? best->bytes : beyond_table(size, p);
}

/* Returns the point with its length in chunks. */
static struct plim_recorded_point in_chunks(struct plim_recorded_point p, int64_t chunk)
{
    if (chunk > 1) p.seq = (p.seq - 1) / chunk + 1;
    return p;
}

/* If elements cannot be counted in 32 bits, PyTorch halves the longest dimension, and uses several launches; computes
 * the largest of them. */
static void halve(struct plim_reduce_launch *launch)
{
    while ((wide)launch->outputs * launch->inputs > INT32_MAX) {
        int64_t *longest = launch->outputs > launch->inputs ? &launch->outputs : &launch->inputs;
        *longest -= *longest / 2;
    }
}

static int64_t scratch_at(const struct plim_recorded_size *size, struct plim_recorded_point p,
                          const struct plim_device_info *gpu)
{
    static const struct plim_device_info none = {.threads_per_multiprocessor = 1};
    struct plim_reduce_launch launch = size->launch;
    if (!polynomial_at(size->outputs, p, &launch.outputs) || launch.outputs < 1 ||
        !polynomial_at(size->terms, p, &launch.inputs) || launch.inputs < 1)
        return -1;
    halve(&launch);
    struct plim_reduce_scratch needs = plim_reduce_launch_needs(gpu ? gpu : &none, &launch);
    return size->scratch == PLIM_RECORDED_PARTIALS ? needs.partials_bytes : needs.semaphores_bytes;
}

int64_t plim_recorded_size_at(const struct plim_recorded_size *size,
                              struct plim_recorded_point point, const struct plim_device_info *gpu)
{
    int64_t bytes = -1;
    point = in_chunks(point, size->chunk);
    if (size->is_table) return size->count ? table_at(size, point) : -1;
    if (size->scratch) return scratch_at(size, point, gpu);
    return polynomial_at(size->terms, point, &bytes) && bytes > 0 ? bytes : -1;
}

int64_t plim_recorded_size_guessed(const struct plim_recorded_size *size,
                                   struct plim_recorded_point point)
{
    int64_t most = 0;
    for (size_t i = 0; size->is_table && i < size->count; i++) {
        const struct plim_recorded_entry *e = &size->entries[i];
        if (e->point.batch == point.batch && e->point.seq == point.seq) return 0;
        if (e->bytes > most) most = e->bytes;
    }
    int64_t here = size->is_table && size->count ? table_at(size, point) : 0;
    return here > most ? here : most;
}

/* --- fitting ---------------------------------------------------------------------------------- */

/* Values at one sequence length each: the slopes over b, or the values at b = 0. */
struct samples {
    size_t count;
    int64_t at[PLIM_RECORDED_POINTS], value[PLIM_RECORDED_POINTS];
};

/* Finds integer coefficients up to this degree (at most DEGREES - 1) through all samples. At least one sample must
 * confirm them: fewer of them than samples are nonzero (except for a constant of a single sample). So three lengths are
 * enough for c*s*s, and four for a*s*s+b*s+c. Newton's divided differences at integers are integers if the coefficients
 * are. */
static bool fit_line(const struct samples *s, size_t degree, int64_t out[DEGREES])
{
    size_t most = s->count > degree ? degree + 1 : 1, used = 0;
    wide column[DEGREES], c[DEGREES] = {0}, basis[DEGREES] = {1}; /* (x - x0)(x - x1)... */
    for (size_t i = 0; i < most; i++) column[i] = s->value[i];
    for (size_t order = 0; order < most; order++) {
        for (size_t i = 0; i <= order; i++) c[i] += column[0] * basis[i];
        for (size_t i = order + 1; i > 0 && order + 1 < most; i--)
            basis[i] = basis[i - 1] - (wide)s->at[order] * basis[i];
        basis[0] *= -(wide)s->at[order];
        for (size_t i = 0; i + order + 1 < most; i++) {
            wide rise = column[i + 1] - column[i], run = s->at[i + order + 1] - s->at[i];
            if (rise % run) return false;
            column[i] = rise / run;
        }
    }
    for (int i = 0; i < DEGREES; i++) {
        if (c[i] > PLIM_MOST_BYTES || c[i] < -(wide)PLIM_MOST_BYTES) return false;
        out[i] = (int64_t)c[i];
        used += c[i] != 0;
    }
    if (used > 1 && used >= s->count) return false;
    for (size_t i = 0; i < s->count; i++) {
        wide x = s->at[i];
        if (c[0] + x * (c[1] + x * (c[2] + x * c[3])) != s->value[i]) return false;
    }
    return true;
}

/* Computes the line over b of the points with one sequence length, from those with the smallest and the largest batch.
 * `has_slope`: they are two. */
static bool line_over_batch(const struct plim_recorded_point *points, const int64_t *bytes,
                            size_t count, int64_t seq, int64_t *slope, int64_t *rest,
                            bool *has_slope)
{
    size_t low = count, high = count;
    for (size_t i = 0; i < count; i++) {
        if (points[i].seq != seq) continue;
        if (low == count || points[i].batch < points[low].batch) low = i;
        if (high == count || points[i].batch > points[high].batch) high = i;
    }
    int64_t run = points[high].batch - points[low].batch, rise = bytes[high] - bytes[low];
    *has_slope = run > 0;
    *slope = run ? rise / run : 0;
    if (run && rise % run) return false;
    *rest = bytes[low] - *slope * points[low].batch;
    return true;
}

static bool fit(const struct plim_recorded_point *points, const int64_t *bytes, size_t count,
                int64_t terms[PLIM_RECORDED_NUMBERS])
{
    struct samples slopes = {0}, rests = {0};
    int64_t slope_terms[DEGREES], rest_terms[DEGREES];
    bool is_of_one_batch = true;
    for (size_t i = 1; i < count; i++) is_of_one_batch &= points[i].batch == points[0].batch;
    for (size_t i = 0; i < count; i++) {
        bool is_new = true, has_slope;
        int64_t slope, rest;
        for (size_t k = 0; k < i; k++) is_new &= points[k].seq != points[i].seq;
        if (!is_new) continue;
        if (!line_over_batch(points, bytes, count, points[i].seq, &slope, &rest, &has_slope))
            return false;
        if (!has_slope && !is_of_one_batch) continue; /* such a length only confirms */
        size_t n = slopes.count++;
        rests.count = slopes.count;
        slopes.at[n] = rests.at[n] = points[i].seq;
        slopes.value[n] = slope; /* 0 if there is only one batch */
        rests.value[n] = rest;
    }
    if (!slopes.count || !fit_line(&slopes, 2, slope_terms) || !fit_line(&rests, 2, rest_terms))
        return false;
    for (int i = 0; i < SQUARE_OF_BATCH; i++)
        terms[i] = powers[i].b ? slope_terms[powers[i].s] : rest_terms[powers[i].s];
    size_t used = 0;
    for (int i = 0; i < PLIM_RECORDED_TERMS; i++) used += terms[i] != 0;
    if (used >= count) return false;
    for (size_t i = 0; i < count; i++) {
        int64_t value;
        if (!polynomial_at(terms, points[i], &value) || value != bytes[i]) return false;
    }
    return true;
}

/* Fits a polynomial of the batch alone, if all points have one length: for sizes of all pairs of samples, or all
 * triplets. Those of different samples are binomials of the batch, whose coefficients are integers divided by 2 or
 * 6. */
static bool fit_batch(const struct plim_recorded_point *points, const int64_t *bytes, size_t count,
                      int64_t terms[PLIM_RECORDED_NUMBERS])
{
    static const int64_t divisors[] = {1, 2, 6};
    struct samples samples = {.count = count};
    int64_t c[DEGREES];
    for (size_t i = 0; i < count; i++) {
        if (points[i].seq != points[0].seq || (i && points[i].batch <= points[i - 1].batch)) return false;
        samples.at[i] = points[i].batch;
    }
    bool fits = false;
    for (size_t k = 0; k < sizeof(divisors) / sizeof(divisors[0]) && !fits; k++) {
        for (size_t i = 0; i < count; i++) samples.value[i] = divisors[k] * bytes[i];
        for (size_t degree = 2; degree < DEGREES && !fits; degree++)
            fits = count > degree && fit_line(&samples, degree, c);
        terms[PLIM_RECORDED_TERMS] = k ? divisors[k] : 0;
    }
    if (!fits) return false;
    terms[0] = c[0];
    terms[1] = c[1];
    terms[SQUARE_OF_BATCH] = c[2];
    terms[CUBE_OF_BATCH] = c[3];
    return true;
}

/* The same with lengths in chunks, as large as possible: for what is allocated per 256 tokens. */
static bool fit_chunks(const struct plim_recorded_point *points, const int64_t *bytes, size_t count,
                       struct plim_recorded_size *out)
{
    struct plim_recorded_point chunks[PLIM_RECORDED_POINTS];
    for (int64_t chunk = PLIM_RECORDED_CHUNK; chunk > 1; chunk /= 2) {
        for (size_t i = 0; i < count; i++) chunks[i] = in_chunks(points[i], chunk);
        out->chunk = chunk;
        if (fit(chunks, bytes, count, out->terms)) return true;
    }
    out->chunk = 0;
    return false;
}

/* Returns false if no polynomial goes through the values. */
static bool fit_number(const struct plim_recorded_point *points, const int64_t *values,
                       size_t count, int64_t terms[PLIM_RECORDED_NUMBERS])
{
    bool is_constant = true;
    for (size_t i = 0; i < count; i++) is_constant &= values[i] == values[0];
    terms[0] = values[0];
    if (is_constant || fit(points, values, count, terms)) return true;
    memset(terms, 0, PLIM_RECORDED_NUMBERS * sizeof(*terms));
    return fit_batch(points, values, count, terms);
}

bool plim_recorded_size_fit_scratch(const struct plim_recorded_point *points,
                                    const struct plim_reduce_launch *launches, const int64_t *bytes,
                                    size_t count, enum plim_recorded_scratch scratch,
                                    const struct plim_device_info *gpu,
                                    struct plim_recorded_size *out)
{
    int64_t outputs[PLIM_RECORDED_POINTS], inputs[PLIM_RECORDED_POINTS];
    *out = (struct plim_recorded_size){.scratch = scratch, .launch = launches[0]};
    out->launch.outputs = out->launch.inputs = 0;
    if (!count) return false;
    for (size_t i = 0; i < count; i++) {
        if (!plim_reduce_launch_is_alike(&launches[i], &launches[0])) return false;
        outputs[i] = launches[i].outputs;
        inputs[i] = launches[i].inputs;
    }
    if (!fit_number(points, outputs, count, out->outputs) ||
        !fit_number(points, inputs, count, out->terms))
        return false;
    for (size_t i = 0; i < count; i++)
        if (plim_recorded_size_at(out, points[i], gpu) != bytes[i]) return false;
    return true;
}

enum plim_status plim_recorded_size_fit(const struct plim_recorded_point *points,
                                        const int64_t *bytes, size_t count,
                                        struct plim_recorded_size *out)
{
    *out = (struct plim_recorded_size){0};
    bool is_always = true; /* the block is allocated at every point */
    for (size_t i = 0; i < count; i++) is_always &= bytes[i] > 0;
    if (is_always && fit_number(points, bytes, count, out->terms)) return PLIM_OK;
    memset(out->terms, 0, sizeof(out->terms));
    if (is_always && fit_chunks(points, bytes, count, out)) return PLIM_OK;
    memset(out->terms, 0, sizeof(out->terms));
    out->entries = calloc(count, sizeof(*out->entries));
    if (!out->entries) return PLIM_NOMEM;
    out->is_table = true;
    out->count = count;
    for (size_t i = 0; i < count; i++)
        out->entries[i] = (struct plim_recorded_entry){points[i], bytes[i]};
    return PLIM_OK;
}
