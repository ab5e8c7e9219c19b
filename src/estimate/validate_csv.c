#include "estimate/validate_csv.h"

#include <string.h>

#include "core/csv.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"

struct reading {
    const char *path;
    const struct params *where;
    struct csv_grid grid;
    struct predictor *predictor;
    struct validation *out;
    size_t row;
    struct error *why;
};

/* ---- cells ---- */

static const char *cell(const struct reading *r, const char *column)
{
    return csv_grid_cell(&r->grid, r->row, csv_grid_column(&r->grid, column));
}

static bool has(const struct reading *r, const char *column)
{
    return csv_grid_column(&r->grid, column) >= 0;
}

static enum err wrong(const struct reading *r, const char *column, const char *rule)
{
    return err_set(r->why, ERR_BAD_VALUE, "%s:%zu: %s '%.40s': %s", r->path, r->grid.lines[r->row],
                   column, cell(r, column), rule);
}

/* UNKNOWN where it is empty or not there. */
static enum err read_number(const struct reading *r, const char *column, double *out)
{
    *out = UNKNOWN;
    if (!*cell(r, column))
        return ERR_OK;
    if (parse_double(cell(r, column), out) != ERR_OK || !(*out >= 0))
        return wrong(r, column, "a number of 0 or above is wanted");
    return ERR_OK;
}

/* What was measured: nothing takes no time and no joules. */
static enum err read_measured(const struct reading *r, const char *column, double *out)
{
    enum err err = read_number(r, column, out);
    return !err && *out <= 0 ? wrong(r, column, "a number above 0 is wanted, or nothing") : err;
}

/* 0 where it is empty or not there. */
static enum err read_count(const struct reading *r, const char *column, int64_t *out)
{
    uint64_t count = 0;
    if (*cell(r, column) && (parse_u64(cell(r, column), &count) != ERR_OK || count > INT32_MAX))
        return wrong(r, column, "a whole number is wanted");
    *out = (int64_t)count;
    return ERR_OK;
}

static enum err read_precision(const struct reading *r, const char *column, bool *has_it,
                               enum precision *out)
{
    *has_it = *cell(r, column) != '\0';
    if (*has_it && precision_find(cell(r, column), out, r->why) != ERR_OK)
        return wrong(r, column, "no precision that ipw knows");
    return ERR_OK;
}

/* Rows of two devices would be predicted by one. */
static enum err read_device(const struct reading *r, const char *column)
{
    const char *name = cell(r, column);
    struct validation *out = r->out;
    if (!*out->hardware)
        (void)str_copy(out->hardware, sizeof out->hardware, name);
    else if (*name && strcmp(out->hardware, name))
        return err_set(r->why, ERR_BAD_VALUE,
                       "%s:%zu: rows of several devices (%s, %s): choose by --where %s=NAME",
                       r->path, r->grid.lines[r->row], out->hardware, name, column);
    return ERR_OK;
}

static bool is_wanted(const struct reading *r)
{
    for (size_t i = 0; i < r->where->count; i++)
        if (strcmp(cell(r, r->where->items[i].key), r->where->items[i].value))
            return false;
    return true;
}

static enum err add(const struct reading *r, struct validate_row *row,
                    const struct prediction *predicted)
{
    row->predicted_s = predicted->latency_s;
    row->predicted_j = predicted->joules;
    row->regime = predicted->regime;
    return validation_add(r->out, row, r->why);
}

/* ---- passes of models ---- */

static enum err read_phase(const struct reading *r, struct graph_options *setting)
{
    const char *phase = cell(r, "phase");
    if (!strcmp(phase, "decode"))
        setting->phase = GRAPH_DECODE;
    else if (!strcmp(phase, "prefill"))
        setting->phase = GRAPH_PREFILL;
    else if (*phase)
        return wrong(r, "phase", "prefill, decode or nothing");
    return ERR_OK;
}

