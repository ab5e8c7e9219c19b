/* ipw govern: hold a latency SLO or a power cap with the least energy.
 *
 *   $ ipw govern --slo-itl-ms 50 --metrics-url http://localhost:8000 --dry-run
 *   # ipw govern --slo-itl-ms 50 --metrics-url http://localhost:8000 --log govern.jsonl
 *
 * A line for each interval goes to stdout, or with --json one object at the end. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "port/proc.h"
#include "power/governor.h"
#include "report/text/format.h"
#include "runner/govern.h"

#define COARSE 0.8 /* ratio of the bounds of the SLO's bucket below which a warning is printed */

struct govern_command {
    double ttft_ms, itl_ms, max_power_w, lowest, interval_s, duration_s;
    const char *set, *metrics_url, *model, *application, *devices, *log;
    bool dry_run, json, quiet;
};

static struct govern_command args = {.ttft_ms = UNKNOWN,
                                     .itl_ms = UNKNOWN,
                                     .max_power_w = UNKNOWN,
                                     .lowest = UNKNOWN,
                                     .interval_s = 5,
                                     .set = "clock"};

struct view {
    struct output log;
    unsigned rows;
};

static const char *knob_unit(void)
{
    return strcmp(args.set, "clock") ? "W" : "MHz";
}

/* ---- the log ---- */

/* By enum governor_action. */
static const char *const ACTIONS[] = {"learn",  "hold",     "lower",    "raise", "cap",
                                      "costly", "violated", "overload", "stale"};

static void add_step_json(struct json *json, const struct govern_step *step)
{
    json_object(json, NULL);
    json_number(json, "t_s", step->t_s);
    json_number(json, "ttft_ms", step->latency_s[GOVERN_TTFT] * 1e3);
    json_number(json, "itl_ms", step->latency_s[GOVERN_ITL] * 1e3);
    json_bool(json, "itl_is_mean", step->is_mean[GOVERN_ITL]);
    json_number(json, "observations", step->observations);
    json_number(json, "power_w", step->power_w);
    json_number(json, "clock_mhz", step->clock_mhz);
    json_number(json, "utilization_pct", step->utilization * 100);
    json_number(json, "tokens_per_s", step->tokens_per_s);
    json_string(json, "action", ACTIONS[step->decision.action]);
    json_bool(json, "change", step->decision.is_change);
    json_number(json, "decided", step->decided); /* null: the default */
    json_number(json, "setting", step->setting);
    json_bool(json, "violated", step->is_violated);
    json_string(json, "problem", step->problem);
    json_object_end(json);
}

static enum err log_step(struct view *view, const struct govern_step *step, struct error *why)
{
    struct text line = {0};
    struct json json;
    json_init(&json, &line, false);
    add_step_json(&json, step);
    text_add(&line, "\n");
    enum err err = line.failed ? err_no_memory(why)
                               : output_write(&view->log, text_get(&line), line.length, why);
    text_release(&line);
    return err;
}

/* ---- lines ---- */

static void add_cell(struct text *out, int width, double value, int digits)
{
    if (is_known(value))
        text_addf(out, "%*.*f", width, digits, value);
    else
        text_addf(out, "%*s", width, "-");
}

static void add_action(struct text *out, const struct govern_step *step)
{
    const char *name = ACTIONS[step->decision.action];
    text_addf(out, "  %s", name);
    if (step->decision.is_change && args.dry_run && step->decision.is_default)
        text_add(out, ": would restore the default");
    else if (step->decision.is_change && args.dry_run)
        text_addf(out, ": would set %g %s", step->decided, knob_unit());
    if (step->problem)
        text_addf(out, " (%s)", step->problem);
}

