/* Energy by layer and component of a model that runs inside this process.
 *
 * Prompts of several lengths are computed repeatedly (prefill), and so are tokens after them (decode), in windows long
 * enough for the sensors.  Half of the windows run without instrumentation and give the energy; the other half,
 * interleaved, stop at the ends of components and give the times.  The powers of the components follow from both
 * (attribute/component_fit.h).
 *
 * layers_measure fills a struct that layers_run_release frees; after an error or an interruption it holds the results
 * so far. */
#ifndef IPW_RUNNER_LAYERS_LAYERS_H
#define IPW_RUNNER_LAYERS_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribute/component_fit.h"
#include "attribute/conditions.h"
#include "attribute/ledger.h"
#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"
#include "graph/decoder.h"
#include "rundir/layers_result.h"

struct candidate_options;
struct params;
struct session;

enum layers_phase { LAYERS_PREFILL, LAYERS_DECODE, LAYERS_PHASES };
enum layers_granularity { LAYERS_BY_COMPONENT, LAYERS_BY_LAYER, LAYERS_BY_PHASE };

/* Components are those of graph/decoder.h, plus one for a whole layer (or the whole model) at coarser granularity. */
enum { LAYERS_WHOLE = DECODER_COMPONENT_COUNT, LAYERS_COMPONENTS };

/* The columns of the fit: the components of a phase, and the host work between graphs. */
enum {
    LAYERS_HOST = LAYERS_COMPONENTS,
    LAYERS_PHASE_COLUMNS = LAYERS_COMPONENTS + 1,
    LAYERS_COLUMNS = LAYERS_PHASES * LAYERS_PHASE_COLUMNS
};

enum { LAYERS_PROMPTS_MAX = 8, LAYERS_SETTINGS_MAX = LAYERS_PHASES * LAYERS_PROMPTS_MAX };

/* Maximum acceptable instrumentation overhead, as a share. */
#define LAYERS_OVERHEAD_MAX (RESULT_OVERHEAD_PCT_MAX / 100)

struct layers_progress {
    const char *model;
    const char *activity;    /* "measuring idle power" */
    enum layers_phase phase; /* of the setting, if prompt > 0 */
    unsigned prompt;         /* 0: no setting */
    unsigned round, rounds;  /* rounds 0: as many as needed */
    double elapsed_s;        /* time spent on this model */
};

struct layers_options {
    unsigned prompts[LAYERS_PROMPTS_MAX]; /* tokens, ascending */
    size_t prompt_count;
    unsigned generate; /* tokens after each prompt */
    unsigned repeats;  /* rounds; 0: until the ± is small or max_s has passed */
    unsigned batch;    /* sequences per batch */
    unsigned threads;  /* 0: as many as available cores */
    unsigned context;  /* 0: as long as needed */
    unsigned seed;
    int gpu_layers;
    const struct params *dims;                /* of an ONNX model: sizes of free dimensions */
    const struct candidate_options *estimate; /* the device to compare with */
    const char *library;                      /* of ONNX Runtime; NULL: the usual one */
    double idle_s;                            /* 0: no baseline */
    double window_s;                          /* 0: as long as the sensors need */
    double max_s;                             /* time limit per model */
    bool auto_granularity;
    enum layers_granularity granularity; /* the finest to try; fixed unless automatic */
    void (*progress)(const struct layers_progress *state);
};

const char *layers_granularity_name(enum layers_granularity granularity); /* "component" */

static inline const char *layers_phase_name(enum layers_phase phase)
{
    return RESULT_PHASE[phase];
}

/* Seconds and joules of one component, in one pass of the workload or of a setting. */
struct layers_share {
    double time_s, time_sigma;
    double joules, sigma; /* UNKNOWN if the energy is */
};

/* One phase at one prompt length. */
struct layers_setting {
    enum layers_phase phase;
    unsigned prompt;  /* tokens of the prompt, or before the generated ones */
    unsigned tokens;  /* tokens computed by a pass, over all sequences */
    unsigned windows; /* with usable energy */
    unsigned refused; /* windows too short for the sensors */
    unsigned long passes;
    double pass_s;               /* mean wall time of a plain pass */
    double joules, joules_sigma; /* of a pass, measured; or UNKNOWN */
    double overhead;             /* instrumentation overhead: 0.01 is 1 % */
    double overhead_sigma;
    unsigned stride;                                   /* each pass times every stride-th layer */
    struct layers_share columns[LAYERS_PHASE_COLUMNS]; /* components, and the host */
};

