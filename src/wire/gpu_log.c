/* A line is split into cells, at white space or at commas, and is then either a header, which defines the columns, or a
 * row.  `dcgmi dmon` does not delimit a name with spaces: excess words of a row belong to the name. */
#include "wire/gpu_log.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"

/* In order of preference.  Names with a dot or underscore are those of CSV, the others of tables: a CSV file of results
 * may have a column `power`. */
static const struct {
    const char *names[6];
    double scale; /* to our unit, if no unit is given */
} KNOWN[GPU_LOG_VALUES] = {
    [GPU_LOG_POWER_W] = {{"POWER", "power.draw", "power.draw.average", "power.draw.instant"}, 1},
    [GPU_LOG_ENERGY_J] = {{"TOTEC", "total_energy_consumption"}, 1e-3},
    [GPU_LOG_TEMPERATURE_C] = {{"TMPTR", "temperature.gpu"}, 1},
    [GPU_LOG_CLOCK_MHZ] = {{"SMCLK", "clocks.sm", "clocks.current.sm", "clocks.gr",
                            "clocks.current.graphics"},
                           1},
    [GPU_LOG_TARGET_CLOCK_MHZ] = {{"SACLK", "clocks.applications.graphics",
                                   "clocks.applications.gr"},
                                  1},
    [GPU_LOG_UTILIZATION] = {{"GPUTL", "utilization.gpu"}, 1e-2},
    [GPU_LOG_MEMORY_UTILIZATION] = {{"MCUTL", "utilization.memory"}, 1e-2},
    [GPU_LOG_GRAPHICS] = {{"GRACT"}, 1},
    [GPU_LOG_SM] = {{"SMACT"}, 1},
    [GPU_LOG_OCCUPANCY] = {{"SMOCC"}, 1},
    [GPU_LOG_TENSOR] = {{"TENSO"}, 1},
    [GPU_LOG_DRAM] = {{"DRAMA"}, 1},
    [GPU_LOG_FP64] = {{"FP64A"}, 1},
    [GPU_LOG_FP32] = {{"FP32A"}, 1},
    [GPU_LOG_FP16] = {{"FP16A"}, 1},
};
static const char *const OTHERS[] = {"timestamp", "index", "name", "pstate"};

static const struct unit {
    const char *name;
    double scale;
} UNITS[] = {{"W", 1},    {"mW", 1e-3}, {"kW", 1e3},  {"J", 1},    {"mJ", 1e-3},
             {"kJ", 1e3}, {"MHz", 1},   {"GHz", 1e3}, {"%", 1e-2}, {"C", 1}};

enum { UNIT_COUNT = COUNT_OF(UNITS) };

/* Column sets of nvidia-smi without a header that profilers are known to use. */
static const char *const HEADERLESS[] = {
    "timestamp,index,name,power.draw,power.limit,temperature.gpu,utilization.gpu,"
    "utilization.memory,memory.total,memory.free,memory.used,clocks.sm,clocks.mem,clocks.gr,"
    "clocks.applications.graphics,clocks.applications.memory,pstate",
    "timestamp,index,name,power.draw,power.limit,temperature.gpu,utilization.gpu,"
    "utilization.memory,memory.total,memory.free,memory.used,clocks.sm,clocks.mem,clocks.gr,pstate",
};

/* ---- cells ---- */

static size_t split_words(char *line, char **cells, size_t limit)
{
    char *rest = NULL;
    size_t count = 0;
    for (char *at = strtok_r(line, " \t\r\n\v\f", &rest); at && count < limit;
         at = strtok_r(NULL, " \t\r\n\v\f", &rest))
        cells[count++] = at;
    return count;
}

static size_t split_commas(char *line, char **cells, size_t limit)
{
    size_t count = 0;
    while (line && count < limit) {
        char *comma = strchr(line, ',');
        if (comma)
            *comma = '\0';
        cells[count++] = str_trim(line);
        line = comma ? comma + 1 : NULL;
    }
    return count;
}

static bool is_absent(const char *cell)
{
    static const char *const NONE[] = {"",  "N/A",  "nan",     "-nan",   "inf",
                                       "-", "None", "Unknown", "No data"};
    /* "[N/A]", "[Not Supported]", "[Unknown Error]"; of texts in a table "<<<NULL>>>", "<<<NOT_SUPPORTED>>>" */
    if (cell[0] == '[' || str_starts(cell, "<<<"))
        return true;
    for (size_t i = 0; i < COUNT_OF(NONE); i++)
        if (str_equal_nocase(cell, NONE[i]))
            return true;
    return false;
}

static double unit_scale(const char *unit, double otherwise)
{
    const struct unit *found = STR_FIND(unit, UNITS);
    return found ? found->scale : otherwise;
}

/* A value that does not fit its column ends in dots: a number is then unusable. */
static bool is_truncated(const char *cell)
{
    return str_ends(cell, "...");
}

