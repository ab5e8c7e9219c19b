#include "runner/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/run_list.h"

/* ---- the order ---- */

/* Whether another repeat is needed to meet the precision target. */
static bool is_uncertain(const struct sweep *sweep, size_t point)
{
    struct sweep_figures figures = sweep_figures(sweep, point);
    if (!is_known(sweep->until_pct) || !figures.measured || !is_known(figures.joules))
        return false;
    return !is_known(figures.error_pct) || figures.error_pct > sweep->until_pct;
}

/* Order of the points in a round; returns their number. */
static size_t shuffle(const struct sweep *sweep, unsigned round,
                      size_t order[static SWEEP_POINTS_MAX])
{
    size_t count = sweep->point_count < SWEEP_POINTS_MAX ? sweep->point_count : SWEEP_POINTS_MAX;
    struct random random = random_from(sweep->seed, round);
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    random_shuffle(&random, order, count, sizeof *order);
    return count;
}

/* Whether the attempt is to be run, or repeated after all others: by then a hot GPU has had time to cool. */
static bool is_wanted(const struct sweep *sweep, const struct sweep_step *step,
                      const struct sweep_attempt *made, bool again)
{
    if (sweep->only && sweep->only != step->point + 1)
        return false;
    if (made)
        return again && sweep_is_rejected(made) && made->tries <= sweep->reruns;
    return !again && (step->repeat <= sweep->repeats || is_uncertain(sweep, step->point));
}

/* Visits the wanted attempts of a round, until `visit` returns true. */
static bool visit_round(const struct sweep *sweep, unsigned round, bool again, sweep_visit *visit,
                        void *context)
{
    size_t order[SWEEP_POINTS_MAX], made[SWEEP_POINTS_MAX] = {0}; /* run so far: index + 1 */
    size_t count = shuffle(sweep, round, order);
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->attempts[i].repeat == round && sweep->attempts[i].point < count)
            made[sweep->attempts[i].point] = i + 1;
    for (size_t i = 0; i < count; i++) {
        size_t index = made[order[i]];
        const struct sweep_step step = {order[i], round};
        if (is_wanted(sweep, &step, index ? &sweep->attempts[index - 1] : NULL, again) &&
            visit(context, sweep, &step))
            return true;
    }
    return false;
}

/* Number of attempts run in each round, and of rejected ones to be repeated: completed rounds are skipped, since
 * there may be thousands of attempts. */
struct rounds {
    size_t *made, *rejected; /* max_repeats + 1 elements each */
};

static struct rounds count_rounds(const struct sweep *sweep)
{
    size_t *counts = xcalloc(2 * ((size_t)sweep->max_repeats + 1), sizeof *counts);
    struct rounds rounds = {counts, counts + sweep->max_repeats + 1};
    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        if (attempt->repeat > sweep->max_repeats)
            continue;
        rounds.made[attempt->repeat]++;
        rounds.rejected[attempt->repeat] +=
            sweep_is_rejected(attempt) && attempt->tries <= sweep->reruns;
    }
    return rounds;
}

bool sweep_each(const struct sweep *sweep, sweep_visit *visit, void *context)
{
    struct rounds rounds = count_rounds(sweep);
    bool stopped = false;
    for (int again = 0; !stopped && again < 2; again++)
        for (unsigned round = 1; !stopped && round <= sweep->max_repeats; round++) {
            bool is_done =
                again ? !rounds.rejected[round] : rounds.made[round] >= sweep->point_count;
            if (!is_done)
                stopped = visit_round(sweep, round, again, visit, context);
        }
    free(rounds.made);
    return stopped;
}

static bool take_step(void *context, const struct sweep *sweep, const struct sweep_step *step)
{
    (void)sweep;
    *(struct sweep_step *)context = *step;
    return true;
}

bool sweep_next(const struct sweep *sweep, struct sweep_step *out)
{
    return sweep_each(sweep, take_step, out);
}

const struct sweep_attempt *sweep_find(const struct sweep *sweep, size_t point, unsigned repeat)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->attempts[i].point == point && sweep->attempts[i].repeat == repeat)
            return &sweep->attempts[i];
    return NULL;
}

static bool is_unfinished(const struct sweep *sweep, size_t point)
{
    for (unsigned repeat = 1; repeat <= sweep->max_repeats; repeat++) {
        const struct sweep_step step = {point, repeat};
        if (is_wanted(sweep, &step, sweep_find(sweep, point, repeat), false))
            return true;
    }
    return false;
}

size_t sweep_unfinished(const struct sweep *sweep, size_t *points)
{
    size_t order[SWEEP_POINTS_MAX];
    size_t found = 0;
    size_t count = shuffle(sweep, 1, order);
    for (size_t i = 0; i < count; i++)
        if (is_unfinished(sweep, order[i])) {
            if (points)
                points[found] = order[i];
            found++;
        }
    return found;
}

bool sweep_has_failures(const struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->attempts[i].exit_code &&
            (!sweep->only || sweep->only == sweep->attempts[i].point + 1))
            return true;
    return false;
}

/* Durations of the attempts at a point so far. */
struct attempt_times {
    double seconds, waited;
    size_t timed;
    unsigned made; /* number of `repeats` run */
};

static void add_attempt_time(const struct sweep *sweep, const struct sweep_attempt *attempt,
                             struct attempt_times *times)
{
    if (attempt->wall_s > 0) {
        times->seconds += attempt->wall_s;
        times->waited += is_known(attempt->waited_s) ? attempt->waited_s : 0;
        times->timed++;
    }
    times->made +=
        attempt->repeat <= sweep->repeats &&
        !(sweep_is_rejected(attempt) && attempt->tries <= sweep->reruns); /* will be repeated */
}

