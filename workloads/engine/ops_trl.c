#include "ops_trl.h"
#include "ops.h"

#include <math.h>

enum { ROWS = 4096, CLASSES = 32768 }; /* of a tile */
enum { X, WEIGHT, BIAS, TARGETS, LOG_Z, ENTROPY };

/* The statistics of each row that are accumulated over the tiles, in the order in which they are allocated. */
enum { RUNNING_MAX, SUM_EXP, X_SUM_EXP, SQUARE_SUM_EXP, Z_SUM, MAX_BEFORE_TARGET, TARGET_LOGIT, STATISTICS };

/* A pass over all tiles. */
struct pass {
    struct tensor *x, *weight, *bias, *targets; /* lent; bias may be NULL */
    struct logit_transform transform;
    struct tensor *statistics[STATISTICS];                   /* forward: lent; NULL: not needed */
    struct tensor *log_z, *dlog_probs, *dentropy, *entropy; /* backward: lent; NULL: no gradient */
    struct tensor *dx, *dweight, *dbias; /* fp32, accumulated over the tiles; NULL: not needed */
    enum plim_dtype low;                 /* type in which the logits are computed */
    struct tensor *room;                 /* memory for a tile's logits */
    struct tensor *rows, *part;          /* slices of x and of the weight, in `low`: variables of the loops */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct tensor *make_room(struct engine *e, const struct pass *p)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_LOGITS);
    int64_t rows = e->halted ? 0 : smaller(p->x->a.shape[0], ROWS);
    struct tensor *room = tensor_keep(tensor_empty(e, p->low, SHAPE(rows, CLASSES)));
    engine_set_class(e, before);
    return room;
}

enum { MOST_COLUMNS = 8 };

/* x[row:row + rows] of each statistic that is needed. */
struct columns {
    struct plim_array list[MOST_COLUMNS];
};

static const struct plim_array *column_of(struct columns *c, int i, const struct tensor *x, int64_t row, int64_t rows)
{
    if (!x) return NULL;
    struct plim_array *a = &c->list[i];
    *a = x->a;
    a->shape[0] = rows;
    a->data += (uint64_t)(row * a->stride[0] * plim_dtype_size((enum plim_dtype)a->dtype));
    return a;
}

/* Adds a tile to the statistics of its rows. */
static void fold(struct engine *e, const struct pass *p, struct tensor *tile, int64_t row, int64_t start)
{
    static const int order[] = {RUNNING_MAX, SUM_EXP, TARGET_LOGIT, X_SUM_EXP, Z_SUM, MAX_BEFORE_TARGET};
    enum { KEPT = sizeof(order) / sizeof(order[0]) };
    struct columns columns;
    if (e->halted) return;
    int64_t rows = tile->a.shape[0];
    struct plim_op op = {.kind = PLIM_OP_ROW_STATISTICS,
                         .n_out = KEPT,
                         .n_in = 2,
                         .alpha = p->transform.scale,
                         .beta = p->transform.cap,
                         .start = start,
                         .in = {&tile->a, column_of(&columns, KEPT, p->targets, row, rows)}};
    for (int i = 0; i < KEPT; i++) op.out[i] = column_of(&columns, i, p->statistics[order[i]], row, rows);
    engine_launch(e, &op);
}

/* Replaces a tile by its gradient. */
static void turn_to_gradient(struct engine *e, const struct pass *p, struct tensor *tile, int64_t row, int64_t start)
{
    struct tensor *const of_rows[] = {p->targets, p->log_z, p->dlog_probs, p->dentropy, p->entropy};
    enum { COLUMNS = sizeof(of_rows) / sizeof(of_rows[0]) };
    struct columns columns;
    if (e->halted) return;
    struct plim_op op = {.kind = PLIM_OP_ROW_STATISTICS_BACKWARD,
                         .n_out = 1,
                         .n_in = 1 + COLUMNS,
                         .alpha = p->transform.scale,
                         .beta = p->transform.cap,
                         .start = start,
                         .out = {&tile->a},
                         .in = {&tile->a}};
    for (int i = 0; i < COLUMNS; i++) op.in[1 + i] = column_of(&columns, i, of_rows[i], row, tile->a.shape[0]);
    engine_launch(e, &op);
}