static enum err show_step(struct view *view, const struct govern_step *step, struct error *why)
{
    struct text out = {0};
    if (view->rows++ % 20 == 0)
        text_addf(&out, "%8s%10s%10s%9s%9s%7s%10s%9s  action\n", "time s", "TTFT ms", "ITL ms",
                  "power W", "MHz", "util %", "tokens/s", args.dry_run ? "-" : knob_unit());
    add_cell(&out, 8, step->t_s, 1);
    add_cell(&out, 10, step->latency_s[GOVERN_TTFT] * 1e3, 1);
    add_cell(&out, 10, step->latency_s[GOVERN_ITL] * 1e3, 2);
    add_cell(&out, 9, step->power_w, 1);
    add_cell(&out, 9, step->clock_mhz, 0);
    add_cell(&out, 7, step->utilization * 100, 0);
    add_cell(&out, 10, step->tokens_per_s, 1);
    if (is_known(step->setting))
        add_cell(&out, 9, step->setting, 0);
    else
        text_addf(&out, "%9s", "default");
    add_action(&out, step);
    text_add(&out, "\n");
    enum err err = write_lines(NULL, &out, why);
    text_release(&out);
    return err;
}

static enum err take_step(void *context, const struct govern_step *step, struct error *why)
{
    struct view *view = context;
    enum err err = args.log ? log_step(view, step, why) : ERR_OK;
    return err || args.json || args.quiet ? err : show_step(view, step, why);
}

/* A percentile inside a wide bucket is imprecise. */
static void warn_coarse(const struct govern_result *result)
{
    for (int m = 0; m < GOVERN_METRICS; m++) {
        const double *bounds = result->bounds_s[m];
        if (is_known(bounds[0]) && !is_known(bounds[1]))
            print_error(
                0, "%s has no bucket bound above %g ms: slower requests count as SLO violations",
                result->metric_name[m], bounds[0] * 1e3);
        else if (bounds[0] < COARSE * bounds[1])
            print_error(
                0,
                "%s has no bucket bound between %g and %g ms: percentiles near the SLO are coarse",
                result->metric_name[m], bounds[0] * 1e3, bounds[1] * 1e3);
    }
}

static void begin(void *context, const struct govern_result *result)
{
    (void)context;
    warn_coarse(result);
    if (args.quiet)
        return;
    notify("ipw govern: %s (%s)", result->device, result->name);
    for (int m = 0; m < GOVERN_METRICS; m++)
        if (result->metric_name[m])
            notify(", %s", result->metric_name[m]);
    if (args.dry_run)
        notify("; dry run: nothing is set\n");
    else
        notify("; sets its %s as root and restores it at the end; after a crash: `ipw sweep "
               "--restore`\n",
               strcmp(args.set, "clock") ? "power limit" : "clock");
}

/* ---- the result ---- */

static void add_result_json(const struct govern_result *result, struct text *out)
{
    struct json json;
    double readings = (double)result->readings;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "device", result->device);
    json_string(&json, "name", result->name);
    json_string(&json, "set", args.set);
    json_bool(&json, "dry_run", args.dry_run);
    json_object(&json, "slo");
    json_number(&json, "ttft_ms", args.ttft_ms);
    json_number(&json, "itl_ms", args.itl_ms);
    json_number(&json, "max_power_w", args.max_power_w);
    json_object_end(&json);
    json_object(&json, "metrics");
    json_string(&json, "ttft", result->metric_name[GOVERN_TTFT]);
    json_string(&json, "itl", result->metric_name[GOVERN_ITL]);
    json_object_end(&json);
    json_number(&json, "seconds", result->seconds);
    json_integer(&json, "steps", (int64_t)result->steps);
    json_integer(&json, "readings", (int64_t)result->readings);
    json_integer(&json, "changes", (int64_t)result->changes);
    json_integer(&json, "violations", (int64_t)result->violations);
    json_number(&json, "violations_pct", 100 * ratio((double)result->violations, readings));
    json_object(&json, "mean_power_w");
    json_number(&json, "default", result->default_w);
    json_number(&json, "governed", result->governed_w);
    json_object_end(&json);
    energy_to_json(&json, "energy", &result->energy);
    json_integer(&json, "signal", result->signal);
    json_object_end(&json);
    text_add(out, "\n");
}

