/* What is asked of a model: batch, lengths, image size, phase.  Pure data; nothing is owned. */
#ifndef IPW_GRAPH_OPTIONS_H
#define IPW_GRAPH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

struct params;

enum graph_phase {
    GRAPH_FORWARD, /* one pass over the input; of a decoder: prefill */
    GRAPH_PREFILL, /* `tokens` of a prompt in one pass, logits of the last token */
    GRAPH_DECODE,  /* one token that attends to `context` tokens, itself included */
};

/* 0 means the model's default, which model_graph writes back. */
struct graph_options {
    enum graph_phase phase;
    int64_t batch;             /* samples or sequences */
    int64_t tokens;            /* of a prompt, or of a text that is encoded whole */
    int64_t context;           /* tokens that a decoded token attends to, itself included */
    int64_t cached;            /* of a prompt: tokens before these, computed by earlier passes */
    int64_t image;             /* height and width in pixels */
    int64_t image_width;       /* where it is not the height; 0: it is */
    const struct params *dims; /* "batch=8": dynamic dimensions of an ONNX file; NULL: none */
};

/* Sets what is 0 to the model's defaults (a batch of 1), and rejects sizes that no model runs with, and the decode phase
 * of a model that has no phases. */
enum err graph_options_complete(struct graph_options *options, const char *model_name,
                                bool has_phases, const struct graph_options *defaults,
                                struct error *why) MUST_USE;

#endif