static void add_bias(struct engine *e, const struct pass *p, struct tensor *tile, int64_t start, int64_t classes)
{
    struct tensor *bias = tensor_hold(op_to(e, op_slice(e, p->bias, 0, start, classes), p->low));
    op_add_(e, tile, bias);
    tensor_drop(e, bias);
}

static void add_to_bias(struct engine *e, const struct pass *p, struct tensor *tile, int64_t start, int64_t classes)
{
    struct tensor *sum = tensor_keep(op_reduce(e, tile, 1, false, PLIM_BINARY_ADD, 1, PLIM_F32));
    struct tensor *place = tensor_hold(op_slice(e, p->dbias, 0, start, classes));
    op_add_(e, place, sum);
    tensor_drop_all(e, sum, place);
}

/* Adds the contributions of a tile's gradient, which has replaced the tile. */
static void add_gradients(struct engine *e, const struct pass *p, struct tensor *tile, int64_t row, int64_t rows,
                          int64_t start, int64_t classes)
{
    if (p->dx) {
        struct tensor *place = tensor_hold(op_slice(e, p->dx, 0, row, rows));
        op_mm_into(e, place, tile, p->part, true);
        tensor_drop(e, place);
    }
    if (p->dweight) {
        struct tensor *place = tensor_hold(op_slice(e, p->dweight, 0, start, classes));
        op_mm_into(e, place, op_transpose(e, tile, 0, 1), p->rows, true);
        tensor_drop(e, place);
    }
    if (p->dbias) add_to_bias(e, p, tile, start, classes);
}

/* Rebinds a variable, which holds the old tensor until the new one exists. */
static void take(struct engine *e, struct tensor **variable, struct tensor *x, enum plim_dtype dtype)
{
    struct tensor *next = tensor_hold(op_to(e, x, dtype));
    tensor_drop(e, *variable);
    *variable = next;
}

static void drop_part(struct engine *e, struct pass *p)
{
    tensor_drop(e, p->part);
    p->part = NULL;
}

/* `goes_back`: each tile is replaced by its gradient; otherwise a slice of the weight is freed after its product. */
static void run_tile(struct engine *e, struct pass *p, int64_t row, int64_t rows, int64_t start, bool goes_back)
{
    int64_t classes = smaller(p->weight->a.shape[0] - start, CLASSES);
    struct tensor *given = op_slice(e, p->weight, 0, start, classes);
    take(e, &p->part, given, p->low);
    struct tensor *wide = tensor_hold(op_slice(e, p->room, 0, 0, rows));
    struct tensor *tile = tensor_hold(op_slice(e, wide, 1, 0, classes));
    op_mm_into(e, tile, p->rows, op_transpose(e, p->part, 0, 1), false);
    if (!goes_back) drop_part(e, p);
    if (p->bias) add_bias(e, p, tile, start, classes);
    if (!goes_back) fold(e, p, tile, row, start);
    if (goes_back) turn_to_gradient(e, p, tile, row, start);
    if (goes_back) add_gradients(e, p, tile, row, rows, start, classes);
    tensor_drop_all(e, wide, tile);
}

static void run_tiles(struct engine *e, struct pass *p, bool goes_back)
{
    int64_t count = e->halted ? 0 : p->x->a.shape[0];
    for (int64_t row = 0; row < count && !e->halted; row += ROWS) {
        int64_t rows = smaller(count - row, ROWS);
        take(e, &p->rows, op_slice(e, p->x, 0, row, rows), p->low);
        for (int64_t start = 0; !e->halted && start < p->weight->a.shape[0]; start += CLASSES)
            run_tile(e, p, row, rows, start, goes_back);
    }
}

/* --- forward ---------------------------------------------------------------------------------- */

static struct tensor *entropy_of(struct engine *e, struct tensor *const *s, struct tensor *log_z)
{
    struct tensor *mean = tensor_keep(op_div(e, s[X_SUM_EXP], s[SUM_EXP]));
    struct tensor *entropy = tensor_keep(op_sub(e, log_z, mean));
    tensor_drop(e, mean);
    return entropy;
}

