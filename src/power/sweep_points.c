#include "power/sweep_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "power/curve_fit.h"
#include "power/freq_points.h"
#include "core/json_field.h"
#include "rundir/setting.h"
#include "rundir/summary.h"

/* ---- qualities ---- */

static const struct sweep_quality QUALITIES[QUALITIES_NAMED] = {
    [QUALITY_ACCURACY] = {.name = "accuracy"},
    [QUALITY_SCORE] = {.name = "score"},
    [QUALITY_PERPLEXITY] = {.name = "perplexity", .is_lower_better = true},
    [QUALITY_BITS_PER_BYTE] = {.name = "bits_per_byte", .is_lower_better = true},
};

size_t sweep_points_quality(const struct sweep_points *points, const char *name)
{
    size_t i = 0;
    while (i < points->quality_count && !str_equal(points->qualities[i].name, name))
        i++;
    return i;
}

/* ---- knobs ---- */

static long knob_with_name(const struct sweep *sweep, const char *name)
{
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (str_equal_nocase(sweep->knobs[k], name))
            return (long)k;
    return -1;
}

/* Only a knob with numeric values can be a clock; one value may be the default. */
static bool has_numbers(const struct sweep *sweep, size_t knob)
{
    size_t numbers = 0;
    for (size_t p = 0; p < sweep->point_count; p++) {
        const struct setting *setting = &sweep_point(sweep, p)[knob];
        if (setting->kind == SETTING_TEXT ||
            (setting->kind == SETTING_NUMBER && !(setting->number > 0)))
            return false;
        numbers += setting->kind == SETTING_NUMBER;
    }
    return numbers > 0;
}

/* A knob of another name, such as a request rate, is a clock only if --columns says so. */
static long find_clock(const struct sweep *sweep)
{
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (knob_named(sweep->knobs[k]) == KNOB_GRAPHICS_CLOCK && has_numbers(sweep, k))
            return (long)k;
    return -1;
}

/* The GPU clock at a point; UNKNOWN without such a knob, or at its default. */
static double clock_at(const struct sweep_points *points, size_t point)
{
    return points->clock < 0 ? UNKNOWN : sweep_point(&points->sweep, point)[points->clock].number;
}

enum gpu_knob sweep_points_gpu_knob(const struct sweep_points *points, size_t knob)
{
    enum gpu_knob named = knob_named(points->sweep.knobs[knob]);
    if ((long)knob == points->clock)
        return KNOB_GRAPHICS_CLOCK;
    return named == KNOB_GRAPHICS_CLOCK ? KNOB_COUNT : named; /* a clock has numbers */
}

/* ---- loading ---- */

/* Energy and time of a profile per answer. */
static void take_query(const struct summary *summary, const struct sweep_attempt *attempt,
                       struct sweep_measurement *out)
{
    const struct summary_statistic *latency = &summary->statistics[STATISTIC_LATENCY];
    double queries = (double)summary->completed;
    out->query_joules = is_known(summary->joules_per_query) ? summary->joules_per_query
                                                            : ratio(attempt->joules, queries);
    out->query_seconds = latency->count > 0 ? latency->avg : ratio(attempt->seconds, queries);
}

/* Takes the activities of the busiest GPU. */
static void take_activities(const struct summary_conditions *conditions, double *out)
{
    double busiest = -1;
    for (size_t i = 0; i < conditions->device_count; i++) {
        const double *activity = conditions->devices[i].activity;
        double busy = is_known(activity[SUMMARY_SM_ACTIVE]) ? activity[SUMMARY_SM_ACTIVE]
                                                            : activity[SUMMARY_UTILIZATION];
        if (!(busy > busiest))
            continue;
        busiest = busy;
        out[FREQ_FP] = activity[SUMMARY_FP32_ACTIVE] / 2 + activity[SUMMARY_FP64_ACTIVE];
        out[FREQ_DRAM] = activity[SUMMARY_DRAM_ACTIVE];
        /* That anything ran, even a kernel on a single SM. */
        out[FREQ_SM] = fmax(activity[SUMMARY_SM_ACTIVE], activity[SUMMARY_UTILIZATION]);
        out[FREQ_UTIL] = activity[SUMMARY_UTILIZATION];
    }
}

