/* Fills the result of a model from its measurements: sums over layers and phases, shares, and per-token figures.  The
 * work of its components is counted from its graph. */
#include <math.h>
#include <stdlib.h>

#include "attribute/ledger.h"
#include "core/json.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "estimate/partition.h"
#include "graph/reader.h"
#include "rundir/layers_result.h"
#include "runner/layers/layers.h"
#include "runner/layers/segment_timer.h"

const char *layers_granularity_name(enum layers_granularity granularity)
{
    static const char *const NAMES[] = {"component", "layer", "phase"};
    return NAMES[granularity];
}

static const char *component_name(unsigned component)
{
    return component == LAYERS_WHOLE ? "all"
                                     : decoder_component_name((enum decoder_component)component);
}

/* ---- shares ---- */

/* How the joules were determined: "estimated" if the power is, else "nnls" for a separately fitted power and
 * "time-share" for a shared one; NULL if they are unknown. */
static const char *method_of(const struct layers_model *model, enum layers_phase phase,
                             unsigned component)
{
    const struct fit_power *power = &model->fit.columns[phase * LAYERS_PHASE_COLUMNS + component];
    if (!model->gave_energy || !is_known(power->watts))
        return NULL;
    if (model->total.method == METHOD_ESTIMATED)
        return "estimated";
    return power->is_alone ? "nnls" : "time-share";
}

static const struct layers_share *share_of(const struct layers_model *model,
                                           enum layers_phase phase, int layer, unsigned component)
{
    return &model->shares[phase][layer_slot(layer, component)];
}

static void add_share(struct layers_share *sum, const struct layers_share *share)
{
    if (share->time_s <= 0)
        return;
    sum->time_s += share->time_s;
    sum->joules += share->joules;
    sum->sigma += share->sigma; /* fully correlated: one power, the same sensors */
}

static struct layers_share component_sum(const struct layers_model *model, enum layers_phase phase,
                                         unsigned component)
{
    struct layers_share sum = {0};
    for (int layer = DECODER_OUTSIDE; layer < model->facts.layers; layer++)
        add_share(&sum, share_of(model, phase, layer, component));
    return sum;
}

static double plus_minus(const struct layers_model *model, double joules, double sigma)
{
    return hypot(sigma, model->systematic * joules); /* including the calibration */
}

static double share_of_all(const struct layers_model *model, double joules)
{
    return model->component_joules > 0 ? joules / model->component_joules : UNKNOWN;
}

static unsigned tokens_of(const struct layers_model *model, enum layers_phase phase)
{
    unsigned tokens = 0;
    for (size_t s = 0; s < model->setting_count; s++)
        if (model->settings[s].phase == phase)
            tokens += model->settings[s].tokens;
    return tokens;
}

/* ---- counted work ---- */

/* Of one pass: FLOPs, and the bytes that components read and write at their boundaries; elements of activations have 4
 * bytes, those of the KV cache 2. */
static enum err add_pass(const struct model *decoder, struct graph_options options,
                         double (*work)[2], struct error *why)
{
    static const struct precision_widths WIDTHS = {
        .weight = 2, .activation = 4, .cache = 2, .keeps_stored = true};
    struct graph graph;
    struct partition partition;
    enum err err = model_graph(decoder, &options, &graph, why);
    if (err)
        return err;
    partition_make(&graph, PARTITION_BY_COMPONENT, &partition);
    for (size_t i = 0; i < partition.count; i++) {
        const struct graph_cost *cost = &partition.subgraphs[i].cost;
        double *own = work[partition.subgraphs[i].component];
        own[0] += graph_flops(cost);
        own[1] += graph_cost_bytes(cost, &WIDTHS);
    }
    partition_release(&partition);
    graph_release(&graph);
    return ERR_OK;
}

/* A prompt is computed in graphs of at most ubatch tokens, all sequences together. */
static enum err add_prefill(const struct model *decoder, unsigned prompt, unsigned batch,
                            uint32_t ubatch, double (*work)[2], struct error *why)
{
    unsigned max = ubatch / batch ? ubatch / batch : 1;
    enum err err = ERR_OK;
    for (unsigned done = 0, part; done < prompt && !err; done += part) {
        part = prompt - done < max ? prompt - done : max;
        bool is_last = done + part == prompt;
        struct graph_options options = {.phase = GRAPH_PREFILL,
                                        .pruning = is_last ? GRAPH_PRUNE_TO_LAST : GRAPH_PRUNE_ALL,
                                        .batch = batch,
                                        .tokens = part,
                                        .cached = done};
        err = add_pass(decoder, options, work, why);
    }
    return err;
}

