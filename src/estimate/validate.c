/* A validation is a list of measured rows with their predictions.  Rows come from CSV files, read here, or from
 * runs (measurements.c). */
#include "estimate/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/grow.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"

enum err validation_add(struct validation *validation, const struct validate_row *row,
                        struct error *why)
{
    struct validate_row *rows =
        grow(validation->rows, &validation->capacity, validation->count, sizeof *rows);
    if (!rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    validation->rows = rows;
    struct validate_row *added = &rows[validation->count++];
    *added = *row;
    str_plain(added->label);
    double window = is_known(row->window_s) ? row->window_s : row->measured_s;
    if (is_known(row->measured_j) && !(window >= VALIDATE_ENERGY_LEAST_S)) {
        added->measured_j = UNKNOWN;
        validation->short_rows++;
    }
    return ERR_OK;
}

void validation_release(struct validation *validation)
{
    free(validation->rows);
    *validation = (struct validation){0};
}

/* ---- cells of a CSV file ---- */

struct reader {
    const char *path;
    const struct params *where;
    struct csv_grid grid;
    struct predictor *predictor;
    struct validation *out;
    size_t row;
    struct error *why;
};

static const char *cell(const struct reader *r, const char *column)
{
    return csv_grid_cell(&r->grid, r->row, csv_grid_column(&r->grid, column));
}

static bool has(const struct reader *r, const char *column)
{
    return csv_grid_column(&r->grid, column) >= 0;
}

static enum err wrong(const struct reader *r, const char *column, const char *rule)
{
    return err_set(r->why, ERR_BAD_VALUE, "%s:%zu: %s '%.40s': %s", r->path, r->grid.lines[r->row],
                   column, cell(r, column), rule);
}

/* UNKNOWN where the cell is empty or the column missing. */
static enum err read_number(const struct reader *r, const char *column, double *out)
{
    *out = UNKNOWN;
    if (!*cell(r, column))
        return ERR_OK;
    if (parse_double(cell(r, column), out) != ERR_OK || !(*out >= 0))
        return wrong(r, column, "not a number of 0 or more");
    return ERR_OK;
}

/* A measured time or energy: 0 is not a measurement. */
static enum err read_measured(const struct reader *r, const char *column, double *out)
{
    enum err err = read_number(r, column, out);
    return !err && *out <= 0 ? wrong(r, column, "not a number above 0, or empty") : err;
}

/* 0 where the cell is empty or the column missing. */
static enum err read_count(const struct reader *r, const char *column, int64_t *out)
{
    uint64_t count = 0;
    if (*cell(r, column) && (parse_u64(cell(r, column), &count) != ERR_OK || count > INT32_MAX))
        return wrong(r, column, "not a whole number");
    *out = (int64_t)count;
    return ERR_OK;
}

static enum err read_precision(const struct reader *r, const char *column, bool *has_it,
                               enum precision *out)
{
    *has_it = *cell(r, column) != '\0';
    if (*has_it && precision_find(cell(r, column), out, r->why) != ERR_OK)
        return wrong(r, column, "unknown precision");
    return ERR_OK;
}

/* Rows of two devices would be predicted as one. */
static enum err read_device(const struct reader *r, const char *column)
{
    const char *name = cell(r, column);
    struct validation *out = r->out;
    if (!*out->hardware)
        (void)str_copy(out->hardware, sizeof out->hardware, name);
    else if (*name && strcmp(out->hardware, name))
        return err_set(r->why, ERR_BAD_VALUE,
                       "%s:%zu: rows of several devices (%s, %s): select one with --where %s=NAME",
                       r->path, r->grid.lines[r->row], out->hardware, name, column);
    return ERR_OK;
}

static bool is_selected(const struct reader *r)
{
    for (size_t i = 0; i < r->where->count; i++)
        if (strcmp(cell(r, r->where->items[i].key), r->where->items[i].value))
            return false;
    return true;
}

/* ---- passes of models ---- */

static enum err read_phase(const struct reader *r, struct graph_options *setting)
{
    const char *phase = cell(r, "phase");
    if (!strcmp(phase, "decode"))
        setting->phase = GRAPH_DECODE;
    else if (!strcmp(phase, "prefill"))
        setting->phase = GRAPH_PREFILL;
    else if (*phase)
        return wrong(r, "phase", "not prefill, decode or empty");
    return ERR_OK;
}

static void name_pass(const struct reader *r, const struct measured_pass *pass,
                      struct validate_row *row)
{
    const struct graph_options *setting = &pass->setting;
    const char *phase = cell(r, "phase"), *runtime = cell(r, "runtime");
    struct text name = {0};
    text_addf(&name, "%.40s", pass->model);
    if (pass->has_precision)
        text_addf(&name, " %s", precision_name(pass->precision));
    if (*phase)
        text_addf(&name, " %.10s", phase);
    if (setting->tokens)
        text_addf(&name, " %lld tokens", (long long)setting->tokens);
    if (setting->context)
        text_addf(&name, " after %lld", (long long)setting->context);
    text_addf(&name, " batch %lld", (long long)(setting->batch ? setting->batch : 1));
    if (*runtime)
        text_addf(&name, ", %.10s", runtime);
    (void)str_copy(row->label, sizeof row->label, text_get(&name));
    text_release(&name);
}

static enum err read_model_row(const struct reader *r)
{
    struct measured_pass pass = {.model = cell(r, "model")};
    struct graph_options *setting = &pass.setting;
    struct validate_row row = {0};
    struct error inner = {0};
    enum err err = read_phase(r, setting);
    if (!*pass.model)
        return wrong(r, "model", "missing model");
    if (!err)
        err = read_precision(r, "precision", &pass.has_precision, &pass.precision);
    if (!err)
        err = read_count(r, "batch", &setting->batch);
    if (!err)
        err = read_count(r, "prompt_tokens", &setting->tokens);
    if (!err)
        err = read_count(r, "context", &setting->context);
    if (!err)
        err = read_count(r, "image", &setting->image);
    if (!err)
        err = read_count(r, "output_tokens", &pass.output_tokens);
    if (!err)
        err = read_measured(r, "latency_s", &row.measured_s);
    if (!err)
        err = read_measured(r, "energy_j", &row.measured_j);
    if (!err)
        err = read_number(r, "window_s", &row.window_s);
    if (err)
        return err;
    name_pass(r, &pass, &row);
    err = predictor_predict(r->predictor, &pass, &row.predicted, &inner);
    if (err)
        return err_set(r->why, err, "%s:%zu: %s", r->path, r->grid.lines[r->row], inner.text);
    return validation_add(r->out, &row, r->why);
}

/* ---- subgraphs: time alone ---- */

static enum err read_subgraph_row(const struct reader *r)
{
    static const char *const PRODUCTS[] = {"conv", "linear", "matmul", "attention"};
    struct calibrate_row load = {.precision = PRECISION_FP32};
    struct validate_row row = {.measured_j = UNKNOWN, .window_s = UNKNOWN};
    bool has_precision, is_product = false;
    const char *kind = cell(r, "operation_type");
    enum err err = read_precision(r, "precision", &has_precision, &load.precision);
    if (!err)
        err = read_number(r, "flops", &load.flops);
    if (!err)
        err = read_number(r, "total_bytes", &load.bytes);
    if (!err)
        err = read_measured(r, "lat_mean_ms", &row.measured_s);
    if (err)
        return err;
    if (!is_known(load.flops) || !is_known(load.bytes))
        return wrong(r, "flops", "flops and total_bytes are both needed");
    for (size_t i = 0; i < sizeof PRODUCTS / sizeof *PRODUCTS; i++)
        is_product |= str_contains_nocase(kind, PRODUCTS[i]);
    row.measured_s *= 1e-3;
    str_format(row.label, sizeof row.label, "%.30s %.12s %.48s", cell(r, "model"),
               cell(r, "subgraph_id"), cell(r, "fusion_pattern"));
    err = predictor_predict_load(r->predictor, &load, is_product, &row.predicted, r->why);
    if (err)
        return err;
    row.predicted.joules = UNKNOWN;
    return validation_add(r->out, &row, r->why);
}

/* ---- single loads ---- */

static enum err add_load(const struct reader *r, const struct calibrate_row *load)
{
    struct validate_row row = {
        .measured_s = load->latency_s, .measured_j = load->energy_j, .window_s = load->window_s};
    bool is_product = load->unit == CALIBRATE_MATRIX || str_starts(load->label, "matmul") ||
                      str_starts(load->label, "gemm");
    double window = is_known(load->window_s) ? load->window_s : load->latency_s;
    if (load->kind == CALIBRATE_IDLE)
        return ERR_OK;
    /* A window shorter than a meter resolves may show 0; its energy is not compared anyway. */
    if (load->energy_j <= 0 && window >= VALIDATE_ENERGY_LEAST_S)
        return wrong(r, "energy_j", "not a number above 0, or empty");
    str_format(row.label, sizeof row.label, "%s %s", load->label, precision_name(load->precision));
    enum err err = predictor_predict_load(r->predictor, load, is_product, &row.predicted, r->why);
    if (err)
        return err;
    r->out->is_estimated |= load->is_estimated;
    return validation_add(r->out, &row, r->why);
}

static enum err read_loads(struct reader *r)
{
    struct calibrate_rows rows = {0};
    enum err err = calibrate_rows_read(r->path, &rows, r->why);
    for (r->row = 0; !err && r->row < rows.count; r->row++) {
        if (is_selected(r))
            err = add_load(r, &rows.items[r->row]);
        else
            r->out->other_rows++;
    }
    if (!err && !*r->out->hardware)
        (void)str_copy(r->out->hardware, sizeof r->out->hardware, rows.hardware);
    calibrate_rows_release(&rows);
    return err;
}

/* ---- the file ---- */

/* A mistyped column would silently match no row. */
static enum err check_where(const struct reader *r)
{
    struct text columns = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; i < r->where->count && !err; i++) {
        if (has(r, r->where->items[i].key))
            continue;
        for (size_t c = 0; c < r->grid.columns; c++)
            text_addf(&columns, "%s%s", c ? ", " : "", r->grid.cells[c]);
        err = err_set(r->why, ERR_USAGE, "--where %.60s: unknown column of %.100s (known: %s)",
                      r->where->items[i].key, r->path, text_get(&columns));
    }
    text_release(&columns);
    return err;
}

