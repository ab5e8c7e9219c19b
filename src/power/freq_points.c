/* Points are rows of a file, whose columns are found by name: ours, or those used in public data sets.  Curves are
 * made by sorting the usable points by GPU, application and frequency and taking medians of equal ones: the median
 * of three runs is robust to one that was delayed by a download or another process. */
#include "power/freq_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/grow.h"
#include "core/hash.h"
#include "core/params.h"
#include "core/text.h"
#include "port/file.h"
#include "stats/descriptive.h"

#define FILE_LIMIT ((size_t)1 << 30)

struct freq_point freq_point_unknown(void)
{
    struct freq_point point = {.seq = UNKNOWN,
                               .timestamp_s = UNKNOWN,
                               .freq_mhz = UNKNOWN,
                               .achieved_mhz = UNKNOWN,
                               .time_s = UNKNOWN,
                               .raw_time_s = UNKNOWN,
                               .power_w = UNKNOWN,
                               .energy_j = UNKNOWN,
                               .idle_w = UNKNOWN,
                               .temperature_c = UNKNOWN};
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        point.activity[i] = UNKNOWN;
    return point;
}

enum err freq_points_add(struct freq_points *points, const struct freq_point *point)
{
    struct freq_point *items = grow(points->items, &points->capacity, points->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    points->items = items;
    items[points->count++] = *point;
    return ERR_OK;
}

void freq_points_release(struct freq_points *points)
{
    free(points->items);
    *points = (struct freq_points){0};
}

/* ---- columns ---- */

enum column {
    GPU,
    APPLICATION,
    RUN,
    SEQ,
    TIMESTAMP,
    FREQ,
    ACHIEVED,
    TIME,
    RAW_TIME,
    POWER,
    ENERGY,
    IDLE,
    TEMPERATURE,
    FP,
    FP64,
    FP32,
    DRAM,
    SM,
    UTIL,
    TIME_FLAG,
    POWER_FLAG,
    EXIT_CODE,
    COLUMNS
};

/* Our names first, then those of public files, the most processed first.  Case-insensitive. */
static const struct {
    const char *names[10];
} KNOWN[COLUMNS] = {
    [GPU] = {{"gpu", "device", "gpu_name"}},
    [APPLICATION] = {{"application", "workload", "app", "benchmark", "name"}},
    [RUN] = {{"run", "repeat", "run_id"}},
    [SEQ] = {{"seq", "sequence", "order"}},
    [TIMESTAMP] = {{"timestamp_s", "timestamp", "time_unix_s"}},
    [FREQ] = {{"freq_mhz", "sm_app_clock_mhz", "sm_app_clock", "frequency_mhz", "frequency", "freq",
               "clock_mhz", "graphics_mhz", "core_mhz"}},
    [ACHIEVED] = {{"achieved_mhz", "sm_clock_mhz", "sm_clock", "smclk", "saclk"}},
    [TIME] = {{"time_s", "t_clean_s", "t_eff_s", "duration_s", "duration_seconds", "seconds",
               "run_time_s", "run_time", "run_time_s_raw", "exec_time"}},
    [RAW_TIME] = {{"raw_time_s", "run_time_s_raw", "run_time"}},
    [POWER] = {{"power_w", "avg_power_w", "mean_power_w", "power", "power_usage"}},
    [ENERGY] = {{"energy_j", "energy", "total_energy_j"}},
    [IDLE] = {{"idle_w", "idle_power_w", "first_power_w"}},
    [TEMPERATURE] = {{"temperature_c", "temperature", "tmptr"}},
    [FP] = {{"fp", "fp_active", "fp_activity"}},
    [FP64] = {{"fp64_active", "fp64a"}},
    [FP32] = {{"fp32_active", "fp32a"}},
    [DRAM] = {{"dram", "dram_active", "dram_activity", "drama"}},
    [SM] = {{"sm", "sm_active", "smact", "gr_engine_active", "gract"}},
    [UTIL] = {{"util", "gpu_utilization", "gputl"}},
    [TIME_FLAG] = {{"time_flag", "t_flag"}},
    [POWER_FLAG] = {{"power_flag", "p_flag"}},
    [EXIT_CODE] = {{"exit_code", "exit_status"}},
};

static long column_named(const struct csv_row *header, const char *name)
{
    for (size_t i = 0; i < header->count; i++)
        if (header->fields[i].length == strlen(name) &&
            str_equal_nocase(header->fields[i].start, name))
            return (long)i;
    return -1;
}

/* State of reading a file. */
struct reading {
    const struct freq_source *source;
    struct csv_reader csv;
    struct csv_row row;
    long at[COLUMNS];           /* -1: the file has no such column */
    char names[COLUMNS][40];    /* in the file */
    const struct params *where; /* NULL: all rows */
    long where_at[16];          /* columns of its items */
    struct error *why;
};

/* The columns mapped by the caller: each of ours at most once, to an existing one. */
static enum err map_columns(struct reading *r, const struct csv_row *header)
{
    const struct params *map = r->source->columns;
    for (size_t i = 0; map && i < map->count; i++) {
        size_t column = 0;
        while (column < COLUMNS && strcmp(KNOWN[column].names[0], map->items[i].key) != 0)
            column++;
        if (column == COLUMNS)
            return err_set(
                r->why, ERR_USAGE,
                "--columns: unknown column '%.40s' (gpu, application, run, seq, "
                "timestamp_s, freq_mhz, achieved_mhz, time_s, power_w, energy_j, idle_w, "
                "temperature_c, fp, dram, sm, util)",
                plain_text(map->items[i].key).text);
        r->at[column] = column_named(header, map->items[i].value);
        if (r->at[column] < 0)
            return err_set(r->why, ERR_BAD_VALUE, "%.200s: no column '%.40s'", r->source->path,
                           plain_text(map->items[i].value).text);
        (void)str_copy(r->names[column], sizeof r->names[column], map->items[i].value);
    }
    return ERR_OK;
}

static void recognize_columns(struct reading *r, const struct csv_row *header)
{
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t k = 0; r->at[c] < 0 && k < sizeof KNOWN[c].names / sizeof *KNOWN[c].names &&
                           KNOWN[c].names[k];
             k++) {
            long at = column_named(header, KNOWN[c].names[k]);
            if (at < 0 || (c == RAW_TIME && at == r->at[TIME]))
                continue;
            r->at[c] = at;
            (void)str_copy(r->names[c], sizeof r->names[c], KNOWN[c].names[k]);
        }
}

