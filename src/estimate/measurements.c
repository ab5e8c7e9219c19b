/* Measured runs as rows for calibration and validation: the queries of a run directory of `ipw profile`, or the windows
 * and settings of a result of `ipw layers --json`.  Both are read as a sequence of measured passes, each of which the
 * predictor can count or predict. */
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate_rows.h"
#include "estimate/validate.h"
#include "port/file.h"
#include "rundir/layers_result.h"
#include "rundir/run_table.h"

/* ---- queries of a run directory ---- */

struct query {
    struct measured_pass pass; /* the whole request */
    char label[112];
    double latency_s, joules; /* UNKNOWN: not measured */
    bool is_estimated;        /* energy estimated by a model */
    bool is_short;            /* fewer than ten sensor updates */
    bool is_alone;            /* no other request was in flight */
};

/* False for a query that was not completed, or whose lengths are unknown. */
static bool read_query(const struct run_table *table, size_t row, struct query *out)
{
    double prompt = run_number(table, RUN_INPUT_TOKENS, row);
    double answer = run_number(table, RUN_OUTPUT_TOKENS, row);
    double joules = run_number(table, RUN_JOULES, row);
    char key[RUN_KEY_MAX];
    if (!run_completed(table, row) || !(prompt >= 1) || !(answer >= 1))
        return false;
    *out = (struct query){
        .pass = {.model = table->model,
                 .setting = {.batch = 1, .tokens = (int64_t)prompt},
                 .output_tokens = (int64_t)answer},
        .latency_s = run_number(table, RUN_LATENCY, row),
        /* A run of the Python IPW counts the GPUs or the chip. */
        .joules = is_known(joules) ? joules : run_number(table, RUN_BASIS_JOULES, row),
        .is_estimated = str_equal(run_word(table, RUN_METHOD, row), "estimated"),
        .is_short = run_flag(table, RUN_LOW_CONFIDENCE, row) == 1,
        .is_alone = !(run_number(table, RUN_CONCURRENCY, row) > 1),
    };
    chars_format(out->label, "%s: %.0f + %.0f tokens", run_key(table, row, key), prompt, answer);
    return true;
}

static enum err load_queries(const char *directory, struct run_table *out, struct error *why)
{
    const struct run_wanted wanted = {RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT) |
                                          RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                                          RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_JOULES) |
                                          RUN_WANT(RUN_GPU_JOULES) | RUN_WANT(RUN_SOC_JOULES) |
                                          RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_CONCURRENCY),
                                      RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_BASIS)};
    return run_table_load(directory, NULL, wanted, out, why);
}

/* The energy of a query that ran concurrently is attributed, not measured. */
static enum err calibrate_query(const struct query *query, struct predictor *counter,
                                struct calibrate_rows *rows, struct error *why)
{
    struct calibrate_row row = {.precision =
                                    counter->has_precision ? counter->precision : PRECISION_FP32,
                                .latency_s = query->latency_s,
                                .energy_j = query->joules,
                                .window_s = UNKNOWN,
                                .updates = query->is_short ? 0 : UNKNOWN,
                                .kernels = 1,
                                .is_estimated = query->is_estimated};
    if (!query->is_alone || !(query->latency_s > 0))
        return ERR_OK;
    (void)chars_copy(row.label, query->label);
    enum err err = predictor_count(counter, &query->pass, &row.flops, &row.bytes, why);
    if (!err)
        calibrate_rows_add(rows, &row);
    return err;
}

static enum err validate_query(const struct query *query, struct predictor *predictor,
                               struct validation *validation, struct error *why)
{
    struct validate_row row = {.measured_s = query->latency_s,
                               .measured_j = query->joules,
                               .window_s = query->is_short ? 0 : UNKNOWN};
    enum err err = predictor_predict(predictor, &query->pass, &row.predicted, why);
    if (err)
        return err;
    (void)chars_copy(row.label, query->label);
    validation->is_estimated |= query->is_estimated;
    validation_add(validation, &row);
    return ERR_OK;
}

/* Adds to either rows or validation; the other is NULL. */
static enum err add_queries(const char *directory, struct predictor *predictor,
                            struct calibrate_rows *rows, struct validation *validation,
                            struct error *why)
{
    struct run_table table;
    enum err err = load_queries(directory, &table, why);
    if (err)
        return err;
    for (size_t row = 0; !err && row < table.rows; row++) {
        struct query query;
        struct error inner = {0};
        if (!read_query(&table, row, &query))
            continue;
        err = rows ? calibrate_query(&query, predictor, rows, &inner)
                   : validate_query(&query, predictor, validation, &inner);
        if (err)
            err_set(why, err, "%s: %s (--model names the model)", directory, inner.text);
    }
    run_table_release(&table);
    return err;
}

/* ---- results of ipw layers ---- */

struct layers_file {
    const char *path;
    struct layers_results results;
    struct predictor *predictor;
    struct error *why;
};

/* One pass of a setting.  Decode time is nearly linear in the context, so a setting that decoded several tokens is
 * represented by its middle step, multiplied by `times`. */
struct layers_pass {
    struct measured_pass pass;
    double times;
    char label[112];
};

static enum err refuse(const struct layers_file *file, const char *problem)
{
    return err_set(file->why, ERR_BAD_VALUE, "%s: not a result of ipw layers: %s", file->path,
                   problem);
}

/* Results are released by the caller, also after an error. */
static enum err open_layers(const char *path, struct predictor *predictor, struct layers_file *out,
                            struct error *why)
{
    *out = (struct layers_file){.path = path, .predictor = predictor, .why = why};
    enum err err = layers_results_load(path, &out->results, why);
    for (size_t i = 0; !err && i < out->results.count; i++)
        if (!out->results.models[i].setting_count)
            err = refuse(out, "no settings");
    return err;
}