static void take_qualities(const struct summary *summary, struct sweep_points *points,
                           struct sweep_measurement *out)
{
    out->qualities[QUALITY_ACCURACY] = summary->accuracy;
    out->qualities[QUALITY_SCORE] = summary->score;
    out->qualities[QUALITY_PERPLEXITY] = summary->perplexity;
    out->qualities[QUALITY_BITS_PER_BYTE] = summary->bits_per_byte;
    for (size_t i = 0; i < summary->quality_count; i++) {
        const struct summary_quality *quality = &summary->qualities[i];
        size_t at = sweep_points_quality(points, quality->name);
        if (at == points->quality_count) {
            if (at == SWEEP_QUALITIES_MAX)
                return;
            struct sweep_quality *added = &points->qualities[points->quality_count++];
            chars_copy(added->name, quality->name);
            added->is_lower_better = quality->better == BETTER_LOWER;
        }
        out->qualities[at] = quality->value;
    }
}

static void take_summary(const struct summary *summary, struct sweep_points *points,
                         const struct sweep_attempt *attempt, struct sweep_measurement *out)
{
    const struct sweep *sweep = &points->sweep;
    const struct summary_conditions *conditions = &summary->conditions;
    const char *work = sweep->profile ? summary->model : sweep->command[0];
    const char *slash = work && !sweep->profile ? strrchr(work, '/') : NULL;
    chars_copy(out->gpu,
               text_or_empty(summary->gpu_name ? summary->gpu_name : summary->hardware_label));
    chars_copy(out->application, slash && slash[1] ? slash + 1 : text_or_empty(work));
    chars_copy(out->method, text_or_empty(summary->energy.method));
    chars_copy(out->source, text_or_empty(summary->energy.source));
    out->coverage = summary->energy.coverage;
    str_plain(out->gpu, sizeof out->gpu);
    str_plain(out->application, sizeof out->application);
    out->watts = ratio(summary->energy.joules, summary->seconds);
    take_qualities(summary, points, out);
    out->idle_w = conditions->idle_w;
    out->queries = summary->completed >= 0 ? (double)summary->completed : UNKNOWN;
    for (size_t i = 0; i < conditions->device_count; i++)
        out->temperature_c = fmax(out->temperature_c, conditions->devices[i].temperature_end_c);
    take_activities(conditions, out->activity);
    out->planned_queries = summary->queries >= 0 ? (double)summary->queries : UNKNOWN;
    take_query(summary, attempt, out);
}

static void load_attempt(const char *directory, struct sweep_points *points,
                         struct sweep_attempt *attempt, struct sweep_measurement *out)
{
    const struct sweep *sweep = &points->sweep;
    struct summary summary;
    *out = (struct sweep_measurement){.watts = ratio(attempt->joules, attempt->seconds),
                                      .idle_w = UNKNOWN,
                                      .temperature_c = UNKNOWN,
                                      .queries = UNKNOWN,
                                      .planned_queries = UNKNOWN,
                                      .query_joules = UNKNOWN,
                                      .query_seconds = UNKNOWN};
    for (size_t i = 0; i < SWEEP_QUALITIES_MAX; i++)
        out->qualities[i] = UNKNOWN;
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        out->activity[i] = UNKNOWN;
    for (size_t i = 0; i < OPTIMIZE_LATENCIES; i++)
        out->latency[i] = (struct freq_value){UNKNOWN, UNKNOWN, UNKNOWN};
    char *path = attempt->path ? path_join(directory, attempt->path) : NULL;
    if (path && summary_load(path, &summary, NULL) == ERR_OK) {
        take_summary(&summary, points, attempt, out);
        summary_release(&summary);
    } else if (sweep->profile) { /* the unit of its figure is unknown */
        attempt->joules = attempt->seconds = UNKNOWN;
    }
    free(path);
}

/* Whether settings have different numbers of queries, for example because a text is cut into windows. */
static bool has_uneven_queries(const struct sweep_points *points)
{
    const struct sweep *sweep = &points->sweep;
    size_t first = sweep->count;
    for (size_t i = 0; i < sweep->count; i++) {
        if (sweep->attempts[i].exit_code || !is_known(points->items[i].planned_queries))
            continue;
        first = first < sweep->count ? first : i;
        if (sweep->attempts[i].point != sweep->attempts[first].point &&
            points->items[i].planned_queries != points->items[first].planned_queries)
            return true;
    }
    return false;
}

