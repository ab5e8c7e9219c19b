/* Points from the logs of GPU profilers, one per log and GPU: a file, or a directory with the logs of a study.
 *
 * The content of a log has precedence over its name: names contain the requested clock, which is wrong in some public
 * data.  So the clock, the GPU and the activities come from the rows, and the name provides what they lack.
 *
 * Only the part of a log from the first to the last row with an active GPU is the workload.  The rows before it
 * (start-up, a download) give the idle power; the rows after it are ignored. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/hash.h"
#include "core/params.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "port/file.h"
#include "power/freq_points.h"
#include "stats/descriptive.h"
#include "wire/gpu_log.h"

#define LOG_LIMIT ((size_t)256 << 20)
#define GAP_SHARE 0.1 /* of the rows: a longer pause may follow a stray reading */
#define STRAY_SHARE                                                                                \
    0.02 /* of the activity: less than this before or after such a pause is not part of the workload */
#define COUNTER_ERROR  0.2 /* a counter that deviates more from the mean power is ignored */
#define PAUSE_SPACINGS 10  /* a longer step of the timestamps is a pause of the log */
#define SET_SPACINGS   2   /* of the counter's time in a pause: the clock was set forward */
#define PAUSE_ERROR    0.5 /* of the energy of a pause, in which the GPU was not observed */

enum { GAP_ROWS = 20, IDLE_ROWS = 3, DEPTH_MAX = 4 };

/* ---- names ---- */

/* Information from the names of a log and of its directory. */
struct log_name {
    char gpu[40], application[64];
    char run_id[32]; /* of timing_summary.log */
    unsigned run;    /* from 1; 0: not given */
    double seq, mhz;
    char perf[96]; /* "GV100-dvfs-LSTM": prefix of its timing file; "": none */
};

/* Parses digits only; returns the first byte after them, or NULL. */
static const char *digits(const char *at, double *out)
{
    size_t length = strspn(at, "0123456789");
    char number[16];
    if (length == 0 || length >= sizeof number)
        return NULL;
    memcpy(number, at, length);
    number[length] = '\0';
    return parse_double(number, out) ? NULL : at + length;
}

