/* One model after another: components, layers, settings, the energy balance and its checks; then a comparison. */
#include "report/text/reports.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "graph/graph.h"
#include "report/text/format.h"
#include "rundir/layers_result.h"

static const char *mark(const struct layers_result *model)
{
    return layers_result_is_estimated(model) ? "~" : "";
}

/* DECODER_COMPONENT_COUNT for one that represents several. */
static unsigned component_at(const struct result_component *component)
{
    unsigned i = 0;
    while (i < DECODER_COMPONENT_COUNT &&
           strcmp(decoder_component_name((enum decoder_component)i), component->name) != 0)
        i++;
    return i;
}

/* ---- the workload ---- */

static void write_head(const struct layers_result *model, struct text *out)
{
    char size[FORMAT_MAX];
    text_addf(out, " energy by layer of %s%s\n", plain_text(layers_result_name(model)).text,
              model->interrupted == 1 ? " (interrupted: partial)" : "");
    text_addf(out, " %s: %.4g M parameters, %s, %.0f layers; %.0f threads\n",
              plain_text(model->description).text, model->parameters * 1e-6,
              format_bytes(size, model->tensor_bytes), model->layer_count, model->threads);
    text_add(out, " one pass: prompts of ");
    for (size_t i = 0; i < model->prompt_count; i++)
        text_addf(out, "%s%.0f", i ? ", " : "", model->prompts[i]);
    text_addf(out, " tokens and %.0f generated after each", model->generated_tokens);
    if (model->batch > 1)
        text_addf(out, ", batch of %.0f sequences", model->batch);
    text_add(out, "\n\n");
}

/* ---- components ---- */

static void add_component(struct table *table, const struct layers_result *model,
                          const struct result_component *c)
{
    char cell[FORMAT_MAX];
    unsigned at = component_at(c);
    table_add(table, c->phase);
    table_add(table, at < DECODER_COMPONENT_COUNT
                         ? decoder_component_label((enum decoder_component)at)
                         : "all together");
    table_add(table, format_si(cell, c->time_s, "s"));
    table_addf(table, "%s%s", mark(model),
               format_with_error(cell, c->energy_j, c->plus_minus, "J"));
    table_add(table, format_percent(cell, c->share));
    table_add(table, format_percent(cell, c->flops_share));
    table_add(table, format_percent(cell, c->bytes_share));
    table_add(table, format_si(cell, c->joules_per_gflop, "J"));
    table_add(table, format_si(cell, c->joules_per_gb, "J"));
    table_add(table, c->method ? c->method : "unknown");
}

static void write_components(const struct layers_result *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false}, {"component", false}, {"time", true},  {"energy", true},
        {"share", true},  {"FLOPs", true},      {"bytes", true}, {"per GFLOP", true},
        {"a GB", true},   {"method", false},
    };
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < model->components.count; i++)
        add_component(&table, model, &model->components.items[i]);
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "   share: of the components' joules; FLOPs, bytes: share of the phase's, "
                  "counted from the model's shapes\n\n");
}

/* ---- layers ---- */

static void add_layer(struct table *table, const struct layers_result *model,
                      const struct result_layer *layer)
{
    char cell[FORMAT_MAX];
    double all = 0;
    if (layer == &model->outside)
        table_add(table, "outside");
    else
        table_addf(table, "%.0f", layer->index);
    for (size_t phase = 0; phase < RESULT_PHASES; phase++) {
        double time_s = 0, joules = 0;
        for (size_t i = 0; i < layer->components.count; i++) {
            const struct result_component *c = &layer->components.items[i];
            if (strcmp(c->phase, RESULT_PHASE[phase]) == 0) {
                time_s += c->time_s;
                joules += c->energy_j;
            }
        }
        table_add(table, time_s > 0 ? format_si(cell, time_s, "s") : "");
        table_add(table, time_s > 0 ? format_si(cell, joules, "J") : "");
        all += joules;
    }
    double whole = model->components_j;
    table_add(table, format_percent(cell, whole > 0 ? all / whole : UNKNOWN));
}

