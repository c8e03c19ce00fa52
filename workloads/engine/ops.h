/* The operations of the engine: ATen's, with ATen's memory behaviour.
 *
 * Each launches one kernel (views: none) and records the same node as PyTorch. Floating operands are released at the
 * end; results are floating unless stated otherwise. In backward (grad mode disabled) the formulas use the same
 * functions. What each operation saves is listed in torch's tools/autograd/derivatives.yaml; gradients are computed in
 * the alphabetical order of the operands' names there, which is why `other` comes before `self`. */
#ifndef PLIM_ENGINE_OPS_H
#define PLIM_ENGINE_OPS_H

#include "engine.h"

/* --- start and end of an operation (for files that define operations) ------------------------- */

/* Returns the tensor that Python's variable x refers to after an in-place operation: the same memory with another node.
 * Floating. */
struct tensor *op_in_place(struct engine *e, const struct tensor *x);
/* Releases floating operands and returns the poison tensor. */
struct tensor *op_halted(struct engine *e, int count, struct tensor *const *operands);
/* Ends an operation: attaches `y` to `n` (either may be NULL), releases floating operands, and returns `y`. */
struct tensor *op_done(struct engine *e, struct node *n, struct tensor *y, int count,
                       struct tensor *const *operands);
/* Returns a new node if one of the operands needs a gradient, otherwise NULL. */
struct node *op_node(struct engine *e, const struct node_kind *kind, int count,
                     struct tensor *const *operands);
/* Launches `op`, which is complete except for its operands: it writes the first `n_out` of `arrays` and reads the next
 * `n_in`. */
void op_launch(struct engine *e, struct plim_op op, int n_out, int n_in, struct tensor *const *arrays);
extern const struct node_kind op_div_kind; /* of a division, which saves the operand's value before it */
/* Stores an operand's shape for backward: its ndim in ints[0], followed by the sizes. `n` may be NULL. */
void op_save_shape(struct node *n, const struct tensor *x);
struct plim_need;
/* Allocates temporaries in order, and releases each at its time. */
void op_allocate_needs(struct engine *e, int count, const struct plim_need *needs,
                       struct tensor **held);
/* Releases, starting with the last, those of the first `taken` needs that end before need `before`. */
void op_release_needs(struct engine *e, const struct plim_need *needs, struct tensor **held,
                      int taken, int before);
/* Computes the strides that TensorIterator gives a new result of these operands, broadcast to `shape`. */
void op_result_strides(int count, struct tensor *const *operands, int ndim, const int64_t *shape,
                       int64_t *stride);
/* Allocates the result of an operation that works element by element or row by row; `stride` NULL: contiguous. Its
 * class is logits if and only if that of an operand is. */
struct tensor *op_result(struct engine *e, int count, struct tensor *const *operands,
                         enum plim_dtype dtype, int ndim, const int64_t *shape,
                         const int64_t *stride);
/* The same, with the shape to which the operands broadcast. */
struct tensor *op_broadcast_result(struct engine *e, int count, struct tensor *const *x, enum plim_dtype dtype);

/* --- views (no kernel) ------------------------------------------------------------------------ */

struct tensor *op_view(struct engine *e, struct tensor *x, int ndim, const int64_t *shape);
/* Returns a view if the strides allow it, otherwise a contiguous copy. */
struct tensor *op_reshape(struct engine *e, struct tensor *x, int ndim, const int64_t *shape);
struct tensor *op_transpose(struct engine *e, struct tensor *x, int a, int b);
struct tensor *op_permute(struct engine *e, struct tensor *x, int ndim, const int *order);
struct tensor *op_unsqueeze(struct engine *e, struct tensor *x, int dim);
struct tensor *op_expand(struct engine *e, struct tensor *x, int ndim, const int64_t *shape);
/* x[..., start:start+length, ...]; returns x if that is the whole dimension, like PyTorch's slicing. */
struct tensor *op_slice(struct engine *e, struct tensor *x, int dim, int64_t start, int64_t length);
/* x[..., start::step] */
struct tensor *op_slice_steps(struct engine *e, struct tensor *x, int64_t start, int64_t step);
/* x[..., -length:, ...]; returns a new view even if that is the whole dimension, like PyTorch. */
struct tensor *op_slice_end(struct engine *e, struct tensor *x, int dim, int64_t length);
struct tensor *op_select(struct engine *e, struct tensor *x, int dim, int64_t index);
/* x[...] with full slices only: a new view for autograd. */
struct tensor *op_alias(struct engine *e, struct tensor *x);
/* Stores views of consecutive parts along `dim` in `out`; all are floating. */
void op_split(struct engine *e, struct tensor *x, int dim, int count, const int64_t *sizes,
              struct tensor **out);

