/* The text of the result of `ipw layers`.  One model after another: components, layers, settings, the energy balance and
 * its checks; then a comparison. */
#include "report/text/reports.h"

#include <math.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"

static const char *const PHASES[] = {"prefill", "decode"};
enum { PHASE_COUNT = COUNT_OF(PHASES) };

static const char *mark(const struct result_item *model)
{
    return str_equal(result_text_at(model, "method"), "estimated") ? "~" : "";
}

static bool is_onnx(const struct result_item *model)
{
    return result_text_at(model, "inputs")[0];
}

static const char *name_of(const struct result_item *model)
{
    const char *path = result_text_at(model, "model");
    const char *slash = strrchr(path, '/');
    if (slash)
        return slash + 1;
    return path[0] ? path : "unnamed model";
}

/* ---- the workload ---- */

static void write_head(const struct result_item *model, struct text *out)
{
    char size[FORMAT_MAX];
    const char *before = "";
    text_addf(out, " energy by layer of %s%s\n", plain_text(name_of(model)).text,
              result_number_at(model, "interrupted") == 1 ? " (interrupted: partial)" : "");
    text_addf(out, " %s: %.4g M parameters, %s, %.0f layers; %.0f threads\n",
              plain_text(result_text_at(model, "description")).text,
              result_number_at(model, "parameters") * 1e-6,
              format_bytes(size, result_number_at(model, "tensor_bytes")),
              result_number_at(model, "layer_count"), result_number_at(model, "workload.threads"));
    text_add(out, " one pass: prompts of ");
    const struct result_item *prompts = result_at(model, "workload.prompt_tokens");
    RESULT_EACH (tokens, prompts) {
        text_addf(out, "%s%.0f", before, result_value(tokens));
        before = ", ";
    }
    text_addf(out, " tokens and %.0f generated after each",
              result_number_at(model, "workload.generated_tokens"));
    if (result_number_at(model, "workload.batch") > 1)
        text_addf(out, ", batch of %.0f sequences", result_number_at(model, "workload.batch"));
    text_add(out, "\n\n");
}

/* ---- components ---- */

/* "attn_qkv" -> "attention: qkv"; "all" represents several. */
static void add_component_name(struct table *table, const char *name)
{
    static const struct {
        const char *prefix, *label;
    } PARTS[] = {{"attn_", "attention: "}, {"ffn_", "feed-forward: "}};
    char label[64];
    if (str_equal(name, "all"))
        name = "all together";
    chars_copy(label, name);
    for (size_t i = 0; i < COUNT_OF(PARTS); i++)
        if (str_starts(name, PARTS[i].prefix))
            chars_format(label, "%s%.40s", PARTS[i].label, name + strlen(PARTS[i].prefix));
    for (char *at = label; *at; at++)
        if (*at == '_')
            *at = '-';
    table_add(table, label);
}

static void add_component(struct table *table, const struct result_item *model,
                          const struct result_item *component)
{
    char cell[FORMAT_MAX];
    table_add(table, result_text_at(component, "phase"));
    add_component_name(table, result_text_at(component, "name"));
    table_add(table, format_si(cell, result_number_at(component, "time_s"), "s"));
    table_addf(table, "%s%s", mark(model),
               format_with_error(cell, result_number_at(component, "energy_j"),
                                 result_number_at(component, "plus_minus"), "J"));
    table_add(table, format_percent(cell, result_number_at(component, "share")));
    table_add(table, format_percent(cell, result_number_at(component, "flops_share")));
    table_add(table, format_percent(cell, result_number_at(component, "bytes_share")));
    table_add(table, format_si(cell, result_number_at(component, "joules_per_gflop"), "J"));
    table_add(table, format_si(cell, result_number_at(component, "joules_per_gb"), "J"));
    table_add(table, result_text_at(component, "method")[0] ? result_text_at(component, "method")
                                                            : "unknown");
}