static void write_layers(const struct layers_result *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"layer", true},       {"prefill time", true}, {"energy", true},
        {"decode time", true}, {"energy", true},       {"share", true},
    };
    struct table table;
    if (strcmp(model->granularity, "phase") == 0)
        return;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < model->layers_measured; i++)
        add_layer(&table, model, &model->layers[i]);
    add_layer(&table, model, &model->outside);
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "\n");
}

/* ---- settings ---- */

/* Share of some components in the components' joules of a setting. */
static double part_of_setting(const struct result_setting *setting, unsigned from, unsigned to)
{
    double sum = 0, part = 0;
    for (size_t i = 0; i < setting->components.count; i++) {
        const struct result_component *c = &setting->components.items[i];
        unsigned at = component_at(c);
        sum += c->energy_j;
        part += at >= from && at <= to ? c->energy_j : 0;
    }
    return sum > 0 && part > 0 ? part / sum : UNKNOWN;
}

static void add_setting(struct table *table, const struct layers_result *model,
                        const struct result_setting *setting)
{
    static const unsigned PARTS[][2] = {{DECODER_ATTN_QKV, DECODER_ATTN_OUT},
                                        {DECODER_ATTN_SCORES, DECODER_ATTN_SCORES},
                                        {DECODER_FFN_GATE_UP, DECODER_FFN_DOWN}};
    char cell[FORMAT_MAX];
    table_add(table, setting->phase);
    table_addf(table, "%.0f", setting->prompt_tokens);
    table_add(table, format_si(cell, setting->tokens_per_s, ""));
    table_addf(table, "%s%s", mark(model),
               format_with_error(cell, setting->energy_j, setting->plus_minus, "J"));
    table_add(table, format_si(cell, setting->energy_per_token_j, "J"));
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        table_add(table, format_percent(cell, part_of_setting(setting, PARTS[i][0], PARTS[i][1])));
    table_addf(table, "%+.1f %%", setting->overhead_pct);
    table_addf(table, "%.0f", setting->windows);
}

static void write_settings(const struct layers_result *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false},    {"prompt", true},    {"tokens/s", true}, {"energy", true},
        {"per token", true}, {"attention", true}, {"scores", true},   {"feed-forward", true},
        {"overhead", true},  {"windows", true},
    };
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t s = 0; s < model->setting_count; s++)
        add_setting(&table, model, &model->settings[s]);
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "   energy: of whole windows, including idle\n\n");
}

/* ---- the energy balance and its checks ---- */

/* Power without the work: idle, and of busy-waiting threads. */
static void write_floor(const struct layers_result *model, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX];
    bool idle = is_known(model->idle.power_w), awake = is_known(model->awake.power_w);
    if (idle)
        text_addf(out, "   idle %s",
                  format_with_error(a, model->idle.power_w, model->idle.plus_minus, "W"));
    if (awake)
        text_addf(out, "%sbusy-waiting %s: %s of the components' joules", idle ? ", " : "   ",
                  format_si(a, model->awake.power_w, "W"),
                  format_percent(b, model->components_j > 0 ? model->awake_j / model->components_j
                                                            : UNKNOWN));
    text_add(out, idle || awake ? "\n" : "");
}

static void write_account(const struct layers_result *model, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX], d[FORMAT_MAX];
    if (!model->attribution) {
        text_addf(out, "   energy unknown: %s; see `ipw doctor`\n",
                  text_or_empty(model->energy.note));
        return;
    }
    text_addf(out, "   per pass: components %s + idle %s + unattributed %s = total %s%s\n",
              format_si(a, model->components_j, "J"),
              is_known(model->idle_j) ? format_si(b, model->idle_j, "J") : "unknown",
              format_si(c, model->unattributed_j, "J"), mark(model),
              format_with_error(d, model->energy.joules, model->energy.plus_minus, "J"));
    if (is_known(model->closure))
        text_addf(out, "   closure %.1f %% of the energy above idle: %s (90 to 110 %%)\n",
                  100 * model->closure, model->closure_pass == 1 ? "passed" : "FAILED");
    if (is_known(model->null_test.difference_pct))
        text_addf(out, "   null test: two halves of the same work differ by %s%s: %s\n",
                  model->null_test.difference_pct < 0 ? "" : "+",
                  format_figure(a, model->null_test.difference_pct / 100,
                                model->null_test.plus_minus / 100, "%"),
                  model->null_test.pass == 1 ? "passed" : "FAILED");
    write_floor(model, out);
    if (strcmp(model->attribution, "nnls") != 0)
        text_add(out, "   the windows cannot separate components by energy: within a phase, joules "
                      "are proportional to time\n");
}