/* Converts an attempt to the common unit, with the same relative ±, and decides whether it is used.  For a profile
 * the energy of its queries counts, without start-up and shutdown. */
static void normalize_attempt(const struct sweep_points *points, struct sweep_attempt *attempt,
                              struct sweep_measurement *out)
{
    if (points->sweep.profile) {
        double joules = out->query_joules * (points->is_per_query ? 1 : out->queries);
        double share = ratio(joules, attempt->joules);
        attempt->joules = joules;
        attempt->seconds = points->is_per_query ? out->query_seconds : attempt->seconds;
        attempt->plus_minus *= share;
        attempt->statistical *= share;
    }
    out->exclusion = sweep_exclusion_of(attempt);
    out->joules = attempt->joules;
    out->plus_minus = attempt->plus_minus;
    out->seconds = attempt->seconds;
    if (out->exclusion)
        attempt->joules = attempt->seconds = attempt->plus_minus = attempt->statistical = UNKNOWN;
}

bool sweep_points_is(const char *directory)
{
    return sweep_is(directory);
}

static bool has_quality(const struct sweep_points *points, size_t quality)
{
    for (size_t i = 0; i < points->sweep.count; i++)
        if (is_known(points->items[i].qualities[quality]))
            return true;
    return false;
}

/* A grader with metrics of all answers is judged by these, not by its share of right answers. */
static size_t first_quality(const struct sweep_points *points)
{
    size_t count = points->quality_count;
    for (size_t i = 0; i < count; i++) {
        size_t quality = (i + QUALITIES_NAMED) % count;
        if (has_quality(points, quality))
            return quality;
    }
    return QUALITY_ACCURACY;
}

enum err sweep_points_load(const char *directory, struct sweep_points *out, struct error *why)
{
    *out = (struct sweep_points){.clock = -1, .quality_count = QUALITIES_NAMED};
    memcpy(out->qualities, QUALITIES, sizeof QUALITIES);
    enum err err = sweep_load(directory, &out->sweep, why);
    if (err)
        return err;
    struct sweep *sweep = &out->sweep;
    out->clock = find_clock(sweep);
    out->items = xcalloc(sweep->count, sizeof *out->items);
    for (size_t i = 0; i < sweep->count; i++)
        load_attempt(directory, out, &sweep->attempts[i], &out->items[i]);
    out->is_uneven = sweep->profile && has_uneven_queries(out);
    out->is_per_query = sweep->profile && !out->is_uneven;
    for (size_t i = 0; i < sweep->count; i++) {
        normalize_attempt(out, &sweep->attempts[i], &out->items[i]);
        out->idled +=
            !out->items[i].exclusion && (sweep->attempts[i].flag_bits & 1U << ATTEMPT_GPU_IDLE);
    }
    out->quality = first_quality(out);
    return ERR_OK;
}

void sweep_points_release(struct sweep_points *points)
{
    sweep_release(&points->sweep);
    free(points->items);
    *points = (struct sweep_points){.clock = -1};
}

/* ---- figures ---- */

static double mean_quality(const struct sweep_points *points, size_t point, size_t quality)
{
    double sum = UNKNOWN, graded = 0;
    for (size_t i = 0; i < points->sweep.count; i++) {
        if (points->sweep.attempts[i].point != point || points->items[i].exclusion)
            continue;
        double of_run = points->items[i].qualities[quality];
        add_known(&sum, of_run);
        graded += is_known(of_run);
    }
    return ratio(sum, graded);
}

struct sweep_figures sweep_points_figures(const struct sweep_points *points, size_t point,
                                          double *qualities)
{
    for (size_t q = 0; qualities && q < points->quality_count; q++)
        qualities[q] = mean_quality(points, point, q);
    return sweep_figures(&points->sweep, point);
}

size_t sweep_points_excluded(const struct sweep_points *points, enum sweep_exclusion exclusion)
{
    size_t count = 0;
    for (size_t i = 0; i < points->sweep.count; i++)
        count += points->items[i].exclusion == exclusion;
    return count;
}

