/* A reading of the machine over one interval, and its formats: rows of a table or of CSV, its result, totals. */
#include "live/reading.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/csv.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "port/proc_tree.h"
#include "report/text/format.h"
#include "sampler/sampler.h"
#include "sensors/sensor.h"

void reading_take(struct sampler *sampler, nanos start, nanos from, nanos to, struct reading *out)
{
    *out = (struct reading){
        .wall = to + clock_wall_offset(),
        .interval_s = seconds(to - from),
        .elapsed_s = seconds(to - start),
    };
    ledger_take(sampler, from, to, NULL, &out->now);
    ledger_take(sampler, start, to, NULL, &out->since);
    out->lost = xcalloc(out->now.count, sizeof *out->lost);
    for (size_t i = 0; i < out->now.count; i++) {
        struct source_state state;
        sampler_source(sampler, out->now.devices[i].source, &state);
        out->lost[i] = state.is_lost;
    }
}

void reading_release(struct reading *reading)
{
    ledger_release(&reading->now);
    ledger_release(&reading->since);
    free(reading->lost);
    *reading = (struct reading){0};
}

static bool fluctuates(enum quantity quantity)
{
    return quantity == QTY_UTILIZATION || quantity == QTY_MEMORY_UTILIZATION ||
           quantity == QTY_TENSOR_UTILIZATION || quantity == QTY_CLOCK ||
           quantity == QTY_MEMORY_CLOCK;
}

double reading_gauge(const struct reading *reading, size_t device, enum quantity quantity)
{
    const struct ledger_gauge *gauge = &reading->now.devices[device].gauges[quantity];
    if (!gauge->present || reading->lost[device])
        return UNKNOWN;
    return fluctuates(quantity) ? known_or(gauge->mean, gauge->last) : gauge->last;
}

void reading_throttle(const struct reading *reading, size_t device, char *to, size_t size)
{
    double bits = reading_gauge(reading, device, QTY_THROTTLE);
    if (!is_known(bits)) {
        str_copy(to, size, "-");
        return;
    }
    throttle_words((unsigned)bits, to, (unsigned)size);
    if (!to[0])
        str_copy(to, size, "none");
}

/* "counter" ...; of the interval, else since the start; "-" if nothing was measured. */
static const char *reading_method(const struct reading *reading, size_t device)
{
    const char *name = method_name(reading->now.devices[device].energy.method);
    if (!name)
        name = method_name(reading->since.devices[device].energy.method);
    return name ? name : "-";
}

double reading_total_power(const struct ledger *ledger)
{
    double watts = UNKNOWN;
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger->devices[i].counted)
            watts = known_or(watts, 0) + ledger->devices[i].power_mean;
    return watts;
}

void reading_figure(char *to, double value, const char *unit, enum method method)
{
    char rough[FORMAT_MAX];
    if (method == METHOD_ESTIMATED && is_known(value))
        str_format(to, FORMAT_MAX, "~%s", format_rough(rough, value, unit));
    else
        format_si(to, value, unit);
}

bool reading_wants_total(const struct reading *reading)
{
    size_t figures = 0;
    for (size_t i = 0; i < reading->since.count; i++)
        figures += reading->since.devices[i].has_energy;
    return figures > 1 || reading->since.count == 0;
}

/* ---- formats ---- */

/* ---- time ---- */

/* Local time of day. */
static void clock_time(nanos wall, bool tenths, char *to, size_t size)
{
    time_t whole = (time_t)(wall / NS_PER_S);
    struct tm parts;
    char day[32];
    localtime_r(&whole, &parts);
    strftime(day, sizeof day, "%H:%M:%S", &parts);
    str_format(to, size, tenths ? "%s.%d" : "%s", day, (int)(wall % NS_PER_S / (100 * NS_PER_MS)));
}

/* ---- the table ---- */

enum { HEADER_EVERY = 20 };

