#include "analysis/analysis.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rundir/layers_result.h"
#include "core/json.h"
#include "core/text.h"

static void put_warnings(struct json *json, const struct text *warnings)
{
    json_array(json, "warnings");
    const char *line = text_get(warnings);
    for (const char *end; (end = strchr(line, '\n')); line = end + 1)
        json_string_bytes(json, NULL, line, (size_t)(end - line));
    json_array_end(json);
}

static void put_missing(struct json *json, const char *missing)
{
    json_object(json, "summary");
    json_string(json, "not_enough_data", missing);
    json_object_end(json);
    json_object(json, "data");
    json_object_end(json);
}

/* What its kind of input is not there for is said in the words of what is missing. */
static enum err look(const struct analysis_driver *driver, const struct analysis_input *input,
                     struct analysis *analysis, struct error *why)
{
    const struct run_table *table = input->table;
    if (driver->of_layers) {
        if (!input->layers || !input->layers->count)
            return err_set(why, ERR_NO_DATA,
                           "no measured layers: run `ipw layers -o DIR/layers.json`");
        analysis->layers = input->layers;
        return driver->run(analysis, why);
    }
    if (!table)
        return err_set(why, ERR_NO_DATA, "needs a run directory");
    if (table->failed == table->rows && !driver->of_failures_too)
        return err_set(why, ERR_NO_DATA, "all %zu queries failed", table->rows);
    analysis->table = table;
    return driver->run(analysis, why);
}

enum err analysis_run(const struct analysis_driver *driver, const struct analysis_input *input,
                      const struct params *params, struct text *out, struct error *why)
{
    struct json json;
    struct text warnings = {0};
    struct analysis analysis = {.params = params, .json = &json, .warnings = &warnings};
    struct error reason = {0};
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "analysis", driver->name);
    enum err err = look(driver, input, &analysis, &reason);
    if (err == ERR_NO_DATA)
        put_missing(&json, reason.text);
    put_warnings(&json, &warnings);
    if (!err || err == ERR_NO_DATA)
        json_object_end(&json);
    if (warnings.failed || out->failed)
        err = ERR_NO_MEMORY;
    if (err)
        err_set(why, err, "%s", reason.text[0] ? reason.text : err_text(err));
    text_release(&warnings);
    return err;
}

void analysis_warn(struct analysis *analysis, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_addf(analysis->warnings, "%s\n", line);
}
