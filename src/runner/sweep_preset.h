/* Sweeps in one command: studies, which are the knobs of a sweep and the options of its `ipw profile` by name, and
 * workloads, whose parameters are knobs.  Both fill an expansion that sweep_expansion_release frees. */
#ifndef IPW_RUNNER_SWEEP_PRESET_H
#define IPW_RUNNER_SWEEP_PRESET_H

#include <stddef.h>

#include "core/err.h"

struct text;

struct sweep_preset {
    const char *name, *summary, *knobs, *options;
};
extern const struct sweep_preset SWEEP_PRESETS[]; /* ends with a NULL name */

/* ERR_USAGE, with similar names, for an unknown one. */
enum err sweep_preset_find(const char *name, const struct sweep_preset **out, struct error *why)
    MUST_USE;

/* Knobs and words of `ipw profile`; each list ends with NULL. */
struct sweep_expansion {
    char **knobs, **words;
    size_t knob_count, word_count;
};

/* The user's knobs replace those of the same name, and follow.  The user's words follow; an option that they give
 * replaces the preset's, with the knob that it takes.  Shipped models that are not installed are left out, with a line
 * for each in *left_out.  ERR_NOT_FOUND if nothing is left; ERR_UNSUPPORTED, with the reason, if its engine does not run
 * here. */
enum err sweep_preset_expand(const struct sweep_preset *preset, const char *const *knobs,
                             size_t knob_count, const char *const *words, size_t word_count,
                             struct sweep_expansion *out, struct text *left_out, struct error *why)
    MUST_USE;
/* A sweep of `ipw profile --workload NAME`: a knob that no word uses is that parameter of the workload, or model,
 * dataset or concurrency; a knob of the GPU stays one.  ERR_USAGE, with similar names, for any other. */
enum err sweep_workload_expand(const char *workload, const char *const *knobs, size_t knob_count,
                               const char *const *words, size_t word_count,
                               struct sweep_expansion *out, struct error *why) MUST_USE;
void sweep_expansion_release(struct sweep_expansion *expansion);

#endif