#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* --- copies ----------------------------------------------------------------------------------- */

struct tensor *op_to(struct engine *e, struct tensor *x,
                     enum plim_dtype dtype);                      /* x itself if it has this type */
/* The same, but a copy is contiguous. */
struct tensor *op_to_contiguous(struct engine *e, struct tensor *x, enum plim_dtype dtype);
struct tensor *op_contiguous(struct engine *e, struct tensor *x); /* x itself if it is contiguous */
struct tensor *op_clone(struct engine *e, struct tensor *x);      /* always contiguous */
struct tensor *op_detached_clone(struct engine *e, struct tensor *x); /* op_clone() without autograd */
/* torch.nn.functional.pad at the end of a dimension, with zeros; negative `count` crops; 0 copies. */
struct tensor *op_pad(struct engine *e, struct tensor *x, int dim, int64_t count);
struct tensor *op_pad_start(struct engine *e, struct tensor *x, int dim, int64_t count); /* the same at the start */
/* x.repeat(times, 1, ..) */
struct tensor *op_repeat(struct engine *e, struct tensor *x, int64_t times);
/* torch.repeat_interleave(x, times, dim) */
struct tensor *op_repeat_each(struct engine *e, struct tensor *x, int dim, int64_t times);
struct tensor *op_cat(struct engine *e, int count, struct tensor *const *x, int dim);
/* to.copy_(from): same shape, any types and layouts; no autograd. Does nothing if the engine is halted. */
void op_copy_(struct engine *e, struct tensor *to, struct tensor *from);
/* A copy of `x` in the layout of `like`; no autograd. */
struct tensor *op_copy_like(struct engine *e, struct tensor *x, const struct tensor *like);

/* --- fresh constants (no autograd) ------------------------------------------------------------ */

struct tensor *op_full(struct engine *e, enum plim_dtype dtype, int ndim, const int64_t *shape,
                       double value);
struct tensor *op_full_like(struct engine *e, const struct tensor *x, double value);
/* the identity matrix (n, n) */
struct tensor *op_eye(struct engine *e, enum plim_dtype dtype, int64_t n);
/* start, start + step, ... */
struct tensor *op_arange(struct engine *e, enum plim_dtype dtype, int64_t count, double start,
                         double step);

/* --- element by element ----------------------------------------------------------------------- */

struct tensor *op_add(struct engine *e, struct tensor *a, struct tensor *b);
struct tensor *op_sub(struct engine *e, struct tensor *a, struct tensor *b);
struct tensor *op_mul(struct engine *e, struct tensor *a, struct tensor *b);
struct tensor *op_div(struct engine *e, struct tensor *a, struct tensor *b); /* if b needs a gradient, a must, too */
struct tensor *op_maximum(struct engine *e, struct tensor *a, struct tensor *b); /* no autograd, here and below */
struct tensor *op_minimum(struct engine *e, struct tensor *a, struct tensor *b);
/* comparisons and logic: results are bool, nothing is differentiable */
struct tensor *op_compare(struct engine *e, enum plim_binary f, struct tensor *a, struct tensor *b);
struct tensor *op_compare_scalar(struct engine *e, enum plim_binary f, struct tensor *a, double b);
/* with a Python number */
struct tensor *op_add_scalar(struct engine *e, struct tensor *a, double b);
struct tensor *op_rsub_scalar(struct engine *e, struct tensor *a, double b); /* b - a */
struct tensor *op_mul_scalar(struct engine *e, struct tensor *a, double b);
struct tensor *op_div_scalar(struct engine *e, struct tensor *a, double b);
struct tensor *op_true_div_scalar(struct engine *e, struct tensor *a, double b); /* integers, in fp32; no autograd */
struct tensor *op_pow_scalar(struct engine *e, struct tensor *a, double exponent);
/* a to the power of b, element by element; no autograd */
struct tensor *op_pow(struct engine *e, struct tensor *a, struct tensor *b);
/* in place; no autograd */
void op_add_(struct engine *e, struct tensor *a, struct tensor *b);
void op_binary_scalar_(struct engine *e, enum plim_binary f, struct tensor *a, double b);
void op_binary_(struct engine *e, enum plim_binary f, struct tensor *a, struct tensor *b);
void op_fill_(struct engine *e, struct tensor *a, double value);
/* random numbers with the caller's seed, as in PLIM_OP_RANDOM */
void op_random_(struct engine *e, struct tensor *a, double limit, uint64_t seed);
void op_clamp_(struct engine *e, struct tensor *a, double low, double high);
void op_unary_(struct engine *e, enum plim_unary f, struct tensor *a);
/* a += weight (b - a) */
void op_lerp_(struct engine *e, struct tensor *a, struct tensor *b, double weight);
/* a += factor b */
void op_add_scaled_(struct engine *e, struct tensor *a, struct tensor *b, double factor);