size_t sweep_points_missing(const struct sweep_points *points, char *example, size_t size)
{
    size_t missing = 0;
    struct text setting = {0};
    for (size_t p = 0; p < points->sweep.point_count; p++) {
        if (sweep_points_figures(points, p, NULL).measured)
            continue;
        missing++;
        text_clear(&setting);
        sweep_setting(&points->sweep, p, &setting);
    }
    if (example) {
        str_copy(example, size, text_get(&setting));
        str_plain(example, size);
    }
    text_release(&setting);
    return missing;
}

void sweep_points_exclusions(const struct sweep_points *points, char *to, size_t size)
{
    struct text text = {0};
    for (enum sweep_exclusion e = SWEEP_USED + 1; e < SWEEP_EXCLUSIONS; e++) {
        size_t count = sweep_points_excluded(points, e);
        if (count)
            text_addf(&text, "%s%zu %s", text.length ? ", " : "", count, sweep_exclusion_name(e));
    }
    str_copy(to, size, text_get(&text));
    text_release(&text);
}

bool sweep_points_is_estimated(const struct sweep_points *points)
{
    for (size_t i = 0; i < points->sweep.count; i++)
        if (!points->items[i].exclusion && str_equal(points->items[i].method, "estimated"))
            return true;
    return false;
}

const char *sweep_points_gpus(const struct sweep_points *points)
{
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-,";
    const char *found = NULL;
    for (size_t i = 0; i < points->sweep.count; i++) {
        const char *gpus = points->sweep.attempts[i].gpus;
        if (points->items[i].exclusion)
            continue;
        if (!gpus || !gpus[0] || gpus[strspn(gpus, LETTERS)] || (found && !str_equal(found, gpus)))
            return NULL; /* it becomes part of a command */
        found = gpus;
    }
    return found;
}

/* ---- settings to choose from ---- */

static enum err is_wanted(const struct sweep_points *points, size_t point,
                          const struct params *where, bool *out, struct error *why)
{
    *out = true;
    for (size_t i = 0; where && i < where->count; i++) {
        long knob = knob_with_name(&points->sweep, where->items[i].key);
        if (knob < 0)
            return err_set(why, ERR_USAGE, "--where: the sweep has no knob '%.40s'",
                           plain_text(where->items[i].key).text);
        *out &= setting_is(&sweep_point(&points->sweep, point)[knob], where->items[i].value);
    }
    return ERR_OK;
}

/* Means over the used attempts of figures that are not in sweep_figures. */
static void mean_conditions(const struct sweep_points *points, size_t point,
                            struct optimize_point *out)
{
    double watts = UNKNOWN, known = 0;
    for (size_t i = 0; i < points->sweep.count; i++)
        if (points->sweep.attempts[i].point == point && !points->items[i].exclusion) {
            add_known(&watts, points->items[i].watts);
            known += is_known(points->items[i].watts);
            out->temperature_c = fmax(out->temperature_c, points->items[i].temperature_c);
        }
    out->figures[FREQ_POWER_W].value = ratio(watts, known);
}

/* Means over the runs of percentiles and of their intervals: repeats use the same questions, so their queries cannot
 * be pooled.  UNKNOWN if any run has too few. */
static void mean_latencies(const struct sweep_points *points, size_t point,
                           struct optimize_point *out)
{
    double runs = 0;
    struct freq_value sums[OPTIMIZE_LATENCIES] = {0};
    for (size_t i = 0; i < points->sweep.count; i++) {
        const struct sweep_measurement *m = &points->items[i];
        if (points->sweep.attempts[i].point != point || m->exclusion)
            continue;
        runs++;
        out->queries = fmin(out->queries, m->queries);
        for (size_t k = 0; k < OPTIMIZE_LATENCIES; k++) {
            sums[k].value += m->latency[k].value;
            sums[k].low += m->latency[k].low;
            sums[k].high += m->latency[k].high;
        }
    }
    for (size_t k = 0; k < OPTIMIZE_LATENCIES; k++)
        out->latency[k] = (struct freq_value){ratio(sums[k].value, runs), ratio(sums[k].low, runs),
                                              ratio(sums[k].high, runs)};
}