static const struct table_column COLUMNS[] = {
    {"time", false}, {"device", false}, {"power", true}, {"so far", true}, {"method", false},
    {"util", true},  {"memory", true},  {"temp", true},  {"clock", true},  {"throttle", false},
};
enum { COLUMN_COUNT = COUNT_OF(COLUMNS) };

/* Power has the relative uncertainty of its joules. */
static double power_error(double watts, const struct energy *energy)
{
    return energy->joules > 0 ? watts * energy->plus_minus / energy->joules : UNKNOWN;
}

/* A figure with its ±, prefixed with "~" if it is estimated. */
static void add_figure(struct table *table, double value, double error, const char *unit,
                       enum method method)
{
    char text[FORMAT_MAX];
    format_with_error(text, value, error, unit);
    table_addf(table, "%s%s", method == METHOD_ESTIMATED && is_known(value) ? "~" : "", text);
}

static bool any_device_has(const struct reading *reading, enum quantity quantity)
{
    for (size_t i = 0; i < reading->now.count; i++)
        if (reading->now.devices[i].gauges[quantity].present)
            return true;
    return false;
}

/* A column that no device of this machine can fill stays empty, and is omitted. */
static void add_gauge(struct table *table, const struct reading *reading, size_t device,
                      enum quantity quantity, const char *unit)
{
    double value = reading_gauge(reading, device, quantity);
    if (!any_device_has(reading, quantity))
        table_add(table, "");
    else if (!is_known(value))
        table_add(table, "-");
    else
        table_addf(table, "%.0f %s", value, unit);
}

static void add_device_row(struct table *table, const struct reading *reading, size_t i)
{
    const struct ledger_device *now = &reading->now.devices[i];
    const struct energy *since = &reading->since.devices[i].energy;
    char text[80];
    table_add(table, now->id);
    add_figure(table, now->power_mean, power_error(now->power_mean, &now->energy), "W",
               now->energy.method);
    add_figure(table, since->joules, since->plus_minus, "J", since->method);
    table_add(table, reading->lost[i] ? "LOST" : reading_method(reading, i));
    add_gauge(table, reading, i, QTY_UTILIZATION, "%");
    table_add(table, !any_device_has(reading, QTY_MEMORY_USED)
                         ? ""
                         : format_bytes_of(text, reading_gauge(reading, i, QTY_MEMORY_USED),
                                           reading_gauge(reading, i, QTY_MEMORY_TOTAL)));
    add_gauge(table, reading, i, QTY_TEMPERATURE, "°C");
    add_gauge(table, reading, i, QTY_CLOCK, "MHz");
    reading_throttle(reading, i, text, sizeof text);
    table_add(table, any_device_has(reading, QTY_THROTTLE) ? text : "");
}

static void add_total_row(struct table *table, const struct reading *reading)
{
    const struct energy *now = &reading->now.total, *since = &reading->since.total;
    const char *method = method_name(now->method);
    double watts = reading_total_power(&reading->now);
    table_add(table, "total");
    add_figure(table, watts, power_error(watts, now), "W", now->method);
    add_figure(table, since->joules, since->plus_minus, "J", since->method);
    table_add(table, method ? method : "-");
    for (size_t i = 5; i < COLUMN_COUNT; i++)
        table_add(table, "");
}

static void add_rows(struct table *table, struct reading_table *state,
                     const struct reading *reading)
{
    char when[32];
    if (state->blocks == 0)
        state->tenths = reading->interval_s < 0.95;
    clock_time(reading->wall, state->tenths, when, sizeof when);
    for (size_t i = 0; i < reading->now.count; i++) {
        table_add(table, when);
        add_device_row(table, reading, i);
    }
    if (reading_wants_total(reading)) {
        table_add(table, when);
        add_total_row(table, reading);
    }
}

