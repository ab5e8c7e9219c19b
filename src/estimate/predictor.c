/* A prediction is a workload of one measured row and its estimate on the device; a single load goes through
 * the roofline alone. */
#include "estimate/predictor.h"

#include <string.h>

void predictor_init(struct predictor *predictor, const struct hardware *hardware)
{
    *predictor = (struct predictor){.hardware = hardware};
}

void predictor_release(struct predictor *predictor)
{
    if (predictor->is_open)
        model_close(&predictor->model);
    predictor->is_open = false;
}

/* ---- models ---- */

static enum err open_model(struct predictor *p, const char *word, struct error *why)
{
    if (p->is_open && !strcmp(p->model.source, word))
        return ERR_OK;
    predictor_release(p);
    enum err err = model_open(word, &p->model, why);
    p->is_open = !err;
    return err;
}

static struct estimate_config config_of(const struct predictor *p, const struct measured_pass *pass,
                                        const struct workload *work)
{
    struct estimate_config config = {
        .precision = PRECISION_FP32, .devices = 1, .host_launch_s = pass->host_launch_s};
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
    size_t most = 0;
    for (size_t i = 0; i < estimate->work->count; i++) {
        const struct pass_estimate *pass = &estimate->passes[i];
        for (size_t k = 0; k < pass->partition->count; k++)
            times[pass->rows[k].bound] += estimate->work->passes[i].times * pass->rows[k].latency_s;
    }
    for (size_t i = 1; i < BOUND_COUNT; i++)
        if (times[i] > times[most])
            most = i;
    return (enum estimate_bound)most;
}

/* What ran a row: as it says, else what people run such a model with on the device. */
static void set_runtime(const struct predictor *p, const struct measured_pass *pass,
                        struct workload_spec *spec)
{
    spec->has_usual_runtime = p->has_usual_runtime && p->hardware;
    if (!spec->has_usual_runtime)
        return;
    workload_spec_run_on(spec, p->hardware);
    if (!pass->runtime || !runtime_of_word(pass->runtime, &spec->runtime))
        return;
    spec->has_usual_runtime = false;
    spec->fusion = runtime_fusion(spec->runtime, p->hardware);
}

static enum err make_workload(struct predictor *p, const struct measured_pass *pass,
                              struct workload *out, struct error *why)
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
    struct workload work;
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
                                   .regime = regime_of(&estimate)};
        workload_estimate_release(&estimate);
    }
    workload_release(&work);
    return err;
}

enum err predictor_count(struct predictor *predictor, const struct measured_pass *pass,
                         double *flops, double *bytes, struct error *why)
{
    struct workload work;
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
        *bytes += work.passes[i].times *
                  (graph_bytes(&cost->in, &widths) + graph_bytes(&cost->out, &widths) +
                   graph_bytes(&cost->weights, &widths));
    }
    workload_release(&work);
    return ERR_OK;
}

/* ---- single loads ---- */

enum err predictor_predict_load(const struct predictor *predictor, const struct calibrate_row *row,
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