static struct optimize_point setting_at(const struct sweep_points *points, size_t point)
{
    struct optimize_point out = optimize_point_unknown();
    struct text setting = {0};
    double qualities[SWEEP_QUALITIES_MAX];
    struct sweep_figures figures = sweep_points_figures(points, point, qualities);
    out.quality = qualities[points->quality];
    double runs = sqrt((double)figures.measured);
    sweep_setting(&points->sweep, point, &setting);
    chars_copy(out.setting, text_get(&setting));
    str_plain(out.setting, sizeof out.setting);
    text_release(&setting);
    mean_conditions(points, point, &out);
    mean_latencies(points, point, &out);
    out.point = point;
    out.freq_mhz = clock_at(points, point);
    out.runs = (unsigned)figures.measured;
    out.figures[FREQ_ENERGY_J].value = figures.joules;
    out.figures[FREQ_TIME_S].value = figures.seconds;
    out.scatter[FREQ_TIME_S] = ratio(figures.seconds_error * runs, figures.seconds);
    out.scatter[FREQ_ENERGY_J] = figures.error_pct / 100 * runs;
    return out;
}

enum err sweep_points_settings(const struct sweep_points *points, const struct params *where,
                               struct setting_points *out, struct error *why)
{
    const struct sweep *sweep = &points->sweep;
    *out = (struct setting_points){.items = xcalloc(sweep->point_count, sizeof *out->items)};
    enum err err = ERR_OK;
    for (size_t p = 0; !err && p < sweep->point_count; p++) {
        bool wanted = false;
        err = is_wanted(points, p, where, &wanted, why);
        struct optimize_point point = setting_at(points, p);
        if (!err && wanted && point.runs)
            out->items[out->count++] = point;
    }
    if (!err && !out->count) {
        char reasons[160];
        sweep_points_exclusions(points, reasons, sizeof reasons);
        err = err_set(why, ERR_NO_DATA, "no setting was measured: %s",
                      reasons[0]     ? reasons
                      : sweep->count ? "--where selects none"
                                     : "the sweep has no attempts yet");
    }
    if (err) {
        free(out->items);
        *out = (struct setting_points){0};
    }
    return err;
}

/* How many of the GPU's own knobs a point leaves at their default. */
static size_t defaults_at(const struct sweep_points *points, size_t point)
{
    const struct setting *settings = sweep_point(&points->sweep, point);
    size_t count = 0;
    for (size_t k = 0; k < points->sweep.knob_count; k++)
        count +=
            sweep_points_gpu_knob(points, k) != KNOB_COUNT && settings[k].kind == SETTING_DEFAULT;
    return count;
}

size_t sweep_points_baseline(const struct sweep_points *points,
                             const struct setting_points *settings)
{
    size_t best = 0;
    for (size_t i = 1; i < settings->count; i++) {
        const struct optimize_point *one = &settings->items[i], *other = &settings->items[best];
        size_t mine = defaults_at(points, one->point), its = defaults_at(points, other->point);
        if (mine > its || (mine == its && one->freq_mhz > other->freq_mhz))
            best = i;
    }
    return best;
}

bool sweep_points_is_fitted(const struct sweep_points *points)
{
    const struct sweep *sweep = &points->sweep;
    size_t clocks = 0;
    for (size_t p = 0; p < sweep->point_count; p++)
        clocks += is_known(clock_at(points, p));
    return sweep->knob_count == 1 && clocks > 0 &&
           (clocks == sweep->point_count || clocks >= POWER_SWEEP_MIN);
}

const char *sweep_points_void(const struct sweep_points *points)
{
    return 2 * points->idled > sweep_points_excluded(points, SWEEP_USED) ? "the GPU was idle"
                                                                         : NULL;
}

/* ---- measurements at clocks ---- */