void reading_to_table(struct reading_table *state, const struct reading *reading, struct text *out)
{
    /* Initial widths for usual figures, so that later blocks stay aligned. */
    static const size_t FIRST_WIDTHS[COLUMN_COUNT] = {8, 6, 15, 17, 9};
    struct table table = TABLE(COLUMNS);
    add_rows(&table, state, reading);
    if (state->blocks == 0)
        memcpy(state->widths, FIRST_WIDTHS, sizeof FIRST_WIDTHS);
    table_widen(&table, state->widths);
    bool again = state->repeat_header && state->blocks % HEADER_EVERY == 0;
    if (state->blocks == 0 || again)
        table_write_header(&table, state->widths, "", state->color, out);
    table_write_rows(&table, state->widths, "", out);
    state->blocks++;
    table_release(&table);
}

/* ---- the totals at the end ---- */

static void add_summary_row(struct table *table, const char *id, const struct energy *energy,
                            double mean, double peak)
{
    const char *method = method_name(energy->method);
    char text[FORMAT_MAX];
    table_add(table, id);
    add_figure(table, energy->joules, energy->plus_minus, "J", energy->method);
    reading_figure(text, mean, "W", energy->method);
    table_add(table, text);
    reading_figure(text, peak, "W", energy->method);
    table_add(table, text);
    table_add(table, method ? method : "-");
    table_add(table, energy->source);
}

void reading_summary(const struct reading *reading, bool color, struct text *out)
{
    static const struct table_column SUMMARY[] = {
        {"device", false}, {"energy", true},  {"mean", true},
        {"peak", true},    {"method", false}, {"from", false},
    };
    struct table table = TABLE(SUMMARY);
    char text[FORMAT_MAX];
    for (size_t i = 0; i < reading->since.count; i++) {
        const struct ledger_device *device = &reading->since.devices[i];
        if (device->has_energy)
            add_summary_row(&table, device->id, &device->energy, device->power_mean,
                            device->power_max);
    }
    if (reading_wants_total(reading)) {
        const struct energy *total = &reading->since.total;
        struct energy shown = *total;
        shown.source[0] = '\0'; /* the rows above have named the sources */
        add_summary_row(&table, "total", &shown, reading_total_power(&reading->since), UNKNOWN);
    }
    text_addf(out, "\nin %s\n", format_duration(text, reading->elapsed_s));
    table_print(&table, "", color, out);
    for (size_t i = 0; i < reading->since.count; i++) {
        const struct ledger_device *device = &reading->since.devices[i];
        if (device->has_energy && device->energy.note[0])
            text_addf(out, "%s: %s\n", device->id, device->energy.note);
    }
}

/* ---- CSV ---- */

void reading_csv_header(struct text *out)
{
    text_add(out, "time,elapsed_s,interval_s,device,name,state,power_w,power_max_w,energy_j,"
                  "energy_plus_minus_j,energy_since_start_j,energy_since_start_plus_minus_j,method,"
                  "coverage,in_total,utilisation_pct,memory_used_mb,memory_total_mb,temperature_c,"
                  "clock_mhz,power_limit_w,throttle\n");
}

static void csv_number(struct text *out, double value)
{
    if (is_known(value))
        text_addf(out, ",%.6g", value);
    else
        text_add(out, ",");
}

static void csv_energy(struct text *out, double joules)
{
    if (is_known(joules))
        text_addf(out, ",%.6f", joules); /* keeps microjoules in a sum of many hours */
    else
        text_add(out, ",");
}

