/* Mamba-2 layers instead of attention: GraniteMoeHybridMambaLayer of transformers' granitemoehybrid, as it runs without
 * the packages mamba_ssm and causal-conv1d. */
#include "model.h"

/* The parts of the first projection: the gate, what the convolution reads (x, B and C), and the step sizes. */
enum { GATE, MIXED, STEP, PARTS };
enum { X, B, C };

struct widths {
    int64_t inner, states; /* of x, and of B or C */
    int64_t channels;      /* of the convolution: x, B and C */
    int64_t heads;
};

static struct widths widths_of(const struct plim_model_config *c)
{
    int64_t inner = c->linear_value_heads * c->linear_value_dim, states = c->linear_key_heads * c->linear_key_dim;
    return (struct widths){inner, states, inner + 2 * states, c->linear_value_heads};
}

/* `count` tensors of the given types, allocated one after another and freed: the heads' numbers and their logarithms,
 * which A_log is initialised with. */
static void initialise(struct engine *e, const struct tensor *a_log, enum plim_dtype numbers)
{
    if (e->halted) return;
    struct tensor *heads = tensor_keep(tensor_empty_like(e, a_log, numbers));
    struct tensor *logarithms = tensor_keep(tensor_empty_like(e, a_log, PLIM_F32));
    tensor_drop_all(e, heads, logarithms);
}

void mamba_build(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    const struct widths w = widths_of(c);
    struct parameters *p = &m->parameters;
    size_t first = p->count;
    l->conv = nn_parameter(e, p, INIT_WEIGHT, SHAPE(w.channels, 1, c->linear_kernel));
    if (c->mamba_conv_bias) l->conv_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(w.channels));
    nn_linear_create(e, p, &l->in_qkv, c->hidden_size, w.inner + w.channels + w.heads, c->mamba_proj_bias);
    l->dt_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(w.heads));
    nn_move_last(p, first);
    l->a_log = nn_parameter(e, p, INIT_ZEROS, SHAPE(w.heads)); /* initially a step of 1 divides the state by e */
    nn_move_last(p, first + 1);
    bool has_norm = c->family != PLIM_FAMILY_FALCON_H1, has_groups = c->family == PLIM_FAMILY_NEMOTRON_H;
    if (has_norm) nn_norm_create(e, p, &l->linear_norm, NORM_RMS_GATED_FIRST, w.inner, false);
    if (has_groups) l->linear_norm.groups = c->linear_key_heads;
    l->skip = nn_parameter(e, p, INIT_ONES, SHAPE(w.heads));
    nn_move_last(p, first + 2);
    initialise(e, l->a_log, PLIM_F32);
    nn_linear_create(e, p, &l->linear_out, w.inner, c->hidden_size, has_norm ? c->mamba_proj_bias : c->mamba_out_bias);
    if (!e->halted) l->a_log->odd_name = l->skip->odd_name = true;
}

/* NemotronHPreTrainedModel._init_weights(): the same, random biases of the step sizes, in steps of which each needs the
 * one before, and the output projection divided by a number. Until the end Python's variables hold the heads' numbers,
 * the step sizes and their biases. */
static void initialise_steps(struct engine *e, const struct decoder *m, const struct decoder_layer *l)
{
    enum { NUMBERS, SIZES, BIASES, HELD, STEPS = 5 };
    if (e->halted) return;
    struct tensor *held[HELD], *step, *fresh;
    held[NUMBERS] = tensor_keep(tensor_empty_like(e, l->a_log, PLIM_I64));
    tensor_drop(e, tensor_keep(tensor_empty_like(e, l->a_log, PLIM_F32)));
    for (int part = SIZES; part <= BIASES; part++) {
        step = tensor_keep(tensor_empty_like(e, l->a_log, m->parameters.dtype));
        for (int i = 1; i < STEPS; i++) {
            fresh = tensor_keep(tensor_empty_like(e, l->a_log, m->parameters.dtype));
            tensor_drop(e, step);
            step = fresh;
        }
        held[part] = step;
    }
    if (m->config->rescales_residual && !e->halted)
        tensor_drop(e, tensor_keep(tensor_empty_like(e, l->linear_out.weight, m->parameters.dtype)));
    tensor_drop_all(e, held[NUMBERS], held[SIZES], held[BIASES]);
}

void mamba_initialise(struct engine *e, const struct decoder *m)
{
    for (int64_t i = 0; i < m->config->layers; i++) {
        if (!m->layers[i].skip) continue;
        if (m->config->family == PLIM_FAMILY_NEMOTRON_H) initialise_steps(e, m, &m->layers[i]);
        else initialise(e, m->layers[i].a_log, PLIM_I64);
    }
}

/* The scan of the convolved parts (B, S, channels), lent, which are padded with zeros: (B, S, inner), named, and what
 * the scan itself returned. */
