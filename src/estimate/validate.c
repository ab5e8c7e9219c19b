/* A prediction is a workload of one measured row and its estimate on the device; a single load uses the roofline alone.
 * A validation is a list of measured rows with their predictions.  Rows come from CSV files, read here, or from runs
 * (measurements.c). */
#include "estimate/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "estimate/measured_csv.h"

void predictor_init(struct predictor *predictor, const struct hardware *hardware)
{
    *predictor = (struct predictor){.hardware = hardware, .host_launch_s = UNKNOWN};
}

void predictor_release(struct predictor *predictor)
{
    if (predictor->is_open)
        model_close(&predictor->model);
    predictor->is_open = false;
}

/* ---- predictions of models ---- */

static enum err open_model(struct predictor *p, const char *word, struct error *why)
{
    if (p->is_open && str_equal(p->model.source, word))
        return ERR_OK;
    predictor_release(p);
    enum err err = model_open(word, &p->model, why);
    p->is_open = !err;
    return err;
}

static struct estimate_config config_of(const struct predictor *p, const struct measured_pass *pass,
                                        const struct estimate_workload *work)
{
    struct estimate_config config = {
        .precision = PRECISION_FP32,
        .devices = 1,
        .host_launch_s = is_known(p->host_launch_s) ? p->host_launch_s : pass->host_launch_s};
    if (p->hardware)
        config.precision = workload_default_precision(work, p->hardware);
    if (p->has_precision)
        config.precision = p->precision;
    else if (pass->has_precision)
        config.precision = pass->precision;
    else
        config.keeps_stored = work->has_stored;
    return config;
}

static enum estimate_bound regime_of(const struct workload_estimate *estimate)
{
    double times[BOUND_COUNT] = {0};
    size_t longest = 0;
    for (size_t i = 0; i < estimate->work->count; i++) {
        const struct pass_estimate *pass = &estimate->passes[i];
        for (size_t k = 0; k < pass->partition->count; k++)
            times[pass->rows[k].bound] += estimate->work->passes[i].times * pass->rows[k].latency_s;
    }
    for (size_t i = 1; i < BOUND_COUNT; i++)
        if (times[i] > times[longest])
            longest = i;
    return (enum estimate_bound)longest;
}

/* The runtime of a row: as stated, else the default of such a model on the device. */
static void set_runtime(const struct predictor *p, const struct measured_pass *pass,
                        struct workload_spec *spec)
{
    spec->has_default_runtime = p->has_default_runtime && p->hardware;
    if (!spec->has_default_runtime)
        return;
    workload_spec_run_on(spec, p->hardware);
    if (!pass->runtime || !runtime_of_word(pass->runtime, &spec->runtime))
        return;
    spec->has_default_runtime = false;
    spec->fusion = runtime_fusion(spec->runtime, p->hardware);
}

static enum err make_workload(struct predictor *p, const struct measured_pass *pass,
                              struct estimate_workload *out, struct error *why)
{
    enum err err = open_model(p, p->model_word ? p->model_word : pass->model, why);
    if (err)
        return err;
    struct workload_spec spec = {.model = &p->model,
                                 .setting = pass->setting,
                                 .is_request = pass->output_tokens > 0,
                                 .output_tokens = pass->output_tokens,
                                 .fusion = p->fusion,
                                 .runtime = p->runtime};
    set_runtime(p, pass, &spec);
    return workload_make(&spec, out, why);
}

enum err predictor_predict(struct predictor *predictor, const struct measured_pass *pass,
                           struct prediction *out, struct error *why)
{
    struct estimate_workload work;
    struct workload_estimate estimate;
    enum err err = make_workload(predictor, pass, &work, why);
    if (err)
        return err;
    struct estimate_config config = config_of(predictor, pass, &work);
    err = workload_estimate_make(&work, predictor->hardware, &config, true, &estimate, why);
    if (!err) {
        const struct estimate_totals *all = &estimate.total;
        *out = (struct prediction){.latency_s = all->latency_s,
                                   .joules = all->joules.total,
                                   .latency_range = workload_estimate_interval(
                                       &estimate, 1, all->latency_plus_minus / all->latency_s),
                                   .joules_range = workload_estimate_interval(
                                       &estimate, 1, all->joules_plus_minus / all->joules.total),
                                   .regime = regime_of(&estimate),
                                   .has_assumed_host = all->host_plus_minus > 0};
        workload_estimate_release(&estimate);
    }
    workload_release(&work);
    return err;
}