static void write_notes(const struct layers_result *model, struct text *out)
{
    char cell[FORMAT_MAX];
    double stride = 1;
    for (size_t s = 0; s < model->setting_count; s++)
        stride = fmax(stride, model->settings[s].stride);
    text_addf(out, "   granularity %s, ", model->granularity);
    if (stride > 1)
        text_addf(out, "one layer in %.0f at a time, ", stride);
    text_addf(out, "%.0f round%s; instrumentation overhead %s%s%s\n", model->rounds,
              model->rounds == 1 ? "" : "s", model->overhead_pct < 0 ? "" : "+",
              format_figure(cell, model->overhead_pct / 100, model->overhead_plus_minus / 100, "%"),
              model->overhead_pct > RESULT_OVERHEAD_PCT_MAX ? ": too much" : "");
    if (layers_result_is_estimated(model))
        text_add(out, "   ~ estimated from CPU utilization, not measured: see `ipw doctor`\n");
    if (model->work_unknown)
        text_addf(out, "   work not counted: %s\n", model->work_unknown);
    text_add(out, "\n");
}

static void write_model(const struct layers_result *model, bool color, struct text *out)
{
    text_add(out, "\n");
    write_head(model, out);
    if (model->rounds == 0) {
        text_add(out, "   no round was completed\n\n");
        return;
    }
    format_findings(&model->conditions, color, out);
    write_components(model, color, out);
    write_layers(model, color, out);
    write_settings(model, color, out);
    write_account(model, out);
    write_notes(model, out);
}

/* ---- several models ---- */

static void write_comparison(const struct layers_results *results, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"model", false}, {"parameters", true}, {"bits per weight", true}, {"prefill", true},
        {"decode", true}, {"per pass", true},   {"vs. first", true},
    };
    struct table table;
    char cell[FORMAT_MAX];
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < results->count; i++) {
        const struct layers_result *model = &results->models[i];
        double error;
        table_add(&table, layers_result_name(model));
        table_add(&table, format_si(cell, model->parameters, ""));
        table_addf(&table, "%.2f", model->bits_per_weight);
        for (size_t phase = 0; phase < RESULT_PHASES; phase++)
            table_addf(
                &table, "%s/token",
                format_si(cell, layers_result_per_token(model, RESULT_PHASE[phase], &error), "J"));
        table_addf(&table, "%s%s", mark(model),
                   format_with_error(cell, model->energy.joules, model->energy.plus_minus, "J"));
        double ratio = model->energy.joules / results->models[0].energy.joules;
        if (is_known(ratio))
            table_addf(&table, "x %.3g", ratio);
        else
            table_add(&table, "-");
    }
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "\n");
}

void layers_text(const struct layers_results *results, bool color, struct text *out)
{
    const struct layers_result *first = &results->models[0];
    char a[FORMAT_MAX], b[FORMAT_MAX];
    for (size_t i = 0; i < results->count; i++)
        write_model(&results->models[i], color, out);
    if (results->count > 1)
        write_comparison(results, color, out);
    text_addf(out, "   ipw itself: %s reading sensors (%.0f reads)",
              format_si(a, first->own.read_s, "s"), first->own.reads);
    text_addf(out, ", %s CPU and %.1f MB with the model\n\n", format_si(b, first->own.cpu_s, "s"),
              first->own.rss_mb);
}