/* "33.13", "33.13 W", "[N/A]", "12345..."; false for anything else. */
static bool read_cell(char *cell, double scale, double *out)
{
    char *unit = strchr(cell, ' ');
    *out = UNKNOWN;
    if (is_absent(cell) || is_truncated(cell))
        return true;
    if (unit) {
        *unit++ = '\0';
        scale = unit_scale(str_trim(unit), scale);
    }
    if (parse_double(cell, out))
        return false;
    *out *= scale;
    return true;
}

/* ---- headers ---- */

/* Splits "power.draw [W]" into name and unit; returns the unit, or "". */
static char *cut_unit(char *cell)
{
    char *open = strchr(cell, '[');
    char *close = open ? strchr(open, ']') : NULL;
    if (!close)
        return cell + strlen(cell);
    *open = *close = '\0';
    str_trim(cell); /* at its end: it begins with the name */
    return open + 1;
}

static bool is_csv_name(const char *cell)
{
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++)
        if (str_equal_nocase(cell, OTHERS[i]))
            return true;
    for (size_t v = 0; v < GPU_LOG_VALUES; v++)
        for (size_t k = 0; k < sizeof KNOWN[v].names / sizeof *KNOWN[v].names; k++)
            if (KNOWN[v].names[k] && strchr(KNOWN[v].names[k], '.') &&
                str_equal_nocase(cell, KNOWN[v].names[k]))
                return true;
    return false;
}

static long column_of(char *const *cells, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal_nocase(cells[i], name))
            return (long)i;
    return -1;
}

/* Cells without that of the entity. */
static void take_header(struct gpu_log *log, char **cells, size_t count)
{
    const char *units[GPU_LOG_COLUMNS_MAX];
    for (size_t i = 0; i < count; i++)
        units[i] = cut_unit(cells[i]);
    log->count = count;
    log->time_at = column_of(cells, count, "timestamp");
    log->name = column_of(cells, count, log->is_table ? "DVNAM" : "name");
    log->index = column_of(cells, count, log->is_table ? "NVIDX" : "index");
    for (size_t v = 0; v < GPU_LOG_VALUES; v++) {
        long at = -1;
        for (size_t k = 0; at < 0 && k < sizeof KNOWN[v].names / sizeof *KNOWN[v].names; k++)
            if (KNOWN[v].names[k] && log->is_table == !strpbrk(KNOWN[v].names[k], "._"))
                at = column_of(cells, count, KNOWN[v].names[k]);
        log->columns[v] = at;
        log->scales[v] = at < 0 ? 1 : unit_scale(units[at], KNOWN[v].scale);
    }
}

/* The assumed header of a row without one, by the number of its cells. */
static bool assume_header(struct gpu_log *log, size_t count)
{
    for (size_t i = 0; i < COUNT_OF(HEADERLESS); i++) {
        char line[512], *cells[GPU_LOG_COLUMNS_MAX];
        (void)chars_copy(line, HEADERLESS[i]);
        if (split_commas(line, cells, GPU_LOG_COLUMNS_MAX) != count)
            continue;
        (void)chars_copy(line, HEADERLESS[i]);
        count = split_commas(line, cells, GPU_LOG_COLUMNS_MAX);
        take_header(log, cells, count);
        return true;
    }
    return false;
}

/* ---- rows ---- */

/* "2025/07/08 15:27:53.949": seconds since 1970 of that clock. */
static double time_of(const char *cell)
{
    int year, month, day, hour, minute, used = 0;
    double second;
    if (sscanf(cell, "%4d%*1[/-]%2d%*1[/-]%2d %2d:%2d:%n", &year, &month, &day, &hour, &minute,
               &used) < 5 ||
        !used || parse_double(cell + used, &second) || month < 1 || month > 12 || day < 1 ||
        day > 31 || hour > 23 || minute > 59 || !(second >= 0 && second < 61))
        return UNKNOWN;
    /* Days of the civil calendar, counted from March so that leap days come last. */
    int y = year - (month <= 2), era = y / 400, in_era = y - 400 * era;
    int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int days = era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + day_of_year - 719468;
    return 86400.0 * days + 3600.0 * hour + 60.0 * minute + second;
}

static bool take_index(const char *cell, unsigned *out)
{
    double index;
    if (parse_double(cell, &index) || !(index >= 0 && index < 1e6))
        return false;
    *out = (unsigned)index;
    return true;
}

static void take_name(struct gpu_log *log, const char *name)
{
    if (is_absent(name))
        return;
    (void)chars_copy(log->gpu_name, name);
    str_plain(log->gpu_name, sizeof log->gpu_name);
}

