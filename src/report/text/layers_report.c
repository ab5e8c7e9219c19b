#include "report/text/layers_report.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "graph/decoder_cost.h"
#include "report/text/format.h"
#include "report/text/table.h"
#include "runner/layers/layers.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *mark(const struct layers_model *model)
{
    return model->total.method == METHOD_ESTIMATED ? "~" : "";
}

static double share_of_all(const struct layers_model *model, double joules)
{
    return model->component_joules > 0 ? joules / model->component_joules : UNKNOWN;
}

/* ---- what was run ---- */

static void write_head(const struct layers_report *report, const struct layers_model *model,
                       struct text *out)
{
    const struct layers_options *options = report->options;
    char size[FORMAT_MAX];
    text_addf(out, " energy by layer of %s%s\n", base_name(model->path),
              model->interrupted ? " (interrupted: partial)" : "");
    text_addf(out, " %s: %.4g M parameters, %s, %d layers; %d threads\n", model->facts.description,
              (double)model->facts.parameters * 1e-6,
              format_bytes(size, (double)model->facts.tensor_bytes), model->facts.layers,
              model->threads);
    text_add(out, " one pass: prompts of ");
    for (size_t i = 0; i < options->prompt_count; i++)
        text_addf(out, "%s%u", i ? ", " : "", options->prompts[i]);
    text_addf(out, " tokens and %u generated after each", options->generate);
    if (options->batch > 1)
        text_addf(out, ", %u sequences together", options->batch);
    text_add(out, "\n\n");
}

/* ---- components ---- */

static void add_component(struct table *table, const struct layers_model *model, unsigned phase,
                          unsigned c)
{
    struct layers_share sum = layers_component_sum(model, (enum layers_phase)phase, c);
    char cell[FORMAT_MAX];
    if (sum.time_s <= 0)
        return;
    const double *work = model->work[phase][c];
    const char *method = layers_method(model, (enum layers_phase)phase, c);
    table_add(table, layers_phase_name((enum layers_phase)phase));
    table_add(table, layers_component_words(c));
    table_add(table, format_si(cell, sum.time_s, "s"));
    table_addf(
        table, "%s%s", mark(model),
        format_with_error(cell, sum.joules, layers_plus_minus(model, sum.joules, sum.sigma), "J"));
    table_add(table, format_percent(cell, share_of_all(model, sum.joules)));
    table_add(table, format_percent(cell, layers_work_share(model, phase, c, 0)));
    table_add(table, format_percent(cell, layers_work_share(model, phase, c, 1)));
    table_add(table, format_si(cell, sum.joules / work[0] * 1e9, "J"));
    table_add(table, format_si(cell, sum.joules / work[1] * 1e9, "J"));
    table_add(table, method ? method : "unknown");
}

static void write_components(const struct layers_model *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false}, {"component", false}, {"time", true},  {"energy", true},
        {"share", true},  {"FLOPs", true},      {"bytes", true}, {"a GFLOP", true},
        {"a GB", true},   {"method", false},
    };
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (unsigned c = 0; c < LAYERS_COMPONENTS; c++)
            add_component(&table, model, phase, c);
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "   share: of the components' joules; FLOPs, bytes: of the phase's, counted from "
                  "the model's shape\n\n");
}

/* ---- layers ---- */

static struct layers_share phase_of_layer(const struct layers_model *model, unsigned phase,
                                          int layer)
{
    struct layers_share sum = {0};
    for (unsigned c = 0; c < LAYERS_COMPONENTS; c++) {
        const struct layers_share *share =
            layers_share_of(model, (enum layers_phase)phase, layer, c);
        sum.time_s += share->time_s;
        sum.joules += share->time_s > 0 ? share->joules : 0;
    }
    return sum;
}

static void add_layer(struct table *table, const struct layers_model *model, int layer)
{
    char cell[FORMAT_MAX];
    double joules = 0;
    if (layer == DECODER_OUTSIDE)
        table_add(table, "outside");
    else
        table_addf(table, "%d", layer);
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++) {
        struct layers_share sum = phase_of_layer(model, phase, layer);
        table_add(table, sum.time_s > 0 ? format_si(cell, sum.time_s, "s") : "");
        table_add(table, sum.time_s > 0 ? format_si(cell, sum.joules, "J") : "");
        joules += sum.joules;
    }
    table_add(table, format_percent(cell, share_of_all(model, joules)));
}

