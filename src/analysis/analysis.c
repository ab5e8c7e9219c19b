/* The list of analyses: finding one by name, running one or all of them over a run. */
#include "analysis/analysis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "analysis/columns.h"
#include "core/registry.h"
#include "port/thread.h"
#include "rundir/layers_result.h"

#define ANALYSIS(name) extern const struct analysis_driver analysis_##name;
#include "analysis/analyses.def"
#undef ANALYSIS

const struct analysis_driver *const ANALYSIS_DRIVERS[] = {
#define ANALYSIS(name) &analysis_##name,
#include "analysis/analyses.def"
#undef ANALYSIS
    NULL,
};

const struct analysis_driver *analysis_driver_find(const char *name, struct error *why)
{
    return registry_find("analysis", ANALYSIS_DRIVERS, name, ERR_USAGE, why);
}

/* Returns an error if its kind of input is missing. */
static enum err check_input(const struct analysis_driver *driver,
                            const struct analysis_input *input, struct analysis *analysis,
                            struct error *why)
{
    const struct run_table *table = input->table;
    if (driver->reads_layers) {
        if (!input->layers || !input->layers->count)
            return err_set(why, ERR_NO_DATA,
                           "no measured layers: run `ipw layers -o DIR/layers.json`");
        analysis->layers = input->layers;
        return driver->run(analysis, why);
    }
    if (driver->reads_sweep) {
        if (!input->sweep)
            return err_set(why, ERR_NO_DATA, "no sweep: run `ipw sweep`");
        analysis->sweep = input->sweep;
        return driver->run(analysis, why);
    }
    if (driver->reads_traces) {
        if (!input->traces)
            return err_set(why, ERR_NO_DATA, "no agent traces: run `ipw agent`");
        analysis->traces = input->traces;
        analysis->table = table;
        return driver->run(analysis, why);
    }
    if (!table)
        return err_set(why, ERR_NO_DATA, "needs a run directory");
    if (run_completed_count(table) == 0 && !driver->accepts_failed)
        return no_data_error(table, "", why);
    analysis->table = table;
    return driver->run(analysis, why);
}

static void add_missing(struct result *result)
{
    result_group(result, "summary");
    result_text(result, "not_enough_data", result->why.text);
    result_end(result);
    result_group(result, "data");
    result_end(result);
}

void analysis_begin(struct result *result, const char *name, const struct result_phrase *finding)
{
    *result = (struct result){.finding = finding};
    result_begin(result, name);
    result_text(result, "analysis", name);
}

void analysis_end(struct result *result)
{
    result_list(result, "warnings");
    for (const char *line = NULL; (line = result_line(&result->warnings, line));)
        result_text(result, NULL, line);
    result_end(result);
    result_end(result);
}

enum err analysis_run(const struct analysis_driver *driver, const struct analysis_input *input,
                      const struct params *params, struct result *out)
{
    struct analysis analysis = {.params = params, .result = out};
    analysis_begin(out, driver->name, driver->finding);
    out->err = check_input(driver, input, &analysis, &out->why);
    if (out->err == ERR_NO_DATA)
        add_missing(out);
    if (!out->err || out->err == ERR_NO_DATA)
        analysis_end(out);
    if (out->err && !out->why.text[0])
        err_explain(&out->why, out->err);
    return out->err;
}

enum err analysis_run_sweep(const char *directory, struct result *out)
{
    const struct params none = {0};
    return analysis_run(&analysis_sweep, &(struct analysis_input){.sweep = directory}, &none, out);
}

/* ---- several at once ---- */

/* For smaller tables starting a thread takes longer than the analysis.  An analysis may use a sixth of the table's
 * memory: at most two run concurrently. */
enum { ROWS_MIN = 10000 };

struct sharing {
    const struct analysis_driver *const *drivers;
    size_t count;
    const struct analysis_input *input;
    const struct params *params;
    struct result *results;
    atomic_size_t next;
};

static void *work(void *argument)
{
    struct sharing *sharing = argument;
    for (size_t i; (i = atomic_fetch_add(&sharing->next, 1)) < sharing->count;)
        analysis_run(sharing->drivers[i], sharing->input, sharing->params, &sharing->results[i]);
    return NULL;
}

void analysis_run_all(const struct analysis_driver *const *drivers, size_t count,
                      const struct analysis_input *input, const struct params *params,
                      struct result *results)
{
    struct sharing sharing = {drivers, count, input, params, results, 0};
    pthread_t helper;
    bool is_parallel = count > 1 && input->table && input->table->rows >= ROWS_MIN &&
                       thread_start(&helper, work, &sharing) == ERR_OK; /* optional */
    work(&sharing);
    if (is_parallel)
        pthread_join(helper, NULL);
}
