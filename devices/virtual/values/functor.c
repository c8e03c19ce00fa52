#include "functor.h"
#include <string.h>

/* --- functor names ---------------------------------------------------------------------------- */

/* Reads the types from the parameters of the functor's last lambda, or from its template arguments. From PyTorch 2.12
 * on, `where` moves words of the operands' width. */
static int read_types(struct plim_name name, enum plim_type types[3])
{
    bool moves = plim_name_begins(name, "where_kernel_impl");
    int count = plim_name_lambda(name, moves, types, 3);
    const char *list = plim_name_behind(name, "<");
    if (count < 0) return 0;
    if (count || !list) return count;
    types[0] = types[1] = types[2] = plim_name_type(plim_name_argument(list, 0));
    return types[0] == PLIM_NO_TYPE ? 0 : -1; /* the type applies to every argument */
}

static bool read_function(struct plim_name name, struct plim_functor *out)
{
    int count = read_types(name, out->inner);
    if (!count) return false;
    out->inputs = count < 0 ? 2 : count;
    out->result = out->inner[0];
    out->row = plim_function_find(name, count);
    if (!out->row) return count > 0; /* otherwise the number of arguments is not known */
    out->inputs = out->row->arguments;
    switch (out->row->result) {
    case PLIM_AS_TRUTH:
        out->result = PLIM_BOOL;
        break;
    case PLIM_AS_SECOND:
        out->result = out->inner[1];
        break;
    case PLIM_AS_BFLOAT16:
        out->result = PLIM_BFLOAT16;
        break;
    case PLIM_AS_HALF:
        out->result = PLIM_HALF;
        break;
    case PLIM_AS_NAMED:
        out->result = plim_name_type(plim_name_argument(plim_name_behind(name, "<"), 1));
        break;
    default:
        break;
    }
    return out->result != PLIM_NO_TYPE;
}

/* AUnaryFunctor<A, B, R, F> stores the first argument of F, BUnaryFunctor the second, BinaryFunctor none. */
bool plim_functor_read(struct plim_name name, struct plim_functor *out)
{
    static const struct {
        const char *name;
        int stored;
    } wrappers[] = {{"AUnaryFunctor<", 0}, {"BUnaryFunctor<", 1}, {"BinaryFunctor<", -1}};
    *out = (struct plim_functor){.stored = -1};
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
        if (!plim_name_begins(name, wrappers[i].name)) continue;
        const char *list = name.at + strlen(wrappers[i].name);
        struct plim_functor inner = {.stored = -1};
        if (read_function(plim_name_argument(list, 3), &inner)) *out = inner;
        if (inner.inputs != 2) out->row = NULL;
        enum plim_type a = plim_name_type(plim_name_argument(list, 0)),
                       b = plim_name_type(plim_name_argument(list, 1));
        out->stored = wrappers[i].stored;
        out->inputs = out->stored < 0 ? 2 : 1;
        out->arguments[0] = out->stored == 0 ? b : a;
        out->arguments[1] = b;
        out->result = plim_name_type(plim_name_argument(list, 2));
        return a != PLIM_NO_TYPE && b != PLIM_NO_TYPE && out->result != PLIM_NO_TYPE;
    }
    if (!read_function(name, out)) return false;
    memcpy(out->arguments, out->inner, sizeof(out->arguments));
    return true;
}

size_t plim_functor_bytes(const struct plim_functor *f)
{
    const struct plim_function_row *row = f->row;
    if (!row) return 0;
    bool is_stored = f->stored >= 0;
    enum plim_type type = is_stored ? f->inner[f->stored] : plim_type_math(f->inner[0]);
    if (!is_stored && row->traits & PLIM_KEEPS_TYPE) type = f->inner[0];
    size_t width = plim_type_bytes(type), head = row->head_bytes,
           numbers = is_stored ? 1 : row->numbers;
    if (is_stored && !head) head = 1;
    if (!numbers) return head ? head : 1;
    size_t bytes = plim_align(head, width) + numbers * width;
    return plim_align(bytes, head == sizeof(int32_t) && width < head ? head : width);
}

/* --- applying a functor ----------------------------------------------------------------------- */

/* Reads the stored argument, which follows the function object (1 byte if that is empty). */
static struct plim_number stored_number(const struct plim_function_call *call)
{
    const struct plim_functor *f = call->functor;
    enum plim_type type = f->inner[f->stored];
    size_t head = f->row->head_bytes ? f->row->head_bytes : 1;
    return plim_number_load(call->state + plim_align(head, plim_type_bytes(type)), type);
}

/* Returns the state of an unknown result. Learned values are assumed finite, so a square root is not NaN and not
 * negative. */
static unsigned char unknown_result(const struct plim_function_row *row, const struct plim_column *x, size_t k)
{
    if (row->traits & PLIM_KEEPS_SIGN) return plim_unknown_of(x->known[k]);
    bool is_known = row->traits & PLIM_IS_NOT_NEGATIVE && x->is_float;
    return is_known ? PLIM_UNKNOWN | PLIM_NOT_NEGATIVE : PLIM_UNKNOWN;
}

void plim_functor_apply(const struct plim_function_call *call, const struct plim_column *x,
                        struct plim_column *out, size_t count)
{
    const struct plim_functor *functor = call->functor;
    struct plim_column arguments[3];
    int inputs = functor->stored < 0 ? functor->inputs : 2;
    for (int i = 0, next = 0; i < inputs; i++) {
        if (i == functor->stored) {
            plim_column_repeat(&arguments[i], stored_number(call), count);
            continue;
        }
        arguments[i] = x[next];
        plim_column_convert(&arguments[i], functor->arguments[next++], functor->inner[i], count);
    }
    for (size_t k = 0; k < count; k++) {
        out->known[k] = inputs ? arguments[0].known[k] : PLIM_KNOWN;
        for (int i = 1; i < inputs; i++)
            out->known[k] = plim_known_both(out->known[k], arguments[i].known[k]);
        if (!(out->known[k] & PLIM_KNOWN)) out->known[k] = unknown_result(functor->row, arguments, k);
    }
    bool is_choice = functor->row->result == PLIM_AS_SECOND; /* the first argument is the condition */
    out->is_float = inputs ? arguments[is_choice].is_float : plim_type_is_float(functor->result);
    if (functor->row->result == PLIM_AS_TRUTH) out->is_float = false;
    functor->row->function(call, arguments, out, count);
}