static enum err read_setting(const struct layers_file *file, const struct layers_result *model,
                             const struct result_setting *setting, struct layers_pass *out)
{
    double prompt = setting->prompt_tokens, tokens = setting->tokens;
    double batch = model->batch >= 1 ? model->batch : 1;
    *out = (struct layers_pass){.pass = {.model = model->model}, .times = 1};
    if (!model->model || !setting->phase || !is_known(prompt) || !(tokens >= 1))
        return refuse(file, "a setting without model, phase, prompt_tokens or tokens");
    struct graph_options *graph = &out->pass.setting;
    graph->batch = (int64_t)batch;
    graph->phase = strcmp(setting->phase, "decode") ? GRAPH_PREFILL : GRAPH_DECODE;
    if (graph->phase == GRAPH_DECODE) { /* its tokens are summed over all sequences */
        out->times = tokens / batch;
        graph->context = (int64_t)prompt + ((int64_t)tokens / (int64_t)batch + 1) / 2;
    } else {
        graph->tokens = (int64_t)prompt;
    }
    chars_format(out->label, "%.60s %s at %.0f tokens", layers_result_name(model), setting->phase,
                 prompt);
    return ERR_OK;
}

static enum err unknown_model(const struct layers_file *file, enum err err,
                              const struct error *inner)
{
    return err_set(file->why, err, "%s: %s (--model names the model's file)", file->path,
                   inner->text);
}

/* ---- windows: calibration ---- */

static enum err count_passes(const struct layers_file *file, const struct layers_result *model,
                             const struct result_window *window, struct calibrate_row *row)
{
    struct layers_pass pass;
    struct error inner = {0};
    const struct result_setting *setting = layers_result_setting(model, window);
    if (!setting || !is_known(window->passes))
        return err_set(file->why, ERR_BAD_VALUE, "%s: a window without a setting", file->path);
    enum err err = read_setting(file, model, setting, &pass);
    if (err)
        return err;
    err = predictor_count(file->predictor, &pass.pass, &row->flops, &row->bytes, &inner);
    if (err)
        return unknown_model(file, err, &inner);
    row->flops *= pass.times * window->passes;
    row->bytes *= pass.times * window->passes;
    (void)chars_copy(row->label, pass.label);
    return ERR_OK;
}

/* A window that stopped at components was disturbed, and has no energy. */
static enum err calibrate_window(const struct layers_file *file, const struct layers_result *model,
                                 const struct result_window *window, struct calibrate_rows *rows)
{
    const struct predictor *counter = file->predictor;
    struct calibrate_row row = {
        .kind = CALIBRATE_IDLE,
        .precision = counter->has_precision ? counter->precision : PRECISION_FP32,
        .label = "idle",
        .latency_s = window->time_s,
        .energy_j = window->energy_j,
        .window_s = window->time_s,
        .updates = window->updates,
        .kernels = 1,
        .is_estimated = layers_result_is_estimated(model),
    };
    if (window->watched == 1 || !is_known(row.energy_j) || !(row.latency_s > 0))
        return ERR_OK;
    if (is_known(window->setting)) {
        row.kind = CALIBRATE_LOAD;
        enum err err = count_passes(file, model, window, &row);
        if (err)
            return err;
    }
    calibrate_rows_add(rows, &row);
    return ERR_OK;
}

enum err measurements_calibrate(const char *path, struct predictor *counter,
                                struct calibrate_rows *rows, struct error *why)
{
    struct layers_file file;
    if (file_is_directory(path))
        return add_queries(path, counter, rows, NULL, why);
    enum err err = open_layers(path, counter, &file, why);
    for (size_t i = 0; !err && i < file.results.count; i++) {
        const struct layers_result *model = &file.results.models[i];
        for (size_t w = 0; !err && w < model->window_count; w++)
            err = calibrate_window(&file, model, &model->windows[w], rows);
    }
    layers_results_release(&file.results);
    return err;
}

/* ---- settings: validation ---- */

static enum err validate_setting(const struct layers_file *file, const struct layers_result *model,
                                 const struct result_setting *setting,
                                 struct validation *validation)
{
    struct layers_pass pass;
    struct validate_row row = {.measured_s = setting->time_s,
                               .measured_j = setting->energy_j,
                               /* Passes are repeated for as long as the sensors need. */
                               .window_s = VALIDATE_ENERGY_MIN_S};
    struct error inner = {0};
    enum err err = read_setting(file, model, setting, &pass);
    if (err)
        return err;
    err = predictor_predict(file->predictor, &pass.pass, &row.predicted, &inner);
    if (err)
        return unknown_model(file, err, &inner);
    (void)chars_copy(row.label, pass.label);
    row.predicted.latency_s *= pass.times;
    row.predicted.joules *= pass.times;
    validation_add(validation, &row);
    return ERR_OK;
}

enum err measurements_validate(const char *path, const struct params *where,
                               struct predictor *predictor, struct validation *validation,
                               struct error *why)
{
    struct layers_file file;
    const char *dot = strrchr(path, '.');
    if (file_is_directory(path))
        return add_queries(path, predictor, NULL, validation, why);
    if (!dot || !str_equal(dot, ".json"))
        return validation_read(validation, path, where, predictor, why);
    enum err err = open_layers(path, predictor, &file, why);
    for (size_t i = 0; !err && i < file.results.count; i++) {
        const struct layers_result *model = &file.results.models[i];
        validation->is_estimated |= layers_result_is_estimated(model);
        for (size_t s = 0; !err && s < model->setting_count; s++)
            err = validate_setting(&file, model, &model->settings[s], validation);
    }
    layers_results_release(&file.results);
    return err;
}