enum err predictor_count(struct predictor *predictor, const struct measured_pass *pass,
                         double *flops, double *bytes, struct error *why)
{
    struct estimate_workload work;
    enum err err = make_workload(predictor, pass, &work, why);
    if (err)
        return err;
    struct estimate_config config = config_of(predictor, pass, &work);
    bool is_of_file = config.keeps_stored && work.file.is_known;
    struct precision_widths widths =
        precision_widths(is_of_file ? work.file.floats : config.precision);
    widths.keeps_stored = config.keeps_stored;
    *flops = *bytes = 0;
    for (size_t i = 0; i < work.count; i++) {
        const struct graph_cost *cost = &work.passes[i].partition.total;
        *flops += work.passes[i].times * graph_flops(cost);
        *bytes += work.passes[i].times * graph_cost_bytes(cost, &widths);
    }
    workload_release(&work);
    return ERR_OK;
}

/* ---- single loads ---- */

/* is_product: the operations are matrix products. */
static enum err predict_load(const struct predictor *predictor, const struct calibrate_row *row,
                             bool is_product, struct prediction *out, struct error *why)
{
    struct rates rates;
    struct subgraph_estimate found = {0};
    enum precision precision = predictor->has_precision ? predictor->precision : row->precision;
    /* Its shape is unknown: without `outputs` there is no wave quantization. */
    struct subgraph load = {.op = is_product ? GRAPH_MATMUL : GRAPH_ADD};
    struct roofline_work work = {.macs = is_product ? row->flops / 2 : 0,
                                 .elementwise = is_product ? 0 : row->flops,
                                 .bytes = row->bytes};
    enum err err = rates_of(predictor->hardware, precision, RUNTIME_IDEAL, &rates, why);
    if (err)
        return err;
    if (row->kind == CALIBRATE_GRAPH || row->kind == CALIBRATE_LAUNCH)
        rates.launch_s.value *= row->kernels;
    roofline_estimate(&load, &work, &rates, 1, &found);
    *out = (struct prediction){.latency_s = found.latency_s,
                               .joules = found.joules.total,
                               .latency_range = {UNKNOWN, UNKNOWN, UNKNOWN},
                               .joules_range = {UNKNOWN, UNKNOWN, UNKNOWN},
                               .regime = found.bound};
    return ERR_OK;
}

/* ---- the validation ---- */

void validation_add(struct validation *validation, const struct validate_row *row)
{
    XGROW(validation->rows, validation->count, validation->capacity);
    struct validate_row *added = &validation->rows[validation->count++];
    *added = *row;
    str_plain(added->label, sizeof added->label);
    double window = is_known(row->window_s) ? row->window_s : row->measured_s;
    if (is_known(row->measured_j) && !(window >= VALIDATE_ENERGY_MIN_S)) {
        added->measured_j = UNKNOWN;
        validation->short_rows++;
    }
}

void validation_release(struct validation *validation)
{
    free(validation->rows);
    *validation = (struct validation){0};
}

/* ---- cells of a CSV file ---- */

struct reader {
    struct measured_csv csv;
    const struct params *where;
    struct predictor *predictor;
    struct validation *out;
};

static const char *cell(const struct reader *r, const char *column)
{
    return measured_csv_cell(&r->csv, column);
}

/* A measured time or energy: 0 is not a measurement. */
static double read_measured(struct reader *r, const char *column)
{
    double number = measured_csv_number(&r->csv, column);
    if (number <= 0)
        measured_csv_fail(&r->csv, column, "must be above 0, or empty");
    return number;
}

/* 0 where the cell is empty or the column missing. */
static int64_t read_count(struct reader *r, const char *column)
{
    uint64_t count = 0;
    if (*cell(r, column) && (parse_u64(cell(r, column), &count) != ERR_OK || count > INT32_MAX))
        measured_csv_fail(&r->csv, column, "must be an integer");
    return (int64_t)count;
}

static void add(struct reader *r, struct validate_row *row)
{
    const char *column = r->out->leave_out;
    if (column && !measured_csv_has(&r->csv, column))
        measured_csv_fail(&r->csv, column, "no such column");
    if (column)
        (void)chars_copy(row->group, cell(r, column));
    str_plain(row->group, sizeof row->group);
    if (!r->csv.err)
        validation_add(r->out, row);
}