/* results_<gpu>_<application>[_job_<id>] */
static void name_of_folder(const char *folder, struct log_name *out)
{
    const char *at = str_starts(folder, "results_") ? folder + 8 : "";
    const char *end = strchr(at, '_');
    const char *job = end ? strstr(end, "_job_") : NULL;
    if (!end)
        return;
    chars_format(out->gpu, "%.*s", (int)(end - at), at);
    for (char *c = out->gpu; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    end++;
    chars_format(out->application, "%.*s", (int)(job && job > end ? job - end : (long)strlen(end)),
                 end);
}

/* run_<id>_freq_<MHz>_profile.csv; the id is NN, <seq>_NN or baseline_NN. */
static bool name_of_run(const char *name, struct log_name *out)
{
    const char *id = name + 4, *freq = strstr(name, "_freq_"), *rest;
    double number;
    if (!str_starts(name, "run_") || !freq || freq < id || !(rest = digits(freq + 6, &out->mhz)) ||
        !str_starts(rest, "_profile"))
        return false;
    chars_format(out->run_id, "%.*s", (int)(freq - id), id);
    const char *last = strrchr(out->run_id, '_');
    rest = digits(last ? last + 1 : out->run_id, &number);
    if (rest && !*rest)
        out->run = (unsigned)number;
    rest = last ? digits(out->run_id, &number) : NULL;
    if (rest == last)
        out->seq = last ? number : UNKNOWN;
    return true;
}

/* <chip>-<mode>-<application>-<MHz>-<run from 0>[.suffix], the chip as GV100. */
static bool name_of_legacy(const char *name, struct log_name *out)
{
    char text[160], *dash[2] = {0};
    double run;
    chars_copy(text, name);
    text[strcspn(text, ".")] = '\0';
    for (size_t i = 2; i-- > 0;) {
        dash[i] = strrchr(text, '-');
        if (!dash[i])
            return false;
        *dash[i] = '\0';
    }
    const char *after_mhz = digits(dash[0] + 1, &out->mhz), *after_run = digits(dash[1] + 1, &run);
    char *mode = strchr(text, '-');
    char *application = mode ? strchr(mode + 1, '-') : NULL;
    if (!after_mhz || *after_mhz || !after_run || *after_run || !application)
        return false;
    chars_copy(out->perf, text);
    chars_copy(out->application, application + 1);
    *mode = '\0';
    bool is_chip = text[0] == 'G' && text[1] >= 'A' && text[1] <= 'Z' && text[2] >= '0';
    chars_copy(out->gpu, text + is_chip);
    out->run = (unsigned)run + 1;
    return true;
}

/* Any other name: "<application>_1410MHz.log". */
static void name_of_other(const char *name, struct log_name *out)
{
    for (const char *at = name; *at; at++) {
        double mhz;
        const char *rest = digits(at, &mhz);
        if (!rest)
            continue;
        if (str_starts(rest, "MHz") || str_starts(rest, "mhz")) {
            out->mhz = mhz;
            chars_format(out->application, "%.*s", (int)(at - name), name);
            size_t length = strlen(out->application);
            while (length && strchr("_-. ", out->application[length - 1]))
                out->application[--length] = '\0';
            return;
        }
        at = rest - 1;
    }
}

static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The directory of a file, to be freed. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return xstrdup(".");
    return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static struct log_name name_of(const char *path)
{
    struct log_name out = {.seq = UNKNOWN, .mhz = UNKNOWN};
    const char *name = last_of(path);
    char *folder = folder_of(path);
    name_of_folder(last_of(folder), &out);
    free(folder);
    if (!name_of_run(name, &out) && !name_of_legacy(name, &out))
        name_of_other(name, &out);
    str_plain(out.gpu, sizeof out.gpu);
    str_plain(out.application, sizeof out.application);
    return out;
}

/* ---- run information in files next to the log ---- */

/* timing_summary.log: run_id,frequency_mhz,duration_seconds,exit_code,status */
static void outcome_of(struct csv_grid *grid, const struct log_name *name, struct freq_point *point)
{
    long id = csv_grid_column(grid, "run_id"), mhz = csv_grid_column(grid, "frequency_mhz");
    long duration = csv_grid_column(grid, "duration_seconds");
    long code = csv_grid_column(grid, "exit_code"), status = csv_grid_column(grid, "status");
    for (size_t row = 0; row < grid->rows; row++) {
        double clock = UNKNOWN, exit_code = 0;
        const char *word = csv_grid_cell(grid, row, status);
        if (!str_equal(csv_grid_cell(grid, row, id), name->run_id) ||
            parse_double(csv_grid_cell(grid, row, mhz), &clock) || clock != name->mhz)
            continue;
        if (parse_double(csv_grid_cell(grid, row, duration), &point->raw_time_s))
            point->raw_time_s = UNKNOWN;
        if ((parse_double(csv_grid_cell(grid, row, code), &exit_code) == ERR_OK && exit_code) ||
            (word[0] && !str_equal_nocase(word, "success")))
            point->flags |= FREQ_FAILED;
    }
}

/* experiment_summary.log, where there is no other: "Run 1_01 : 114s (freq: 1410MHz, status: success)" */
static void outcome_in_text(char *text, const struct log_name *name, struct freq_point *point)
{
    char begin[64], *rest = NULL;
    chars_format(begin, "Run %s :", name->run_id);
    for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        double seconds, mhz;
        const char *at = strstr(line, begin);
        const char *freq = at ? strstr(at, "(freq: ") : NULL;
        if (!freq || !digits(freq + 7, &mhz) || mhz != name->mhz)
            continue;
        at += strlen(begin);
        if (digits(at + strspn(at, " "), &seconds))
            point->raw_time_s = seconds;
        if (!strstr(freq, "status: success"))
            point->flags |= FREQ_FAILED;
    }
}

/* A small file of a directory; empty if there is none. */
static struct text read_beside(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    struct text bytes = {0};
    struct error ignored;
    if (file_is_regular(path) && file_read(path, FILE_SMALL, &bytes, &ignored))
        text_clear(&bytes);
    free(path);
    return bytes;
}

static bool has_beside(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool has = file_is_regular(path);
    free(path);
    return has;
}

static void read_outcome(const char *folder, const struct log_name *name, struct freq_point *point)
{
    static const char TABLE[] = "timing_summary.log";
    struct csv_grid grid = {0};
    struct error ignored;
    if (!name->run_id[0])
        return;
    bool is_table = has_beside(folder, TABLE);
    struct text bytes = read_beside(folder, is_table ? TABLE : "experiment_summary.log");
    if (bytes.length && !is_table)
        outcome_in_text(bytes.bytes, name, point);
    else if (bytes.length && csv_grid_read(bytes.bytes, bytes.length, &grid, &ignored) == ERR_OK)
        outcome_of(&grid, name, point);
    csv_grid_release(&grid);
    text_release(&bytes);
}