/* A condition refers to one of the file's columns, or ours. */
static enum err find_where(struct reading *r, const struct csv_row *header)
{
    for (size_t i = 0; r->where && i < r->where->count; i++) {
        const char *key = r->where->items[i].key;
        if (i == sizeof r->where_at / sizeof *r->where_at)
            return err_set(r->why, ERR_USAGE, "--where: more than %zu conditions", i);
        r->where_at[i] = column_named(header, key);
        for (size_t c = 0; r->where_at[i] < 0 && c < COLUMNS; c++)
            if (str_equal_nocase(KNOWN[c].names[0], key))
                r->where_at[i] = r->at[c];
        /* A file of one GPU needs no such column if the caller names the GPU. */
        if (r->where_at[i] < 0 && !(str_equal_nocase(key, "gpu") && r->source->gpu &&
                                    str_equal_nocase(r->source->gpu, r->where->items[i].value)))
            return err_set(r->why, ERR_BAD_VALUE, "%.200s: --where: no column '%.40s'",
                           r->source->path, plain_text(key).text);
    }
    return ERR_OK;
}

static enum err read_header(struct reading *r)
{
    struct error inner = {0};
    bool end = false;
    for (size_t i = 0; i < COLUMNS; i++)
        r->at[i] = -1;
    enum err err = csv_reader_next(&r->csv, &r->row, &end, &inner);
    if (err || end)
        return err_set(r->why, ERR_BAD_VALUE, "%.200s: %s", r->source->path,
                       err ? inner.text : "empty");
    err = map_columns(r, &r->row);
    if (!err)
        recognize_columns(r, &r->row);
    if (!err)
        err = find_where(r, &r->row);
    if (!err && r->at[FREQ] < 0)
        err = err_set(r->why, ERR_BAD_VALUE,
                      "%.200s: no column of frequencies (freq_mhz, or --columns freq_mhz=NAME)",
                      r->source->path);
    if (!err && r->at[POWER] < 0 && r->at[ENERGY] < 0)
        err = err_set(r->why, ERR_BAD_VALUE,
                      "%.200s: no column of power or energy (power_w, energy_j, or --columns "
                      "power_w=NAME)",
                      r->source->path);
    return err;
}

