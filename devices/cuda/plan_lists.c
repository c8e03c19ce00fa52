#include "plan_lists.h"
#include "plan_rows.h"

static bool have_one_order(const struct plim_array *a, const struct plim_array *b)
{
    if (plim_cuda_plan_is_contiguous(a) && plim_cuda_plan_is_contiguous(b)) return true;
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || (a->shape[d] != 1 && a->stride[d] != b->stride[d]))
            return false;
    return true;
}

/* True if every element occurs once, in some order of dimensions. */
static bool has_no_gaps(const struct plim_array *a)
{
    int64_t step = 1;
    for (int taken = 0; taken < a->ndim; taken++) {
        bool found = false;
        for (int d = 0; d < a->ndim && !found; d++)
            if (a->shape[d] != 1 && a->stride[d] == step) {
                step *= a->shape[d];
                found = true;
            }
        if (!found) break;
    }
    return step == plim_array_elements(a);
}

static enum plim_status check_tensor(const struct plim_tensor_lists *lists, size_t j)
{
    const struct plim_array *first = lists->list[0][j];
    for (int i = 0; i < lists->count; i++) {
        const struct plim_array *a = lists->list[i][j];
        bool alike = i < lists->alike;
        if (plim_array_elements(a) != (alike ? plim_array_elements(first) : 1)) return PLIM_INVALID;
        if (!plim_dtype_is_float(a->dtype)) return PLIM_UNSUPPORTED;
        if (plim_array_elements(a) == 0) continue;
        if (alike && !(has_no_gaps(a) && have_one_order(a, first))) return PLIM_UNSUPPORTED;
    }
    return PLIM_OK;
}

static bool have_types_of_first(const struct plim_tensor_lists *lists,
                                const struct plim_cuda_tensor_lists *to, size_t j)
{
    for (int i = 0; i < lists->count; i++)
        if (lists->list[i][j]->dtype != to->dtype[i]) return false;
    return true;
}

enum plim_status plim_lists_pack(const struct plim_tensor_lists *lists,
                                 struct plim_list_launch *launch, struct plim_cuda_tensor_lists *to)
{
    uint64_t *word = to->word;
    int record_words = lists->count + PLIM_RECORD_DATA, most = PLIM_FOREACH_WORDS / record_words;
    launch->first = launch->next;
    launch->chunks = 0;
    to->tensors = 0;
    to->lists = (uint32_t)lists->count;
    for (int i = 0; i < lists->count; i++) to->dtype[i] = lists->list[i][launch->first]->dtype;
    while (launch->next < lists->length && (int)to->tensors < most &&
           have_types_of_first(lists, to, launch->next)) {
        size_t j = launch->next++;
        enum plim_status st = check_tensor(lists, j);
        if (st != PLIM_OK) return st;
        int64_t elements = plim_array_elements(lists->list[0][j]);
        word[PLIM_RECORD_SIZE] = (uint64_t)elements;
        word[PLIM_RECORD_CHUNKS] = (uint64_t)launch->chunks;
        for (int i = 0; i < lists->count; i++) word[PLIM_RECORD_DATA + i] = lists->list[i][j]->data;
        launch->chunks += (elements + PLIM_FOREACH_CHUNK - 1) / PLIM_FOREACH_CHUNK;
        to->tensors++;
        word += record_words;
    }
    return PLIM_OK;
}