static void csv_row(const struct reading *reading, size_t i, const char *when, struct text *out)
{
    const struct ledger_device *now = &reading->now.devices[i];
    const struct ledger_device *since = &reading->since.devices[i];
    const char *method = method_name(now->energy.method);
    char throttle[80];
    text_addf(out, "%s,%.3f,%.3f,", when, reading->elapsed_s, reading->interval_s);
    csv_add(out, now->id);
    text_add(out, ",");
    csv_add(out, now->sensor->name);
    text_add(out, reading->lost[i] ? ",lost" : ",ok");
    csv_number(out, now->power_mean);
    csv_number(out, now->power_max);
    csv_energy(out, now->energy.joules);
    csv_energy(out, now->energy.plus_minus);
    csv_energy(out, since->energy.joules);
    csv_energy(out, since->energy.plus_minus);
    text_addf(out, ",%s", text_or_empty(method));
    csv_number(out, method ? now->energy.coverage : UNKNOWN);
    text_add(out, !now->has_energy ? "," : now->counted ? ",true" : ",false");
    csv_number(out, reading_gauge(reading, i, QTY_UTILIZATION));
    csv_number(out, reading_gauge(reading, i, QTY_MEMORY_USED) / (1 << 20));
    csv_number(out, reading_gauge(reading, i, QTY_MEMORY_TOTAL) / (1 << 20));
    csv_number(out, reading_gauge(reading, i, QTY_TEMPERATURE));
    csv_number(out, reading_gauge(reading, i, QTY_CLOCK));
    csv_number(out, reading_gauge(reading, i, QTY_POWER_LIMIT));
    reading_throttle(reading, i, throttle, sizeof throttle);
    text_addf(out, ",%s\n", !str_equal(throttle, "-") ? throttle : "");
}

void reading_to_csv(const struct reading *reading, struct text *out)
{
    char when[FORMAT_MAX];
    clock_text(when, reading->wall);
    for (size_t i = 0; i < reading->now.count; i++)
        csv_row(reading, i, when, out);
}

/* ---- Markdown ---- */

/* The title and the line below it are those of the first block. */
static const char *skip_header(const char *table)
{
    for (int lines = 0; lines < 2; lines++) {
        table += strcspn(table, "\n");
        table += *table == '\n';
    }
    return table;
}

void reading_to_markdown(struct reading_table *state, const struct reading *reading,
                         struct text *out)
{
    struct table table = TABLE(COLUMNS);
    struct text block = {0};
    add_rows(&table, state, reading);
    table_write_markdown(&table, &block);
    text_add(out, state->blocks ? skip_header(text_get(&block)) : text_get(&block));
    state->blocks++;
    text_release(&block);
    table_release(&table);
}

/* ---- the result ---- */

void reading_fill(const struct reading *reading, struct result *out)
{
    struct json json;
    char when[FORMAT_MAX];
    clock_text(when, reading->wall);
    result_begin(out, "energy");
    result_writer(out, &json);
    result_text(out, "time", when);
    result_number(out, "interval_s", reading->interval_s, "s");
    result_number(out, "elapsed_s", reading->elapsed_s, "s");
    energy_to_json(&json, "energy", &reading->now.total);
    energy_to_json(&json, "energy_since_start", &reading->since.total);
    result_list(out, "devices");
    for (size_t i = 0; i < reading->now.count; i++) {
        const struct ledger_device *since = &reading->since.devices[i];
        result_group(out, NULL);
        device_fields_to_json(&json, &reading->now.devices[i]);
        result_flag(out, "lost", reading->lost[i]);
        if (since->has_energy || since->is_instance)
            energy_to_json(&json, "energy_since_start", &since->energy);
        result_end(out);
    }
    result_end(out);
    result_end(out);
}

/* ---- processes ---- */

/* The difference of two lists of all processes' CPU times gives each one's share of the processors' time; that share of
 * their power is attributed to it.  The shares of processes and of idle time add up to one, so that energy is
 * conserved. GPU processes are reported by the driver, seconds apart: theirs are means over the whole time. */

/* Smaller shares are scheduler tick noise. */
#define SHARE_MIN 0.001

void top_release(struct top *top)
{
    free(top->times);
    free(top->joules);
    *top = (struct top){0};
}