/* ---- rows ---- */

static const char *cell(const struct reading *r, long at)
{
    return at >= 0 && (size_t)at < r->row.count ? r->row.fields[at].start : "";
}

static bool is_selected(const struct reading *r)
{
    for (size_t i = 0; r->where && i < r->where->count; i++)
        if (r->where_at[i] >= 0 &&
            !str_equal_nocase(cell(r, r->where_at[i]), r->where->items[i].value))
            return false;
    return true;
}

/* UNKNOWN for the placeholders that profilers write. */
static enum err number(const struct reading *r, enum column column, double *out)
{
    static const char *const NONE[] = {"",    "n/a",  "[n/a]", "nan",  "-nan",
                                       "inf", "-inf", "-",     "none", "null"};
    const char *text = cell(r, r->at[column]);
    *out = UNKNOWN;
    if (parse_double(text, out) == ERR_OK)
        return ERR_OK;
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
        if (str_equal_nocase(text, NONE[i]))
            return ERR_OK;
    return err_set(r->why, ERR_BAD_VALUE, "%.160s:%llu: %s '%.40s': not a number", r->source->path,
                   (unsigned long long)r->row.line, r->names[column], plain_text(text).text);
}

static enum err read_numbers(const struct reading *r, struct freq_point *point)
{
    struct {
        enum column column;
        double *to;
    } numbers[] = {{SEQ, &point->seq},
                   {TIMESTAMP, &point->timestamp_s},
                   {FREQ, &point->freq_mhz},
                   {ACHIEVED, &point->achieved_mhz},
                   {TIME, &point->time_s},
                   {RAW_TIME, &point->raw_time_s},
                   {POWER, &point->power_w},
                   {ENERGY, &point->energy_j},
                   {IDLE, &point->idle_w},
                   {TEMPERATURE, &point->temperature_c},
                   {FP, &point->activity[FREQ_FP]},
                   {DRAM, &point->activity[FREQ_DRAM]},
                   {SM, &point->activity[FREQ_SM]},
                   {UTIL, &point->activity[FREQ_UTIL]}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        enum err err = number(r, numbers[i].column, numbers[i].to);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* The published definition, for a file that has only the components. */
static enum err read_fp(const struct reading *r, struct freq_point *point)
{
    double fp64, fp32;
    if (r->at[FP] >= 0 || r->at[FP64] < 0 || r->at[FP32] < 0)
        return ERR_OK;
    enum err err = number(r, FP64, &fp64);
    if (!err)
        err = number(r, FP32, &fp32);
    if (!err && is_known(fp32 + fp64))
        point->activity[FREQ_FP] = fp32 / 2 + fp64;
    return err;
}

static enum err read_flags(const struct reading *r, struct freq_point *point)
{
    static const struct {
        enum column column;
        unsigned flag;
    } FLAGS[] = {{TIME_FLAG, FREQ_TIME_REPLACED},
                 {POWER_FLAG, FREQ_POWER_SUSPECT},
                 {EXIT_CODE, FREQ_FAILED}};
    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++) {
        double value;
        enum err err = number(r, FLAGS[i].column, &value);
        if (err)
            return err;
        if (is_known(value) && value != 0)
            point->flags |= FLAGS[i].flag;
    }
    return ERR_OK;
}

static enum err read_point(const struct reading *r, struct freq_point *point)
{
    double run;
    *point = freq_point_unknown();
    point->line = r->row.line;
    (void)str_copy(point->gpu, sizeof point->gpu,
                   r->at[GPU] >= 0  ? cell(r, r->at[GPU])
                   : r->source->gpu ? r->source->gpu
                                    : "");
    (void)str_copy(point->application, sizeof point->application, cell(r, r->at[APPLICATION]));
    str_plain(point->gpu, sizeof point->gpu);
    str_plain(point->application, sizeof point->application);
    enum err err = read_numbers(r, point);
    if (!err)
        err = read_fp(r, point);
    if (!err)
        err = read_flags(r, point);
    if (!err && parse_double(cell(r, r->at[RUN]), &run) == ERR_OK && run >= 1 && run < 1e9)
        point->run = (unsigned)run;
    /* Profilers write utilization as a percentage. */
    if (point->activity[FREQ_UTIL] > 1)
        point->activity[FREQ_UTIL] /= 100;
    return err;
}

static enum err read_rows(struct reading *r, struct freq_points *points)
{
    for (;;) {
        struct error inner = {0};
        struct freq_point point;
        bool end = false;
        enum err err = csv_reader_next(&r->csv, &r->row, &end, &inner);
        if (err)
            return err_set(r->why, err, "%.200s:%llu: %s", r->source->path,
                           (unsigned long long)r->row.line, inner.text);
        if (end)
            return ERR_OK;
        if (!is_selected(r)) {
            points->other_rows++;
            continue;
        }
        err = read_point(r, &point);
        if (!err && freq_points_add(points, &point))
            err = err_no_memory(r->why);
        if (err)
            return err;
    }
}

enum err freq_points_read(struct freq_points *points, const struct freq_source *source,
                          struct error *why)
{
    struct text bytes = {0};
    struct reading r = {.source = source, .where = source->where, .why = why};
    size_t before = points->count;
    enum err err = file_read(source->path, FILE_LIMIT, &bytes, why);
    if (!err && bytes.length == 0)
        err = err_set(why, ERR_BAD_VALUE, "%.200s: empty", source->path);
    if (!err) {
        points->hash =
            hash_bytes(points->hash ? points->hash : HASH_START, bytes.bytes, bytes.length);
        csv_reader_memory(&r.csv, bytes.bytes, bytes.length);
        err = read_header(&r);
        if (!err)
            err = read_rows(&r, points);
        csv_reader_release(&r.csv);
    }
    if (!err && points->count == before)
        err = err_set(why, ERR_NO_DATA, "%.200s: no rows%s", source->path,
                      points->other_rows ? " (--where selects none)" : "");
    (void)str_copy(points->time_column, sizeof points->time_column, r.names[TIME]);
    (void)str_copy(points->raw_time_column, sizeof points->raw_time_column, r.names[RAW_TIME]);
    text_release(&bytes);
    return err;
}

/* ---- curves ---- */

static int by_place(const void *a, const void *b)
{
    const struct freq_point *p = a, *q = b;
    int order = strcmp(p->gpu, q->gpu);
    if (!order)
        order = strcmp(p->application, q->application);
    if (!order) /* unknown ones first: NaN cannot be ordered */
        order = is_known(p->freq_mhz) && is_known(q->freq_mhz)
                    ? (p->freq_mhz > q->freq_mhz) - (p->freq_mhz < q->freq_mhz)
                    : is_known(p->freq_mhz) - is_known(q->freq_mhz);
    if (!order)
        order = (p->run > q->run) - (p->run < q->run);
    return order ? order : (p->line > q->line) - (p->line < q->line);
}

void freq_points_sort(struct freq_points *points)
{
    if (points->count)
        qsort(points->items, points->count, sizeof *points->items, by_place);
}

size_t freq_points_group(const struct freq_points *points, size_t first)
{
    const struct freq_point *items = points->items;
    size_t end = first + 1;
    while (end < points->count && strcmp(items[first].gpu, items[end].gpu) == 0 &&
           strcmp(items[first].application, items[end].application) == 0)
        end++;
    return end;
}

/* The window of the mean power: runs record energy over a different time than that of the workload. */
static double window_of(const struct freq_point *p)
{
    double window = ratio(p->energy_j, p->power_w);
    return is_known(window) && window > 0 ? window : p->time_s;
}

static double power_of(const struct freq_point *p)
{
    return is_known(p->power_w) ? p->power_w : ratio(p->energy_j, p->time_s);
}

/* One figure of each of the points, as doubles for the median. */
static double figure_of(const struct freq_point *p, size_t which)
{
    switch (which) {
    case 0:
        return power_of(p);
    case 1:
        return p->flags & FREQ_TIME_COPIED ? UNKNOWN : p->time_s;
    case 2:
        return p->flags & FREQ_TIME_COPIED ? UNKNOWN : window_of(p);
    default:
        return p->activity[which - 3];
    }
}

static bool is_usable(const struct freq_point *p)
{
    return !(p->flags & FREQ_UNUSABLE) && p->freq_mhz > 0;
}

static double median_of(const struct freq_point *points, size_t count, size_t which,
                        double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        double value = is_usable(&points[i]) ? figure_of(&points[i], which) : UNKNOWN;
        if (is_known(value))
            scratch[known++] = value;
    }
    return known ? select_median(scratch, known) : UNKNOWN;
}