static enum err add_decode(const struct model *decoder, unsigned prompt, unsigned batch,
                           unsigned generate, double (*work)[2], struct error *why)
{
    enum err err = ERR_OK;
    for (unsigned i = 1; i <= generate && !err; i++) {
        struct graph_options options = {
            .phase = GRAPH_DECODE, .batch = batch, .context = (int64_t)prompt + i};
        err = add_pass(decoder, options, work, why);
    }
    return err;
}

static void set_work(struct layers_model *model, double work)
{
    for (unsigned i = 0; i < LAYERS_PHASES * LAYERS_COMPONENTS; i++) {
        unsigned c = i % LAYERS_COMPONENTS;
        double *both = model->work[i / LAYERS_COMPONENTS][c];
        both[0] = both[1] = c < DECODER_COMPONENT_COUNT ? work : UNKNOWN;
    }
}

void layers_count_work(struct layers_model *model, unsigned batch, unsigned generate,
                       uint32_t ubatch)
{
    struct model decoder;
    struct error why = {0};
    set_work(model, 0);
    enum err err = model_open(model->path, &decoder, &why);
    for (size_t s = 0; s < model->setting_count && !err; s++) {
        const struct layers_setting *setting = &model->settings[s];
        double(*work)[2] = model->work[setting->phase];
        err = setting->phase == LAYERS_PREFILL
                  ? add_prefill(&decoder, setting->prompt, batch, ubatch, work, &why)
                  : add_decode(&decoder, setting->prompt, batch, generate, work, &why);
    }
    model_close(&decoder);
    if (err) {
        set_work(model, UNKNOWN);
        chars_copy(model->work_unknown, why.text);
    }
}

/* A component's share of the counted work of its phase: FLOPs (kind 0) or bytes (1). */
static double work_share(const struct layers_model *model, unsigned phase, unsigned component,
                         unsigned kind)
{
    double sum = 0;
    for (unsigned c = 0; c < DECODER_COMPONENT_COUNT; c++)
        sum += model->work[phase][c][kind];
    return model->work[phase][component][kind] / sum;
}

/* ---- components and layers ---- */

/* Adds the component if it took time; NULL otherwise. */
static struct result_component *add_component(struct result_components *out,
                                              const struct layers_model *model,
                                              enum layers_phase phase, unsigned component,
                                              const struct layers_share *share)
{
    if (share->time_s <= 0)
        return NULL;
    struct result_component *item = &out->items[out->count++];
    *item = (struct result_component){
        .name = component_name(component),
        .phase = layers_phase_name(phase),
        .time_s = share->time_s,
        .energy_j = share->joules,
        .plus_minus = plus_minus(model, share->joules, share->sigma),
        .share = share_of_all(model, share->joules),
        .energy_per_token_j = share->joules / tokens_of(model, phase),
        .method = method_of(model, phase, component),
    };
    return item;
}

static void fill_layer(const struct layers_model *model, int layer, struct result_layer *out)
{
    struct layers_share sum = {0};
    out->components.items =
        xcalloc((size_t)LAYERS_PHASES * LAYERS_COMPONENTS, sizeof *out->components.items);
    for (unsigned i = 0; i < LAYERS_PHASES * LAYERS_COMPONENTS; i++) {
        enum layers_phase phase = (enum layers_phase)(i / LAYERS_COMPONENTS);
        unsigned c = i % LAYERS_COMPONENTS;
        const struct layers_share *share = share_of(model, phase, layer, c);
        add_component(&out->components, model, phase, c, share);
        add_share(&sum, share);
    }
    if (sum.time_s <= 0) /* not measured separately */
        sum = (struct layers_share){.time_s = UNKNOWN, .joules = UNKNOWN, .sigma = UNKNOWN};
    out->index = layer;
    out->time_s = sum.time_s;
    out->energy_j = sum.joules;
    out->plus_minus = plus_minus(model, sum.joules, sum.sigma);
    out->share = share_of_all(model, sum.joules);
}

static void fill_layers(const struct layers_model *model, struct layers_result *out)
{
    out->layers = xcalloc((size_t)model->facts.layers + 1, sizeof *out->layers);
    for (int layer = 0; layer < model->facts.layers; layer++)
        fill_layer(model, layer, &out->layers[out->layers_measured++]);
    out->has_outside = true;
    fill_layer(model, DECODER_OUTSIDE, &out->outside);
}

