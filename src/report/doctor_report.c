/* The report of `ipw doctor`: the machine, its sensors, and the parts of the program that need a library. */
#include "report/doctor_report.h"

#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "engine/engine.h"
#include "port/arrow.h"
#include "port/http.h"
#include "port/json_read.h"
#include "report/html/html.h"
#include "report/plot/figure.h"
#include "report/text/format.h"
#include "rundir/store.h"
#include "runner/check.h"
#include "runner/host_report.h"

/* Drivers that exist only for tests are not shown. */
static bool is_shown(const struct sensor_finding *finding)
{
    return finding->kind != SENSOR_TEST;
}

bool doctor_is_measured(const struct sensor_findings *findings, const struct check_row *rows)
{
    for (size_t i = 0; i < findings->count; i++)
        if (rows[i].counts)
            return true;
    return false;
}

/* ---- parts of the program that need a library ---- */

static enum err sqlite_available(struct error *why)
{
    for (size_t i = 0; STORE_DRIVERS[i]; i++)
        if (strcmp(STORE_DRIVERS[i]->name, "sqlite") == 0)
            return STORE_DRIVERS[i]->available ? STORE_DRIVERS[i]->available(why) : ERR_OK;
    return err_set(why, ERR_UNSUPPORTED, "not in this build");
}

static enum err llama_available(struct error *why)
{
    const struct engine_library *library;
    return engine_library_open(&library, why);
}

static const struct {
    const char *name, *needed_by;
    enum err (*available)(struct error *why);
} PARTS[] = {
    {"cJSON", "ipw profile", jv_available},
    {"libcurl", "ipw profile: clients openai and ollama, dataset hub", http_available},
    {"nanoarrow", "ipw profile: Arrow output, dataset hf", arrow_write_available},
    {"llama.cpp", "client llama: in-process inference", llama_available},
    {"gnuplot", "ipw plot", gnuplot_available},
    {"SQLite", "ipw profile: index of runs", sqlite_available},
    {"ECharts", "ipw report", html_available},
};

void parts_text(struct text *out)
{
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        struct error why = {0};
        if (PARTS[i].available(&why) != ERR_OK)
            text_addf(out, "missing %s (%s): %s\n", PARTS[i].name, PARTS[i].needed_by, why.text);
    }
    const struct engine_library *library;
    if (engine_library_open(&library, NULL) == ERR_OK && !library->is_tested)
        text_addf(out, "llama.cpp %s of %s is not a tested version (tested: %s)\n",
                  library->version[0] ? library->version : "(unknown)", library->path,
                  engine_tested_versions());
}

static void parts_to_json(struct json *json)
{
    json_array(json, "parts");
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        struct error why = {0};
        bool available = PARTS[i].available(&why) == ERR_OK;
        json_object(json, NULL);
        json_string(json, "name", PARTS[i].name);
        json_string(json, "needed_by", PARTS[i].needed_by);
        json_bool(json, "available", available);
        json_string(json, "missing", available ? NULL : why.text);
        json_object_end(json);
    }
    json_array_end(json);
}

/* ---- JSON ---- */

static void measures_to_json(struct json *json, const char *list)
{
    char copy[256], *rest = copy;
    str_copy(copy, sizeof copy, list);
    json_array(json, "measures");
    while (*rest) {
        size_t length = strcspn(rest, ",");
        bool more = rest[length] == ',';
        rest[length] = '\0';
        if (length)
            json_string(json, NULL, str_trim(rest));
        rest += length + more;
    }
    json_array_end(json);
}

