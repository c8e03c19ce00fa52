/* Declarations shared by fsdp.c (running) and fsdp_create.c (creating). */
#ifndef PLIM_TRAIN_FSDP_INTERNAL_H
#define PLIM_TRAIN_FSDP_INTERNAL_H

#include "fsdp.h"

static inline int64_t shard_rows(const struct fsdp *f, const struct fsdp_parameter *p)
{
    return (p->rows + f->world - 1) / f->world;
}

/* Returns how many rows this rank has; the last ranks may have fewer than shard_rows(), but memory for that many. */
static inline int64_t local_rows(const struct fsdp *f, const struct fsdp_parameter *p)
{
    int64_t most = shard_rows(f, p), left = p->rows - f->rank * most;
    return left >= most ? most : left > 0 ? left : 0;
}

static inline int64_t shard_elements(const struct fsdp *f, const struct fsdp_parameter *p)
{
    return shard_rows(f, p) * p->row_elements;
}

static inline enum plim_dtype dtype_of(const struct tensor *x)
{
    return (enum plim_dtype)x->a.dtype;
}

static inline bool fsdp_is_mixed(const struct plim_train_setting *setting)
{
    return setting->precision == PLIM_PRECISION_BF16_MIXED ||
           setting->precision == PLIM_PRECISION_FP16_MIXED;
}

/* The compute type of a mixed-precision policy. */
static inline enum plim_dtype fsdp_policy_dtype(const struct plim_train_setting *setting)
{
    return setting->precision == PLIM_PRECISION_FP16_MIXED ? PLIM_F16 : PLIM_BF16;
}

/* Hooks: around a block; around the backward of a unit (the context); at the end of the backward pass (context: struct
 * fsdp). */
struct tensor *fsdp_before_block(struct engine *e, void *context, struct block_call *c,
                                 struct tensor *x);
void fsdp_after_block(struct engine *e, void *context, struct block_call *c, struct tensor *y);
void fsdp_unit_before_backward(struct engine *e, void *context);
void fsdp_unit_after_backward(struct engine *e, void *context);
void fsdp_end_backward(struct engine *e, void *context);

/* Hooks around modules of the embedding and the tail (struct module_hooks; the context is a struct fsdp). */
struct tensor *fsdp_before_module(struct engine *e, void *context, struct tensor *const *weights, int kind,
                                  struct tensor *x);
struct tensor *fsdp_after_module(struct engine *e, void *context, struct tensor *const *weights, int kind,
                                 struct tensor *y);
/* The same for a last norm without a weight. */
struct tensor *fsdp_before_bare_norm(struct engine *e, void *context, struct tensor *x);
void fsdp_after_bare_norm(struct engine *e, void *context, struct tensor *y);
/* Hooks for adapter matrices, which are modules of their own. unshard: a function uses one without calling its
 * module. */
void fsdp_access_weight(struct engine *e, void *context, struct tensor *first, int kind, struct tensor *weight);
enum plim_dtype fsdp_type_of(struct engine *e, void *context, struct tensor *weight);
void fsdp_unshard(struct engine *e, void *context, struct tensor *weight);
/* Hook for a weight of the head that the model itself uses. */
struct tensor *fsdp_full_weight(struct engine *e, void *context, struct tensor *weight);

#endif
