/* The measurement of one model by `ipw layers`: idle windows, then rounds of plain and timed windows until the ± is small
 * enough.  layers.c has what all kinds of models share; a subject is one kind: decoders of llama.cpp
 * (decoder_subject.c), and ONNX models (onnx_subject.c). */
#ifndef IPW_RUNNER_LAYERS_CAMPAIGN_H
#define IPW_RUNNER_LAYERS_CAMPAIGN_H

#include <stdatomic.h>

#include "engine/onnx_inputs.h"
#include "runner/layers/layers.h"
#include "runner/layers/node_trace.h"
#include "runner/layers/workload.h"

struct campaign;
struct onnx_replay;

struct layers_subject {
    /* Loads the model; fills its facts and settings. */
    enum err (*open)(struct campaign *c, struct error *why);
    void (*close)(struct campaign *c); /* also after a failure */
    /* First passes, which are not measured, before idle power is. */
    enum err (*warm_up)(struct campaign *c, struct error *why);
    /* Once the length of windows is known; optional. */
    enum err (*tune)(struct campaign *c, struct error *why);
    /* Whether another window is wanted; optional: always. */
    bool (*wants)(const struct campaign *c, bool timed);
    /* One window of at least c->window_s; a plain one gets its energy. */
    enum err (*window)(struct campaign *c, unsigned setting, struct layers_window *window,
                       struct error *why);
    enum err (*after_round)(struct campaign *c, struct error *why); /* optional */
    /* Times and energies of the parts, from all windows. */
    void (*finish)(struct campaign *c);
    bool limits_overhead; /* rounds go on until the overhead is low */
};

extern const struct layers_subject layers_decoder, layers_onnx;

struct campaign {
    struct session *session;
    const struct layers_options *options;
    const atomic_bool *cancel;
    struct layers_model *model;
    const struct layers_subject *subject;
    struct layers_workload workload; /* of a decoder */
    struct onnx_replay *onnx;        /* of an ONNX model */
    struct replay_times times[LAYERS_SETTINGS_MAX];
    struct baseline idle; /* of each device; empty if not measured */
    nanos began, rounds_from;
    double window_s;
};

/* Adds a setting of which nothing is known yet. */
struct layers_setting *campaign_add_setting(struct layers_model *model, enum layers_phase phase,
                                            unsigned prompt, unsigned tokens);

void campaign_report(const struct campaign *c, const char *activity,
                     const struct layers_setting *setting);

/* ---- node_join.c: the nodes that ONNX Runtime ran, beside the kernels of the estimate ---- */

/* They are joined by the names of nodes and of the tensors that they produce, which the runtime keeps when it fuses
 * some. */
struct node_question {
    const char *path;
    const struct onnx_facts *facts;
    const struct onnx_inputs *inputs;
    const struct candidate_options *device; /* without a device: no estimate */
};

/* The number of nodes of a file; 0: unknown, as without sizes of free dimensions. */
size_t nodes_in_file(const char *path, const struct params *dims);

/* Fills model->nodes, and the parameters of its facts.  Without an estimate the nodes are those of the trace, and
 * estimate_unknown says why. */
void nodes_join(const struct node_question *question, const struct node_trace *trace,
                struct layers_model *model);

#endif