static void name_pass(const struct reading *r, const struct measured_pass *question,
                      struct validate_row *row)
{
    const struct graph_options *setting = &question->setting;
    const char *phase = cell(r, "phase"), *runtime = cell(r, "runtime");
    struct text name = {0};
    text_addf(&name, "%.40s", question->model);
    if (question->has_precision)
        text_addf(&name, " %s", precision_name(question->precision));
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

static enum err read_model_row(const struct reading *r)
{
    struct measured_pass question = {.model = cell(r, "model")};
    struct graph_options *setting = &question.setting;
    struct validate_row row = {0};
    struct prediction predicted;
    struct error inner = {0};
    enum err err = read_phase(r, setting);
    if (!*question.model)
        return wrong(r, "model", "a name or a file is wanted");
    if (!err)
        err = read_precision(r, "precision", &question.has_precision, &question.precision);
    if (!err)
        err = read_count(r, "batch", &setting->batch);
    if (!err)
        err = read_count(r, "prompt_tokens", &setting->tokens);
    if (!err)
        err = read_count(r, "context", &setting->context);
    if (!err)
        err = read_count(r, "image", &setting->image);
    if (!err)
        err = read_count(r, "output_tokens", &question.output_tokens);
    if (!err)
        err = read_measured(r, "latency_s", &row.measured_s);
    if (!err)
        err = read_measured(r, "energy_j", &row.measured_j);
    if (!err)
        err = read_number(r, "window_s", &row.window_s);
    if (err)
        return err;
    name_pass(r, &question, &row);
    err = predictor_predict(r->predictor, &question, &predicted, &inner);
    if (err)
        return err_set(r->why, err, "%s:%zu: %s", r->path, r->grid.lines[r->row], inner.text);
    return add(r, &row, &predicted);
}

/* ---- subgraphs: time alone ---- */

static enum err read_subgraph_row(const struct reading *r)
{
    static const char *const PRODUCTS[] = {"conv", "linear", "matmul", "attention"};
    struct calibrate_row load = {.precision = PRECISION_FP32};
    struct validate_row row = {.measured_j = UNKNOWN, .window_s = UNKNOWN};
    struct prediction predicted;
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
        return wrong(r, "flops", "flops and total_bytes are wanted");
    for (size_t i = 0; i < sizeof PRODUCTS / sizeof *PRODUCTS; i++)
        is_product |= str_contains_nocase(kind, PRODUCTS[i]);
    row.measured_s *= 1e-3;
    str_format(row.label, sizeof row.label, "%.30s %.12s %.48s", cell(r, "model"),
               cell(r, "subgraph_id"), cell(r, "fusion_pattern"));
    err = predictor_predict_load(r->predictor, &load, is_product, &predicted, r->why);
    if (err)
        return err;
    predicted.joules = UNKNOWN;
    return add(r, &row, &predicted);
}

/* ---- single loads ---- */

static enum err add_load(const struct reading *r, const struct calibrate_row *load)
{
    struct validate_row row = {
        .measured_s = load->latency_s, .measured_j = load->energy_j, .window_s = load->window_s};
    struct prediction predicted;
    bool is_product = load->unit == CALIBRATE_MATRIX || str_starts(load->label, "matmul") ||
                      str_starts(load->label, "gemm");
    double window = is_known(load->window_s) ? load->window_s : load->latency_s;
    if (load->kind == CALIBRATE_IDLE)
        return ERR_OK;
    /* Of less than a meter resolves, 0 is what it shows; joules of that are not compared. */
    if (load->energy_j <= 0 && window >= VALIDATE_ENERGY_LEAST_S)
        return wrong(r, "energy_j", "a number above 0 is wanted, or nothing");
    str_format(row.label, sizeof row.label, "%s %s", load->label, precision_name(load->precision));
    enum err err = predictor_predict_load(r->predictor, load, is_product, &predicted, r->why);
    if (err)
        return err;
    r->out->is_estimated |= load->is_estimated;
    return add(r, &row, &predicted);
}

static enum err read_loads(struct reading *r)
{
    struct calibrate_rows rows = {0};
    enum err err = calibrate_rows_read(r->path, &rows, r->why);
    for (r->row = 0; !err && r->row < rows.count; r->row++) {
        if (is_wanted(r))
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

/* A column that is mistyped would leave no row, and not say why. */
static enum err check_where(const struct reading *r)
{
    struct text columns = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; i < r->where->count && !err; i++) {
        if (has(r, r->where->items[i].key))
            continue;
        for (size_t c = 0; c < r->grid.columns; c++)
            text_addf(&columns, "%s%s", c ? ", " : "", r->grid.cells[c]);
        err = err_set(r->why, ERR_USAGE, "--where %.60s: %.100s has no such column, but %s",
                      r->where->items[i].key, r->path, text_get(&columns));
    }
    text_release(&columns);
    return err;
}

static enum err read_rows(struct reading *r)
{
    bool are_subgraphs = has(r, "lat_mean_ms");
    enum err err = check_where(r);
    if (err)
        return err;
    if (!are_subgraphs && !(has(r, "model") && has(r, "latency_s")))
        return read_loads(r);
    for (r->row = 0; !err && r->row < r->grid.rows; r->row++) {
        if (!is_wanted(r)) {
            r->out->other_rows++;
            continue;
        }
        err = read_device(r, are_subgraphs ? "hardware_id" : "hardware");
        if (!err)
            err = are_subgraphs ? read_subgraph_row(r) : read_model_row(r);
    }
    return err;
}

enum err validate_csv(const char *path, const struct params *where, struct predictor *predictor,
                      struct validation *out, struct error *why)
{
    struct text bytes = {0};
    struct error inner = {0};
    struct reading r = {
        .path = path, .where = where, .predictor = predictor, .out = out, .why = why};
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