static void write_components(const struct result_item *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false}, {"component", false}, {"time", true},  {"energy", true},
        {"share", true},  {"FLOPs", true},      {"bytes", true}, {"per GFLOP", true},
        {"a GB", true},   {"method", false},
    };
    struct table table = TABLE(COLUMNS);
    const struct result_item *components = result_at(model, "components");
    RESULT_EACH (one, components)
        add_component(&table, model, one);
    table_print(&table, "   ", color, out);
    text_add(out, "   share: of the components' joules; FLOPs, bytes: share of the phase's, "
                  "counted from the model's shapes\n\n");
}

/* ---- layers ---- */

/* Of the components of one phase. */
static double sum_of_phase(const struct result_item *layer, const char *phase, const char *key)
{
    double sum = 0;
    const struct result_item *components = result_at(layer, "components");
    RESULT_EACH (one, components)
        if (str_equal(result_text_at(one, "phase"), phase))
            sum += result_number_at(one, key);
    return sum;
}

static void add_layer(struct table *table, const struct result_item *model,
                      const struct result_item *layer)
{
    char cell[FORMAT_MAX];
    double all = 0;
    double whole = result_number_at(model, "components_j");
    if (result_get(layer, "index"))
        table_addf(table, "%.0f", result_number_at(layer, "index"));
    else
        table_add(table, "outside");
    for (size_t phase = 0; phase < PHASE_COUNT; phase++) {
        double time_s = sum_of_phase(layer, PHASES[phase], "time_s");
        double joules = sum_of_phase(layer, PHASES[phase], "energy_j");
        table_add(table, time_s > 0 ? format_si(cell, time_s, "s") : "");
        table_add(table, time_s > 0 ? format_si(cell, joules, "J") : "");
        all += joules;
    }
    table_add(table, format_percent(cell, whole > 0 ? all / whole : UNKNOWN));
}

static void write_layers(const struct result_item *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"layer", true},       {"prefill time", true}, {"energy", true},
        {"decode time", true}, {"energy", true},       {"share", true},
    };
    struct table table = TABLE(COLUMNS);
    if (str_equal(result_text_at(model, "granularity"), "phase"))
        return;
    RESULT_EACH (one, result_at(model, "layers"))
        add_layer(&table, model, one);
    add_layer(&table, model, result_at(model, "outside"));
    table_print(&table, "   ", color, out);
    text_add(out, "\n");
}

/* ---- settings ---- */

/* Share of the components with this prefix in the components' joules of a setting. */
static double part_of_setting(const struct result_item *setting, const char *prefix)
{
    double sum = 0, part = 0;
    const struct result_item *components = result_at(setting, "components");
    RESULT_EACH (one, components) {
        double joules = result_number_at(one, "energy_j");
        sum += joules;
        part += str_starts(result_text_at(one, "name"), prefix) ? joules : 0;
    }
    return sum > 0 && part > 0 ? part / sum : UNKNOWN;
}

static void add_setting(struct table *table, const struct result_item *model,
                        const struct result_item *setting)
{
    static const char *const PARTS[] = {"attn_", "attn_scores", "ffn_"};
    char cell[FORMAT_MAX];
    table_add(table, result_text_at(setting, "phase"));
    table_addf(table, "%.0f", result_number_at(setting, "prompt_tokens"));
    table_add(table, format_si(cell, result_number_at(setting, "tokens_per_s"), ""));
    table_addf(table, "%s%s", mark(model),
               format_with_error(cell, result_number_at(setting, "energy_j"),
                                 result_number_at(setting, "plus_minus"), "J"));
    table_add(table, format_si(cell, result_number_at(setting, "energy_per_token_j"), "J"));
    for (size_t i = 0; i < COUNT_OF(PARTS); i++)
        table_add(table, format_percent(cell, part_of_setting(setting, PARTS[i])));
    table_addf(table, "%+.1f %%", result_number_at(setting, "overhead_pct"));
    table_addf(table, "%.0f", result_number_at(setting, "windows"));
}