static void fill_components(const struct layers_model *model, struct layers_result *out)
{
    out->components.items =
        xcalloc((size_t)LAYERS_PHASES * LAYERS_COMPONENTS, sizeof *out->components.items);
    for (unsigned i = 0; i < LAYERS_PHASES * LAYERS_COMPONENTS; i++) {
        unsigned phase = i / LAYERS_COMPONENTS;
        unsigned c = i % LAYERS_COMPONENTS;
        struct layers_share sum = component_sum(model, (enum layers_phase)phase, c);
        const struct fit_power *power = &model->fit.columns[phase * LAYERS_PHASE_COLUMNS + c];
        struct result_component *item =
            add_component(&out->components, model, (enum layers_phase)phase, c, &sum);
        if (!item)
            continue;
        item->power_w = power->watts;
        item->group = (double)power->group;
        item->flops = model->work[phase][c][0];
        item->bytes = model->work[phase][c][1];
        item->flops_share = work_share(model, phase, c, 0);
        item->bytes_share = work_share(model, phase, c, 1);
        item->joules_per_gflop = sum.joules / item->flops * 1e9;
        item->joules_per_gb = sum.joules / item->bytes * 1e9;
    }
}

/* ---- settings and windows ---- */

static void fill_setting_components(const struct layers_setting *setting,
                                    struct result_components *out)
{
    double sum = 0;
    out->items = xcalloc(LAYERS_COMPONENTS, sizeof *out->items);
    for (unsigned c = 0; c < LAYERS_COMPONENTS; c++)
        sum += setting->columns[c].time_s > 0 ? setting->columns[c].joules : 0;
    for (unsigned c = 0; c < LAYERS_COMPONENTS; c++) {
        const struct layers_share *share = &setting->columns[c];
        if (share->time_s > 0)
            out->items[out->count++] = (struct result_component){.name = component_name(c),
                                                                 .time_s = share->time_s,
                                                                 .energy_j = share->joules,
                                                                 .share = share->joules / sum};
    }
}

static void fill_settings(const struct layers_model *model, struct layers_result *out)
{
    out->settings = xcalloc(model->setting_count + 1, sizeof *out->settings);
    for (size_t s = 0; s < model->setting_count; s++) {
        const struct layers_setting *setting = &model->settings[s];
        struct result_setting *row = &out->settings[out->setting_count++];
        *row = (struct result_setting){
            .phase = layers_phase_name(setting->phase),
            .prompt_tokens = setting->prompt,
            .tokens = setting->tokens,
            .time_s = setting->pass_s,
            .tokens_per_s = setting->tokens / setting->pass_s,
            .energy_j = setting->joules,
            .plus_minus = plus_minus(model, setting->joules, setting->joules_sigma),
            .energy_per_token_j = setting->joules / setting->tokens,
            .passes = (double)setting->passes,
            .windows = setting->windows,
            .refused = setting->refused,
            .overhead_pct = 100 * setting->overhead,
            .stride = setting->stride,
            .outside_graphs_s = setting->columns[LAYERS_HOST].time_s,
        };
        fill_setting_components(setting, &row->components);
    }
}

static void fill_windows(const struct layers_model *model, struct layers_result *out)
{
    out->windows = xcalloc(model->window_count + 1, sizeof *out->windows);
    for (size_t i = 0; i < model->window_count; i++) {
        const struct layers_window *window = &model->windows[i];
        const struct energy *energy = &window->energy;
        double length = seconds(window->to - window->from);
        out->windows[out->window_count++] = (struct result_window){
            .setting = window->setting < model->setting_count ? (double)window->setting : UNKNOWN,
            .round = window->round,
            .watched = (int8_t)window->timed,
            .start_s = seconds(window->from - model->windows[0].from),
            .time_s = length,
            .passes = (double)window->passes,
            .energy_j = energy->joules,
            .plus_minus = energy->plus_minus,
            .power_w = energy->joules / length,
            .coverage = energy->coverage,
            .updates = (double)energy->updates,
        };
    }
}

/* ---- nodes of an ONNX model ---- */

static const char *method_of_nodes(const struct layers_model *model)
{
    if (!model->gave_energy)
        return NULL;
    return model->total.method == METHOD_ESTIMATED ? "estimated" : "time-share";
}

static void fill_nodes(const struct layers_model *model, struct layers_result *out)
{
    const struct layers_nodes *nodes = &model->nodes;
    out->nodes = xcalloc(nodes->count + 1, sizeof *out->nodes);
    for (size_t i = 0; i < nodes->count; i++) {
        const struct layers_node *node = &nodes->items[i];
        const struct layers_share *share = &node->share;
        out->nodes[out->node_count++] = (struct result_node){
            .name = node->name,
            .op = node->op,
            .kernel = node->kernel,
            .calls = node->calls,
            .time_s = share->time_s,
            .time_plus_minus = share->time_sigma,
            .energy_j = share->joules,
            .plus_minus = plus_minus(model, share->joules, share->sigma),
            .share = share_of_all(model, share->joules),
            .estimated_time_s = node->estimated_s,
            .estimated_energy_j = node->estimated_j,
            .method = is_known(share->joules) ? method_of_nodes(model) : NULL,
        };
    }
    out->rest = (struct result_rest){nodes->rest_s, nodes->rest_j};
    out->estimate = (struct result_estimate){
        .device = str_or_null(nodes->device),
        .time_s = nodes->estimated_s,
        .time_plus_minus = nodes->estimated_s_error,
        .energy_j = nodes->estimated_j,
        .plus_minus = nodes->estimated_j_error,
        .unknown = str_or_null(nodes->estimate_unknown),
    };
}

