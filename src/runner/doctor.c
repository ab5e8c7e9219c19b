/* The keys of the result in order.  Drivers that exist only for tests are not shown. */
#include "runner/doctor.h"

#include <string.h>

#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "engine/engine.h"
#include "engine/onnx.h"
#include "media/image.h"
#include "port/http.h"
#include "port/sqlite.h"
#include "runner/check.h"
#include "runner/host_report.h"
#include "sensors/registry.h"
#include "sensors/sensor.h"

/* ---- parts of the program that need a library ---- */

static enum err llama_available(struct error *why)
{
    const struct engine_library *library;
    return engine_library_open(&library, why);
}

static enum err onnx_is_available(struct error *why)
{
    const char *version;
    return onnx_available(&version, why);
}

static const struct part {
    const char *name, *needed_by;
    enum err (*available)(struct error *why); /* NULL: part of the program */
    bool is_plots;                            /* the caller checks it */
} PARTS[] = {
    {"cJSON", "ipw profile", NULL, false},
    {"libcurl", "ipw profile: clients openai and ollama, dataset hub", http_available, false},
    {"nanoarrow", "ipw profile: Arrow output, dataset hf", NULL, false},
    {"llama.cpp", "client llama: in-process inference", llama_available, false},
    {"ONNX Runtime", "client onnx, workloads: in-process inference", onnx_is_available, false},
    {"libpng and libjpeg-turbo", "images of workloads", image_available, false},
    {"gnuplot", "ipw plot", NULL, true},
    {"SQLite", "ipw profile: index of runs", sqlite_load, false},
    {"ECharts", "ipw report", NULL, false},
};
enum { PART_COUNT = COUNT_OF(PARTS) };

static bool is_available(const struct part *part, doctor_plots_available *plots, struct error *why)
{
    enum err (*available)(struct error *) = part->is_plots ? plots : part->available;
    return !available || available(why) == ERR_OK;
}

static void put_parts(doctor_plots_available *plots, struct result *out)
{
    result_list(out, "parts");
    for (size_t i = 0; i < PART_COUNT; i++) {
        struct error why = {0};
        bool available = is_available(&PARTS[i], plots, &why);
        result_group(out, NULL);
        result_text(out, "name", PARTS[i].name);
        result_text(out, "needed_by", PARTS[i].needed_by);
        result_flag(out, "available", available);
        result_text(out, "missing", available ? NULL : why.text);
        result_end(out);
    }
    result_end(out);
}

void doctor_note_parts(doctor_plots_available *plots, struct result *out)
{
    const struct engine_library *library;
    for (size_t i = 0; i < PART_COUNT; i++) {
        struct error why = {0};
        if (!is_available(&PARTS[i], plots, &why))
            result_note(out, "missing %s (%s): %s", PARTS[i].name, PARTS[i].needed_by, why.text);
    }
    if (engine_library_open(&library, NULL) == ERR_OK && !library->is_tested)
        result_note(out, "llama.cpp %s of %s is not a tested version (tested: %s)",
                    library->version[0] ? library->version : "(unknown)", library->path,
                    engine_tested_versions());
}

/* ---- sensors ---- */

/* From a list separated by commas. */
static void put_measures(struct result *out, const char *list)
{
    char copy[256], *rest = copy;
    chars_copy(copy, list);
    result_list(out, "measures");
    while (*rest) {
        size_t length = strcspn(rest, ",");
        bool more = rest[length] == ',';
        rest[length] = '\0';
        if (length)
            result_text(out, NULL, str_trim(rest));
        rest += length + more;
    }
    result_end(out);
}

static void put_sensor(struct result *out, const struct sensor_finding *finding,
                       const struct check_row *row)
{
    result_group(out, NULL);
    result_text(out, "id", finding->id);
    result_text(out, "driver", finding->driver->name);
    result_text(out, "name", str_or_null(finding->name));
    result_text(out, "kind", sensor_kind_name(finding->kind));
    result_text(out, "status", sensor_status_name(finding->status));
    result_text(out, "reason", str_or_null(finding->reason));
    result_text(out, "fix", str_or_null(finding->fix));
    result_number(out, "period_ms", row->period_ms, "ms");
    result_number(out, "read_us", row->read_us, "");
    result_number(out, "power_w", row->watts, "W");
    put_measures(out, finding->measures);
    result_end(out);
}

static void put_sensors(const struct sensor_findings *findings, const struct check_row *rows,
                        struct result *out)
{
    result_list(out, "sensors");
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].kind != SENSOR_TEST)
            put_sensor(out, &findings->items[i], &rows[i]);
    result_end(out);
}

void doctor_fill(const struct host_report *host, const struct sensor_findings *findings,
                 const struct check_row *rows, doctor_plots_available *plots, struct result *out)
{
    struct json json;
    result_begin(out, "doctor");
    result_writer(out, &json);
    host_to_json(&json, "host", host);
    put_sensors(findings, rows, out);
    result_flag(out, "energy_measured", check_is_measured(findings, rows));
    result_text(out, "version", IPW_VERSION);
    put_parts(plots, out);
    result_end(out);
    result_table(out, "sensors", NULL);
    doctor_note_parts(plots, out);
}