struct tensor *op_neg(struct engine *e, struct tensor *x);
struct tensor *op_rsqrt(struct engine *e, struct tensor *x);
struct tensor *op_tanh(struct engine *e, struct tensor *x);
struct tensor *op_silu(struct engine *e, struct tensor *x);
struct tensor *op_relu(struct engine *e, struct tensor *x);
struct tensor *op_exp(struct engine *e, struct tensor *x);
struct tensor *op_log1p(struct engine *e, struct tensor *x); /* log(1 + x) */
struct tensor *op_expm1(struct engine *e, struct tensor *x);
struct tensor *op_log(struct engine *e, struct tensor *x);
/* torch.min(x, scalar); the scalar is a tensor without dimensions that needs no gradient */
struct tensor *op_at_most(struct engine *e, struct tensor *x, double scalar);
struct tensor *op_softplus(struct engine *e, struct tensor *x);
struct tensor *op_log_sigmoid(struct engine *e, struct tensor *x);
struct tensor *op_sigmoid(struct engine *e, struct tensor *x);
struct tensor *op_gelu(struct engine *e, struct tensor *x, bool tanh_formula);
struct tensor *op_erf(struct engine *e, struct tensor *x);
/* x clamped to [low, high]; infinite bounds mean no bound */
struct tensor *op_clamp(struct engine *e, struct tensor *x, double low, double high);
/* not differentiable */
struct tensor *op_unary(struct engine *e, struct tensor *x, enum plim_unary f);
/* x (.., rows, columns) with zeros above a diagonal (tril) or below it (triu): 0 is the main diagonal, 1 that to its
 * right; no autograd */
struct tensor *op_tril(struct engine *e, struct tensor *x, int diagonal);
struct tensor *op_triu(struct engine *e, struct tensor *x, int diagonal);
/* where(condition, a, b) with broadcasting; if a or b is NULL, the number is used instead, which has no gradient */
struct tensor *op_where(struct engine *e, struct tensor *condition, struct tensor *a,
                        struct tensor *b, enum plim_dtype dtype, double a_number, double b_number);

/* --- complex numbers (ops_complex.c): fp32, (.., 2) is real and imaginary part ---------------- */

/* torch.view_as_complex() and torch.view_as_real(): no change of the array */
struct tensor *op_view_complex(struct engine *e, struct tensor *x);
/* torch.polar(torch.ones_like(angles), angles): (.., 2); no autograd */
struct tensor *op_unit_complex(struct engine *e, struct tensor *angles);
/* a b; b broadcasts and needs no gradient */
struct tensor *op_mul_complex(struct engine *e, struct tensor *a, struct tensor *b);

/* --- reductions ------------------------------------------------------------------------------- */