static struct tensor *is_top1(struct engine *e, struct tensor *const *s)
{
    struct tensor *is_max = tensor_keep(op_compare(e, PLIM_BINARY_GE, s[TARGET_LOGIT], s[RUNNING_MAX]));
    struct tensor *is_first = tensor_keep(op_compare(e, PLIM_BINARY_GT, s[TARGET_LOGIT], s[MAX_BEFORE_TARGET]));
    struct tensor *both = tensor_keep(op_compare(e, PLIM_BINARY_AND, is_max, is_first));
    tensor_drop_all(e, is_max, is_first);
    return both;
}

/* Computes the results from the statistics. Returns log_z, named. */
static struct tensor *conclude(struct engine *e, struct tensor *const *s, double classes, unsigned wanted,
                               struct token_scores *out)
{
    struct tensor *log = tensor_keep(op_unary(e, s[SUM_EXP], PLIM_UNARY_LOG));
    struct tensor *log_z = tensor_keep(op_add(e, s[RUNNING_MAX], log));
    tensor_drop(e, log);
    out->log_probs = tensor_keep(op_sub(e, s[TARGET_LOGIT], log_z));
    if (wanted & TRL_ENTROPY) out->entropy = entropy_of(e, s, log_z);
    if (wanted & TRL_MEAN_LOGITS) out->mean_logits = tensor_keep(op_div_scalar(e, s[Z_SUM], classes));
    if (wanted & TRL_IS_TOP1) out->is_top1 = is_top1(e, s);
    return log_z;
}

/* --- backward --------------------------------------------------------------------------------- */

static struct tensor *zeros_for(struct engine *e, const struct node *n, int edge, const struct tensor *x)
{
    return node_wants(n, edge) ? tensor_keep(op_full(e, PLIM_F32, x->a.ndim, x->a.shape, 0)) : NULL;
}

/* Takes the sum in fp32, and stores it in the type of x. */
static void give(struct engine *e, struct tensor *sum, const struct tensor *x, struct tensor **out)
{
    if (sum && !e->halted) *out = tensor_hold(op_to(e, sum, (enum plim_dtype)x->a.dtype));
}

static void token_scores_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct pass p = {.x = node_saved(e, n, X),
                     .weight = node_saved(e, n, WEIGHT),
                     .bias = node_saved(e, n, BIAS),
                     .targets = node_saved(e, n, TARGETS),
                     .transform = {n->scale, n->number},
                     .log_z = node_saved(e, n, LOG_Z),
                     .dlog_probs = grads[0],
                     .dentropy = n->output_count > 1 ? grads[1] : NULL,
                     .low = (enum plim_dtype)n->ints[0]};
    if (p.dentropy) p.entropy = node_saved(e, n, ENTROPY);
    if (e->halted) return;
    p.dx = zeros_for(e, n, X, p.x);
    p.dweight = zeros_for(e, n, WEIGHT, p.weight);
    p.dbias = p.bias ? zeros_for(e, n, BIAS, p.bias) : NULL;
    p.room = make_room(e, &p);
    run_tiles(e, &p, true);
    give(e, p.dx, p.x, &out[X]);
    give(e, p.dweight, p.weight, &out[WEIGHT]);
    give(e, p.dbias, p.bias, &out[BIAS]);
    tensor_drop_all(e, p.dx, p.dweight, p.dbias, p.rows, p.part, p.room);
}
static const struct node_kind token_scores_kind = {"ChunkedLogProbFunctionBackward", token_scores_backward};

/* Allocates all statistics, with their initial values for the first tile; used[i] is NULL if a statistic is not
 * needed. */
static void make_statistics(struct engine *e, const struct tensor *x, unsigned wanted,
                            struct tensor *statistics[STATISTICS], struct tensor *used[STATISTICS])
{
    for (int i = 0; i < STATISTICS; i++) {
        bool is_maximum = i == RUNNING_MAX || i == MAX_BEFORE_TARGET;
        used[i] = statistics[i] = tensor_keep(op_full(e, PLIM_F32, 1, x->a.shape, is_maximum ? -INFINITY : 0));
    }
    used[SQUARE_SUM_EXP] = NULL;
    if (!(wanted & TRL_ENTROPY)) used[X_SUM_EXP] = NULL;
    if (!(wanted & TRL_MEAN_LOGITS)) used[Z_SUM] = NULL;
    if (!(wanted & TRL_IS_TOP1)) used[MAX_BEFORE_TARGET] = NULL;
}