static bool is_above(const struct top_row *a, const struct top_row *b)
{
    bool known = is_known(a->watts) && is_known(b->watts);
    return known && a->watts != b->watts ? a->watts > b->watts : a->share > b->share;
}

/* Inserts in order; drops the last one if there are too many. */
static void insert(struct top *top, const struct top_row *row)
{
    size_t at = top->count;
    while (at > 0 && is_above(row, &top->rows[at - 1]))
        at--;
    if (at == TOP_MAX)
        return;
    top->count += top->count < TOP_MAX;
    memmove(&top->rows[at + 1], &top->rows[at], (top->count - 1 - at) * sizeof *row);
    top->rows[at] = *row;
}

/* ---- processors ---- */

static void add_process(struct top *top, const struct top_row *row)
{
    struct top_row named = *row;
    if (row->share < SHARE_MIN)
        return;
    proc_name(row->pid, named.name, sizeof named.name);
    insert(top, &named);
}

static void take_cpus(struct top *top, const struct reading *reading, double seconds_passed)
{
    struct ledger_selection power;
    struct cpu_times cpus = {0};
    struct proc_time *times;
    size_t count = proc_times(&times);
    double *joules = xcalloc(count, sizeof *joules);
    bool known =
        ledger_select(&reading->now, NULL, &power, NULL) == ERR_OK && reading->interval_s > 0;
    double watts = known ? power.joules / reading->interval_s : UNKNOWN;
    bool readable = proc_stat_now(&cpus);
    double all = readable ? cpu_ticks_between(&top->cpus, &cpus) : 0;
    for (size_t i = 0; readable && top->times && all > 0 && i < count; i++) {
        const struct proc_time *before =
            proc_time_find(top->times, top->time_count, times[i].pid, times[i].started);
        double ticks = (double)times[i].ticks - (before ? (double)before->ticks : 0);
        struct top_row row = {.pid = times[i].pid,
                              .device = "cpu",
                              .share = ticks / all < 1 ? ticks / all : 1,
                              .is_estimated = known && power.is_estimated};
        row.watts = watts * row.share;
        joules[i] = (before ? top->joules[before - top->times] : 0) + row.watts * seconds_passed;
        row.joules = joules[i];
        add_process(top, &row);
    }
    free(top->times);
    free(top->joules);
    top->times = readable ? times : NULL;
    top->joules = readable ? joules : NULL;
    top->time_count = readable ? count : 0;
    top->cpus = cpus;
    top->cpu_watts = watts;
    if (!readable) {
        free(times);
        free(joules);
    }
}

/* ---- GPUs ---- */

static void take_gpu(struct top *top, struct sampler *sampler, const struct reading *reading,
                     size_t i)
{
    const struct ledger_device *now = &reading->now.devices[i];
    const struct ledger_device *since = &reading->since.devices[i];
    struct process_use seen[SENSOR_PROCESSES_MAX];
    size_t count;
    double watched_s;
    if (sampler_processes(sampler, now->source, seen, &count, &watched_s) != ERR_OK)
        return;
    for (size_t p = 0; p < count; p++) {
        double share = watched_s > 0 ? seen[p].busy_s / watched_s : UNKNOWN;
        struct top_row row = {.pid = seen[p].pid,
                              .share = share,
                              .watts = since->power_mean * share,
                              .joules = since->energy.joules * share,
                              .is_estimated = now->energy.method == METHOD_ESTIMATED};
        chars_copy(row.device, now->id);
        chars_copy(row.name, seen[p].name);
        if (is_known(share))
            insert(top, &row);
    }
}

void top_take(struct top *top, struct sampler *sampler, const struct reading *reading, nanos now)
{
    top->count = 0;
    take_cpus(top, reading, seconds(now - top->taken));
    for (size_t i = 0; i < reading->now.count; i++)
        if (reading->now.devices[i].sensor->kind == SENSOR_GPU && !reading->lost[i])
            take_gpu(top, sampler, reading, i);
    top->taken = now;
}