/* Rows of two devices would be predicted as one. */
static void read_device(struct reader *r, const char *column)
{
    const char *name = cell(r, column);
    struct validation *out = r->out;
    if (!*out->hardware)
        (void)chars_copy(out->hardware, name);
    else if (*name && strcmp(out->hardware, name))
        r->csv.err =
            err_set(r->csv.why, ERR_BAD_VALUE,
                    "%s:%zu: rows of several devices (%s, %s): select one with --where %s=NAME",
                    r->csv.path, r->csv.grid.lines[r->csv.row], out->hardware, name, column);
}

static bool is_selected(const struct reader *r)
{
    for (size_t i = 0; i < r->where->count; i++)
        if (strcmp(cell(r, r->where->items[i].key), r->where->items[i].value))
            return false;
    return true;
}

/* ---- passes of models ---- */

static void read_phase(struct reader *r, struct graph_options *setting)
{
    const char *phase = cell(r, "phase");
    if (str_equal(phase, "decode"))
        setting->phase = GRAPH_DECODE;
    else if (str_equal(phase, "prefill"))
        setting->phase = GRAPH_PREFILL;
    else if (*phase)
        measured_csv_fail(&r->csv, "phase", "must be prefill, decode or empty");
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
    (void)chars_copy(row->label, text_get(&name));
    text_release(&name);
}

static void read_model_row(struct reader *r)
{
    struct measured_pass pass = {.model = cell(r, "model"), .runtime = cell(r, "runtime")};
    struct graph_options *setting = &pass.setting;
    struct validate_row row = {0};
    struct error inner = {0};
    if (!*pass.model)
        measured_csv_fail(&r->csv, "model", "missing model");
    read_phase(r, setting);
    pass.has_precision = measured_csv_precision(&r->csv, "precision", &pass.precision);
    setting->batch = read_count(r, "batch");
    setting->tokens = read_count(r, "prompt_tokens");
    setting->context = read_count(r, "context");
    setting->image = read_count(r, "image");
    pass.output_tokens = read_count(r, "output_tokens");
    row.measured_s = read_measured(r, "latency_s");
    row.measured_j = read_measured(r, "energy_j");
    row.window_s = measured_csv_number(&r->csv, "window_s");
    double launch_us = measured_csv_number(&r->csv, "host_launch_us");
    pass.host_launch_s = launch_us > 0 ? 1e-6 * launch_us : 0;
    if (r->csv.err)
        return;
    name_pass(r, &pass, &row);
    enum err err = predictor_predict(r->predictor, &pass, &row.predicted, &inner);
    if (err)
        r->csv.err = err_set(r->csv.why, err, "%s:%zu: %s", r->csv.path,
                             r->csv.grid.lines[r->csv.row], inner.text);
    add(r, &row);
}

/* ---- subgraphs: time only ---- */

static void read_subgraph_row(struct reader *r)
{
    static const char *const PRODUCTS[] = {"conv", "linear", "matmul", "attention"};
    struct calibrate_row load = {.precision = PRECISION_FP32};
    struct validate_row row = {.measured_j = UNKNOWN, .window_s = UNKNOWN};
    bool is_product = false;
    measured_csv_precision(&r->csv, "precision", &load.precision);
    load.flops = measured_csv_number(&r->csv, "flops");
    load.bytes = measured_csv_number(&r->csv, "total_bytes");
    row.measured_s = 1e-3 * read_measured(r, "lat_mean_ms");
    if (!is_known(load.flops) || !is_known(load.bytes))
        measured_csv_fail(&r->csv, "flops", "flops and total_bytes are both needed");
    for (size_t i = 0; i < COUNT_OF(PRODUCTS); i++)
        is_product |= str_contains_nocase(cell(r, "operation_type"), PRODUCTS[i]);
    chars_format(row.label, "%.30s %.12s %.48s", cell(r, "model"), cell(r, "subgraph_id"),
                 cell(r, "fusion_pattern"));
    if (!r->csv.err)
        r->csv.err = predict_load(r->predictor, &load, is_product, &row.predicted, r->csv.why);
    row.predicted.joules = UNKNOWN;
    add(r, &row);
}

/* ---- single loads ---- */