/* <chip>-<mode>-<application>-perf.csv: MHz,seconds in the order of the runs. */
static double time_in_perf(const char *path, const struct log_name *name)
{
    struct text bytes = {0};
    struct error ignored;
    unsigned run = 0;
    double found = UNKNOWN;
    if (file_read(path, FILE_SMALL, &bytes, &ignored))
        return UNKNOWN;
    char *rest = NULL;
    for (char *line = bytes.length ? strtok_r(bytes.bytes, "\r\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\r\n", &rest)) {
        char *comma = strchr(line, ',');
        double mhz, time;
        if (!comma)
            continue;
        *comma = '\0';
        if (parse_double(line, &mhz) || parse_double(comma + 1, &time) || mhz != name->mhz)
            continue;
        if (++run == name->run)
            found = time;
    }
    text_release(&bytes);
    return found;
}

static void read_perf(const char *folder, const struct log_name *name, struct freq_point *point)
{
    struct dirent **entries;
    char begin[112], *path = NULL;
    size_t found = 0;
    chars_format(begin, "%s-perf.csv", name->perf);
    int count = name->perf[0] ? scandir(folder, &entries, NULL, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        char start[112];
        chars_format(start, "%.*s", (int)strlen(begin), entries[i]->d_name);
        if (str_equal_nocase(start, begin)) {
            free(path);
            path = path_join(folder, entries[i]->d_name);
            found++;
        }
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
    if (found == 1) /* with several, the one of this log is unknown */
        point->raw_time_s = time_in_perf(path, name);
    free(path);
}

/* ---- rows ---- */

struct log_rows {
    struct gpu_log_row *items;
    size_t count, capacity;
    size_t damaged;
    char gpu_name[96];
};

/* A last line without a newline may be truncated and is ignored. */
static void read_rows(struct text *bytes, struct log_rows *out)
{
    struct gpu_log log = {0};
    const char *last = bytes->bytes + bytes->length;
    for (char *at = bytes->bytes, *end; (end = memchr(at, '\n', (size_t)(last - at)));
         at = end + 1) {
        struct gpu_log_row row;
        *end = '\0';
        enum gpu_log_line kind = gpu_log_line(&log, at, &row);
        out->damaged += kind == GPU_LOG_DAMAGED;
        if (kind != GPU_LOG_ROW)
            continue;
        XGROW(out->items, out->count, out->capacity);
        out->items[out->count++] = row;
    }
    chars_copy(out->gpu_name, log.gpu_name);
}

/* The rows of one GPU, the duration that each represents, and the range of the workload, [first, end). */
struct gpu_rows {
    const struct gpu_log_row **items;
    double *spans; /* s; UNKNOWN */
    double *scratch;
    double usual_s; /* the median span; UNKNOWN without timestamps */
    size_t count, first, end;
    bool is_unordered, has_pauses, has_activities;
};

/* Index of a value of a row, or ACTIVE, the share of time in which the GPU was active. */
enum { ACTIVE = GPU_LOG_VALUES };

/* Some drivers leave the graphics engine activity at 0.  If the log has neither, utilization is used; a row that
 * lacks a value that others have is UNKNOWN, because the two differ. */
static double value_of(const struct gpu_rows *rows, size_t i, unsigned which)
{
    const double *values = rows->items[i]->values;
    if (which != ACTIVE)
        return values[which];
    if (rows->has_activities)
        return fmax(values[GPU_LOG_GRAPHICS], values[GPU_LOG_SM]);
    return values[GPU_LOG_UTILIZATION];
}

static bool is_active(const struct gpu_rows *rows, size_t i)
{
    return value_of(rows, i, ACTIVE) > 0;
}

/* Advances `first` past a stray reading that a long pause separates from the workload; from the end with `step` -1. */
static size_t skip_stray(const struct gpu_rows *rows, size_t from, long step, double total)
{
    double gap_max = fmax(GAP_ROWS, GAP_SHARE * (double)rows->count), sum = 0;
    size_t gap = 0;
    for (size_t i = from; i < rows->count; i = (size_t)((long)i + step)) {
        if (!is_active(rows, i)) {
            gap++;
            continue;
        }
        if ((double)gap > gap_max && sum < STRAY_SHARE * total)
            return skip_stray(rows, i, step, total);
        if (sum > STRAY_SHARE * total)
            break;
        sum += value_of(rows, i, ACTIVE);
        gap = 0;
    }
    return from;
}

static void find_work(struct gpu_rows *rows)
{
    double total = 0;
    size_t first = rows->count, last = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (is_active(rows, i)) {
            first = first < i ? first : i;
            last = i;
            total += value_of(rows, i, ACTIVE);
        }
    rows->first = 0;
    rows->end = rows->count;
    if (first == rows->count)
        return;
    rows->first = skip_stray(rows, first, 1, total);
    rows->end = skip_stray(rows, last, -1, total) + 1;
}

/* The median over the active rows of the workload, or over all where activity is unknown. */
static double median_in_work(const struct gpu_rows *rows, enum gpu_log_value value)
{
    size_t known = 0;
    for (int any = 0; any < 2 && !known; any++)
        for (size_t i = rows->first; i < rows->end; i++)
            if ((any || is_active(rows, i)) && is_known(value_of(rows, i, value)))
                rows->scratch[known++] = value_of(rows, i, value);
    return known ? select_median(rows->scratch, known) : UNKNOWN;
}

static double channel_mean(const struct gpu_rows *rows, size_t first, size_t end, unsigned which)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = first; i < end; i++) {
        double one = value_of(rows, i, which);
        sum += known_or(one, 0);
        known += is_known(one);
    }
    return known ? sum / (double)known : UNKNOWN;
}

