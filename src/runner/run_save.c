/* One record per repetition of a command, or per measured window of a model; the summary is over all records. */
#include "runner/run_save.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "metrics/energy_per.h"
#include "rundir/layers_result.h"
#include "rundir/record.h"
#include "rundir/run_writer.h"
#include "rundir/spans.h"
#include "rundir/summary.h"
#include "runner/exec.h"
#include "runner/host_report.h"
#include "runner/layers/layers.h"
#include "runner/samples_log.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "sensors/sensor.h"
#include "stats/descriptive.h"

/* ---- a repetition ---- */

/* By kind of device, like the records of queries: energy measured by several kinds is counted once. */
static void fill_devices(const struct ledger *ledger, struct record *out)
{
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        enum sensor_kind kind = device->sensor->kind;
        if (device->has_energy && kind == SENSOR_GPU)
            add_known(&out->gpu_joules, device->energy.joules);
        else if (device->has_energy && device->counted && kind == SENSOR_BOARD)
            add_known(&out->soc_joules, device->energy.joules);
        else if (device->has_energy && device->counted)
            add_known(&out->cpu_joules, device->energy.joules);
    }
    if (is_known(out->gpu_joules))
        out->energy_basis = "gpu";
    else if (is_known(out->soc_joules))
        out->energy_basis = "soc";
    else
        out->energy_basis = is_known(out->cpu_joules) ? "cpu" : NULL;
}

/* One unit of a measurement: its index, its times since the first, and its energy. */
struct unit {
    unsigned index, repeat;
    nanos from, to, zero;
    double started_at; /* of the first unit, wall clock */
    const struct energy *energy;
};

/* Writes its record and span; the caller has filled in the fields specific to its kind. */
static enum err add_unit(struct run_writer *writer, const struct unit *unit, struct record *record,
                         struct error *why)
{
    char key[QUERY_KEY_MAX];
    record->key = query_key(unit->index, unit->repeat, key);
    record->index = unit->index;
    record->repeat = unit->repeat;
    record->start = record->attempts = 1;
    record->started_at = unit->started_at + seconds(unit->from - unit->zero);
    record->latency_s = record->alone_s = seconds(unit->to - unit->from);
    record->concurrency = 1;
    record->energy = record_energy_of(unit->energy);
    record->window_joules = unit->energy->joules;
    struct span_line span = {.key = key,
                             .kind = SPAN_REQUEST,
                             .start = 1,
                             .attempt = 1,
                             .from_s = seconds(unit->from - unit->zero),
                             .first_token_s = UNKNOWN,
                             .to_s = seconds(unit->to - unit->zero),
                             .input_tokens = -1,
                             .output_tokens = -1};
    enum err err = run_writer_add(writer, record, why);
    return err ? err : run_writer_add_span(writer, &span, why);
}

static enum err add_run(struct run_writer *writer, const struct exec_result *result, size_t i,
                        const char *command, struct error *why)
{
    const struct exec_run *run = &result->runs[i];
    const struct unit unit = {0,
                              (unsigned)i,
                              run->from,
                              run->to,
                              result->runs[0].from,
                              seconds(result->started_wall),
                              &run->ledger.total};
    struct record record;
    char error[64] = "";
    if (run->end.signal)
        chars_format(error, "ended by signal %d", run->end.signal);
    else if (run->end.exit_code)
        chars_format(error, "exit status %d", run->end.exit_code);
    record_init(&record);
    record.problem = command;
    record.status = run->end.exit_code ? "failed" : "completed";
    record.error = str_or_null(error);
    record.exit_code = run->end.exit_code;
    record.user_s = run->end.user_s;
    record.system_s = run->end.system_s;
    fill_devices(&run->ledger, &record);
    record.gpu_watts.avg = ratio(record.gpu_joules, run->wall_s);
    record.cpu_watts.avg = ratio(record.cpu_joules, run->wall_s);
    record.soc_watts.avg = ratio(record.soc_joules, run->wall_s);
    return add_unit(writer, &unit, &record, why);
}

/* ---- the summary ---- */

/* Ignores UNKNOWN values of some repetitions. */
static struct summary_statistic statistic_of(double *values, size_t count)
{
    static const double PS[] = {0.5, 0.95};
    struct online online = {0};
    double found[2] = {UNKNOWN, UNKNOWN};
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i])) {
            online_add(&online, values[i]);
            values[known++] = values[i];
        }
    if (known)
        quantiles(values, known, PS, 2, found);
    return (struct summary_statistic){
        online_mean(&online),   found[0], online_min(&online), online_max(&online),
        online_stddev(&online), found[1], (int64_t)known};
}

/* The fields of a record used by the summary. */
struct figures {
    double joules, seconds;
    bool is_failed;
};