/* How long a GPU takes to cool depends on the previous attempt, which is random: the mean of all points is used. */
static double expected_time(const struct sweep *sweep, size_t point,
                            const struct attempt_times *own, const struct attempt_times *all)
{
    const struct attempt_times *times = own->timed ? own : all;
    double wait = all->timed ? all->waited / (double)all->timed : 0;
    double wall = ratio(times->seconds, (double)times->timed);
    if (!times->timed && point < sweep->expected_count)
        wall = sweep->expected_s[point];
    return wall + (sweep->cooldown_s > wait ? sweep->cooldown_s : wait);
}

double sweep_expected(const struct sweep *sweep, size_t point)
{
    struct attempt_times own = {0}, all = {0};
    for (size_t i = 0; i < sweep->count; i++) {
        add_attempt_time(sweep, &sweep->attempts[i], &all);
        if (sweep->attempts[i].point == point)
            add_attempt_time(sweep, &sweep->attempts[i], &own);
    }
    return expected_time(sweep, point, &own, &all);
}

size_t sweep_left(const struct sweep *sweep, double *seconds_left)
{
    size_t left = 0;
    size_t count = sweep->point_count;
    struct attempt_times all = {0};
    struct attempt_times *own = xcalloc(count, sizeof *own);
    *seconds_left = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        add_attempt_time(sweep, &sweep->attempts[i], &all);
        add_attempt_time(sweep, &sweep->attempts[i], &own[sweep->attempts[i].point]);
    }
    for (size_t p = 0; p < count; p++)
        if (own[p].made < sweep->repeats && (!sweep->only || sweep->only == p + 1)) {
            left += sweep->repeats - own[p].made;
            *seconds_left +=
                (sweep->repeats - own[p].made) * expected_time(sweep, p, &own[p], &all);
        }
    free(own);
    return left;
}

/* ---- durations of earlier runs ---- */

static bool same_words(char *const *a, size_t a_count, char *const *b, size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++)
        same = str_equal(a[i], b[i]);
    return same;
}

static bool same_setting(const struct sweep *a, size_t point, const struct sweep *b, size_t other)
{
    return a->knob_count == b->knob_count &&
           settings_same(sweep_point(a, point), sweep_point(b, other), a->knob_count);
}

/* Durations of an earlier sweep at the same settings; at others its mean.  Returns whether it is of the same work. */
static bool expect_as_sweep(struct sweep *sweep, const char *directory)
{
    struct sweep earlier;
    if (sweep_load(directory, &earlier, NULL))
        return false;
    bool same =
        earlier.profile == sweep->profile && earlier.count &&
        same_words(sweep->command, sweep->word_count, earlier.command, earlier.word_count) &&
        same_words(sweep->options, sweep->option_count, earlier.options, earlier.option_count);
    for (size_t p = 0; same && p < sweep->point_count; p++) {
        size_t other = 0;
        while (other < earlier.point_count && !same_setting(sweep, p, &earlier, other))
            other++;
        sweep->expected_s[p] =
            sweep_expected(&earlier, other) -
            (earlier.cooldown_s > 0 ? earlier.cooldown_s : 0); /* ours is added later */
    }
    sweep_release(&earlier);
    return same;
}

/* The value of an option of the command; NULL if it is not given. */
static const char *option_value(const struct sweep *sweep, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i + 1 < sweep->word_count; i++)
        if (str_equal(sweep->command[i], name))
            value = sweep->command[i + 1];
    return value;
}

/* Duration of a run with the same command at some setting, or of a profile of the same model and dataset. */
static bool expect_as_run(struct sweep *sweep, const struct run_list_entry *entry)
{
    const struct summary *summary = &entry->summary;
    double each_s = ratio(summary->seconds, (double)summary->queries);
    double queries = 1;
    bool same = false;
    if (!(each_s > 0) || !summary->model || sweep->profile != (entry->kind == RUN_KIND_PROFILE))
        return false;
    if (sweep->profile) {
        const char *model = option_value(sweep, "--model");
        const char *dataset = option_value(sweep, "--dataset");
        const char *max = option_value(sweep, "--max-queries");
        if (!max || parse_double(max, &queries))
            queries = (double)summary->queries;
        same = model && str_equal(model, summary->model) && dataset && summary->dataset_name &&
               str_equal(dataset, summary->dataset_name);
    }
    for (size_t p = 0; !sweep->profile && !same && p < sweep->point_count; p++) {
        struct text command = {0};
        char **words = sweep_words(sweep, p);
        for (size_t i = 0; words[i]; i++)
            text_addf(&command, "%s%s", i ? " " : "", words[i]);
        same = str_equal(text_get(&command), summary->model);
        sweep_free_words(words);
        text_release(&command);
    }
    for (size_t p = 0; same && p < sweep->point_count; p++)
        sweep->expected_s[p] = each_s * queries;
    return same;
}

void sweep_expect_from(struct sweep *sweep, const char *parent, struct text *from)
{
    struct run_list list;
    sweep->expected_s = xcalloc(sweep->point_count, sizeof *sweep->expected_s);
    if (run_list_load(parent, &list, NULL))
        return; /* no runs yet */
    for (int sweeps = 1; sweeps >= 0 && !sweep->expected_count; sweeps--)
        for (size_t i = list.count; i-- > 0 && !sweep->expected_count;) {
            const struct run_list_entry *entry = &list.entries[i];
            bool is_sweep = entry->kind == RUN_KIND_SWEEP;
            if (is_sweep != (sweeps == 1))
                continue;
            char *path = path_join(parent, entry->name);
            if (is_sweep ? expect_as_sweep(sweep, path)
                         : entry->has_summary && expect_as_run(sweep, entry)) {
                sweep->expected_count = sweep->point_count;
                text_add(from, path);
            }
            free(path);
        }
    run_list_release(&list);
}
