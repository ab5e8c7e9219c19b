/* Energy by layer and component of a model that runs inside this process.
 *
 * Prompts of several lengths are computed repeatedly (prefill), and so are tokens after them (decode),
 * in windows long enough for the sensors.  Half of the windows run plain and give the energy; the other
 * half, between them, stop at the ends of components and give the times.  The powers of the components
 * follow from both (attribute/component_fit.h).
 *
 * layers_measure fills a struct that layers_run_release frees; after an error or an interruption it
 * holds what was measured until then. */
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

struct session;

enum layers_phase { LAYERS_PREFILL, LAYERS_DECODE, LAYERS_PHASES };
enum layers_granularity { LAYERS_BY_COMPONENT, LAYERS_BY_LAYER, LAYERS_BY_PHASE };

/* Components are those of graph/decoder.h, and one that stands for a whole layer (or for all) where
 * the granularity is coarser. */
enum { LAYERS_WHOLE = DECODER_COMPONENT_COUNT, LAYERS_COMPONENTS };

/* The columns of the fit: the components of a phase, and the host work between graphs. */
enum {
    LAYERS_HOST = LAYERS_COMPONENTS,
    LAYERS_PHASE_COLUMNS = LAYERS_COMPONENTS + 1,
    LAYERS_COLUMNS = LAYERS_PHASES * LAYERS_PHASE_COLUMNS
};

enum { LAYERS_PROMPTS_MAX = 8, LAYERS_SETTINGS_MAX = LAYERS_PHASES * LAYERS_PROMPTS_MAX };

/* More instrumentation overhead than this share is too much. */
#define LAYERS_OVERHEAD_MAX (RESULT_OVERHEAD_PCT_MAX / 100)

struct layers_progress {
    const char *model;
    const char *doing;       /* "measuring idle power" */
    enum layers_phase phase; /* of the setting, with prompt > 0 */
    unsigned prompt;         /* 0: no setting */
    unsigned round, rounds;  /* rounds 0: as many as needed */
    double elapsed_s;        /* of this model */
};

struct layers_options {
    unsigned prompts[LAYERS_PROMPTS_MAX]; /* tokens, ascending */
    size_t prompt_count;
    unsigned generate; /* tokens after each prompt */
    unsigned repeats;  /* rounds; 0: until the ± is small or max_s has passed */
    unsigned batch;    /* sequences per batch */
    unsigned threads;  /* 0: as many as available cores */
    unsigned context;  /* 0: as much as needed */
    unsigned seed;
    int gpu_layers;
    double idle_s;   /* 0: no baseline */
    double window_s; /* 0: what the sensors need */
    double max_s;    /* for one model */
    bool auto_granularity;
    enum layers_granularity granularity; /* the finest to try; the only one without auto */
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
    double joules, sigma; /* UNKNOWN when the energy is */
};

/* One phase at one prompt length. */
struct layers_setting {
    enum layers_phase phase;
    unsigned prompt;  /* tokens of the prompt, or before the generated ones */
    unsigned tokens;  /* that a pass computes, all sequences together */
    unsigned windows; /* with usable energy */
    unsigned refused; /* too short for the sensors */
    unsigned long passes;
    double pass_s;               /* mean wall time of a plain pass */
    double joules, joules_sigma; /* of a pass, measured; UNKNOWN without */
    double overhead;             /* of instrumentation: 0.01 is 1 % */
    double overhead_sigma;
    unsigned stride;                                   /* each pass times every so many layers */
    struct layers_share columns[LAYERS_PHASE_COLUMNS]; /* components, and the host */
};

struct layers_window {
    unsigned setting; /* index into settings; beyond the last: idle */
    unsigned round;
    bool timed; /* instrumented for timing; otherwise plain */
    nanos from, to;
    unsigned long passes;
    struct energy energy;
};

/* Mean power while nothing runs, or while threads only wait. */
struct layers_idle {
    double seconds; /* 0: not measured */
    double watts, sigma;
    bool is_refused; /* the machine was not idle */
};

struct layers_model {
    const char *path;
    struct engine_model_facts facts;
    uint32_t context;
    int threads;
    bool has_decoder; /* the shape is known, so that work can be counted */
    struct decoder decoder;
    char no_decoder[320]; /* why not */

    bool interrupted;
    bool gave_energy;    /* joules are known */
    char no_energy[320]; /* why not */
    enum layers_granularity granularity;
    unsigned rounds;
    struct layers_window *windows;
    size_t window_count, window_capacity;
    struct layers_idle idle, awake; /* nothing runs; threads busy-wait */
    struct conditions conditions;
    struct ledger ledger; /* of all the time from the first window to the last */

    struct layers_setting settings[LAYERS_SETTINGS_MAX];
    size_t setting_count;
    /* Of one pass of the workload: every prompt once, and the tokens generated after each. */
    struct layers_share *shares[LAYERS_PHASES]; /* by slot (segment_timer.h) */
    size_t slots;
    double work[LAYERS_PHASES][LAYERS_COMPONENTS]
               [2];      /* FLOPs and bytes; UNKNOWN without a decoder */
    struct energy total; /* of a pass, measured */
    double idle_joules, component_joules, component_sigma, unattributed_joules;
    double systematic;   /* of the sensors' calibration, relative; not in any sigma */
    double awake_joules; /* of the components' joules, what busy-waiting threads would draw */
    double closure;      /* components / measured above idle */
    bool closes;         /* 0.9 .. 1.1 */
    double overhead, overhead_sigma;
    double null_difference, null_sigma; /* between the rounds of even and odd number, relative */
    bool null_holds;
    struct component_fit fit;
    bool is_nnls; /* at least two powers were separated within a phase */
};

struct layers_run {
    struct layers_model *models;
    size_t count;
    struct layers_results results; /* of the models */
    int signal;
    nanos started_wall;
};

/* All that is to be reported of a model; its texts point into the model.  The caller releases *out, also after an
 * error. */
enum err layers_result_fill(const struct layers_model *model, const struct layers_options *options,
                            struct layers_result *out) MUST_USE;

/* The calling thread must have called proc_block_signals before the session was opened. */
enum err layers_measure(struct session *session, const char *const *models, size_t count,
                        const struct layers_options *options, struct layers_run *out,
                        struct error *why) MUST_USE;
void layers_run_release(struct layers_run *run);

#endif