/* Zeros are excluded, as in the published definition of fp and dram; 0 if all are. */
static double mean_nonzero(const struct gpu_rows *rows, enum gpu_log_value which)
{
    double sum = 0;
    size_t known = 0, above = 0;
    for (size_t i = rows->first; i < rows->end; i++) {
        double one = value_of(rows, i, which);
        known += is_known(one);
        above += one > 0;
        sum += one > 0 ? one : 0;
    }
    return above ? sum / (double)above : known ? 0 : UNKNOWN;
}

/* ---- time ---- */

/* Differences of timestamps.  One that is not positive means that the clock was set back. */
static bool span_by_timestamps(struct gpu_rows *rows)
{
    size_t known = 0;
    for (size_t i = 0; i < rows->count; i++) {
        double step = i ? rows->items[i]->time_s - rows->items[i - 1]->time_s : UNKNOWN;
        rows->spans[i] = step;
        rows->is_unordered |= step < 0;
        if (step > 0)
            rows->scratch[known++] = step;
    }
    rows->usual_s = known ? select_median(rows->scratch, known) : UNKNOWN;
    for (size_t i = 0; i < rows->count; i++)
        if (!(rows->spans[i] > 0))
            rows->spans[i] = rows->usual_s;
    return known > 0;
}

static bool is_pause(const struct gpu_rows *rows, size_t i)
{
    return rows->spans[i] >= PAUSE_SPACINGS * rows->usual_s;
}

/* Mean of the power before and after a pause. */
static double held_power(const struct gpu_rows *rows, size_t i)
{
    double before = value_of(rows, i - 1, GPU_LOG_POWER_W);
    double after = value_of(rows, i, GPU_LOG_POWER_W);
    return is_known(before) && is_known(after) ? (before + after) / 2 : fmax(before, after);
}

static double counted_since(const struct gpu_rows *rows, size_t i)
{
    return value_of(rows, i, GPU_LOG_ENERGY_J) - value_of(rows, i - 1, GPU_LOG_ENERGY_J);
}

/* Whether the clock was set forward before row i: the counter hardly increased, or a later row is earlier. */
static bool is_set_forward(const struct gpu_rows *rows, size_t i, double earliest_later_s)
{
    double passed_s = ratio(counted_since(rows, i), held_power(rows, i));
    bool is_set_back = earliest_later_s < rows->items[i]->time_s - rows->spans[i] / 2 &&
                       earliest_later_s >= rows->items[i - 1]->time_s - rows->usual_s;
    return is_set_back || (passed_s >= 0 && passed_s < SET_SPACINGS * rows->usual_s);
}

/* A stalled logger leaves a pause, during which the workload continues: it counts as time, unless the clock was set
 * forward, for example when the duration recorded by the study is too short for it.  The pause before the first row
 * of the workload is excluded. */
