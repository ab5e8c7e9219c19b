/* How far repeats of one configuration scatter on this machine, from the runs that the run index beside a run lists:
 * what one run a side cannot show. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/run_index.h"
#include "rundir/run_table.h"
#include "stats/descriptive.h"

enum {
    REPEATS_MAX = 16, /* the newest ones */
    FREEDOM_MIN = 2   /* of a standard deviation that is used */
};

/* Sums over configurations, for a pooled relative standard deviation. */
struct pooled {
    double squares, freedom;
};

static void pool(struct pooled *sum, const struct online *repeats)
{
    if (repeats->count < 2 || !(repeats->mean > 0))
        return;
    sum->squares += repeats->squares / (repeats->mean * repeats->mean);
    sum->freedom += (double)repeats->count - 1;
}

static void set(const struct pooled *sum, double *spread, double *freedom)
{
    bool has_enough = sum->freedom >= FREEDOM_MIN;
    *spread = has_enough ? sqrt(sum->squares / sum->freedom) : SPREAD_ASSUMED;
    *freedom = has_enough ? sum->freedom : FREEDOM_ASSUMED;
}

struct names {
    char *items[REPEATS_MAX];
    size_t count;
};

static void take_name(void *context, const struct run_row *row)
{
    struct names *names = context;
    if (names->count < REPEATS_MAX)
        names->items[names->count++] = xstrdup(row->id);
}

/* Runs that may be repeats: what the index does not have is in their summaries. */
static void find_candidates(const char *parent, const struct summary *run, struct names *out)
{
    static const enum run_column COLUMNS[] = {ROW_NAME};
    struct run_query query = {.sort = ROW_CREATED,
                              .is_descending = true,
                              .limit = REPEATS_MAX,
                              .columns = COLUMNS,
                              .column_count = COUNT_OF(COLUMNS)};
    query.equal[ROW_MODEL] = run->model;
    query.equal[ROW_HARDWARE] = run->hardware_label;
    query.equal[ROW_STATE] = "done";
    struct run_index *index = run_index_open(parent);
    if (run_index_select(index, &query, take_name, out, NULL))
        out->count = 0;
    run_index_close(index);
}

static double joules_of(const struct summary *run)
{
    return is_known(run->joules_per_query) ? run->joules_per_query
                                           : ratio(run->energy.joules, known_count(run->completed));
}

static void take_repeats(const struct run_table *run, struct pooled *energy, struct pooled *time,
                         size_t *runs)
{
    struct online joules = {0}, rates = {0};
    struct names names = {.count = 0};
    char *real = realpath(run->directory, NULL);
    if (!real || !run->has_summary) {
        free(real);
        return;
    }
    *strrchr(real, '/') = '\0';
    find_candidates(real, &run->summary, &names);
    for (size_t i = 0; i < names.count; i++) {
        char *directory = path_join(real, names.items[i]);
        struct summary repeat;
        if (!summary_load(directory, &repeat, NULL)) {
            if (compare_same_setting(&run->summary, &repeat)) {
                online_add(&joules, joules_of(&repeat));
                online_add(&rates, repeat.output_tokens_per_s);
            }
            summary_release(&repeat);
        }
        free(directory);
        free(names.items[i]);
    }
    free(real);
    pool(energy, &joules);
    pool(time, &rates);
    *runs += joules.count > 1 ? joules.count : 0;
}

void run_spread_of(const struct run_table *a, const struct run_table *b, struct run_spread *out)
{
    struct pooled energy = {0}, time = {0};
    size_t runs = 0;
    take_repeats(a, &energy, &time, &runs);
    if (a != b && !compare_same_setting(&a->summary, &b->summary))
        take_repeats(b, &energy, &time, &runs);
    set(&energy, &out->energy, &out->energy_freedom);
    set(&time, &out->time, &out->time_freedom);
    out->runs = out->energy_freedom < FREEDOM_ASSUMED ? runs : 0;
}