static struct tensor *scan(struct engine *e, const struct block_call *b, struct tensor *mixed, struct tensor *step,
                           struct tensor *rate, struct tensor **result)
{
    const struct plim_model_config *c = b->m->config;
    const struct decoder_layer *l = b->layer;
    const struct widths w = widths_of(c);
    struct tensor *part[3], *heads[3];
    *result = NULL;
    if (e->halted) return e->poison;
    int64_t batch = mixed->a.shape[0], seq = mixed->a.shape[1];
    op_split(e, mixed, -1, 3, (int64_t[]){w.inner, w.states, w.states}, part);
    for (int i = X; i <= C; i++) tensor_keep(part[i]);
    for (int i = X; i <= C; i++)
        heads[i] = tensor_keep(op_view(e, part[i], SHAPE(batch, seq, i == X ? w.heads : c->linear_key_heads,
                                                         i == X ? c->linear_value_dim : c->linear_key_dim)));
    *result = tensor_keep(nn_mamba2_scan(e, &(struct mamba2_scan){.x = heads[X], .step = step, .b = heads[B],
                                                                 .c = heads[C], .a = rate, .skip = l->skip,
                                                                 .step_bias = l->dt_bias, .chunk = c->mamba_chunk,
                                                                 .step_min = c->mamba_step_min}));
    struct tensor *y = e->halted ? e->poison : tensor_keep(op_reshape(e, *result, SHAPE(batch, seq, w.inner)));
    tensor_drop_all(e, heads[X], heads[B], heads[C], part[X], part[B], part[C]);
    return y;
}

/* The parameters of its parts that the module reads itself: those of the convolution, and in training of the last two
 * parts, too, which it passes to a function of the package (mamba2_split_conv1d_scan_combined). */
static void access_parameters(struct engine *e, const struct decoder_layer *l)
{
    struct tensor *const read[] = {l->conv, l->conv_bias, l->linear_norm.weight, l->linear_out.weight,
                                   l->linear_out.bias};
    enum { OF_CONVOLUTION = 2, READ = sizeof(read) / sizeof(read[0]) };
    for (int i = 0; i < (e->evaluates ? OF_CONVOLUTION : READ); i++)
        if (read[i]) nn_access_weight(e, l->dt_bias, NN_OWN, read[i]);
}

/* The gated result y (B, S, inner), named; rebound */
static void gate(struct engine *e, const struct decoder_layer *l, struct tensor **y, struct tensor *gates)
{
    tensor_set(e, y, l->linear_norm.weight ? nn_norm_gated(e, &l->linear_norm, *y, gates)
                                           : op_mul(e, *y, op_silu(e, gates)));
}

static struct tensor *forward(struct engine *e, const void *module, struct tensor *x)
{
    const struct block_call *b = module;
    const struct decoder_layer *l = b->layer;
    const struct widths w = widths_of(b->m->config);
    struct tensor *part[PARTS], *hidden = tensor_ref(x), *result, *mask = l->mup ? b->linear_mask : b->mask;
    if (e->halted) return e->poison;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    decoder_hide_padding(e, mask, &hidden);
    if (l->mup) tensor_set(e, &hidden, op_mul_scalar(e, hidden, 1)); /* ssm_in_multiplier */
    struct tensor *projected = tensor_keep(nn_linear(e, &l->in_qkv, hidden));
    if (l->mup) tensor_set(e, &projected, op_mul(e, projected, l->mup));
    access_parameters(e, l);
    struct tensor *rate = tensor_keep(op_neg(e, op_exp(e, op_to(e, l->a_log, PLIM_F32))));
    op_split(e, projected, -1, PARTS, (int64_t[]){w.inner, w.channels, w.heads}, part);
    for (int i = GATE; i < PARTS; i++) tensor_keep(part[i]);
    tensor_set(e, &part[MIXED], op_transpose(e, part[MIXED], 1, 2));
    tensor_set(e, &part[MIXED], nn_causal_conv1d(e, l->conv, l->conv_bias, part[MIXED], true));
    tensor_set(e, &part[MIXED], op_transpose(e, part[MIXED], 1, 2));
    decoder_hide_padding(e, mask, &part[MIXED]);
    tensor_drop(e, hidden); /* Python's variable becomes a part */
    struct tensor *y = scan(e, b, part[MIXED], part[STEP], rate, &result);
    gate(e, l, &y, part[GATE]);
    tensor_set(e, &y, nn_linear(e, &l->linear_out, op_to(e, y, dtype)));
    tensor_drop_all(e, projected, part[GATE], part[MIXED], part[STEP], rate, result);
    return tensor_yield(y);
}

struct tensor *mamba(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return nn_run(e, (struct tensor *const[]){b->layer->dt_bias, b->layer->a_log, b->layer->skip, NULL}, NN_OWN,
                  forward, b, x);
}