static void settle_pauses(struct gpu_rows *rows, double recorded_s)
{
    double with = 0, without = 0, earliest_s = UNKNOWN;
    if (is_pause(rows, rows->first))
        rows->spans[rows->first] = rows->usual_s;
    for (size_t i = rows->first; i < rows->end; i++) {
        with += rows->spans[i];
        without += is_pause(rows, i) ? rows->usual_s : rows->spans[i];
    }
    bool is_set = fabs(without - recorded_s) < fabs(with - recorded_s);
    for (size_t i = rows->count; i-- > rows->first + 1;) {
        bool counts = i < rows->end && is_pause(rows, i);
        if (counts && (is_set || is_set_forward(rows, i, earliest_s))) {
            rows->spans[i] = rows->usual_s;
            rows->is_unordered = true;
        } else if (counts) {
            rows->has_pauses = true;
        }
        earliest_s = fmin(earliest_s, rows->items[i]->time_s);
    }
}

/* A table has no timestamps.  The duration is the energy counter over the mean power; else as recorded by the study. */
static void span_by_counter(struct gpu_rows *rows, double recorded_s)
{
    const struct gpu_log_row *first = NULL, *last = NULL;
    size_t from = 0, to = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (is_known(value_of(rows, i, GPU_LOG_ENERGY_J))) {
            from = first ? from : i;
            first = first ? first : rows->items[i];
            last = rows->items[i];
            to = i;
        }
    double watts = channel_mean(rows, from + 1, to + 1, GPU_LOG_POWER_W), span = UNKNOWN;
    if (to > from && last->values[GPU_LOG_ENERGY_J] > first->values[GPU_LOG_ENERGY_J])
        span = ratio(last->values[GPU_LOG_ENERGY_J] - first->values[GPU_LOG_ENERGY_J], watts) /
               (double)(to - from);
    if (!is_known(span) && recorded_s > 0)
        span = recorded_s / (double)rows->count;
    for (size_t i = 0; i < rows->count; i++)
        rows->spans[i] = span;
}

/* ---- a point ---- */

static double highest(const struct gpu_rows *rows, enum gpu_log_value which)
{
    double max = UNKNOWN;
    for (size_t i = rows->first; i < rows->end; i++)
        max = fmax(max, value_of(rows, i, which));
    return max;
}

/* Mean power over a pause that ends with row i: from the counter, else interpolated (energy in unseen_j). */
static double pause_power(const struct gpu_rows *rows, size_t i, double max_w, double *unseen_j)
{
    double counted = counted_since(rows, i) / rows->spans[i], held = held_power(rows, i);
    if (counted > 0 && counted < 2 * max_w)
        return counted;
    *unseen_j += is_known(held) ? held * rows->spans[i] : 0;
    return held;
}

static void set_energy(const struct gpu_rows *rows, struct freq_point *point)
{
    double joules = 0, powered_s = 0, time_s = 0, unseen_j = 0;
    double max_w = highest(rows, GPU_LOG_POWER_W);
    for (size_t i = rows->first; i < rows->end; i++) {
        double watts = i > rows->first && is_pause(rows, i) ? pause_power(rows, i, max_w, &unseen_j)
                                                            : value_of(rows, i, GPU_LOG_POWER_W);
        time_s += rows->spans[i];
        joules += is_known(watts) ? watts * rows->spans[i] : 0;
        powered_s += is_known(watts) ? rows->spans[i] : 0;
    }
    point->power_w = ratio(joules, powered_s);
    point->time_s = known_or(time_s, point->raw_time_s);
    point->energy_j = point->power_w * time_s;
    if (!is_known(point->power_w))
        point->power_w = channel_mean(rows, rows->first, rows->end, GPU_LOG_POWER_W);
    double counted = rows->first ? rows->items[rows->end - 1]->values[GPU_LOG_ENERGY_J] -
                                       rows->items[rows->first - 1]->values[GPU_LOG_ENERGY_J]
                                 : UNKNOWN;
    point->pause_error = unseen_j > 0 ? PAUSE_ERROR * unseen_j / joules : 0;
    if (fabs(counted / point->energy_j - 1) < COUNTER_ERROR) {
        point->energy_j = counted;
        point->pause_error = 0;
    }
}