static void write_layers(const struct layers_model *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"layer", true},       {"prefill time", true}, {"energy", true},
        {"decode time", true}, {"energy", true},       {"share", true},
    };
    struct table table;
    if (model->granularity == LAYERS_BY_PHASE)
        return;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (int layer = 0; layer < model->facts.layers; layer++)
        add_layer(&table, model, layer);
    add_layer(&table, model, DECODER_OUTSIDE);
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "\n");
}

/* ---- settings ---- */

/* Of the components' joules in a setting, those of some of them. */
static double part_of_setting(const struct layers_setting *setting, unsigned from, unsigned to)
{
    double sum = 0, part = 0;
    for (unsigned c = 0; c < LAYERS_COMPONENTS; c++) {
        if (setting->columns[c].time_s <= 0)
            continue;
        sum += setting->columns[c].joules;
        if (c >= from && c <= to)
            part += setting->columns[c].joules;
    }
    return sum > 0 && part > 0 ? part / sum : UNKNOWN;
}

static void add_setting(struct table *table, const struct layers_model *model,
                        const struct layers_setting *setting)
{
    char cell[FORMAT_MAX];
    table_add(table, layers_phase_name(setting->phase));
    table_addf(table, "%u", setting->prompt);
    table_add(table, format_si(cell, setting->tokens / setting->pass_s, ""));
    table_addf(table, "%s%s", mark(model),
               format_with_error(cell, setting->joules,
                                 layers_plus_minus(model, setting->joules, setting->joules_sigma),
                                 "J"));
    table_add(table, format_si(cell, setting->joules / setting->tokens, "J"));
    table_add(table,
              format_percent(cell, part_of_setting(setting, DECODER_ATTN_QKV, DECODER_ATTN_OUT)));
    table_add(table, format_percent(
                         cell, part_of_setting(setting, DECODER_ATTN_SCORES, DECODER_ATTN_SCORES)));
    table_add(table, format_percent(
                         cell, part_of_setting(setting, DECODER_FFN_GATE_UP, DECODER_FFN_DOWN)));
    table_addf(table, "%+.1f %%", 100 * setting->overhead);
    table_addf(table, "%u", setting->windows);
}

static void write_settings(const struct layers_model *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false},   {"prompt", true},    {"tokens/s", true}, {"energy", true},
        {"a token", true},  {"attention", true}, {"scores", true},   {"feed-forward", true},
        {"overhead", true}, {"windows", true},
    };
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t s = 0; s < model->setting_count; s++)
        add_setting(&table, model, &model->settings[s]);
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "   energy: of whole windows, idle included\n\n");
}

/* ---- the account and its checks ---- */

static void write_account(const struct layers_model *model, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX], d[FORMAT_MAX];
    if (!model->gave_energy) {
        text_addf(out, "   energy unknown: %s; see `ipw doctor`\n", model->no_energy);
        return;
    }
    text_addf(out, "   a pass: components %s + idle %s + unattributed %s = all %s%s\n",
              format_si(a, model->component_joules, "J"),
              is_known(model->idle_joules) ? format_si(b, model->idle_joules, "J") : "unknown",
              format_si(c, model->unattributed_joules, "J"), mark(model),
              format_with_error(d, model->total.joules, model->total.plus_minus, "J"));
    text_addf(out, "   closure %.1f %%: %s (90 to 110 %%)\n", 100 * model->closure,
              model->closes ? "passed" : "FAILED");
    if (is_known(model->null_difference))
        text_addf(out, "   null test: the same work in two halves differs by %+.2f ± %.2f %%: %s\n",
                  100 * model->null_difference, 100 * model->null_sigma,
                  model->null_holds ? "passed" : "FAILED");
    if (is_known(model->idle.watts))
        text_addf(out, "   idle %s",
                  format_with_error(a, model->idle.watts, model->idle.sigma, "W"));
    if (is_known(model->awake.watts))
        text_addf(out, ", busy-waiting %s: %s of the components' joules",
                  format_si(a, model->awake.watts, "W"),
                  format_percent(b, share_of_all(model, model->awake_joules)));
    if (is_known(model->idle.watts))
        text_add(out, "\n");
    if (!model->is_nnls)
        text_add(out, "   the windows cannot separate components by energy: within a phase, "
                      "joules are in proportion to time\n");
}

