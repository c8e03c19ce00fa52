/* gemma4's audio tower: two convolutions, then blocks of two MLPs, attention and a convolution each, and a linear. */
#include "model.h"
#include <math.h>

static struct linear clipped(struct engine *e, struct decoder *m, int64_t in, int64_t out)
{
    struct linear l;
    nn_linear_create(e, &m->parameters, &l, in, out, false);
    if (m->config->audio.clips) nn_linear_clip(e, &m->parameters, &l);
    return l;
}

static void norm(struct engine *e, struct decoder *m, struct norm *n)
{
    nn_norm_create(e, &m->parameters, n, NORM_RMS_GEMMA4, m->config->audio.hidden_size, false);
}

static void build_feed_forward(struct engine *e, struct decoder *m, struct audio_layer *l, int which)
{
    int64_t w = m->config->audio.hidden_size;
    l->ffw[which][0] = clipped(e, m, w, 4 * w);
    l->ffw[which][1] = clipped(e, m, 4 * w, w);
    for (int i = 0; i < 2; i++) norm(e, m, &l->ffw_norm[which][i]);
}

/* The scale is a parameter of the attention module itself, so it precedes those of its linears. */
static void build_attention(struct engine *e, struct decoder *m, struct audio_layer *l)
{
    int64_t w = m->config->audio.hidden_size;
    size_t first = m->parameters.count;
    struct linear *const linears[] = {&l->q, &l->k, &l->v, &l->post};
    for (int i = 0; i < 4; i++) *linears[i] = clipped(e, m, w, w);
    nn_linear_create(e, &m->parameters, &l->relative, w, w, false);
    l->scale = nn_parameter(e, &m->parameters, INIT_ZEROS, SHAPE(w / m->config->audio.heads));
    nn_move_last(&m->parameters, first);
    l->softcap = nn_buffer(e, op_full(e, m->parameters.dtype, 0, NULL, 50));
}

static void build_block(struct engine *e, struct decoder *m, struct audio_layer *l)
{
    const struct plim_audio *a = &m->config->audio;
    for (int i = 0; i < 2; i++) build_feed_forward(e, m, l, i);
    build_attention(e, m, l);
    l->start = clipped(e, m, a->hidden_size, 2 * a->hidden_size);
    l->end = clipped(e, m, a->hidden_size, a->hidden_size);
    l->conv = nn_parameter(e, &m->parameters, INIT_WEIGHT, SHAPE(a->hidden_size, 1, a->kernel_size));
    for (int i = 0; i < 2; i++) norm(e, m, &l->conv_norm[i]);
    for (int i = 0; i < 3; i++) norm(e, m, &l->norm[i]);
}

/* Gemma4AudioRelPositionalEncoding: returns its buffer, (1, 1, count), named. No batch contains audio, so it is never
 * read. */
static struct tensor *build_timescales(struct engine *e, enum plim_dtype dtype, int64_t count)
{
    struct tensor *x = tensor_keep(op_arange(e, PLIM_I64, count, 0, 1));
    tensor_set(e, &x, op_mul_scalar(e, op_to(e, x, dtype), -log(1e4) / (double)(count > 1 ? count - 1 : 1)));
    tensor_set(e, &x, op_mul_scalar(e, op_unary(e, x, PLIM_UNARY_EXP), 1));
    struct tensor *y = nn_buffer(e, op_view(e, x, SHAPE(1, 1, count)));
    tensor_drop(e, x);
    return y;
}

void audio_build(struct engine *e, struct decoder *m)
{
    const struct plim_audio *config = &m->config->audio;
    struct audio *a = &m->audio;
    struct parameters *p = &m->parameters;
    if (!config->layers) return;
    for (int i = 0; i < 2; i++) {
        a->conv[i] = nn_parameter(e, p, INIT_WEIGHT, SHAPE(config->channels[i], i ? config->channels[0] : 1, 3, 3));
        nn_norm_create(e, p, &a->conv_norm[i], NORM_LAYER, config->channels[i], false);
    }
    nn_linear_create(e, p, &a->in, config->channels[0] / 4 * config->channels[1], config->hidden_size, false);
    a->timescales = build_timescales(e, p->dtype, config->hidden_size / 2);
    for (int64_t i = 0; i < config->layers; i++) build_block(e, m, &a->layers[i]);
    nn_linear_create(e, p, &a->out, config->hidden_size, config->out_size, true);
}

void audio_build_embedding(struct engine *e, struct decoder *m)
{
    const struct plim_audio *a = &m->config->audio;
    if (a->out_size && (a->layers || m->config->vision.has_no_blocks))
        nn_linear_create(e, &m->parameters, &m->audio.embedding, a->out_size, m->config->hidden_size, false);
}

/* --- the modules ------------------------------------------------------------------------------ */

#define OF(path, field, kind) {path, offsetof(struct audio, field), MODULE_##kind}
#define OF_BLOCK(path, field, kind) {path, offsetof(struct audio_layer, field), MODULE_##kind}
#define FEED_FORWARD(path, i) \
    OF_BLOCK(path ".ffw_layer_1.linear", ffw[i][0], LINEAR), OF_BLOCK(path ".ffw_layer_2.linear", ffw[i][1], LINEAR), \
    OF_BLOCK(path ".pre_layer_norm", ffw_norm[i][0], NORM), OF_BLOCK(path ".post_layer_norm", ffw_norm[i][1], NORM)

const struct module plim_audio_front[] = {OF("layer0.conv", conv[0], WEIGHT),
                                          OF("layer0.norm", conv_norm[0], NORM),
                                          OF("layer1.conv", conv[1], WEIGHT),
                                          OF("layer1.norm", conv_norm[1], NORM),
                                          OF("input_proj_linear", in, LINEAR),
                                          {0}};
const struct module plim_audio_block[] = {FEED_FORWARD("feed_forward1", 0),
                                          FEED_FORWARD("feed_forward2", 1),
                                          OF_BLOCK("self_attn.per_dim_scale", scale, PARAMETER),
                                          OF_BLOCK("self_attn.q_proj.linear", q, LINEAR),
                                          OF_BLOCK("self_attn.k_proj.linear", k, LINEAR),
                                          OF_BLOCK("self_attn.v_proj.linear", v, LINEAR),
                                          OF_BLOCK("self_attn.post.linear", post, LINEAR),
                                          OF_BLOCK("self_attn.relative_k_proj", relative, LINEAR),
                                          OF_BLOCK("lconv1d.linear_start.linear", start, LINEAR),
                                          OF_BLOCK("lconv1d.linear_end.linear", end, LINEAR),
                                          OF_BLOCK("lconv1d.depthwise_conv1d", conv, WEIGHT),
                                          OF_BLOCK("lconv1d.pre_layer_norm", conv_norm[0], NORM),
                                          OF_BLOCK("lconv1d.conv_norm", conv_norm[1], NORM),
                                          OF_BLOCK("norm_pre_attn", norm[0], NORM),
                                          OF_BLOCK("norm_post_attn", norm[1], NORM),
                                          OF_BLOCK("norm_out", norm[2], NORM),
                                          {0}};
const struct module plim_audio_back[] = {OF("output_proj", out, LINEAR), {0}};
const struct module plim_audio_embedding[] = {OF("embedding_projection", embedding, LINEAR), {0}};