static double scatter_of(const struct freq_point *points, size_t count, bool is_energy,
                         double *scratch)
{
    for (size_t i = 0; i < count; i++) {
        double time = figure_of(&points[i], 1),
               energy = power_of(&points[i]) * figure_of(&points[i], 2);
        scratch[i] = !is_usable(&points[i]) ? UNKNOWN : is_energy ? energy : time;
    }
    return relative_scatter(scratch, count);
}

static struct freq_sample sample_of(const struct freq_point *points, size_t count, double *scratch)
{
    struct freq_sample sample = {.freq_mhz = points[0].freq_mhz};
    for (size_t i = 0; i < count; i++)
        if (is_usable(&points[i])) {
            sample.runs++;
            sample.pause_error += points[i].pause_error;
        }
    sample.pause_error /= sample.runs ? sample.runs : 1;
    sample.power_w = median_of(points, count, 0, scratch);
    sample.time_s = median_of(points, count, 1, scratch);
    sample.window_s = median_of(points, count, 2, scratch);
    sample.energy_j = sample.power_w * sample.window_s;
    sample.energy_scatter = scatter_of(points, count, true, scratch);
    sample.time_scatter = scatter_of(points, count, false, scratch);
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        sample.activity[i] = median_of(points, count, 3 + i, scratch);
    return sample;
}