static void add_load(struct reader *r, const struct calibrate_row *load)
{
    struct validate_row row = {
        .measured_s = load->latency_s, .measured_j = load->energy_j, .window_s = load->window_s};
    bool is_product = load->unit == CALIBRATE_MATRIX || str_starts(load->label, "matmul") ||
                      str_starts(load->label, "gemm");
    double window = is_known(load->window_s) ? load->window_s : load->latency_s;
    if (load->kind == CALIBRATE_IDLE || load->kind == CALIBRATE_HOST)
        return;
    /* A window shorter than the meter's resolution may show 0; its energy is not compared anyway. */
    if (load->energy_j <= 0 && window >= VALIDATE_ENERGY_MIN_S)
        measured_csv_fail(&r->csv, "energy_j", "must be above 0, or empty");
    chars_format(row.label, "%s %s", load->label, precision_name(load->precision));
    if (!r->csv.err)
        r->csv.err = predict_load(r->predictor, load, is_product, &row.predicted, r->csv.why);
    r->out->is_estimated |= load->is_estimated;
    add(r, &row);
}

static void read_loads(struct reader *r)
{
    struct calibrate_rows rows = {0};
    r->csv.err = calibrate_rows_read(r->csv.path, &rows, r->csv.why);
    for (r->csv.row = 0; !r->csv.err && r->csv.row < rows.count; r->csv.row++) {
        if (is_selected(r))
            add_load(r, &rows.items[r->csv.row]);
        else
            r->out->other_rows++;
    }
    if (!r->csv.err && !*r->out->hardware)
        (void)chars_copy(r->out->hardware, rows.hardware);
    calibrate_rows_release(&rows);
}

/* ---- the file ---- */

/* A mistyped column would silently match no row. */
static void check_where(struct reader *r)
{
    const struct csv_grid *grid = &r->csv.grid;
    for (size_t i = 0; i < r->where->count && !r->csv.err; i++) {
        struct text columns = {0};
        if (measured_csv_has(&r->csv, r->where->items[i].key))
            continue;
        for (size_t c = 0; c < grid->columns; c++)
            text_addf(&columns, "%s%s", c ? ", " : "", grid->cells[c]);
        r->csv.err =
            err_set(r->csv.why, ERR_USAGE, "--where %.60s: unknown column of %.100s (known: %s)",
                    r->where->items[i].key, r->csv.path, text_get(&columns));
        text_release(&columns);
    }
}

static void read_rows(struct reader *r)
{
    bool are_subgraphs = measured_csv_has(&r->csv, "lat_mean_ms");
    bool are_passes = measured_csv_has(&r->csv, "model") && measured_csv_has(&r->csv, "latency_s");
    check_where(r);
    if (!r->csv.err && !are_subgraphs && !are_passes) {
        read_loads(r);
        return;
    }
    for (; !r->csv.err && r->csv.row < r->csv.grid.rows; r->csv.row++) {
        if (!is_selected(r)) {
            r->out->other_rows++;
            continue;
        }
        read_device(r, are_subgraphs ? "hardware_id" : "hardware");
        if (are_subgraphs)
            read_subgraph_row(r);
        else
            read_model_row(r);
    }
}

enum err validation_read(struct validation *validation, const char *path,
                         const struct params *where, struct predictor *predictor, struct error *why)
{
    struct reader r = {.where = where, .predictor = predictor, .out = validation};
    measured_csv_open(&r.csv, path, why);
    if (!r.csv.err)
        read_rows(&r);
    measured_csv_close(&r.csv);
    return r.csv.err;
}

/* ---- sums ---- */

static void add_error(struct validate_error *sum, double measured, double predicted,
                      struct estimate_interval range)
{
    if (!is_known(measured) || !is_known(predicted) || !(measured > 0))
        return;
    double error = predicted / measured - 1;
    sum->rows++;
    sum->mape += fabs(error);
    sum->bias += error;
    sum->ranged += is_known(range.low) && is_known(range.high);
    double ratio = measured / predicted - 1;
    for (int k = 0; k < 2; k++)
        sum->inside[k] += ratio >= (k + 1) * (range.low - 1) && ratio <= (k + 1) * (range.high - 1);
}

static void average(struct validate_error *sum)
{
    sum->mape = sum->rows ? sum->mape / (double)sum->rows : UNKNOWN;
    sum->bias = sum->rows ? sum->bias / (double)sum->rows : UNKNOWN;
    for (int k = 0; k < 2; k++)
        sum->inside[k] = sum->ranged ? sum->inside[k] / (double)sum->ranged : UNKNOWN;
}