static void write_settings(const struct result_item *model, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false},    {"prompt", true},    {"tokens/s", true}, {"energy", true},
        {"per token", true}, {"attention", true}, {"scores", true},   {"feed-forward", true},
        {"overhead", true},  {"windows", true},
    };
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (one, result_at(model, "settings"))
        add_setting(&table, model, one);
    table_print(&table, "   ", color, out);
    text_add(out, "   energy: of whole windows, including idle\n\n");
}

/* ---- the energy balance and its checks ---- */

/* Power without the work: idle, and of busy-waiting threads. */
static void write_floor(const struct result_item *model, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX];
    double idle_w = result_number_at(model, "idle.power_w");
    double awake_w = result_number_at(model, "awake.power_w");
    double whole = result_number_at(model, "components_j");
    if (is_known(idle_w))
        text_addf(out, "   idle %s",
                  format_with_error(a, idle_w, result_number_at(model, "idle.plus_minus"), "W"));
    if (is_known(awake_w))
        text_addf(
            out, "%sbusy-waiting %s: %s of the components' joules", is_known(idle_w) ? ", " : "   ",
            format_si(a, awake_w, "W"),
            format_percent(b, whole > 0 ? result_number_at(model, "awake_j") / whole : UNKNOWN));
    text_add(out, is_known(idle_w) || is_known(awake_w) ? "\n" : "");
}

static void write_checks(const struct result_item *model, struct text *out)
{
    char cell[FORMAT_MAX];
    double closure = result_number_at(model, "closure");
    double null = result_number_at(model, "null_test.difference_pct");
    if (is_known(closure))
        text_addf(out, "   closure %.1f %% of the energy above idle: %s (90 to 110 %%)\n",
                  100 * closure,
                  result_number_at(model, "closure_pass") == 1 ? "passed" : "FAILED");
    else if (result_text_at(model, "closure_unknown")[0])
        text_addf(out, "   closure not determined: %s\n", result_text_at(model, "closure_unknown"));
    if (is_known(null))
        text_addf(out, "   null test: two halves of the same work differ by %s%s: %s\n",
                  null < 0 ? "" : "+",
                  format_figure(cell, null / 100,
                                result_number_at(model, "null_test.plus_minus") / 100, "%"),
                  result_number_at(model, "null_test.pass") == 1 ? "passed" : "FAILED");
}

static void write_account(const struct result_item *model, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX], d[FORMAT_MAX];
    double idle = result_number_at(model, "idle_j");
    if (!result_text_at(model, "attribution")[0]) {
        text_addf(out, "   energy unknown: %s; see `ipw doctor`\n",
                  result_text_at(model, "energy.note"));
        return;
    }
    format_with_error(d, result_number_at(model, "energy.joules"),
                      result_number_at(model, "energy.plus_minus"), "J");
    text_addf(out, "   per pass: %s %s + idle %s + unattributed %s = total %s%s\n",
              is_onnx(model) ? "nodes" : "components",
              format_si(a, result_number_at(model, "components_j"), "J"),
              is_known(idle) ? format_si(b, idle, "J") : "unknown",
              format_si(c, result_number_at(model, "unattributed_j"), "J"), mark(model), d);
    write_checks(model, out);
    write_floor(model, out);
    if (is_onnx(model))
        text_add(out,
                 "   nodes share the joules by time: one that draws more power than others gets "
                 "too few\n");
    else if (!str_equal(result_text_at(model, "attribution"), "nnls"))
        text_add(out, "   the windows cannot separate components by energy: within a phase, joules "
                      "are proportional to time\n");
}

static void write_notes(const struct result_item *model, struct text *out)
{
    char cell[FORMAT_MAX];
    double stride = 1;
    double rounds = result_number_at(model, "rounds");
    double overhead = result_number_at(model, "overhead_pct");
    RESULT_EACH (setting, result_at(model, "settings"))
        stride = fmax(stride, result_number_at(setting, "stride"));
    text_addf(out, "   granularity %s, ", result_text_at(model, "granularity"));
    if (stride > 1)
        text_addf(out, "one layer in %.0f at a time, ", stride);
    text_addf(out, "%.0f round%s; %s overhead %s%s\n", rounds, str_plural(rounds),
              is_onnx(model) ? "profiling" : "instrumentation", overhead < 0 ? "" : "+",
              format_figure(cell, overhead / 100,
                            result_number_at(model, "overhead_plus_minus") / 100, "%"));
    if (mark(model)[0])
        text_add(out, "   ~ estimated from CPU utilization, not measured: see `ipw doctor`\n");
    if (result_text_at(model, "work_unknown")[0])
        text_addf(out, "   work not counted: %s\n", result_text_at(model, "work_unknown"));
    text_add(out, "\n");
}