/* Idle power: runs start idle, and a warm start shows a higher value. */
static double idle_of(const struct freq_point *points, size_t count, double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (points[i].idle_w > 0)
            scratch[known++] = points[i].idle_w;
    return known ? quantile(scratch, known, 0.25) : UNKNOWN;
}

static enum err add_curve(struct freq_curves *curves, const struct freq_point *points, size_t count,
                          double *scratch)
{
    struct freq_curve *curve = &curves->items[curves->count];
    *curve = (struct freq_curve){.idle_w = idle_of(points, count, scratch)};
    curve->samples = calloc(count, sizeof *curve->samples);
    if (!curve->samples)
        return ERR_NO_MEMORY;
    curves->count++;
    (void)str_copy(curve->gpu, sizeof curve->gpu, points[0].gpu);
    (void)str_copy(curve->application, sizeof curve->application, points[0].application);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && points[next].freq_mhz == points[i].freq_mhz;)
            next++;
        struct freq_sample sample = sample_of(points + i, next - i, scratch);
        if (is_known(sample.power_w))
            curve->samples[curve->count++] = sample;
        /* A clock counts even if its points are not usable. */
        for (size_t k = i; k < next; k++)
            if (!(points[k].flags & (FREQ_ILLEGAL | FREQ_OFF_CLOCK | FREQ_INVALID)))
                curve->fmax_mhz = fmax(curve->fmax_mhz, points[k].freq_mhz);
    }
    return ERR_OK;
}