struct validate_sums validate_sum(const struct validation *validation, enum estimate_bound regime)
{
    struct validate_sums sums = {0};
    for (size_t i = 0; i < validation->count; i++) {
        const struct validate_row *row = &validation->rows[i];
        if (regime != BOUND_COUNT && row->predicted.regime != regime)
            continue;
        sums.rows++;
        const struct prediction *predicted = &row->predicted;
        add_error(&sums.latency, row->measured_s, predicted->latency_s, predicted->latency_range);
        add_error(&sums.energy, row->measured_j, predicted->joules, predicted->joules_range);
    }
    average(&sums.latency);
    average(&sums.energy);
    return sums;
}

/* ---- leave-one-group-out ---- */

enum { LATENCY, ENERGY };

static double log_ratio(const struct validate_row *row, int quantity)
{
    double measured = quantity == LATENCY ? row->measured_s : row->measured_j;
    double predicted = quantity == LATENCY ? row->predicted.latency_s : row->predicted.joules;
    bool is_compared = is_known(measured) && is_known(predicted) && measured > 0 && predicted > 0;
    return is_compared ? log(measured / predicted) : UNKNOWN;
}

struct spread {
    size_t count;
    double mean, deviation;
};

static struct spread spread_without(const struct validation *validation, const char *group,
                                    int quantity)
{
    struct spread all = {0};
    double squares = 0;
    for (size_t i = 0; i < validation->count; i++) {
        double ratio = log_ratio(&validation->rows[i], quantity);
        if (!is_known(ratio) || str_equal(validation->rows[i].group, group))
            continue;
        double before = ratio - all.mean;
        all.mean += before / (double)++all.count;
        squares += before * (ratio - all.mean);
    }
    all.deviation = all.count > 1 ? sqrt(squares / (double)(all.count - 1)) : UNKNOWN;
    return all;
}

static void add_held_out(const struct validation *validation, const struct validate_row *row,
                         int quantity, struct validate_error *sum)
{
    static const double WIDE[2] = {1, 1.96};
    double ratio = log_ratio(row, quantity);
    struct spread others = spread_without(validation, row->group, quantity);
    if (!is_known(ratio) || others.count == 0)
        return;
    double error = exp(others.mean - ratio) - 1;
    sum->rows++;
    sum->mape += fabs(error);
    sum->bias += error;
    sum->ranged += is_known(others.deviation);
    for (int k = 0; k < 2; k++)
        sum->inside[k] += fabs(ratio - others.mean) <= WIDE[k] * others.deviation;
}

struct validate_sums validate_held_out(const struct validation *validation, const char *group)
{
    struct validate_sums sums = {0};
    for (size_t i = 0; i < validation->count; i++) {
        const struct validate_row *row = &validation->rows[i];
        if (group && strcmp(row->group, group))
            continue;
        sums.rows++;
        add_held_out(validation, row, LATENCY, &sums.latency);
        add_held_out(validation, row, ENERGY, &sums.energy);
    }
    average(&sums.latency);
    average(&sums.energy);
    return sums;
}

struct validate_host validate_host(const struct validation *validation)
{
    enum { ROWS_MIN = 5 };
    struct validate_host host = {0, UNKNOWN};
    double sum = 0;
    for (size_t i = 0; i < validation->count; i++) {
        const struct validate_row *row = &validation->rows[i];
        double ratio = log_ratio(row, LATENCY);
        if (!row->predicted.has_assumed_host || row->predicted.regime != BOUND_LAUNCH ||
            !is_known(ratio))
            continue;
        host.rows++;
        sum += ratio;
    }
    if (host.rows >= ROWS_MIN)
        host.launch_s = RUNTIME_HOST_ASSUMED_S * exp(sum / (double)host.rows);
    return host;
}

enum validate_verdict validate_verdict(const struct validation *validation, double max)
{
    struct validate_sums sums = validate_sum(validation, BOUND_COUNT);
    if (!is_known(max) || sums.latency.rows + sums.energy.rows == 0)
        return VALIDATE_UNKNOWN;
    return sums.latency.mape > max || sums.energy.mape > max ? VALIDATE_FAIL : VALIDATE_PASS;
}