/* mean over the last dimension, kept */
struct tensor *op_mean_last(struct engine *e, struct tensor *x);
struct tensor *op_mean_vector(struct engine *e, struct tensor *x); /* x.mean() of x (n): a tensor without dimensions */
/* sum over the last dimension, kept */
struct tensor *op_sum_last(struct engine *e, struct tensor *x);
/* the same in the type `result`; below, the sum of all elements, a scalar */
struct tensor *op_sum_last_as(struct engine *e, struct tensor *x, enum plim_dtype result);
struct tensor *op_sum_all(struct engine *e, struct tensor *x);
/* x.nansum() and x.nanmean() of finite numbers: scalars; the sum has no autograd */
struct tensor *op_nansum(struct engine *e, struct tensor *x);
struct tensor *op_nanmean(struct engine *e, struct tensor *x);
/* the sum over one dimension, which is removed */
struct tensor *op_sum_dim(struct engine *e, struct tensor *x, int dim);
/* `x` summed down to a shape it was broadcast from; no autograd */
struct tensor *op_sum_to(struct engine *e, struct tensor *x, int ndim, const int64_t *shape);
/* x.argmax(dim=-1); no autograd */
struct tensor *op_argmax_last(struct engine *e, struct tensor *x);
/* the same into y, which is lent like x */
void op_argmax_last_to(struct engine *e, struct tensor *x, struct tensor *y);
/* reduction over the dimensions in the bit mask, with results of type `result`; no autograd */
struct tensor *op_reduce(struct engine *e, struct tensor *x, unsigned dims, bool keep,
                         enum plim_binary fold, double factor, enum plim_dtype result);
/* the same into y, which is lent like x */
void op_reduce_to(struct engine *e, struct tensor *x, unsigned dims, enum plim_binary fold, double factor,
                  struct tensor *y);
/* running sums along a dimension, in `dtype` */
struct tensor *op_cumsum(struct engine *e, struct tensor *x, int dim, enum plim_dtype dtype);
struct tensor *op_cumsum_last(struct engine *e, struct tensor *x, enum plim_dtype dtype);

/* --- matrices --------------------------------------------------------------------------------- */

/* bias + a b; bias (n), a (m, k), b (k, n). Autocast applies, here and below. */
struct tensor *op_addmm(struct engine *e, struct tensor *bias, struct tensor *a, struct tensor *b);
/* beta * c + alpha * a b, batched */
struct tensor *op_baddbmm(struct engine *e, struct tensor *c, struct tensor *a, struct tensor *b,
                          double beta, double alpha);
/* a b, batched: (n, m, k) (n, k, p) */
struct tensor *op_bmm(struct engine *e, struct tensor *a, struct tensor *b);
/* torch.matmul; the left operand has at least three dimensions */
struct tensor *op_matmul(struct engine *e, struct tensor *a, struct tensor *b);
/* torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=True): the solution x of a x = b; a (.., n, n), b (..,
 * n, m); x is column-major. No autocast. */
struct tensor *op_solve_triangular(struct engine *e, struct tensor *a, struct tensor *b, bool upper);
/* torch.mm(a, b, out=y), or torch.addmm(y, a, b, out=y) if `adds`; no autocast, no autograd */
void op_mm_into(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b, bool adds);
/* y.addmm_(a, b, beta=beta, alpha=alpha), likewise */
void op_mm_scaled(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b, double beta, double alpha);
/* torch.nn.functional.linear: x w^T + bias; weight (out, in); bias may be NULL */
struct tensor *op_linear(struct engine *e, struct tensor *x, struct tensor *weight,
                         struct tensor *bias);
/* The function that replaces it in DeepSpeed's ZeRO 3 (runtime/zero/linear.py): one autograd.Function, which saves the
 * weight itself; no autocast */
struct tensor *op_linear_function(struct engine *e, struct tensor *x, struct tensor *weight,
                                  struct tensor *bias);

/* A weight of a linear layer stored in 4 or 8 bits, as by bitsandbytes. The tensors live as long as the layer. */
struct quantized {
    enum plim_quantized type;
    enum plim_dtype dtype;  /* the original type of the weight */
    enum plim_dtype compute; /* the type in which the layer computes */
    int64_t rows, columns;  /* the weight's shape (out, in) */
    enum plim_dtype storage; /* 4 bits: the element type of the tensor in which the codes are stored */
    struct tensor *codes;   /* two codes per byte (4 bits), or one */
    struct tensor *scales;  /* fp32, one per 64 elements; nested: one per 256 scales; int8: one per row */
    struct tensor *book;    /* 4 bits: the values of the codes */
    struct tensor *scale_codes, *scale_book, *offset; /* for nested (quantised) scales, otherwise NULL */
};

/* create_dynamic_map() of bitsandbytes and of torchao: stores 2^(powers + 1) numbers in increasing order. For each
 * power of ten up to 1 these are the midpoints of 1, 2, 4, .. equal parts of [0.1, 1) (twice as many if unsigned), with
 * both signs if signed; and 0 and 1. */