struct token_scores op_trl_token_scores(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                                        struct tensor *targets, struct logit_transform transform, unsigned wanted)
{
    struct token_scores out = {e->poison, NULL, NULL, NULL};
    struct tensor *given[3] = {x, weight, bias}, *statistics[STATISTICS];
    if (e->halted) return out;
    bool grad = e->grad_enabled;
    struct node *n = op_node(e, &token_scores_kind, 3, given);
    e->grad_enabled = false; /* an autograd.Function's forward runs without gradients */
    struct pass p = {.x = x,
                     .weight = weight,
                     .bias = bias,
                     .targets = targets,
                     .transform = transform,
                     .low = e->autocast.on ? e->autocast.dtype : (enum plim_dtype)x->a.dtype};
    make_statistics(e, x, wanted, statistics, p.statistics);
    p.room = make_room(e, &p);
    run_tiles(e, &p, false);
    double classes = e->halted ? 0 : (double)weight->a.shape[0];
    struct tensor *log_z = conclude(e, statistics, classes, wanted, &out);
    e->grad_enabled = grad;
    if (n && !e->halted) {
        n->ints[0] = (int64_t)p.low;
        n->scale = transform.scale;
        n->number = transform.cap;
        node_attach(n, out.log_probs);
        if (out.entropy) node_attach(n, out.entropy);
        node_save(e, n, X, x);
        node_save(e, n, WEIGHT, weight);
        node_save(e, n, BIAS, bias);
        node_save(e, n, TARGETS, targets);
        node_save(e, n, LOG_Z, log_z);
        if (out.entropy) node_save_output(e, n, ENTROPY, out.entropy);
    } else if (n && !n->output_count) {
        node_drop(e, n);
    }
    for (int i = 0; i < STATISTICS; i++) tensor_drop(e, statistics[i]);
    tensor_drop_all(e, p.rows, p.part, p.room, log_z);
    return out;
}

/* --- minimum ---------------------------------------------------------------------------------- */

enum { SELF, OTHER };

/* where(mine == others, grad / 2, grad), but 0 where mine is larger (derivatives.yaml); named. */
static struct tensor *share_of_smaller(struct engine *e, struct tensor *grad, struct tensor *mine,
                                       struct tensor *others)
{
    struct tensor *half = tensor_keep(op_div_scalar(e, grad, 2));
    struct tensor *is_equal = tensor_keep(op_compare(e, PLIM_BINARY_EQ, mine, others));
    struct tensor *share = tensor_keep(op_where(e, is_equal, half, grad, PLIM_F32, 0, 0));
    struct tensor *is_larger = tensor_keep(op_compare(e, PLIM_BINARY_GT, mine, others));
    tensor_drop(e, tensor_hold(op_masked_fill_(e, share, is_larger, 0)));
    tensor_drop_all(e, is_larger, is_equal, half);
    return share;
}

static void minimum_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *self = node_saved(e, n, SELF), *other = node_saved(e, n, OTHER);
    if (e->halted) return;
    if (node_wants(n, OTHER)) out[OTHER] = share_of_smaller(e, grads[0], other, self);
    if (node_wants(n, SELF)) out[SELF] = share_of_smaller(e, grads[0], self, other);
}
static const struct node_kind minimum_kind = {"MinimumBackward0", minimum_backward};

struct tensor *op_trl_minimum(struct engine *e, struct tensor *a, struct tensor *b)
{
    struct tensor *x[2] = {a, b};
    if (e->halted) return op_halted(e, 2, x);
    struct node *n = op_node(e, &minimum_kind, 2, x);
    if (n) node_save(e, n, OTHER, b);
    if (n) node_save(e, n, SELF, a);
    struct tensor *y = op_result(e, 2, x, PLIM_F32, a->a.ndim, a->a.shape, NULL);
    struct plim_op op = {.kind = PLIM_OP_BINARY,
                         .n_out = 1,
                         .n_in = 2,
                         .binary = PLIM_BINARY_MIN,
                         .alpha = 1,
                         .out = {&y->a},
                         .in = {&a->a, &b->a}};
    if (!e->halted) engine_launch(e, &op);
    return op_done(e, n, y, 2, x);
}