static enum err read_rows(struct reader *r)
{
    bool are_subgraphs = has(r, "lat_mean_ms");
    enum err err = check_where(r);
    if (err)
        return err;
    if (!are_subgraphs && !(has(r, "model") && has(r, "latency_s")))
        return read_loads(r);
    for (r->row = 0; !err && r->row < r->grid.rows; r->row++) {
        if (!is_selected(r)) {
            r->out->other_rows++;
            continue;
        }
        err = read_device(r, are_subgraphs ? "hardware_id" : "hardware");
        if (!err)
            err = are_subgraphs ? read_subgraph_row(r) : read_model_row(r);
    }
    return err;
}

enum err validation_read(struct validation *validation, const char *path,
                         const struct params *where, struct predictor *predictor, struct error *why)
{
    struct text bytes = {0};
    struct error inner = {0};
    struct reader r = {
        .path = path, .where = where, .predictor = predictor, .out = validation, .why = why};
    enum err err = file_read(path, FILE_SMALL, &bytes, why);
    if (!err && bytes.length == 0)
        err = err_set(why, ERR_BAD_VALUE, "%s: empty", path);
    else if (!err) {
        err = csv_grid_read(bytes.bytes, bytes.length, &r.grid, &inner);
        if (err)
            err_set(why, err, "%s: %s", path, inner.text);
        else
            err = read_rows(&r);
        csv_grid_release(&r.grid);
    }
    text_release(&bytes);
    return err;
}