struct layers_window {
    unsigned setting; /* index into settings; past the last: idle */
    unsigned round;
    bool timed; /* instrumented for timing; otherwise plain */
    nanos from, to;
    unsigned long passes;
    struct energy energy;
};

/* Mean power while nothing runs, or while threads busy-wait. */
struct layers_idle {
    double seconds; /* 0: not measured */
    double watts, sigma;
    bool is_refused; /* the machine was not idle */
};

/* A kernel of an ONNX model as its runtime ran it, and as it is estimated: what the runtime fused is one row.  Unknown is
 * what only one of them has. */
struct layers_node {
    char *name, *op;
    char *
        kernel; /* operators of the estimate: "conv+batch_norm+relu"; NULL: the graph has no such node */
    double calls; /* in a pass */
    struct layers_share share;
    double estimated_s, estimated_j;
};

struct layers_nodes {
    struct layers_node *items; /* in the order of their first run; then those that did not run */
    size_t count;
    double rest_s, rest_j; /* of a pass, outside all nodes */
    char device[96];       /* of the estimate; "" without */
    double estimated_s, estimated_s_error, estimated_j, estimated_j_error;
    char estimate_unknown[320]; /* why; "": it is known */
};

struct layers_model {
    const char *path;
    bool is_onnx;
    struct layers_nodes nodes; /* of an ONNX model */
    char *inputs;              /* "x float[1,3,224,224]" */
    struct engine_model_facts facts;
    uint32_t context;
    int threads;

    bool interrupted;
    bool gave_energy;    /* joules are known */
    char no_energy[320]; /* why they are unknown */
    enum layers_granularity granularity;
    unsigned rounds;
    struct layers_window *windows;
    size_t window_count, window_capacity;
    struct layers_idle idle, awake; /* idle: nothing runs; awake: threads busy-wait */
    struct conditions conditions;
    struct ledger ledger; /* from the first window to the last */

    struct layers_setting settings[LAYERS_SETTINGS_MAX];
    size_t setting_count;
    /* For one pass of the workload: every prompt once, and the tokens generated after each. */
    struct layers_share *shares[LAYERS_PHASES]; /* by slot (segment_timer.h) */
    size_t slots;
    double work[LAYERS_PHASES][LAYERS_COMPONENTS][2]; /* FLOPs and bytes, or UNKNOWN */
    char work_unknown[320];                           /* why; "" if they are known */
    struct energy total;                              /* of a pass, measured */
    double idle_joules, component_joules, component_sigma, unattributed_joules;
    double systematic;    /* of the sensors' calibration, relative; not part of any sigma */
    double awake_joules;  /* part of the components' joules that busy-waiting threads would use */
    double closure;       /* sum of components / measured active energy; UNKNOWN: see no_closure */
    bool closes;          /* closure is within 0.9 .. 1.1 */
    char no_closure[320]; /* why the balance cannot be checked; "": it can */
    double overhead, overhead_sigma;
    double null_difference, null_sigma; /* between rounds with even and odd numbers, relative */
    bool null_holds;
    struct component_fit fit;
    bool is_nnls; /* at least two component powers were separated within a phase */
};

struct layers_run {
    struct layers_model *models;
    size_t count;
    struct layers_results results; /* of the models */
    int signal;
    nanos started_wall;
};

/* Whether a file is an ONNX model, by its name. */
bool layers_is_onnx(const char *path);
void layers_nodes_release(struct layers_nodes *nodes);

/* Fills model->work: FLOPs and bytes of one pass of the workload, by component; if they cannot be counted, stores the
 * reason.  ubatch: tokens that the engine computes in one graph. */
void layers_count_work(struct layers_model *model, unsigned batch, unsigned generate,
                       uint32_t ubatch);

/* Fills the report of a model; its strings point into the model.  The caller releases *out. */
void layers_result_fill(const struct layers_model *model, const struct layers_options *options,
                        struct layers_result *out);

/* The calling thread must have called proc_block_signals before the session was opened. */
enum err layers_measure(struct session *session, const char *const *models, size_t count,
                        const struct layers_options *options, struct layers_run *out,
                        struct error *why) MUST_USE;
void layers_run_release(struct layers_run *run);

#endif