static void fill_statistics(const struct figures *units, size_t count, struct summary *out)
{
    double *values = xcalloc(count + 1, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = units[i].joules;
    out->statistics[STATISTIC_ENERGY] = statistic_of(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = units[i].seconds;
    out->statistics[STATISTIC_LATENCY] = statistic_of(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = ratio(units[i].joules, units[i].seconds);
    out->statistics[STATISTIC_POWER] = statistic_of(values, count);
    free(values);
}

/* The measurement for the summary. */
struct measured {
    enum run_kind kind;
    const struct run_save *save;
    const struct figures *units;
    size_t count;
    struct energy total;
    const struct baseline *idle; /* NULL: not measured */
    const struct summary_conditions *conditions;
    const struct ledger *ledger; /* of the devices; for several repetitions the mean */
    double started_at;
    bool interrupted;
};

static void fill_figures(const struct measured *measured, struct summary *out)
{
    const struct energy *total = &measured->total;
    out->run_kind = run_kind_name(measured->kind);
    out->generated_at = seconds(clock_wall());
    out->version = IPW_VERSION;
    out->started_at = measured->started_at;
    out->starts = 1;
    out->interrupted = (int8_t)measured->interrupted;
    out->queries = out->total_queries = (int64_t)measured->count;
    out->completed = out->failed = out->energy_known = 0;
    out->seconds = 0;
    struct energy_per per_query = {0};
    for (size_t i = 0; i < measured->count; i++) {
        const struct figures *unit = &measured->units[i];
        out->failed += unit->is_failed;
        out->completed += !unit->is_failed;
        out->energy_known += !unit->is_failed && is_known(unit->joules);
        out->seconds += unit->seconds;
        energy_per_add(&per_query, unit->is_failed ? UNKNOWN : unit->joules, 1);
    }
    out->energy = record_energy_of(total);
    out->queries_joules = total->joules;
    out->queries_idle_joules = total->idle_joules;
    out->joules_per_query = energy_per_of(&per_query);
    out->active_joules_per_query = ratio(total->active_joules, (double)measured->count);
    out->busy_watts = ratio(total->joules, out->seconds);
    if (measured->save->tariff)
        out->tariff = *measured->save->tariff;
    out->own_cpu_s = measured->save->own.cpu_s;
    out->own_rss_mb = measured->save->own.rss_mb;
    out->own_reads = (int64_t)sampler_reads(measured->save->session->sampler);
}

/* `arguments`: the command as a JSON array; or NULL. */
static enum err finish(const struct measured *measured, const char *arguments,
                       struct run_writer *writer, struct error *why)
{
    struct summary summary;
    summary_init(&summary);
    summary.model = writer->subject;
    summary.command.text = arguments;
    summary.output_dir = summary.directory = writer->directory;
    run_summary_host(measured->save->host, &summary);
    fill_statistics(measured->units, measured->count, &summary);
    fill_figures(measured, &summary);
    summary.conditions = *measured->conditions;
    summary_set_repeat(&summary, &measured->save->repeat);
    run_summary_devices(measured->idle, measured->ledger, &summary);
    summary_charge(&summary);
    enum err err = run_writer_finish(writer, &summary, why);
    summary_release(&summary);
    return err;
}

static enum err save_samples(const struct run_save *save, const struct run_writer *writer,
                             nanos zero, nanos since, struct error *why)
{
    if (save->without_samples)
        return ERR_OK;
    char *path = run_path_samples(writer->directory, 1);
    enum err err = samples_log_save(save->session->sampler, zero, since, path, true, why);
    free(path);
    return err;
}

/* ---- ipw run ---- */

/* "sleep 1" and ["sleep","1"], with secrets redacted. */
static void format_command(char *const *argv, struct text *words, struct text *list)
{
    struct json json;
    json_init(&json, list, false);
    json_array(&json, NULL);
    for (; *argv; argv++) {
        text_addf(words, "%s%s", words->length ? " " : "", *argv);
        json_string(&json, NULL, *argv);
    }
    json_array_end(&json);
    secret_hide_text(words);
    secret_hide_json(list);
}

static enum err finish_runs(const struct run_save *save, const struct exec_result *result,
                            const char *arguments, struct run_writer *writer, struct error *why)
{
    struct measured measured = {.kind = RUN_KIND_RUN,
                                .save = save,
                                .count = result->count,
                                .total = energy_unknown("no repetition was measured"),
                                .idle = result->has_idle ? &result->idle : NULL,
                                .conditions = &result->conditions.figures,
                                .ledger = &result->mean,
                                .started_at = seconds(result->started_wall),
                                .interrupted = result->signal != 0};
    struct figures *units = xcalloc(result->count + 1, sizeof *units);
    for (size_t i = 0; i < result->count; i++) {
        const struct exec_run *run = &result->runs[i];
        units[i] = (struct figures){run->ledger.total.joules, run->wall_s, run->end.exit_code != 0};
        energy_add(&measured.total, &run->ledger.total);
    }
    measured.units = units;
    enum err err = finish(&measured, arguments, writer, why);
    free(units);
    return err;
}

enum err run_save(const struct run_save *save, const struct exec_result *result, char **directory,
                  struct error *why)
{
    struct run_writer writer;
    struct text command = {0}, arguments = {0};
    nanos zero = result->count ? result->runs[0].from : save->session->started;
    format_command(save->argv, &command, &arguments);
    struct journal_header header = {.kind = RUN_KIND_RUN,
                                    .start = 1,
                                    .started_at = seconds(result->started_wall),
                                    .hardware_label = save->host->label,
                                    .repeat = save->repeat};
    *directory = NULL;
    enum err err = run_writer_open(&writer, save->parent, text_get(&command), &header, why);
    if (!err) {
        *directory = xstrdup(writer.directory);
        for (size_t i = 0; !err && i < result->count; i++)
            err = add_run(&writer, result, i, text_get(&command), why);
        if (!err)
            err = save_samples(save, &writer, zero, result->started - SAMPLES_LEAD, why);
        if (!err)
            err = finish_runs(save, result, text_get(&arguments), &writer, why);
        run_writer_close(&writer);
    }
    text_release(&command);
    text_release(&arguments);
    return err;
}

/* ---- ipw layers ---- */

/* Only windows without instrumentation measure energy; the others measure times. */
static bool is_measured(const struct layers_model *model, const struct layers_window *window)
{
    return !window->timed && window->setting < model->setting_count;
}

static enum err add_window(struct run_writer *writer, const struct layers_model *model,
                           const struct layers_window *window, unsigned repeat, double started_at,
                           struct error *why)
{
    const struct layers_setting *setting = &model->settings[window->setting];
    const struct unit unit = {window->setting,        repeat,     window->from,   window->to,
                              model->windows[0].from, started_at, &window->energy};
    int64_t tokens = (int64_t)setting->tokens * (int64_t)window->passes;
    char question[64];
    struct record record;
    chars_format(question, "%s, %u prompt tokens", layers_phase_name(setting->phase),
                 setting->prompt);
    record_init(&record);
    record.problem = question;
    record.subject = layers_phase_name(setting->phase);
    record.status = "completed";
    record.passes = (int64_t)window->passes;
    if (setting->phase == LAYERS_PREFILL) {
        record.input_tokens = tokens;
    } else {
        record.output_tokens = tokens;
        record.tokens_per_s = ratio((double)tokens, seconds(window->to - window->from));
        record.joules_per_output_token = ratio(window->energy.joules, (double)tokens);
    }
    return add_unit(writer, &unit, &record, why);
}

static enum err add_windows(struct run_writer *writer, const struct layers_model *model,
                            struct measured *measured, struct figures *units, struct error *why)
{
    unsigned repeats[LAYERS_SETTINGS_MAX] = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < model->window_count; i++) {
        const struct layers_window *window = &model->windows[i];
        if (!is_measured(model, window))
            continue;
        err = add_window(writer, model, window, repeats[window->setting]++, measured->started_at,
                         why);
        units[measured->count++] =
            (struct figures){window->energy.joules, seconds(window->to - window->from), false};
        energy_add(&measured->total, &window->energy);
    }
    return err;
}

enum err run_save_layers(const struct run_save *save, const struct layers_model *model,
                         const struct layers_result *result, char **directory, struct error *why)
{
    const char *slash = strrchr(model->path, '/');
    nanos zero = model->window_count ? model->windows[0].from : clock_now();
    struct run_writer writer;
    struct measured measured = {.kind = RUN_KIND_LAYERS,
                                .save = save,
                                .total = energy_unknown("no window was measured"),
                                .conditions = &model->conditions.figures,
                                .ledger = &model->ledger,
                                .started_at = seconds(zero + clock_wall_offset()),
                                .interrupted = model->interrupted};
    struct journal_header header = {.kind = RUN_KIND_LAYERS,
                                    .start = 1,
                                    .started_at = measured.started_at,
                                    .hardware_label = save->host->label};
    struct figures *units = xcalloc(model->window_count + 1, sizeof *units);
    *directory = NULL;
    enum err err =
        run_writer_open(&writer, save->parent, slash ? slash + 1 : model->path, &header, why);
    if (!err) {
        *directory = xstrdup(writer.directory);
        measured.units = units;
        err = layers_result_save(writer.directory, result, why);
        if (!err)
            err = add_windows(&writer, model, &measured, units, why);
        if (!err)
            err = save_samples(save, &writer, zero, INT64_MIN, why);
        if (!err)
            err = finish(&measured, NULL, &writer, why);
        run_writer_close(&writer);
    }
    free(units);
    return err;
}