void op_dynamic_numbers(float *book, int powers, bool is_signed);
/* the map with 256 numbers as a tensor on the device */
struct tensor *op_dynamic_map(struct engine *e, bool is_signed);
/* Quantises a weight (out, in), lent, into `q`, whose `type` and `storage` are set. Nested scales are stored in 8 bits;
 * their map, *map, is allocated at the first call and owned by the caller. */
void op_quantize_4bit(struct engine *e, struct quantized *q, struct tensor *weight, bool nested,
                      struct tensor **map);
/* the weight, in its original type */
struct tensor *op_dequantize_4bit(struct engine *e, const struct quantized *q);
/* the same as in axolotl (kernels/quantize.py): with nested scales the matrix is allocated before its scales */
struct tensor *op_dequantize_4bit_late(struct engine *e, const struct quantized *q);
/* The same in 8 bits: the largest magnitude of a row is 127. */
void op_quantize_int8(struct engine *e, struct quantized *q, struct tensor *weight);
struct tensor *op_dequantize_int8(struct engine *e, const struct quantized *q); /* in fp32 */
/* x w^T + bias; only x gets a gradient; bias may be NULL. int8: x is quantised too, and the original is held until the
 * node is freed. */
struct tensor *op_linear_int8(struct engine *e, struct tensor *x, const struct quantized *q,
                              struct tensor *bias);
struct tensor *op_linear_4bit(struct engine *e, struct tensor *x, const struct quantized *q,
                              struct tensor *bias);

/* --- indexing, sorting and masks ---------------------------------------------------------------- */

/* Stores the `count` largest elements along the last dimension and their indices (int64) in `out`; both are
 * floating. */
void op_top_k(struct engine *e, struct tensor *x, int64_t count, struct tensor *out[2]);
/* x.max(dim=-1, keepdim=True).values */
struct tensor *op_max_last(struct engine *e, struct tensor *x);
/* Stores the sorted elements (n) and their indices in `out`; both are floating; no autograd. */
void op_sort(struct engine *e, struct tensor *x, struct tensor *out[2]);
/* x[indices]: elements of x (n), or rows of x (n, ..) */
struct tensor *op_rows(struct engine *e, struct tensor *x, struct tensor *indices);
/* the same; the indices must be distinct */
struct tensor *op_different_rows(struct engine *e, struct tensor *x, struct tensor *indices);
/* x.index_select(0, indices) of distinct indices, of x (n), or (n, ..) without autograd */
struct tensor *op_select_rows(struct engine *e, struct tensor *x, struct tensor *indices);
/* x[..., [index], ...] along `dim`, which is kept with size 1 */
struct tensor *op_index_at(struct engine *e, struct tensor *x, int dim, int64_t index);
/* nonzero() of a mask with `found` nonzero elements: (found) int64, their linear indices, used instead of the
 * coordinates; or the coordinates, (found, dimensions) int64 */
struct tensor *op_nonzero(struct engine *e, struct tensor *mask, int64_t found);
struct tensor *op_coordinates(struct engine *e, struct tensor *mask, int64_t found);
/* y.scatter_add_(0, indices, x); all named, y (n), indices and x (m); no autograd */
void op_scatter_add_(struct engine *e, struct tensor *y, struct tensor *indices, struct tensor *x);
/* zeros (count, ..) with the rows of x (n, ..) at these indices (n) */
struct tensor *op_put_rows(struct engine *e, struct tensor *x, struct tensor *indices, int64_t count);
/* x[mask], mask (b, s) with `found` ones: rows of x (b, s, width), or elements of x (b, s); or mask (b) and x (b,
 * width) or (b) */
struct tensor *op_rows_where(struct engine *e, struct tensor *x, struct tensor *mask, int64_t found);
/* x[arange(b), columns]: from each row of x (b, s, width) the vector at its column (b, int64); (b, width) */
struct tensor *op_rows_at(struct engine *e, struct tensor *x, struct tensor *columns);
/* x[indices] of rows of x (n, width); `indices` is a permutation that Python keeps on the host and copies to the device
 * when it is needed; NULL: a simulated device, which needs no values */