static void add_result_text(const struct govern_result *result, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX];
    text_addf(out, "%s: %zu readings, %zu changes, %zu violations\n",
              format_duration(a, result->seconds), result->readings, result->changes,
              result->violations);
    if (is_known(result->energy.joules))
        text_addf(out, "energy %s\n",
                  format_with_error(a, result->energy.joules, result->energy.plus_minus, "J"));
    if (is_known(result->default_w) && is_known(result->governed_w))
        text_addf(out, "mean power %s at the default, %s below it\n",
                  format_si(a, result->default_w, "W"), format_si(b, result->governed_w, "W"));
    if (result->was_set)
        text_addf(out, "%s restored\n", result->device);
}

static int show_result(const struct govern_result *result)
{
    struct text out = {0};
    if (args.json)
        add_result_json(result, &out);
    else
        add_result_text(result, &out);
    int code = out.failed ? print_error(EXIT_FAILED, "out of memory") : put_output(&out);
    text_release(&out);
    return code;
}

/* ---- the command ---- */

static int check_options(void)
{
    bool has_slo = is_known(args.ttft_ms) || is_known(args.itl_ms);
    if (!has_slo && !is_known(args.max_power_w))
        return usage_error("missing objective: --slo-ttft-ms, --slo-itl-ms or --max-power-w");
    if (has_slo && !args.metrics_url)
        return print_error(EXIT_USAGE,
                           "a latency SLO needs --metrics-url, where the server reports it");
    if (!has_slo && args.metrics_url)
        return print_error(EXIT_USAGE, "--metrics-url needs --slo-ttft-ms or --slo-itl-ms");
    if (args.model && strcmp(args.set, "clock") != 0)
        return print_error(EXIT_USAGE, "--model is for clocks, not for --set %s", args.set);
    if (args.application && !args.model)
        return print_error(EXIT_USAGE, "--application needs --model");
    if (is_known(args.max_power_w) && strcmp(args.set, "clock") != 0)
        return print_error(EXIT_USAGE,
                           "--max-power-w is enforced by the clock; the driver enforces a power "
                           "limit itself: nvidia-smi -pl %g",
                           args.max_power_w);
    return EXIT_DONE;
}

static int report_failure(enum err err, const struct error *why)
{
    bool may_look = !args.dry_run && (err == ERR_DENIED || err == ERR_UNSUPPORTED);
    if (err == ERR_CLOSED_PIPE)
        return EXIT_DONE;
    return print_error(err == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED, "%s%s", why->text,
                       may_look ? "; --dry-run shows what it would do" : "");
}

static int govern(void)
{
    struct govern_options options = {
        .devices = args.devices ? args.devices : "",
        .knob = strcmp(args.set, "clock") ? KNOB_POWER_LIMIT : KNOB_GRAPHICS_CLOCK,
        .slo_s = {args.ttft_ms / 1e3, args.itl_ms / 1e3},
        .max_power_w = args.max_power_w,
        .lowest = args.lowest,
        .metrics_url = args.metrics_url,
        .model = args.model,
        .application = args.application,
        .interval = from_seconds(args.interval_s),
        .duration = from_seconds(args.duration_s),
        .dry_run = args.dry_run,
    };
    struct view view = {0};
    struct govern_watch watch = {begin, take_step, &view};
    struct govern_result result;
    struct error why = {0};
    if (args.log && output_open(&view.log, args.log, true, &why))
        return print_error(EXIT_FAILED, "%s", why.text);
    enum err err = govern_execute(&options, &watch, &result, &why);
    int code = err ? report_failure(err, &why) : show_result(&result);
    if (args.log && output_finish(&view.log, ERR_OK, &why) && !code)
        code = print_error(EXIT_FAILED, "%s", why.text);
    return code ? code : result.signal ? 128 + result.signal : EXIT_DONE;
}