/* What a decoder has and an ONNX model does not. */
static void fill_onnx(const struct layers_model *model, const struct layers_options *options,
                      struct layers_result *out)
{
    out->inputs = model->inputs;
    out->parameters = model->facts.parameters ? (double)model->facts.parameters : UNKNOWN;
    out->tensor_bytes = out->bits_per_weight = out->layer_count = out->embedding = out->heads =
        out->heads_kv = out->context = UNKNOWN;
    out->granularity = "node";
    out->threads = model->threads;
    out->batch = options->batch;
    out->seed = options->seed;
    for (size_t s = 0; s < out->setting_count; s++) {
        struct result_setting *setting = &out->settings[s];
        setting->phase = "run";
        setting->prompt_tokens = setting->tokens = setting->tokens_per_s = UNKNOWN;
        setting->energy_per_token_j = setting->outside_graphs_s = UNKNOWN;
    }
    if (model->gave_energy)
        out->attribution = "time-share";
    fill_nodes(model, out);
}

/* ---- a model ---- */

static void fill_facts(const struct layers_model *model, struct layers_result *out)
{
    const struct engine_model_facts *facts = &model->facts;
    out->model = model->path;
    out->description = facts->description;
    out->parameters = (double)facts->parameters;
    out->tensor_bytes = (double)facts->tensor_bytes;
    out->bits_per_weight = 8 * (double)facts->tensor_bytes / (double)facts->parameters;
    out->layer_count = facts->layers;
    out->embedding = facts->embedding;
    out->heads = facts->heads;
    out->heads_kv = facts->heads_kv;
    out->work_unknown = model->work_unknown[0] ? model->work_unknown : NULL;
    out->context = model->context;
    out->threads = model->threads;
}

static void fill_workload(const struct layers_options *options, struct layers_result *out)
{
    out->prompts = xcalloc(options->prompt_count + 1, sizeof *out->prompts);
    for (size_t i = 0; i < options->prompt_count; i++)
        out->prompts[out->prompt_count++] = options->prompts[i];
    out->generated_tokens = options->generate;
    out->batch = options->batch;
    out->gpu_layers = options->gpu_layers;
    out->seed = options->seed;
}

static void fill_checks(const struct layers_model *model, struct layers_result *out)
{
    if (model->gave_energy) {
        out->attribution = model->is_nnls ? "nnls" : "time-share";
        out->method = model->total.method == METHOD_ESTIMATED ? "estimated" : out->attribution;
        out->closure_unknown = model->no_closure[0] ? model->no_closure : NULL;
        if (is_known(model->closure))
            out->closure_pass = (int8_t)model->closes;
    }
    out->granularity = layers_granularity_name(model->granularity);
    out->rounds = model->rounds;
    out->interrupted = (int8_t)model->interrupted;
    out->overhead_pct = 100 * model->overhead;
    out->overhead_plus_minus = 100 * model->overhead_sigma;
    out->closure = model->closure;
    out->null_test.difference_pct = 100 * model->null_difference;
    out->null_test.plus_minus = 100 * model->null_sigma;
    if (is_known(model->null_difference))
        out->null_test.pass = (int8_t)model->null_holds;
}

static struct result_idle idle_of(const struct layers_idle *idle)
{
    return (struct result_idle){idle->seconds, idle->watts, idle->sigma};
}

static void fill_energy(const struct layers_model *model, struct layers_result *out)
{
    out->energy = record_energy_of(&model->total);
    out->components_j = model->component_joules;
    out->components_plus_minus = plus_minus(model, model->component_joules, model->component_sigma);
    out->idle_j = model->idle_joules;
    out->unattributed_j = model->unattributed_joules;
    out->awake_j = model->awake_joules;
    out->idle = idle_of(&model->idle);
    out->conditions = model->conditions.figures;
    out->awake = idle_of(&model->awake);
}

void layers_result_fill(const struct layers_model *model, const struct layers_options *options,
                        struct layers_result *out)
{
    struct json json;
    layers_result_init(out);
    fill_facts(model, out);
    fill_checks(model, out);
    fill_energy(model, out);
    json_init(&json, &out->devices, false);
    devices_to_json(&json, NULL, &model->ledger);
    out->version = IPW_VERSION;
    if (!model->is_onnx)
        fill_workload(options, out);
    if (model->shares[0]) {
        fill_components(model, out);
        fill_layers(model, out);
    }
    fill_settings(model, out);
    fill_windows(model, out);
    if (model->is_onnx)
        fill_onnx(model, options, out);
}
