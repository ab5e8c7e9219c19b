/* The conditions of two sides: what forbids a comparison of their energies, and how much of a difference the others may
 * explain.  Idle power counts as watts times time, background load as the energy that the runs recorded for it; neither
 * is subtracted from any figure.  A side's runs are taken together: their scatter is that of the figures, too. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/compare.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/uncertainty.h"
#include "rundir/run_table.h"

/* The energy of background load is a share of the processors' by CPU time: a factor that it may be wrong by. */
#define LOAD_FACTOR 2
/* What conditions may explain is reported from this share on. */
#define SHARE_REPORTED 0.005

/* ---- what forbids a comparison ---- */

static const struct finding *severe_of(const struct run_table *table, const char *code)
{
    const struct summary_conditions *conditions = &table->summary.conditions;
    for (size_t i = 0; i < conditions->finding_count; i++)
        if (conditions->findings[i].severity >= FINDING_WARNING &&
            str_starts(conditions->findings[i].code, code))
            return &conditions->findings[i];
    return NULL;
}

static const struct finding *severe_of_side(const struct compare_side *side, const char *code)
{
    const struct finding *found = NULL;
    for (size_t i = 0; i < side->count && !found; i++)
        found = severe_of(&side->runs[i], code);
    return found;
}

static void differ(struct comparison *out, const char *whose, const char *text)
{
    compare_warn_of(out, FINDING_NOT_COMPARABLE, "energies are not comparable: %s: %.200s", whose,
                    text);
    out->conditions = CONDITIONS_DIFFER;
}

/* Conditions that invalidate the figures of a run in any comparison. */
static void check_broken(const struct compare_side *side, const char *whose, struct comparison *out)
{
    for (size_t r = 0; r < side->count; r++) {
        const struct summary_conditions *conditions = &side->runs[r].summary.conditions;
        char name[32];
        if (side->count > 1)
            chars_format(name, "run %zu of %s", r + 1, whose);
        else
            chars_copy(name, whose);
        for (size_t i = 0; i < conditions->finding_count; i++)
            if (conditions->findings[i].severity == FINDING_INVALID)
                differ(out, name, conditions->findings[i].text);
    }
}

/* Whether the energy of the background load is known for each run. */
static bool has_load(const struct compare_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (!is_known(side->runs[i].summary.conditions.background_joules))
            return false;
    return true;
}

/* Throttling, load of a GPU, and load of unknown energy, on one side only. */
static void check_one_sided(const struct compare_side *a, const struct compare_side *b,
                            const char *whose_b, struct comparison *out)
{
    static const char *const CODES[] = {"background_gpu", "throttled", "background_cpu"};
    size_t count = COUNT_OF(CODES) - (has_load(a) && has_load(b));
    for (size_t i = 0; i < count; i++) {
        const struct finding *left = severe_of_side(a, CODES[i]);
        const struct finding *right = severe_of_side(b, CODES[i]);
        if (left && !right && left->severity != FINDING_INVALID)
            differ(out, "the baseline", left->text);
        if (right && !left && right->severity != FINDING_INVALID)
            differ(out, whose_b, right->text);
    }
}

static bool has_conditions(const struct compare_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (!is_known(side->runs[i].summary.conditions.seconds))
            return false;
    return true;
}

static bool same_sensors(const struct compare_side *a, const struct compare_side *b)
{
    uint64_t sensors = uncertainty_of(&a->runs[0]).sensors;
    for (size_t i = 1; i < a->count + b->count; i++) {
        const struct run_table *run = i < a->count ? &a->runs[i] : &b->runs[i - a->count];
        if (uncertainty_of(run).sensors != sensors)
            return false;
    }
    return true;
}

void compare_check_conditions(const struct compare_side *a, const struct compare_side *b,
                              struct comparison *out)
{
    const char *whose_b = b->count > 1 ? "this side" : "this run";
    bool in_a = has_conditions(a), in_b = has_conditions(b);
    out->conditions = in_a && in_b ? CONDITIONS_COMPARABLE : CONDITIONS_UNKNOWN;
    if (in_a != in_b)
        compare_warn_of(out, FINDING_CONDITIONS_UNKNOWN,
                        "conditions unknown: %s records no idle power, background load or "
                        "throttling",
                        in_a ? whose_b : "the baseline");
    check_broken(a, "the baseline", out);
    check_broken(b, whose_b, out);
    if (in_a && in_b && same_sensors(a, b))
        check_one_sided(a, b, whose_b, out);
}

/* ---- what others may explain ---- */

/* Means over the runs of a side; UNKNOWN if one run lacks the figure.  Loads are shares of the energy, or of the CPUs. */
struct side_state {
    double watts, active_scale;
    double idle_w, idle_error;
    double load, cpus, gpu;
};

static double mean(const struct compare_side *side, double (*of)(const struct run_table *run))
{
    double sum = 0;
    for (size_t i = 0; i < side->count; i++)
        sum += of(&side->runs[i]);
    return sum / (double)side->count;
}

static double watts_of(const struct run_table *run)
{
    return ratio(run->summary.energy.joules, run->summary.conditions.seconds);
}

static double idle_of(const struct run_table *run)
{
    return run->summary.conditions.idle_w;
}

static double idle_after_of(const struct run_table *run)
{
    return run->summary.conditions.idle_after_w;
}