void doctor_json(const struct host_report *host, const struct sensor_findings *findings,
                 const struct check_row *rows, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    host_to_json(&json, "host", host);
    json_array(&json, "sensors");
    for (size_t i = 0; i < findings->count; i++) {
        const struct sensor_finding *finding = &findings->items[i];
        if (!is_shown(finding))
            continue;
        json_object(&json, NULL);
        json_string(&json, "id", finding->id);
        json_string(&json, "driver", finding->driver->name);
        json_string(&json, "name", finding->name[0] ? finding->name : NULL);
        json_string(&json, "kind", sensor_kind_name(finding->kind));
        json_string(&json, "status", sensor_status_name(finding->status));
        json_string(&json, "reason", finding->reason[0] ? finding->reason : NULL);
        json_string(&json, "fix", finding->fix[0] ? finding->fix : NULL);
        json_number(&json, "period_ms", rows[i].period_ms);
        json_number(&json, "read_us", rows[i].read_us);
        json_number(&json, "power_w", rows[i].watts);
        measures_to_json(&json, finding->measures);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_bool(&json, "energy_measured", doctor_is_measured(findings, rows));
    json_string(&json, "version", IPW_VERSION);
    parts_to_json(&json);
    json_object_end(&json);
}

/* ---- text ---- */

static const char *status_mark(enum sensor_status status, bool color)
{
    static const char *const PLAIN[] = {"ok",     "estimated",   "DEAD",
                                        "DENIED", "unsupported", "absent"};
    static const char *const COLORED[] = {
        "\033[32mok\033[0m",     "\033[33mestimated\033[0m",   "\033[31mDEAD\033[0m",
        "\033[31mDENIED\033[0m", "\033[33munsupported\033[0m", "\033[2mabsent\033[0m",
    };
    return color ? COLORED[status] : PLAIN[status];
}

static void write_host(const struct host_report *host, struct text *out)
{
    const struct host_info *info = &host->info;
    char memory[FORMAT_MAX];
    text_addf(out, "%s, %s%s\n", host->label, info->cpu_brand[0] ? info->cpu_brand : "unknown CPU",
              info->virtualized ? " (virtual machine)" : "");
    text_addf(out, "  %u CPU%s", info->cpu_count, info->cpu_count == 1 ? "" : "s");
    if (info->memory_bytes)
        text_addf(out, ", %s memory", format_bytes(memory, (double)info->memory_bytes));
    if (info->os_name[0])
        text_addf(out, ", %s %s", info->os_name, info->os_version);
    if (info->kernel[0])
        text_addf(out, ", kernel %s", info->kernel);
    text_add(out, "\n");
    if (host->gpu[0])
        text_addf(out, "  %s\n", host->gpu);
}

static void write_sensor(const struct sensor_finding *finding, const struct check_row *row,
                         bool color, struct text *out)
{
    char power[FORMAT_MAX] = "", period[80] = "", cost[80] = "", number[FORMAT_MAX];
    const char *mark = status_mark(finding->status, color);
    size_t width = strlen(status_mark(finding->status, false));
    text_addf(out, "  %-14s %s%*s  ", finding->id, mark, (int)(11 - width), "");
    bool works = finding->status == SENSOR_OK || finding->status == SENSOR_ESTIMATED;
    if (!works) {
        text_addf(out, "%s\n", finding->reason);
    } else {
        text_addf(out, "%s%s%s\n", finding->name, finding->name[0] ? ": " : "", finding->measures);
        if (is_known(row->watts))
            str_format(power, sizeof power, "%s%.1f W now",
                       finding->status == SENSOR_ESTIMATED ? "about " : "", row->watts);
        if (is_known(row->period_ms))
            str_format(period, sizeof period, ", new value every %s",
                       format_si(number, row->period_ms * 1e-3, "s"));
        if (is_known(row->read_us))
            str_format(cost, sizeof cost, "%sread overhead %s", power[0] ? ", " : "",
                       format_si(number, row->read_us * 1e-6, "s"));
        if (power[0] || cost[0])
            text_addf(out, "  %-14s %-11s  %s%s%s\n", "", "", power, period, cost);
        if (finding->reason[0])
            text_addf(out, "  %-14s %-11s  %s\n", "", "", finding->reason);
    }
    if (finding->fix[0])
        text_addf(out, "  %-14s %-11s  fix: %s\n", "", "", finding->fix);
}

static void write_verdict(const struct sensor_findings *findings, const struct check_row *rows,
                          struct text *out)
{
    bool estimated = false;
    for (size_t i = 0; i < findings->count; i++)
        estimated = estimated || findings->items[i].status == SENSOR_ESTIMATED;
    if (doctor_is_measured(findings, rows))
        text_add(out, "Energy is measured here. Try: ipw run -- ipw load\n");
    else if (estimated)
        text_add(out, "No sensor measures energy here: figures are estimated from CPU utilization, "
                      "and marked.\n");
    else
        text_add(out, "No sensor measures or estimates energy here: energy will be unknown.\n");
}

void doctor_text(const struct host_report *host, const struct sensor_findings *findings,
                 const struct check_row *rows, bool color, struct text *out)
{
    write_host(host, out);
    text_add(out, "\n");
    /* Working sensors first; absent ones last, since they matter least. */
    for (int pass = SENSOR_OK; pass <= SENSOR_ABSENT; pass++)
        for (size_t i = 0; i < findings->count; i++)
            if ((int)findings->items[i].status == pass && is_shown(&findings->items[i]))
                write_sensor(&findings->items[i], &rows[i], color, out);
    text_add(out, "\n");
    write_verdict(findings, rows, out);
    parts_text(out);
}
