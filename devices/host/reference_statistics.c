/* Statistics of rows of logits that are computed in tiles, and the gradient of a tile. */
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

/* op.h's order */
enum { MAXIMUM, SUM_EXP, TARGET_LOGIT, Z_SUM_EXP, Z_SUM, MAXIMUM_BEFORE, STATISTICS };
enum { TILE, TARGETS, LOG_SUM, DLOG_PROB, DENTROPY, ENTROPY, INPUTS };

/* True if `a` has one number per row of the tile. */
static bool is_of_rows(const struct plim_array *a, const struct plim_array *tile)
{
    return a->ndim == 1 && a->shape[0] == tile->shape[0];
}

static bool have_rows(const struct plim_op *op, const struct plim_array *tile)
{
    if (tile->ndim != 2 || !plim_elements_are_integers(op->in[TARGETS])) return false;
    for (int i = TARGETS; i < op->n_in; i++)
        if (op->in[i] && !is_of_rows(op->in[i], tile)) return false;
    return true;
}

/* Returns a logit after scaling and softcap. */
static double transformed(double x, const struct plim_op *op)
{
    double z = x * op->alpha;
    return op->beta != 0 ? op->beta * tanh(z / op->beta) : z;
}

/* --- the statistics --------------------------------------------------------------------------- */

/* Adds the classes z to the statistics; `target` is the index of the target, if it is among them. */
static void fold(double kept[STATISTICS], const double *z, int64_t classes, int64_t target)
{
    double most = kept[MAXIMUM];
    for (int64_t i = 0; i < classes; i++) most = fmax(most, z[i]);
    double rescale = kept[MAXIMUM] == most ? 1 : exp(kept[MAXIMUM] - most);
    kept[MAXIMUM] = most;
    kept[SUM_EXP] *= rescale;
    kept[Z_SUM_EXP] *= rescale;
    for (int64_t i = 0; i < classes; i++) {
        double weight = exp(z[i] - (most == -INFINITY ? 0 : most));
        kept[SUM_EXP] += weight;
        kept[Z_SUM_EXP] += z[i] * weight;
        kept[Z_SUM] += z[i];
        if (i < target) kept[MAXIMUM_BEFORE] = fmax(kept[MAXIMUM_BEFORE], z[i]);
    }
    if (target >= 0 && target < classes) kept[TARGET_LOGIT] = z[target];
}

enum plim_status plim_reference_row_statistics(const struct plim_op *op)
{
    const struct plim_array *tile = op->in[TILE];
    if (op->n_out > STATISTICS || op->n_in > LOG_SUM || !have_rows(op, tile)) return PLIM_INVALID;
    for (int i = 0; i < op->n_out; i++)
        if (op->out[i] && !is_of_rows(op->out[i], tile)) return PLIM_INVALID;
    int64_t classes = tile->shape[1];
    double *z = plim_reference_numbers(classes);
    if (!z) return PLIM_NOMEM;
    for (int64_t row = 0; row < tile->shape[0] && classes > 0; row++) {
        double kept[STATISTICS] = {0};
        int64_t target;
        plim_elements_read_integers(op->in[TARGETS], row, 1, &target);
        plim_elements_read(tile, row * classes, classes, z);
        for (int64_t i = 0; i < classes; i++) z[i] = transformed(z[i], op);
        for (int i = 0; i < op->n_out; i++)
            if (op->out[i]) plim_elements_read(op->out[i], row, 1, &kept[i]);
        fold(kept, z, classes, target - op->start);
        for (int i = 0; i < op->n_out; i++)
            if (op->out[i]) plim_elements_write(op->out[i], row, 1, &kept[i]);
    }
    free(z);
    return PLIM_OK;
}

/* --- the gradient ----------------------------------------------------------------------------- */

/* The gradient of a row: d log p(target) / dz = [is target] - p, d entropy / dz = -p (log p + entropy). */
static void to_gradient(double *x, int64_t classes, const double of_row[INPUTS], const struct plim_op *op)
{
    double target = of_row[TARGETS] - (double)op->start;
    for (int64_t i = 0; i < classes; i++) {
        double z = transformed(x[i], op), log_p = z - of_row[LOG_SUM], p = exp(log_p);
        double slope = op->beta != 0 ? 1 - z / op->beta * (z / op->beta) : 1;
        x[i] = of_row[DLOG_PROB] * (((double)i == target) - p) - of_row[DENTROPY] * p * (log_p + of_row[ENTROPY]);
        x[i] *= slope * op->alpha;
    }
}

enum plim_status plim_reference_row_statistics_backward(const struct plim_op *op)
{
    const struct plim_array *dtile = op->out[0], *tile = op->in[TILE];
    bool has_entropy = plim_reference_input(op, DENTROPY) != NULL;
    if (op->n_in > INPUTS || !have_rows(op, tile) || !plim_elements_same_shape(dtile, tile)) return PLIM_INVALID;
    if (has_entropy != (plim_reference_input(op, ENTROPY) != NULL)) return PLIM_INVALID;
    int64_t classes = tile->shape[1];
    double *x = plim_reference_numbers(classes);
    if (!x) return PLIM_NOMEM;
    for (int64_t row = 0; row < tile->shape[0] && classes > 0; row++) {
        double of_row[INPUTS] = {0};
        for (int i = TARGETS; i < op->n_in; i++)
            if (op->in[i]) plim_elements_read(op->in[i], row, 1, &of_row[i]);
        plim_elements_read(tile, row * classes, classes, x);
        to_gradient(x, classes, of_row, op);
        plim_elements_write(dtile, row * classes, classes, x);
    }
    free(x);
    return PLIM_OK;
}
