/* A model set up for replays: opened once, with a context that runs undisturbed and one that the
 * stopwatch watches.  rig_open fills what rig_close gives back, also after a failure. */
#ifndef IPW_RUNNER_LAYERS_RIG_H
#define IPW_RUNNER_LAYERS_RIG_H

#include <stdatomic.h>

#include "core/err.h"
#include "engine/engine.h"
#include "runner/layers.h"
#include "runner/layers/stopwatch.h"

/* Seconds of computations, the newest of many: a token, or a prompt. */
enum { RIG_LENGTHS = 512 };
struct rig_lengths {
    double seconds[RIG_LENGTHS];
    size_t count; /* of all; the oldest gave way */
};

struct rig {
    const struct layers_options *options;
    struct engine_model *model;
    struct engine_context *plain, *watched;
    struct stopwatch watch;
    engine_token *tokens; /* as many as the context holds, drawn by the seed */
    uint32_t context, ubatch;
    struct rig_lengths *lengths; /* where those of passes go; not owned; may be NULL */
};

enum err rig_open(struct rig *rig, const char *path, const struct layers_options *options,
                  const atomic_bool *cancel, struct error *why) MUST_USE;
void rig_close(struct rig *rig);

/* Learns the graphs of every phase, at the granularity. */
enum err rig_learn(struct rig *rig, enum layers_granularity granularity, struct error *why)
    MUST_USE;

/* What a setting needs before its passes: the prompt that tokens are generated after. */
enum err rig_prepare(struct rig *rig, bool watched, const struct layers_setting *setting,
                     struct error *why) MUST_USE;

/* One pass: the prompt from nothing, or the generated tokens after it.  ERR_NO_DATA when the memory of
 * the model cannot go back and the context is full. */
enum err rig_pass(struct rig *rig, bool watched, const struct layers_setting *setting,
                  struct error *why) MUST_USE;

#endif
