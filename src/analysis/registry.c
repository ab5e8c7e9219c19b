/* The list of analyses: finding one by name, and running all of them over a run. */
#include "analysis/analysis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "core/registry.h"
#include "port/thread.h"

const char *unmeasured_kind(const char *name)
{
    static const struct {
        const char *name, *answer;
    } KINDS[] = {
        {"agent", "this version does not run agents"},
        {"sweep", "this version does not run sweeps"},
    };
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strstr(name, KINDS[i].name))
            return KINDS[i].answer;
    return NULL;
}

#define ANALYSIS(name) extern const struct analysis_driver analysis_##name;
#include "analysis/analyses.def"
#undef ANALYSIS

const struct analysis_driver *const ANALYSIS_DRIVERS[] = {
#define ANALYSIS(name) &analysis_##name,
#include "analysis/analyses.def"
#undef ANALYSIS
    NULL,
};

static const char *name_at(size_t index)
{
    return ANALYSIS_DRIVERS[index] ? ANALYSIS_DRIVERS[index]->name : NULL;
}

const struct analysis_driver *analysis_driver_find(const char *name, struct error *why)
{
    const char *unmeasured = unmeasured_kind(name);
    long at = registry_find("analysis", name_at, name, ERR_USAGE, why);
    if (at < 0 && unmeasured)
        err_set(why, ERR_USAGE, "unknown analysis '%s': %s", name, unmeasured);
    return at < 0 ? NULL : ANALYSIS_DRIVERS[at];
}

/* A table of fewer rows is done before a thread has begun.  Each analysis under way may take a sixth of
 * the table's memory: no more than two are. */
enum { ROWS_LEAST = 10000 };

struct sharing {
    const struct analysis_driver *const *drivers;
    size_t count;
    const struct analysis_input *input;
    const struct params *params;
    struct analysis_result *results;
    atomic_size_t next;
};

static void *work(void *argument)
{
    struct sharing *sharing = argument;
    for (size_t i; (i = atomic_fetch_add(&sharing->next, 1)) < sharing->count;) {
        struct analysis_result *result = &sharing->results[i];
        result->err = analysis_run(sharing->drivers[i], sharing->input, sharing->params,
                                   &result->json, &result->why);
    }
    return NULL;
}

void analysis_run_all(const struct analysis_driver *const *drivers, size_t count,
                      const struct analysis_input *input, const struct params *params,
                      struct analysis_result *results)
{
    struct sharing sharing = {drivers, count, input, params, results, 0};
    pthread_t helper;
    for (size_t i = 0; i < count; i++)
        results[i] = (struct analysis_result){0};
    bool helped = count > 1 && input->table && input->table->rows >= ROWS_LEAST &&
                  thread_start(&helper, work, &sharing) == ERR_OK; /* without one it takes longer */
    work(&sharing);
    if (helped)
        pthread_join(helper, NULL);
}