/* The knob named by --columns freq_mhz=KNOB, or the one known as the clock. */
static enum err choose_clock(const struct freq_source *source, struct sweep_points *points,
                             struct error *why)
{
    const struct params *columns = source->columns;
    for (size_t i = 0; columns && i < columns->count; i++) {
        if (!str_equal_nocase(columns->items[i].key, "freq_mhz"))
            return err_set(why, ERR_USAGE, "--columns: a sweep accepts only freq_mhz=KNOB");
        points->clock = knob_with_name(&points->sweep, columns->items[i].value);
        if (points->clock < 0 || !has_numbers(&points->sweep, (size_t)points->clock))
            return err_set(why, ERR_USAGE, "--columns: the sweep has no knob '%.40s' with numbers",
                           plain_text(columns->items[i].value).text);
    }
    if (points->clock >= 0)
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE,
                   "%.160s: no knob of this sweep is a GPU clock: name it with --columns "
                   "freq_mhz=KNOB, or use `ipw optimize SWEEP`",
                   source->path);
}

/* "llama batch=8": other knob values are other workloads. */
static void name_application(const struct sweep_points *points, size_t point, const char *work,
                             char *to, size_t size)
{
    struct text name = {0};
    text_add(&name, work);
    for (size_t k = 0; k < points->sweep.knob_count; k++)
        if ((long)k != points->clock)
            text_addf(&name, "%s%s=%s", name.length ? " " : "", points->sweep.knobs[k],
                      sweep_point(&points->sweep, point)[k].text);
    str_copy(to, size, text_get(&name));
    str_plain(to, size);
    text_release(&name);
}

static struct freq_point freq_point_of(const struct sweep_points *points, size_t index,
                                       const char *gpu)
{
    static const unsigned FLAGS[SWEEP_EXCLUSIONS] = {0, FREQ_FAILED, FREQ_THROTTLED, FREQ_OFF_CLOCK,
                                                     FREQ_INVALID};
    const struct sweep_attempt *attempt = &points->sweep.attempts[index];
    const struct sweep_measurement *m = &points->items[index];
    struct freq_point point = freq_point_unknown();
    chars_copy(point.gpu, gpu ? gpu : m->gpu);
    name_application(points, attempt->point, m->application, point.application,
                     sizeof point.application);
    point.run = attempt->repeat + 1; /* no first runs: all start alike, in random order */
    point.seq = (double)index;
    point.freq_mhz = clock_at(points, attempt->point);
    point.time_s = attempt->seconds;
    point.energy_j = attempt->joules;
    point.power_w = is_known(attempt->joules) ? m->watts : UNKNOWN;
    point.idle_w = m->idle_w;
    point.temperature_c = m->temperature_c;
    point.flags = FLAGS[m->exclusion];
    memcpy(point.activity, m->activity, sizeof point.activity);
    point.line = index + 1;
    return point;
}

enum err sweep_points_add(const struct sweep_points *points, const struct freq_source *source,
                          struct freq_points *out, struct error *why)
{
    enum err err = ERR_OK;
    size_t before = out->count;
    uint64_t hash = out->hash ? out->hash : HASH_START;
    for (size_t i = 0; !err && i < points->sweep.count; i++) {
        bool wanted = false;
        struct freq_point point = freq_point_of(points, i, source->gpu);
        err = is_wanted(points, points->sweep.attempts[i].point, source->where, &wanted, why);
        if (err || !wanted || !is_known(point.freq_mhz)) { /* the default is not a clock */
            out->other_rows += !err;
            continue;
        }
        const double figures[] = {point.freq_mhz, point.time_s, point.energy_j};
        hash = hash_bytes(hash, figures, sizeof figures);
        freq_points_add(out, &point);
    }
    out->hash = hash;
    chars_copy(out->time_column, "time_s");
    if (!err && out->count == before)
        err = err_set(why, ERR_NO_DATA, "%.200s: no attempt%s", source->path,
                      out->other_rows ? " (--where selects none)" : " has ended yet");
    return err;
}

enum err sweep_points_read(struct freq_points *points, const struct freq_source *source,
                           struct error *why)
{
    struct sweep_points loaded = {.clock = -1};
    enum err err = source->sweep ? ERR_OK : sweep_points_load(source->path, &loaded, why);
    struct sweep_points sweep = source->sweep ? *source->sweep : loaded; /* with another clock */
    if (!err)
        err = choose_clock(source, &sweep, why);
    if (!err)
        err = sweep_points_add(&sweep, source, points, why);
    sweep_points_release(&loaded);
    return err;
}