static void write_model(const struct result_item *model, bool color, struct text *out)
{
    text_add(out, "\n");
    if (is_onnx(model))
        layers_nodes_head(model, name_of(model), out);
    else
        write_head(model, out);
    if (result_number_at(model, "rounds") == 0) {
        text_add(out, "   no round was completed\n\n");
        return;
    }
    findings_text(result_at(model, "conditions.findings"), color, out);
    if (is_onnx(model)) {
        layers_nodes_tables(model, mark(model), color, out);
    } else {
        write_components(model, color, out);
        write_layers(model, color, out);
        write_settings(model, color, out);
    }
    write_account(model, out);
    write_notes(model, out);
}

/* ---- several models ---- */

/* Joules per token over all prompt lengths with known energy. */
static double joules_per_token(const struct result_item *model, const char *phase)
{
    double joules = 0, tokens = 0;
    RESULT_EACH (one, result_at(model, "settings")) {
        double energy = result_number_at(one, "energy_j");
        if (str_equal(result_text_at(one, "phase"), phase) && is_known(energy)) {
            joules += energy;
            tokens += result_number_at(one, "tokens");
        }
    }
    return tokens > 0 ? joules / tokens : UNKNOWN;
}

static void add_model(struct table *table, const struct result_item *model, double first_j)
{
    char cell[FORMAT_MAX];
    double joules = result_number_at(model, "energy.joules");
    double ratio = joules / first_j;
    table_add(table, name_of(model));
    table_add(table, format_si(cell, result_number_at(model, "parameters"), ""));
    table_addf(table, "%.2f", result_number_at(model, "bits_per_weight"));
    for (size_t phase = 0; phase < PHASE_COUNT; phase++)
        table_addf(table, "%s/token", format_si(cell, joules_per_token(model, PHASES[phase]), "J"));
    table_addf(table, "%s%s", mark(model),
               format_with_error(cell, joules, result_number_at(model, "energy.plus_minus"), "J"));
    table_add_known(table, ratio, "x %.3g", ratio);
}

static void write_comparison(const struct result_item *models, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"model", false}, {"parameters", true}, {"bits per weight", true}, {"prefill", true},
        {"decode", true}, {"per pass", true},   {"vs. first", true},
    };
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (one, models)
        add_model(&table, one, result_number_at(models, "0.energy.joules"));
    table_print(&table, "   ", color, out);
    text_add(out, "\n");
}

static void layers_text(const struct result *result, bool color, struct text *out)
{
    const struct result_item *models = result_find(result, "models");
    char a[FORMAT_MAX], b[FORMAT_MAX];
    if (!models) /* the result is that of one model */
        write_model(result->items, color, out);
    RESULT_EACH (one, models)
        write_model(one, color, out);
    if (result_length(models) > 1)
        write_comparison(models, color, out);
    for (const char *line = NULL; (line = result_line(&result->warnings, line));)
        text_addf(out, "   warning: %s\n", plain_text(line).text);
    text_addf(out, "   ipw itself: %s reading sensors (%.0f reads)",
              format_si(a, result_number_at(result->items, "own.read_s"), "s"),
              result_number_at(result->items, "own.reads"));
    text_addf(out, ", %s CPU and %.1f MB with the model\n\n",
              format_si(b, result_number_at(result->items, "own.cpu_s"), "s"),
              result_number_at(result->items, "own.rss_mb"));
}

const struct print_views LAYERS_VIEWS = {.text = layers_text};