/* The clock that all curves of a GPU are normalized by. */
static void set_fmax(struct freq_curves *curves)
{
    for (size_t i = 0, next; i < curves->count; i = next) {
        double highest = 0;
        for (next = i;
             next < curves->count && strcmp(curves->items[next].gpu, curves->items[i].gpu) == 0;
             next++)
            highest = fmax(highest, curves->items[next].fmax_mhz);
        for (size_t k = i; k < next; k++)
            curves->items[k].fmax_mhz = highest;
    }
}

enum err freq_curves_of(struct freq_points *points, struct freq_curves *out)
{
    double *scratch = calloc(points->count + 1, sizeof *scratch);
    size_t groups = 0;
    freq_points_sort(points);
    for (size_t i = 0; i < points->count; i = freq_points_group(points, i))
        groups++;
    *out = (struct freq_curves){.items = calloc(groups + 1, sizeof *out->items)};
    enum err err = scratch && out->items ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0, next; !err && i < points->count; i = next) {
        next = freq_points_group(points, i);
        err = add_curve(out, points->items + i, next - i, scratch);
    }
    free(scratch);
    if (err)
        freq_curves_release(out);
    else
        set_fmax(out);
    return err;
}

void freq_curves_release(struct freq_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++)
        free(curves->items[i].samples);
    free(curves->items);
    *curves = (struct freq_curves){0};
}

enum { NEAR_FMAX = 5 };

double freq_curve_activity(const struct freq_curve *curve, enum freq_activity activity)
{
    double sum = 0;
    size_t known = 0;
    bool any = false;
    for (size_t i = curve->count; i-- > 0 && curve->count - i <= NEAR_FMAX;) {
        double value = curve->samples[i].activity[activity];
        any |= is_known(value);
        if (is_known(value) && value > 0) {
            sum += value;
            known++;
        }
    }
    return known ? sum / (double)known : any ? 0 : UNKNOWN;
}

/* ---- probes ---- */

#define PROBE_LOWEST 0.45 /* of fmax: few applications have their optimum below it */

static double sample_figure(const struct freq_sample *s, size_t which)
{
    return which == 0 ? s->power_w : which == 1 ? s->time_s : s->window_s;
}

/* The median of the samples nearest to a frequency. */
static struct freq_sample probe_at(const struct freq_curve *curve, double mhz, size_t near)
{
    enum { NEAR_MAX = 15 };
    const struct freq_sample *s = curve->samples;
    double values[NEAR_MAX];
    size_t first = 0, end;
    near = near < 1 ? 1 : near > NEAR_MAX ? NEAR_MAX : near;
    end = near = near < curve->count ? near : curve->count;
    while (end < curve->count && fabs(s[end].freq_mhz - mhz) < fabs(s[first].freq_mhz - mhz))
        first++, end++;
    struct freq_sample probe = s[first + near / 2];
    double *const targets[] = {&probe.power_w, &probe.time_s, &probe.window_s};
    for (size_t which = 0; which < 3; which++) {
        size_t known = 0;
        for (size_t i = first; i < end; i++)
            if (is_known(sample_figure(&s[i], which)))
                values[known++] = sample_figure(&s[i], which);
        *targets[which] = known ? select_median(values, known) : UNKNOWN;
    }
    probe.energy_j = probe.power_w * probe.window_s;
    probe.runs = (unsigned)near;
    return probe;
}

size_t freq_curve_probes(const struct freq_curve *curve, size_t wanted, size_t near,
                         struct freq_sample *out)
{
    size_t count = 0;
    double lowest =
        curve->count ? fmax(PROBE_LOWEST * curve->fmax_mhz, curve->samples[0].freq_mhz) : UNKNOWN;
    for (size_t i = 0; curve->count && i < wanted; i++) {
        double share = wanted > 1 ? (double)i / (double)(wanted - 1) : 0;
        double mhz = curve->fmax_mhz - share * (curve->fmax_mhz - lowest);
        struct freq_sample probe = probe_at(curve, mhz, near);
        if (count == 0 || probe.freq_mhz < out[count - 1].freq_mhz)
            out[count++] = probe;
    }
    return count;
}