static bool take_values(const struct gpu_log *log, char **cells, struct gpu_log_row *out)
{
    bool good = true;
    for (size_t v = 0; v < GPU_LOG_VALUES; v++) {
        out->values[v] = UNKNOWN;
        if (log->columns[v] >= 0)
            good &= read_cell(cells[log->columns[v]], log->scales[v], &out->values[v]);
        /* Profilers also use implausible numbers for missing values. */
        if (out->values[v] < 0 || (v >= GPU_LOG_UTILIZATION && out->values[v] > 1.01))
            out->values[v] = UNKNOWN;
    }
    return good;
}

static enum gpu_log_line take_row(struct gpu_log *log, char **cells, struct gpu_log_row *out)
{
    if (log->index >= 0 && !take_index(cells[log->index], &out->gpu) &&
        !is_absent(cells[log->index]))
        return GPU_LOG_DAMAGED;
    if (log->time_at >= 0)
        out->time_s = time_of(cells[log->time_at]);
    if (!take_values(log, cells, out))
        return GPU_LOG_DAMAGED;
    if (log->name >= 0)
        take_name(log, cells[log->name]);
    return GPU_LOG_ROW;
}

/* Joins the words of a name into one cell. */
static size_t join_name(char **cells, size_t count, size_t at, size_t extra)
{
    char *end = cells[at + extra] + strlen(cells[at + extra]);
    for (char *c = cells[at]; c < end; c++)
        if (!*c)
            *c = ' ';
    memmove(cells + at + 1, cells + at + 1 + extra, (count - at - 1 - extra) * sizeof *cells);
    return count - extra;
}

static bool is_table_header(char *const *cells, size_t count)
{
    return (count && str_equal_nocase(cells[0], "#Entity")) ||
           (count > 1 && str_equal(cells[0], "#") && str_equal_nocase(cells[1], "Entity"));
}

/* "#Entity", "# Entity"; "ID" or "Id" alone with units; "GPU 0 ...". */
static enum gpu_log_line table_line(struct gpu_log *log, char *line, struct gpu_log_row *out)
{
    char *cells[2 * GPU_LOG_COLUMNS_MAX];
    size_t count = split_words(line, cells, 2 * GPU_LOG_COLUMNS_MAX);
    size_t skip = count && str_equal(cells[0], "#") ? 2 : 1;
    if (is_table_header(cells, count)) {
        log->is_table = true;
        if (count > skip && count - skip <= GPU_LOG_COLUMNS_MAX)
            take_header(log, cells + skip, count - skip);
        return GPU_LOG_OTHER;
    }
    if (!log->is_table)
        return GPU_LOG_OTHER; /* a comment */
    if (count < 2 || !str_equal(cells[0], "GPU") || !take_index(cells[1], &out->gpu))
        return count && str_equal(cells[0], "GPU") ? GPU_LOG_DAMAGED : GPU_LOG_OTHER;
    size_t words = count - 2;
    if (log->count && words > log->count && log->name >= 0)
        words = join_name(cells + 2, words, (size_t)log->name, words - log->count);
    return log->count && words == log->count ? take_row(log, cells + 2, out) : GPU_LOG_DAMAGED;
}

static enum gpu_log_line csv_line(struct gpu_log *log, char *line, struct gpu_log_row *out)
{
    char *cells[GPU_LOG_COLUMNS_MAX];
    size_t names = 0, count = split_commas(line, cells, GPU_LOG_COLUMNS_MAX);
    if (count < 2)
        return count && cells[0][0] && log->count ? GPU_LOG_DAMAGED : GPU_LOG_OTHER;
    for (size_t i = 0; i < count; i++) {
        char name[64];
        (void)chars_copy(name, cells[i]);
        (void)cut_unit(name);
        names += is_csv_name(name);
    }
    if (names >= 2) {
        take_header(log, cells, count);
        return GPU_LOG_OTHER;
    }
    if (!log->count && !(is_known(time_of(cells[0])) && assume_header(log, count)))
        return GPU_LOG_OTHER;
    return count == log->count ? take_row(log, cells, out) : GPU_LOG_DAMAGED;
}

enum gpu_log_line gpu_log_line(struct gpu_log *log, char *line, struct gpu_log_row *out)
{
    bool begins_table = line[strspn(line, " \t")] == '#';
    *out = (struct gpu_log_row){.time_s = UNKNOWN};
    return log->is_table || begins_table ? table_line(log, line, out) : csv_line(log, line, out);
}

bool gpu_log_is(const char *bytes, size_t length)
{
    enum { LINES = 20 };
    struct gpu_log log = {0};
    size_t at = 0;
    for (size_t i = 0; i < LINES && at < length && !log.count; i++) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t size = end ? (size_t)(end - bytes) - at : length - at;
        char line[4096];
        struct gpu_log_row row;
        if (size < sizeof line) {
            memcpy(line, bytes + at, size);
            line[size] = '\0';
            (void)gpu_log_line(&log, line, &row);
        }
        at += size + 1;
    }
    return log.count && log.columns[GPU_LOG_POWER_W] >= 0;
}