static double cpus_of(const struct run_table *run)
{
    const struct summary_conditions *conditions = &run->summary.conditions;
    return ratio(conditions->background_cpus, known_count(conditions->cpus));
}

static double gpu_of(const struct run_table *run)
{
    return known_or(run->summary.conditions.background_gpu_pct, 0) / 100;
}

/* Energy of the devices other than GPUs, of which CPU load can only be a part. */
static double processor_joules(const struct summary *run)
{
    double gpus = 0;
    for (size_t i = 0; i < run->device_count; i++)
        if (run->devices[i].in_total && str_starts(run->devices[i].id, "gpu"))
            add_known(&gpus, run->devices[i].energy.joules);
    return run->energy.joules - gpus;
}

/* Share of the energy that background load may have used; where it is not recorded, at most its share of the busy
 * time. */
static double load_of(const struct run_table *run)
{
    const struct summary_conditions *c = &run->summary.conditions;
    if (is_known(c->background_joules))
        return LOAD_FACTOR * ratio(c->background_joules, run->summary.energy.joules);
    double share = ratio(c->background_cpus * c->seconds, c->cpu_busy_s);
    return share * ratio(processor_joules(&run->summary), run->summary.energy.joules);
}

/* Standard uncertainty of the mean idle power. */
static double idle_error_of(const struct compare_side *side, bool with_after)
{
    double squares = 0, measured = with_after ? 2 : 1;
    for (size_t i = 0; i < side->count; i++) {
        const struct summary_conditions *conditions = &side->runs[i].summary.conditions;
        squares += pow(known_or(conditions->idle_plus_minus, 0), 2);
        if (with_after)
            squares += pow(known_or(conditions->idle_after_plus_minus, 0), 2);
    }
    return sqrt(squares) / (measured * (double)side->count);
}

static void state_of(const struct compare_side *side, bool with_after, struct side_state *out)
{
    double idle = mean(side, idle_of);
    *out = (struct side_state){.watts = mean(side, watts_of),
                               .idle_w = with_after ? (idle + mean(side, idle_after_of)) / 2 : idle,
                               .idle_error = idle_error_of(side, with_after),
                               .load = mean(side, load_of),
                               .cpus = mean(side, cpus_of),
                               .gpu = mean(side, gpu_of)};
    out->active_scale = ratio(out->watts, out->watts - out->idle_w);
}

static void add_energy(struct compare_influence *out, double share)
{
    out->energy_low += fmin(share, 0);
    out->energy_high += fmax(share, 0);
}

static void describe(struct compare_influence *out, const char *format, ...) PRINTF_LIKE(2, 3);
static void describe(struct compare_influence *out, const char *format, ...)
{
    size_t used = strlen(out->text);
    va_list arguments;
    if (used)
        str_copy(out->text + used, sizeof out->text - used, "; ");
    used = strlen(out->text);
    va_start(arguments, format);
    vsnprintf(out->text + used, sizeof out->text - used, format, arguments);
    va_end(arguments);
}

/* Idle power is compared on one machine only: it differs between machines. */
static void add_idle(const struct side_state *a, const struct side_state *b,
                     struct compare_influence *out)
{
    double change = b->idle_w - a->idle_w, error = hypot(a->idle_error, b->idle_error);
    if (!is_known(change) || !(b->watts > 0))
        return;
    out->energy_low += fmin(0, change - error) / b->watts;
    out->energy_high += fmax(0, change + error) / b->watts;
    out->idle = (fabs(change) + error) / b->watts;
    if (out->idle > SHARE_REPORTED)
        describe(out, "idle power %.3g W, baseline %.3g W", b->idle_w, a->idle_w);
}

static void add_load(const struct side_state *a, const struct side_state *b,
                     struct compare_influence *out)
{
    double more = b->load - a->load, longer = b->cpus - a->cpus, gpu = b->gpu - a->gpu;
    if (is_known(more))
        add_energy(out, more);
    if (fabs(more) > SHARE_REPORTED)
        describe(out, "background load of %.2g %% of the CPUs, baseline %.2g %%", 100 * b->cpus,
                 100 * a->cpus);
    if (is_known(longer)) {
        add_energy(out, longer);
        out->time_low = fmin(longer, 0);
        out->time_high = fmax(longer, 0);
    }
    add_energy(out, gpu);
    if (fabs(gpu) > SHARE_REPORTED)
        describe(out, "background load of %.2g %% of a GPU, baseline %.2g %%", 100 * b->gpu,
                 100 * a->gpu);
}

void compare_influence_of(const struct compare_side *a, const struct compare_side *b,
                          struct compare_influence *out)
{
    struct side_state in_a, in_b;
    *out = (struct compare_influence){.active_scale = 1};
    if (!has_conditions(a) || !has_conditions(b))
        return;
    bool with_after = is_known(mean(a, idle_after_of) + mean(b, idle_after_of));
    state_of(a, with_after, &in_a);
    state_of(b, with_after, &in_b);
    if (same_sensors(a, b) && !compare_is_interleaved(a, b)) /* then both share any change of it */
        add_idle(&in_a, &in_b, out);
    add_load(&in_a, &in_b, out);
    out->active_scale = fmax(1, known_or(in_b.active_scale, 1));
}