struct tensor *op_rows_in_order(struct engine *e, struct tensor *x, const int64_t *indices);
/* x.masked_scatter(mask, source); the mask broadcasts, source has as many elements as the mask selects */
struct tensor *op_masked_scatter(struct engine *e, struct tensor *x, struct tensor *mask, struct tensor *source);
/* x.gather(-1, indices), indices (.., k) int64, distinct within a row */
struct tensor *op_gather_last(struct engine *e, struct tensor *x, struct tensor *indices);
/* the same; indices may repeat, and leading dimensions may be broadcast */
struct tensor *op_gather_any(struct engine *e, struct tensor *x, struct tensor *indices);
/* x.gather(0, indices.expand(..)) of whole rows of x (n, ..), or of its elements; indices (k) int64, distinct */
struct tensor *op_gather_rows(struct engine *e, struct tensor *x, struct tensor *indices);
/* x[indices] = from, of x (n); no autograd */
void op_scatter_(struct engine *e, struct tensor *x, struct tensor *indices, struct tensor *from);
/* the number of elements of x that are 0, 1, .. bins - 1, int32; no autograd */
struct tensor *op_histogram(struct engine *e, struct tensor *x, int64_t bins);
/* x where the mask (broadcast) is 0, otherwise `value` */
struct tensor *op_masked_fill(struct engine *e, struct tensor *x, struct tensor *mask, double value);
/* The same in the memory of x. Returns the tensor that Python's x refers to afterwards (op_in_place()). Floating. */
struct tensor *op_masked_fill_(struct engine *e, struct tensor *x, struct tensor *mask, double value);
struct tensor *op_mul_scalar_(struct engine *e, struct tensor *x, double b); /* x *= b, likewise */
/* x[mask] = rows, likewise (index_put_()): mask (b, s), x (b, s, width); one row for each one of the mask */
struct tensor *op_put_rows_where_(struct engine *e, struct tensor *x, struct tensor *mask, struct tensor *rows);
/* x.select(dim, index).copy_(value), likewise; x is dense */
struct tensor *op_set_part_(struct engine *e, struct tensor *x, int dim, int64_t index, struct tensor *value);
/* x[.., start:start + n, ..].copy_(value), likewise; n is the size of `value` */
struct tensor *op_set_slice_(struct engine *e, struct tensor *x, int dim, int64_t start, struct tensor *value);
/* x += other, likewise; `other` may have fewer elements */
struct tensor *op_plus_(struct engine *e, struct tensor *x, struct tensor *other);
/* x.clamp_(-limit, limit), likewise; saves a copy of the original for backward */
struct tensor *op_clip_(struct engine *e, struct tensor *x, double limit);
/* x *= other, likewise; `other` needs no gradient */
struct tensor *op_mul_(struct engine *e, struct tensor *x, struct tensor *other);
/* x /= other, likewise */
struct tensor *op_div_(struct engine *e, struct tensor *x, struct tensor *other);
/* torch.nn.functional.grouped_mm: rows of x (s, k), sorted by group, times b (groups, k, n); `ends` (groups), int32:
 * the end of each group. No autocast. */
struct tensor *op_grouped_mm(struct engine *e, struct tensor *x, struct tensor *b,
                             struct tensor *ends);

/* --- norms, softmax, losses, dropout, embedding ----------------------------------------------- */

/* over the last dimension; weight and bias may be NULL */
struct tensor *op_layer_norm(struct engine *e, struct tensor *x, struct tensor *weight,
                             struct tensor *bias, double epsilon);
/* over the last dimension; computed and returned in `dtype` */
struct tensor *op_softmax(struct engine *e, struct tensor *x, enum plim_dtype dtype);
/* its logarithm, in the type of x */
struct tensor *op_log_softmax(struct engine *e, struct tensor *x);
/* softmax of scores in which whole rows may be minus infinity: those become zeros */
struct tensor *op_safe_softmax(struct engine *e, struct tensor *x);
/* torch.stack of torch.logsumexp(row, dim=-1) of the rows of x (rows, n, classes) fp32: (rows, n) (ops_logps.c) */
struct tensor *op_row_logsumexp(struct engine *e, struct tensor *x);
/* selective_log_softmax_and_entropy() of TRL 1.16 (kernels/logprob_entropy.py) of logits (rows, n, classes) fp32, of
 * which rows need not be adjacent, and labels (rows, n): the labels' log-probabilities (rows, n), without entropies */
