/* Points are rows of a file, whose columns are found by name: ours, or those used in public data sets. */
#include "power/freq_points.h"

#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/hash.h"
#include "core/params.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "port/file.h"

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

void freq_points_add(struct freq_points *points, const struct freq_point *point)
{
    XGROW(points->items, points->count, points->capacity);
    points->items[points->count++] = *point;
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
        while (column < COLUMNS && !str_equal(KNOWN[column].names[0], map->items[i].key))
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
        chars_copy(r->names[column], map->items[i].value);
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
            chars_copy(r->names[c], KNOWN[c].names[k]);
        }
}

/* A condition refers to one of the file's columns, or ours. */
static enum err find_where(struct reading *r, const struct csv_row *header)
{
    for (size_t i = 0; r->where && i < r->where->count; i++) {
        const char *key = r->where->items[i].key;
        if (i == COUNT_OF(r->where_at))
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
    for (size_t i = 0; i < COUNT_OF(NONE); i++)
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
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
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
    for (size_t i = 0; i < COUNT_OF(FLAGS); i++) {
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
    if (r->at[GPU] >= 0)
        chars_copy(point->gpu, cell(r, r->at[GPU]));
    else if (r->source->gpu)
        chars_copy(point->gpu, r->source->gpu);
    chars_copy(point->application, cell(r, r->at[APPLICATION]));
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
        if (err)
            return err;
        freq_points_add(points, &point);
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
    chars_copy(points->time_column, r.names[TIME]);
    chars_copy(points->raw_time_column, r.names[RAW_TIME]);
    text_release(&bytes);
    return err;
}
