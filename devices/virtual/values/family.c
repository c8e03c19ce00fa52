#include "family.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

static const struct plim_row *const families[] = {
    plim_rows_elementwise, plim_rows_range,   plim_rows_reduce, plim_rows_scan,
    plim_rows_cub,         plim_rows_cat,     plim_rows_index,  plim_rows_select,
    plim_rows_scatter,     plim_rows_sort,    plim_rows_radix,  plim_rows_shape,
    plim_rows_count,       plim_rows_lists,   plim_rows_resize, plim_rows_amp,
    plim_rows_nonzero,     plim_rows_thrust, plim_rows_random,
    plim_rows_segments,   plim_rows_mode,    plim_rows_prepare, plim_rows_kth,
    plim_rows_pooling,    plim_rows_distance};

/* --- kernel names ----------------------------------------------------------------------------- */

/* Returns a copy of the name without namespaces that carry no information; the caller frees it. */
static char *shorten(const char *text)
{
    static const char *const words[] = {"(anonymous namespace)::",
                                        "at::native::",
                                        "at::cuda::detail::",
                                        "at::cuda::",
                                        "at_cuda_detail::cub::",
                                        "cub::",
                                        "std::",
                                        "void "};
    char *out = malloc(strlen(text) + 1), *to = out;
    while (out && *text) {
        size_t skipped = 0;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !skipped; i++)
            if (!strncmp(text, words[i], strlen(words[i]))) skipped = strlen(words[i]);
        if (!skipped) *to++ = *text++;
        text += skipped;
    }
    if (out) *to = '\0';
    return out;
}

/* Returns the start of the kernel's own name: the last component before its template or function arguments. */
static const char *own_name(const char *text)
{
    const char *end = text + strcspn(text, "<("), *begin = end;
    while (begin > text && begin[-1] != ':' && begin[-1] != ' ') begin--;
    return begin;
}

struct plim_plan *plim_family_plan(const char *mangled, const char *text)
{
    struct plim_plan plan = {0}, *kept = NULL;
    char *name = shorten(text ? text : mangled);
    const char *own = name ? own_name(name) : "";
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !kept; i++)
        for (const struct plim_row *row = families[i]; row->name && !kept; row++) {
            size_t length = strlen(row->name);
            if (strncmp(own, row->name, length) != 0) continue;
            plan = (struct plim_plan){.row = row};
            if (row->read && !row->read(own + length, &plan)) continue;
            kept = malloc(sizeof(*kept));
            if (kept) *kept = plan;
        }
    free(name);
    return kept;
}

bool plim_family_run(const struct plim_plan *plan, const char *kernel, const struct gpu_dim3 *grid,
                     void *const *arguments)
{
    const struct plim_launch launch = {kernel, grid, arguments};
    return plan && arguments && plan->row->run(plan, &launch);
}

bool plim_family_cost(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                      void *const *arguments, struct plim_cost *out)
{
    static const struct {
        const struct plim_row *rows;
        bool (*cost)(const struct plim_plan *, const struct plim_launch *, struct plim_cost *);
    } costs[] = {{plim_rows_elementwise, plim_elementwise_cost},
                 {plim_rows_reduce, plim_reduce_cost},
                 {plim_rows_lists, plim_lists_cost}};
    const struct plim_launch launch = {NULL, grid, arguments};
    *out = (struct plim_cost){.kind = PLIM_COST_MOVE};
    for (size_t i = 0; plan && arguments && i < sizeof(costs) / sizeof(costs[0]); i++)
        for (const struct plim_row *row = costs[i].rows; row->name; row++)
            if (row == plan->row) return costs[i].cost(plan, &launch, out);
    return false;
}

bool plim_family_reduce(const struct plim_plan *plan, const struct gpu_dim3 *grid,
                        void *const *arguments, struct plim_reduce_launch *out, bool *shares)
{
    const struct plim_launch launch = {NULL, grid, arguments};
    bool is_reduction = false;
    for (const struct plim_row *row = plim_rows_reduce; plan && row->name; row++)
        is_reduction |= row == plan->row;
    return is_reduction && arguments && plim_reduce_launch_of(plan, &launch, out, shares);
}

size_t plim_family_bytes(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments)
{
    const struct plim_launch launch = {NULL, grid, arguments};
    return plan && plan->row == plim_rows_lists && arguments ? plim_lists_bytes(plan, &launch) : 0;
}

int64_t plim_family_jumps(const struct plim_plan *plan, const struct gpu_dim3 *grid, void *const *arguments)
{
    const struct plim_launch launch = {NULL, grid, arguments};
    for (const struct plim_row *row = plim_rows_elementwise; plan && arguments && row->name; row++)
        if (row == plan->row) return plim_elementwise_jumps(plan, &launch);
    return 0;
}