/* The row before the workload may include its start. */
static double idle_before(const struct gpu_rows *rows)
{
    size_t known = 0;
    for (size_t i = 0; i + 1 < rows->first; i++)
        if (is_known(value_of(rows, i, GPU_LOG_POWER_W)))
            rows->scratch[known++] = value_of(rows, i, GPU_LOG_POWER_W);
    return known >= IDLE_ROWS ? select_median(rows->scratch, known) : UNKNOWN;
}

static void set_figures(struct gpu_rows *rows, struct freq_point *point)
{
    if (!span_by_timestamps(rows))
        span_by_counter(rows, point->raw_time_s);
    find_work(rows);
    settle_pauses(rows, point->raw_time_s);
    set_energy(rows, point);
    double measured = median_in_work(rows, GPU_LOG_CLOCK_MHZ);
    double target = median_in_work(rows, GPU_LOG_TARGET_CLOCK_MHZ);
    point->achieved_mhz = known_or(measured, target);
    if (!is_known(point->freq_mhz))
        point->freq_mhz = known_or(target, measured);
    point->timestamp_s = rows->items[0]->time_s;
    point->idle_w = idle_before(rows);
    point->temperature_c = highest(rows, GPU_LOG_TEMPERATURE_C);
    point->activity[FREQ_FP] =
        mean_nonzero(rows, GPU_LOG_FP32) / 2 + mean_nonzero(rows, GPU_LOG_FP64);
    point->activity[FREQ_DRAM] = mean_nonzero(rows, GPU_LOG_DRAM);
    point->activity[FREQ_SM] = channel_mean(rows, rows->first, rows->end, ACTIVE);
    point->activity[FREQ_UTIL] = channel_mean(rows, rows->first, rows->end, GPU_LOG_UTILIZATION);
    point->flags |= (rows->is_unordered ? FREQ_LOG_UNORDERED : 0U) |
                    (rows->has_pauses ? FREQ_LOG_PAUSES : 0U) |
                    (rows->end - rows->first < rows->count ? FREQ_LOG_IDLE_PARTS : 0U);
}

/* ---- importing ---- */

struct importing {
    struct freq_points *points;
    const struct freq_source *source;
    struct error *why;
    size_t logs;
};

/* The GPU as given by the caller or the name, unless the log has it. */
static void set_gpu(const struct importing *im, const struct log_name *name,
                    const struct log_rows *rows, struct freq_point *point)
{
    const char *said = im->source->gpu ? im->source->gpu : name->gpu;
    bool agrees = !rows->gpu_name[0] || (said[0] && str_contains_nocase(rows->gpu_name, said));
    chars_copy(point->gpu, agrees ? said : rows->gpu_name);
    if (!agrees && said[0])
        point->flags |= FREQ_GPU_MISMATCH;
}

static enum err is_wanted(const struct importing *im, const struct freq_point *point, bool *out)
{
    const struct params *where = im->source->where;
    *out = true;
    for (size_t i = 0; where && i < where->count; i++) {
        const char *key = where->items[i].key, *value = where->items[i].value;
        char number[32];
        if (str_equal_nocase(key, "gpu")) {
            *out &= str_equal_nocase(point->gpu, value);
        } else if (str_equal_nocase(key, "application") || str_equal_nocase(key, "workload")) {
            *out &= str_equal_nocase(point->application, value);
        } else if (str_equal_nocase(key, "run") || str_equal_nocase(key, "freq_mhz")) {
            chars_format(number, "%g", str_equal_nocase(key, "run") ? point->run : point->freq_mhz);
            *out &= str_equal(number, value);
        } else {
            return err_set(im->why, ERR_BAD_VALUE,
                           "%.200s: --where: no column '%.40s' (logs have gpu, application, run, "
                           "freq_mhz)",
                           im->source->path, plain_text(key).text);
        }
    }
    return ERR_OK;
}

static enum err add_point(struct importing *im, const struct freq_point *point)
{
    bool wanted = false;
    enum err err = is_wanted(im, point, &wanted);
    if (err)
        return err;
    im->points->other_rows += !wanted;
    if (wanted)
        freq_points_add(im->points, point);
    return ERR_OK;
}

