/* Several analyses of one table, two at a time: each only reads it. */
#include <pthread.h>
#include <stdatomic.h>

#include "analysis/analysis.h"
#include "port/thread.h"

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
