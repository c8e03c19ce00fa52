/* The audio tower of gemma4 (Gemma4AudioModel). Planned batches contain no audio, so it never runs, but its weights are
 * allocated. audio.c builds it; its parts are among those of the vision tower (vision_part()), where code that handles
 * modules finds them. */
#ifndef PLIM_MODELS_AUDIO_H
#define PLIM_MODELS_AUDIO_H

#include "modules.h"
#include "workloads/nn/nn.h"

struct decoder;

/* Gemma4AudioLayer */
struct audio_layer {
    struct linear ffw[2][2];           /* feed_forward1 and feed_forward2, two linears each */
    struct norm ffw_norm[2][2];
    struct linear q, k, v, post, relative;
    struct tensor *scale, *softcap;    /* per_dim_scale, (head size); a buffer, a scalar */
    struct linear start, end;          /* the convolution module; its kernel `conv` is (width, 1, kernel_size) */
    struct tensor *conv;
    struct norm conv_norm[2], norm[3];
    struct adapters adapters;
};

enum { AUDIO_FRONT, AUDIO_BACK, AUDIO_EMBEDDING, AUDIO_ENDS }; /* the modules outside of its blocks */
struct audio {
    struct tensor *conv[2];            /* (channels, input channels, 3, 3) */
    struct norm conv_norm[2];
    struct linear in, out, embedding;  /* input_proj_linear; output_proj; embed_audio's */
    struct tensor *timescales;         /* a buffer */
    struct audio_layer *layers;
    struct adapters adapters[AUDIO_ENDS];
};

/* Build the tower, in the order of its constructors, and the projection to the text's width, which is built later. Do
 * nothing if the model has none. */
void audio_build(struct engine *e, struct decoder *m);
void audio_build_embedding(struct engine *e, struct decoder *m);

extern const struct module plim_audio_front[], plim_audio_block[], plim_audio_back[], plim_audio_embedding[];

#endif