static enum err add_gpu(struct importing *im, const struct log_rows *all, unsigned gpu,
                        const struct freq_point *begin, bool is_one)
{
    struct freq_point point = *begin;
    struct gpu_rows rows = {.usual_s = UNKNOWN,
                            .items = xcalloc(all->count, sizeof *rows.items),
                            .spans = xcalloc(all->count, sizeof *rows.spans),
                            .scratch = xcalloc(all->count, sizeof *rows.scratch)};
    enum err err = ERR_OK;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].gpu == gpu)
            rows.items[rows.count++] = &all->items[i];
    for (size_t i = 0; i < rows.count; i++)
        rows.has_activities |= is_known(value_of(&rows, i, GPU_LOG_GRAPHICS)) ||
                               is_known(value_of(&rows, i, GPU_LOG_SM));
    set_figures(&rows, &point);
    if (!is_one)
        chars_format(point.gpu, "%.30s:%u", begin->gpu, gpu);
    /* Of several GPUs, idle ones are not part of the workload. */
    if (is_one || !(highest(&rows, GPU_LOG_UTILIZATION) <= 0) || is_active(&rows, rows.first))
        err = add_point(im, &point);
    free(rows.items);
    free(rows.spans);
    free(rows.scratch);
    return err;
}

static enum err add_gpus(struct importing *im, const struct log_rows *rows,
                         const struct freq_point *begin)
{
    enum { GPUS_MAX = 32 };
    unsigned gpus[GPUS_MAX];
    size_t count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < rows->count; i++) {
        size_t k = 0;
        while (k < count && gpus[k] != rows->items[i].gpu)
            k++;
        if (k == count && count < GPUS_MAX)
            gpus[count++] = rows->items[i].gpu;
    }
    for (size_t i = 0; !err && i < count; i++)
        err = add_gpu(im, rows, gpus[i], begin, count == 1);
    return err ? err : count ? ERR_OK : add_point(im, begin); /* no power: reported by the checks */
}

static enum err import_log(struct importing *im, const char *path, struct text *bytes)
{
    struct log_name name = name_of(path);
    struct log_rows rows = {0};
    struct freq_point point = freq_point_unknown();
    char *folder = folder_of(path);
    point.freq_mhz = name.mhz;
    point.run = name.run;
    point.seq = name.seq;
    point.line = ++im->logs;
    chars_copy(point.application, name.application);
    read_outcome(folder, &name, &point);
    read_perf(folder, &name, &point);
    free(folder);
    im->points->hash =
        hash_bytes(im->points->hash ? im->points->hash : HASH_START, bytes->bytes, bytes->length);
    read_rows(bytes, &rows);
    set_gpu(im, &name, &rows, &point);
    point.flags |= rows.damaged ? FREQ_LOG_DAMAGED : 0U;
    enum err err = add_gpus(im, &rows, &point);
    free(rows.items);
    return err;
}

/* Files that are not logs are skipped: result directories contain many. */
static enum err import_file(struct importing *im, const char *path)
{
    struct text bytes = {0};
    enum err err = file_read(path, LOG_LIMIT, &bytes, im->why);
    if (!err && bytes.length && gpu_log_is(bytes.bytes, bytes.length))
        err = import_log(im, path, &bytes);
    text_release(&bytes);
    return err;
}

static enum err import_folder(struct importing *im, const char *folder, int depth)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    enum err err = count < 0 ? err_set(im->why, ERR_IO, "%.200s: cannot be read", folder) : ERR_OK;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        bool is_other = name[0] == '.' || strstr(name, "_app.out") || strstr(name, "_app.err");
        char *path = path_join(folder, name);
        if (!err && !is_other && file_is_directory(path) && depth < DEPTH_MAX)
            err = import_folder(im, path, depth + 1);
        else if (!err && !is_other && file_is_regular(path))
            err = import_file(im, path);
        free(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return err;
}

bool freq_points_is_log(const char *path)
{
    char begin[4096];
    FILE *file = file_is_regular(path) ? fopen(path, "rb") : NULL;
    size_t length = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file)
        fclose(file);
    return file_is_directory(path) || gpu_log_is(begin, length);
}

enum err freq_points_import(struct freq_points *points, const struct freq_source *source,
                            struct error *why)
{
    struct importing im = {points, source, why, 0};
    size_t before = points->count;
    enum err err = file_is_directory(source->path) ? import_folder(&im, source->path, 0)
                                                   : import_file(&im, source->path);
    if (!err && points->count == before)
        err = err_set(why, ERR_NO_DATA, "%.200s: %s", source->path,
                      im.logs ? "--where selects none of the logs"
                              : "no logs of `dcgmi dmon` or `nvidia-smi --query-gpu`");
    chars_copy(points->time_column, "time of the logs");
    chars_copy(points->raw_time_column, "recorded duration");
    return err;
}