struct tensor *op_label_log_probs(struct engine *e, struct tensor *logits, struct tensor *labels);
/* x.gather(-1, indices.unsqueeze(-1)) of x (rows, n, classes) and indices (rows, n), whose rows need not be adjacent;
 * (rows, n, 1) */
struct tensor *op_row_gather(struct engine *e, struct tensor *x, struct tensor *indices);
/* x[mask] of such an x and a mask (rows, n) with `found` ones; (found, classes); no autograd */
struct tensor *op_apart_where(struct engine *e, struct tensor *x, struct tensor *mask, int64_t found);
/* y = x.squeeze(-1) and y[mask] = 0, of x (rows, n, 1) and a mask (rows, n); returns y, in the memory of x */
struct tensor *op_zero_where_(struct engine *e, struct tensor *x, struct tensor *mask);
/* mean cross entropy of logits (n, classes) and int64 targets (n) */
struct tensor *op_cross_entropy(struct engine *e, struct tensor *logits, struct tensor *target);
/* mean of (x - target)^2; target has the same shape, in fp32; autocast casts x to fp32 */
struct tensor *op_mse_loss(struct engine *e, struct tensor *x, struct tensor *target);
struct tensor *op_dropout(struct engine *e, struct tensor *x, double p);
/* rows of `weight`; a padding_idx would only change values */
struct tensor *op_embedding(struct engine *e, struct tensor *weight, struct tensor *indices);

/* Conv2d whose stride is its kernel size: images (b, c, h, w), weight (k, c, size, size), bias (k) or NULL -> (b, k, h
 * / size, w / size); or Conv3d of (b, c, frames, size, size), weight (k, c, frames, size, size) -> (b, k, 1, 1, 1).
 * Images have no gradient. Autocast applies. */
struct tensor *op_patches(struct engine *e, struct tensor *x, struct tensor *weight,
                          struct tensor *bias);

/* torch.nn.functional.conv1d(x, weight, bias, stride=step, padding=padding) of rows (b, c, s) */
struct tensor *op_conv1d(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias, int64_t step,
                         int64_t padding);
/* torch.nn.functional.avg_pool2d of images (b, c, h, w), contiguous, over adjacent squares of size x size, whose size
 * divides h and w: (b, c, h / size, w / size) */
struct tensor *op_avg_pool(struct engine *e, struct tensor *x, int64_t size);

/* torch.nn.functional.unfold of images (b, c, h, w) into adjacent squares of size x size, whose size divides h and w:
 * (b, c size size, squares) */
struct tensor *op_unfold(struct engine *e, struct tensor *x, int64_t size);

/* torch.nn.functional.conv1d of x (b, c, s), weight (c, 1, k) and bias (c) or NULL, groups=c, with `padding` zeros at
 * either end of a row: (b, c, s + 2 padding - k + 1). Autocast applies. */
struct tensor *op_depthwise(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                            int64_t padding);

/* --- attention -------------------------------------------------------------------------------- */

struct attention_params {
    struct tensor *mask; /* bool or additive, broadcastable to (b, heads, s, s); NULL: none */
    double dropout, scale;
    bool causal;
    bool broadcasts; /* without enable_gqa: keys with fewer heads are broadcast, which no fused kernel supports */
    bool flash2;    /* call flash_attn_func of the package flash-attn, which needs q, k and v in 16 bits; dimensions 1
                     * and 2 are swapped before the call and back after it */
    /* flash2: as in struct plim_op. `ends`: call flash_attn_varlen_func, where q, k and v (1, heads, tokens, d) are
     * concatenated rows with these boundaries, (rows + 1) int32; NULL: not used */
    int64_t window;
    double softcap;
    struct tensor *ends;
};
/* torch.nn.functional.scaled_dot_product_attention; q, k, v (b, heads, s, d) */
struct tensor *op_sdpa(struct engine *e, struct tensor *q, struct tensor *k, struct tensor *v,
                       const struct attention_params *params);

/* The same, composed of matmuls and softmax, for calls that no fused kernel supports. */
struct tensor *attention_math(struct engine *e, struct tensor *q, struct tensor *k,
                              struct tensor *v, struct tensor *mask,
                              const struct attention_params *params);

#endif