/* ---- sums ---- */

static void add(struct validate_error *sum, double measured, double predicted)
{
    if (!is_known(measured) || !is_known(predicted) || !(measured > 0))
        return;
    double error = predicted / measured - 1;
    sum->rows++;
    sum->mape += fabs(error);
    sum->bias += error;
}

static void divide(struct validate_error *sum)
{
    sum->mape = sum->rows ? sum->mape / (double)sum->rows : UNKNOWN;
    sum->bias = sum->rows ? sum->bias / (double)sum->rows : UNKNOWN;
}

struct validate_sums validate_sum(const struct validation *validation, enum estimate_bound regime)
{
    struct validate_sums sums = {0};
    for (size_t i = 0; i < validation->count; i++) {
        const struct validate_row *row = &validation->rows[i];
        if (regime != BOUND_COUNT && row->predicted.regime != regime)
            continue;
        sums.rows++;
        add(&sums.latency, row->measured_s, row->predicted.latency_s);
        add(&sums.energy, row->measured_j, row->predicted.joules);
    }
    divide(&sums.latency);
    divide(&sums.energy);
    return sums;
}

enum validate_verdict validate_verdict(const struct validation *validation, double most)
{
    struct validate_sums sums = validate_sum(validation, BOUND_COUNT);
    if (!is_known(most) || sums.latency.rows + sums.energy.rows == 0)
        return VALIDATE_UNKNOWN;
    return sums.latency.mape > most || sums.energy.mape > most ? VALIDATE_FAIL : VALIDATE_PASS;
}