static void write_notes(const struct layers_model *model, struct text *out)
{
    unsigned stride = 1;
    for (size_t s = 0; s < model->setting_count; s++)
        stride = model->settings[s].stride > stride ? model->settings[s].stride : stride;
    text_addf(out, "   granularity %s, ", layers_granularity_name(model->granularity));
    if (stride > 1)
        text_addf(out, "one layer in %u at a time, ", stride);
    text_addf(out, "%u round%s; instrumentation overhead %+.2f", model->rounds,
              model->rounds == 1 ? "" : "s", 100 * model->overhead);
    if (is_known(model->overhead_sigma))
        text_addf(out, " ± %.2f", 100 * model->overhead_sigma);
    text_addf(out, " %%%s\n", model->overhead > LAYERS_OVERHEAD_MAX ? ": too much" : "");
    if (model->total.method == METHOD_ESTIMATED)
        text_add(out, "   ~ estimated from CPU utilization, not measured: see `ipw doctor`\n");
    if (!model->has_decoder)
        text_addf(out, "   work not counted: %s\n", model->no_decoder);
    text_add(out, "\n");
}

static void write_model(const struct layers_report *report, const struct layers_model *model,
                        bool color, struct text *out)
{
    text_add(out, "\n");
    write_head(report, model, out);
    if (model->rounds == 0) {
        text_add(out, "   no round was completed\n\n");
        return;
    }
    write_components(model, color, out);
    write_layers(model, color, out);
    write_settings(model, color, out);
    write_account(model, out);
    write_notes(model, out);
}

/* ---- several models ---- */

static double per_token(const struct layers_model *model, enum layers_phase phase)
{
    double joules = 0, tokens = 0;
    for (size_t s = 0; s < model->setting_count; s++)
        if (model->settings[s].phase == phase) {
            joules += model->settings[s].joules;
            tokens += model->settings[s].tokens;
        }
    return tokens > 0 ? joules / tokens : UNKNOWN;
}

static void write_comparison(const struct layers_result *result, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"model", false}, {"parameters", true}, {"bits a weight", true},     {"prefill", true},
        {"decode", true}, {"a pass", true},     {"against the first", true},
    };
    struct table table;
    char cell[FORMAT_MAX];
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < result->count; i++) {
        const struct layers_model *model = &result->models[i];
        double parameters = (double)model->facts.parameters;
        table_add(&table, base_name(model->path));
        table_add(&table, format_si(cell, parameters, ""));
        table_addf(&table, "%.2f", 8 * (double)model->facts.tensor_bytes / parameters);
        table_addf(&table, "%s/token", format_si(cell, per_token(model, LAYERS_PREFILL), "J"));
        table_addf(&table, "%s/token", format_si(cell, per_token(model, LAYERS_DECODE), "J"));
        table_addf(&table, "%s%s", mark(model),
                   format_with_error(cell, model->total.joules, model->total.plus_minus, "J"));
        double ratio = model->total.joules / result->models[0].total.joules;
        if (is_known(ratio))
            table_addf(&table, "x %.3g", ratio);
        else
            table_add(&table, "-");
    }
    table_write(&table, "   ", color, out);
    table_release(&table);
    text_add(out, "\n");
}

void layers_text(const struct layers_report *report, bool color, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX];
    for (size_t i = 0; i < report->result->count; i++)
        write_model(report, &report->result->models[i], color, out);
    if (report->result->count > 1)
        write_comparison(report->result, color, out);
    text_addf(out, "   ipw itself: %s reading sensors (%lu reads)",
              format_si(a, report->read_s, "s"), report->reads);
    text_addf(out, ", %s CPU and %.1f MB with the model\n\n", format_si(b, report->own.cpu_s, "s"),
              report->own.rss_mb);
}
