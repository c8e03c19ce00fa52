/* Functions that select between elements, interpolate, or read memory whose address is stored in the functor
 * (TensorCompare.cu, Lerp.cu, IndexKernel.cu, sparse/FlattenIndicesCommon.h). */
#include "function_parts.h"
#include <math.h>
#include <string.h>

#define FUNCTION(name)                                                                             \
    void plim_function_##name(const struct plim_function_call *call, const struct plim_column *x,  \
                              struct plim_column *out, size_t count)

/* Loads an element from an address that the functor holds. */
static struct plim_number load_element(uintptr_t at, enum plim_type type, unsigned char *known)
{
    unsigned char bytes[8], states[8];
    size_t width = plim_type_bytes(type);
    plim_shadow_load(at, bytes, states, width);
    *known = PLIM_KNOWN;
    for (size_t b = 0; b < width; b++) *known = plim_known_both(*known, states[b]);
    return plim_number_load(bytes, type);
}

static bool is_same(const struct plim_column *a, const struct plim_column *b, size_t k)
{
    bool both = a->known[k] & b->known[k] & PLIM_KNOWN;
    return both && (a->is_float ? a->f[k] == b->f[k] : a->i[k] == b->i[k]);
}

/* Selects by a condition. If the condition is unknown, the result is known only where both choices are equal. */
static void pick(const struct plim_column *condition, const struct plim_column *yes,
                 const struct plim_column *no, struct plim_column *out, size_t count)
{
    EACH
    {
        const struct plim_column *from = condition->i[k] ? yes : no;
        out->i[k] = from->i[k];
        out->f[k] = from->f[k];
        if (condition->known[k] & PLIM_KNOWN)
            out->known[k] = from->known[k] & PLIM_KNOWN ? condition->known[k] | from->known[k]
                                                        : plim_unknown_of(from->known[k]);
        else
            out->known[k] = is_same(yes, no, k) ? yes->known[k] | no->known[k] : PLIM_UNKNOWN;
    }
}

FUNCTION(where)
{
    UNUSED_CALL;
    pick(&x[0], &x[1], &x[2], out, count);
}

FUNCTION(masked_fill)
{
    struct plim_column number;
    plim_column_repeat(&number, plim_function_number(call, 0, call->functor->inner[0]), count);
    pick(&x[1], &number, &x[0], out, count);
}

/* Computes from + by * way. Whether the compiler fuses the multiplication and addition is not known; returns false if
 * the two differ after rounding. */
static bool multiply_add(double from, double by, double way, enum plim_type type, double *to)
{
    enum plim_type math = plim_type_math(type);
    bool is_double = math == PLIM_DOUBLE;
    double once = is_double ? fma(by, way, from) : (double)fmaf((float)by, (float)way, (float)from),
           twice = plim_number_round(from + plim_number_round(by * way, math), math);
    *to = plim_number_round(once, type);
    return *to == plim_number_round(twice, type);
}

/* Interpolates from the nearer end, as ATen/native/Lerp.h does. */
static void lerp(const struct plim_function_call *call, const struct plim_column *x, const struct plim_column *weight,
                 struct plim_column *out, size_t count)
{
    enum plim_type type = call->functor->inner[0], math = plim_type_math(type);
    EACH
    {
        double begin = x[0].f[k], end = x[1].f[k], w = weight->f[k], way = plim_number_round(end - begin, math);
        bool is_same = fabs(w) < 0.5 ? multiply_add(begin, w, way, type, &out->f[k])
                                     : multiply_add(end, -way, plim_number_round(1 - w, math), type, &out->f[k]);
        if (!is_same) out->known[k] = PLIM_UNKNOWN;
    }
}

FUNCTION(lerp) { lerp(call, x, &x[2], out, count); }

FUNCTION(lerp_by)
{
    struct plim_column weight;
    plim_column_repeat(&weight, plim_function_number(call, 0, plim_type_math(call->functor->inner[0])), count);
    lerp(call, x, &weight, out, count);
}

/* Where the mask is true, takes the next element of the source, whose address the functor holds; the third argument is
 * the index of that element. */
FUNCTION(masked_scatter)
{
    enum plim_type type = call->functor->result;
    size_t width = plim_type_bytes(type);
    uintptr_t source;
    memcpy(&source, call->state, sizeof(source));
    EACH
    {
        unsigned char known;
        out->i[k] = x[0].i[k];
        out->f[k] = x[0].f[k];
        if (!(x[1].known[k] & PLIM_KNOWN)) continue;
        out->known[k] = plim_known_both(x[0].known[k], x[1].known[k]);
        if (!x[1].i[k]) continue;
        struct plim_number n = load_element(source + (uintptr_t)x[2].i[k] * width, type, &known);
        out->i[k] = n.i;
        out->f[k] = n.f;
        out->known[k] = plim_known_both(plim_known_both(known, x[1].known[k]), x[2].known[k]);
    }
}

/* Linear index of an element of a sparse tensor: the sum of its indices, each times the linear stride of its dimension
 * (ATen/native/sparse/FlattenIndicesCommon.h). This is the contents of the functor. */
struct flatten {
    uintptr_t indices; /* array of long */
    int64_t stride_of_elements, dimensions, worth[8], stride_of_dimensions;
};

_Static_assert(sizeof(struct flatten) == PLIM_FLATTEN_BYTES, "what the functor holds");

FUNCTION(flatten)
{
    struct flatten f;
    memcpy(&f, call->state, sizeof(f));
    bool works = f.dimensions > 0 && f.dimensions <= (int64_t)(sizeof(f.worth) / sizeof(f.worth[0]));
    EACH
    {
        uint64_t sum = 0; /* wraps around */
        if (!works) out->known[k] = PLIM_UNKNOWN;
        for (int64_t d = 0; works && d < f.dimensions; d++) {
            unsigned char known;
            uint64_t at = (uint64_t)x->i[k] * (uint64_t)f.stride_of_elements +
                          (uint64_t)d * (uint64_t)f.stride_of_dimensions;
            if (!(x->known[k] & PLIM_KNOWN)) break;
            sum += (uint64_t)load_element(f.indices + at * sizeof(int64_t), PLIM_INT64, &known).i *
                   (uint64_t)f.worth[d];
            out->known[k] = plim_known_both(out->known[k], known);
        }
        out->i[k] = (int64_t)sum;
    }
}
