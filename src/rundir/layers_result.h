/* Results of `ipw layers` for a model.  The JSON of `--json`, of `-o` and of layers.json in a run directory is written
 * and read here alone; anything unknown is UNKNOWN or NULL.
 *
 * Ownership: a result owns its lists, `devices`, `host` and, if it was read, the tree that all other strings point
 * into; otherwise those strings belong to the caller that set them.  layers_results_release frees them. */
#ifndef IPW_RUNDIR_LAYERS_RESULT_H
#define IPW_RUNDIR_LAYERS_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"
#include "rundir/summary.h"

struct json;
struct jv;
struct result;

/* The phases of a setting and of a component. */
enum { RESULT_PHASES = 2 };
extern const char *const RESULT_PHASE[RESULT_PHASES]; /* "prefill", "decode" */

/* Maximum acceptable instrumentation overhead. */
#define RESULT_OVERHEAD_PCT_MAX 5.0

#include "rundir/layers_result.def"
#define RESULT_MEMBER(type, member) FIELD_C_##type member;

struct result_component {
    RESULT_COMPONENT(RESULT_MEMBER)
};

struct result_components {
    struct result_component *items;
    size_t count;
};

struct result_layer {
    double index;
    RESULT_LAYER_SUM(RESULT_MEMBER)
    struct result_components components; /* those that took time, of both phases */
};

/* One phase at one prompt length. */
struct result_setting {
    RESULT_SETTING(RESULT_MEMBER)
    struct result_components components; /* without phase, ± and method */
};

struct result_window {
    RESULT_WINDOW(RESULT_MEMBER)
};

struct result_node {
    RESULT_NODE(RESULT_MEMBER)
};

/* Mean power while nothing runs, or while threads busy-wait; seconds UNKNOWN or 0: not measured. */
struct result_idle {
    RESULT_IDLE(RESULT_MEMBER)
};

struct layers_result {
    RESULT_MODEL(RESULT_MEMBER)
    double *prompts; /* tokens */
    size_t prompt_count;
    RESULT_WORKLOAD(RESULT_MEMBER)
    RESULT_CHECKS(RESULT_MEMBER)
    const char *closure_unknown; /* why the balance cannot be checked */
    struct result_null_test {
        RESULT_NULL_TEST(RESULT_MEMBER)
    } null_test;
    struct record_energy energy; /* of one pass of the workload */
    RESULT_SUMS(RESULT_MEMBER)
    struct result_idle idle, awake; /* idle: nothing runs; awake: threads busy-wait */
    struct summary_conditions conditions;
    struct result_components components;
    struct result_layer *layers;
    size_t layers_measured;
    bool has_outside; /* parts outside the layers: embedding, output ... */
    struct result_layer outside;
    struct result_setting *settings;
    size_t setting_count;
    struct result_window *windows;
    size_t window_count;
    /* Of an ONNX model, which has these instead of components, layers and tokens. */
    const char *inputs; /* "x float[1,3,224,224]" */
    struct result_node *nodes;
    size_t node_count;
    struct result_estimate {
        RESULT_ESTIMATE(RESULT_MEMBER)
    } estimate;
    struct result_rest {
        RESULT_REST(RESULT_MEMBER)
    } rest;
    struct text devices; /* compact JSON */

    /* Of the measurement, which may cover several models. */
    const char *started, *version, *hardware_label, *gpu;
    struct result_own {
        RESULT_OWN(RESULT_MEMBER)
    } own;
    struct text host; /* compact JSON */
    struct jv *tree;  /* owned by the first model of a file */
};

/* Models of one measurement, or of all loaded files. */
struct layers_results {
    struct layers_result *models;
    size_t count;
};

/* Sets everything to unknown. */
void layers_result_init(struct layers_result *result);

/* The last component of the model's path; "unnamed model" if it has none. */
const char *layers_result_name(const struct layers_result *result);
bool layers_result_is_estimated(const struct layers_result *result);

/* The setting of a window; NULL for an idle one. */
const struct result_setting *layers_result_setting(const struct layers_result *result,
                                                   const struct result_window *window);

/* Joules per token of a phase over all prompt lengths with known energy, and their ±; UNKNOWN if there is none. The ±
 * of the lengths are added, since sensor errors are correlated. */
double layers_result_per_token(const struct layers_result *result, const char *phase,
                               double *plus_minus);

/* Writes the members of a model, except its windows, into an open object. */
void layers_result_to_json(const struct layers_result *result, struct json *json);

/* The result of `ipw layers`, whose JSON layers_results_load reads; `several`: several models were requested, even if
 * only one was measured. */
void layers_results_fill(const struct layers_results *results, bool several, struct result *out);

/* layers.json in a run directory: one model. */
enum err layers_result_save(const char *directory, const struct layers_result *result,
                            struct error *why) MUST_USE;

/* Adds the models of a file, or of every layers*.json in a directory.  ERR_BAD_VALUE names a file that is not a result
 * of ipw layers; a directory without any adds nothing, without an error.  After an error nothing was added. */
enum err layers_results_load(const char *path, struct layers_results *into, struct error *why)
    MUST_USE;
void layers_results_release(struct layers_results *results);

#endif