static const char *const SETS[] = {"clock", "power-limit", NULL};

/* clang-format off */
static const struct option_row ROWS[] = {
    {.name = "slo-ttft-ms", .type = OPTION_NUMBER, .target = &args.ttft_ms, .value = "MS",
     .help = "hold the 95th percentile of the time to first token below MS",
     .min = 1e-3, .max = 1e7},
    {.name = "slo-itl-ms", .type = OPTION_NUMBER, .target = &args.itl_ms, .value = "MS",
     .help = "hold the 95th percentile of the inter-token latency below MS",
     .min = 1e-3, .max = 1e7},
    {.name = "max-power-w", .type = OPTION_NUMBER, .target = &args.max_power_w, .value = "W",
     .help = "hold the GPU's mean power below W", .min = 1, .max = 1e5},
    {.name = "metrics-url", .type = OPTION_TEXT, .target = &args.metrics_url, .value = "URL",
     .help = "Prometheus endpoint of the server (without a path: /metrics)"},
    {.name = "set", .type = OPTION_CHOICE, .target = &args.set, .value = "KNOB",
     .help = "knob to control: clock (default) or power-limit", .choices = SETS},
    {.name = "lowest", .type = OPTION_NUMBER, .target = &args.lowest, .value = "N",
     .help = "never below N MHz or W (default: half of the highest clock)",
     .min = 1, .max = 1e5},
    {.name = "model", .type = OPTION_TEXT, .target = &args.model, .value = "FILE",
     .help = "model of `ipw power fit`: time and energy at each clock"},
    {.name = "application", .type = OPTION_TEXT, .target = &args.application, .value = "NAME",
     .help = "application of the model (default: the only one)"},
    {.letter = 'i', .name = "interval", .type = OPTION_NUMBER, .target = &args.interval_s, .value = "S",
     .help = "seconds per reading (default: 5)", .min = 0.2, .max = 3600},
    {.name = "duration", .type = OPTION_NUMBER, .target = &args.duration_s, .value = "S",
     .help = "stop after S seconds (default: at a signal)", .min = 0.2, .max = 1e8},
    {.name = "dry-run", .type = OPTION_FLAG, .target = &args.dry_run,
     .help = "set nothing, print what would be set; needs no root"},
    {.name = "devices", .type = OPTION_TEXT, .target = &args.devices, .value = "LIST",
     .help = "GPU by index or UUID (default: the only one)"},
    {.name = "json", .type = OPTION_FLAG, .target = &args.json,
     .help = "print one JSON object to stdout at the end"},
    {.name = "log", .type = OPTION_TEXT, .target = &args.log, .value = "FILE",
     .help = "write a JSON object per reading to FILE"},
    {.letter = 'q', .name = "quiet", .type = OPTION_FLAG, .target = &args.quiet,
     .help = "no line per reading"},
    {0},
};
/* clang-format on */

static int govern_main(const char **words, size_t count)
{
    (void)words, (void)count;
    int code = check_options();
    if (code)
        return code;
    proc_block_signals();
    return govern();
}

const struct command command_govern = {
    .name = "govern",
    .summary = "keep a server within a latency SLO or a power cap at the least energy",
    .usage = "[--slo-ttft-ms MS] [--slo-itl-ms MS] [--max-power-w W] [OPTIONS]",
    .details =
        "Reads latencies from the server's Prometheus endpoint (vLLM, SGLang, TGI, llama.cpp and\n"
        "others) and the GPU's power, and lowers the clock as far as the SLO allows, in steps\n"
        "that meet it even if all of the work is compute-bound. If the SLO is violated or\n"
        "readings stop, the default clock is restored immediately. Needs root; the GPU is\n"
        "restored at the end, after any signal, and by a watchdog after a crash.",
    .rows = ROWS,
    .run = govern_main,
};
