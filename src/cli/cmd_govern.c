/* ipw govern: hold a latency SLO or a power cap with the least energy.
 *
 *   $ ipw govern --slo-itl-ms 50 --metrics-url http://localhost:8000 --dry-run
 *   # ipw govern --slo-itl-ms 50 --metrics-url http://localhost:8000 --log govern.jsonl
 *
 * A line for each interval goes to stdout and the result at the end; in other formats than a table the result alone. */
#include <math.h>
#include <string.h>

#include "cli/common.h"
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "port/proc.h"
#include "power/governor.h"
#include "report/text/format.h"
#include "runner/govern.h"
#include "runner/govern_result.h"

#define COARSE 0.8 /* ratio of the bounds of the SLO's bucket below which a warning is printed */

struct govern_command {
    double ttft_ms, itl_ms, max_power_w, lowest, interval_s, duration_s;
    const char *set, *metrics_url, *model, *application, *devices, *log;
    bool dry_run, quiet;
    struct format_options format;
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

static enum err log_step(struct view *view, const struct govern_step *step, struct error *why)
{
    struct text line = {0};
    struct result result = {0};
    struct json json;
    govern_result_step(&result, step);
    json_init(&json, &line, false);
    result_to_json(&result, NULL, &json);
    text_add(&line, "\n");
    enum err err = output_write(&view->log, text_get(&line), line.length, why);
    result_release(&result);
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
    const char *name = governor_action_name(step->decision.action);
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
    bool is_table = format_chosen(&args.format, NULL) == PRINT_TABLE;
    enum err err = args.log ? log_step(view, step, why) : ERR_OK;
    if (!err && is_table && !args.quiet)
        err = show_step(view, step, why);
    return err;
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

static void show_result(const struct result *result, bool color, struct text *out)
{
    const struct result_item *joules = result_find(result, "energy.joules");
    double default_w = result_number_at(result->items, "mean_power_w.default");
    double governed_w = result_number_at(result->items, "mean_power_w.governed");
    char a[FORMAT_MAX], b[FORMAT_MAX];
    (void)color;
    text_addf(out, "%s: %.0f readings, %.0f changes, %.0f violations\n",
              format_duration(a, result_number_at(result->items, "seconds")),
              result_number_at(result->items, "readings"),
              result_number_at(result->items, "changes"),
              result_number_at(result->items, "violations"));
    if (result_is_known(joules))
        text_addf(out, "energy %s\n", format_with_error(a, joules->number, joules->error, "J"));
    if (is_known(default_w) && is_known(governed_w))
        text_addf(out, "mean power %s at the default, %s below it\n", format_si(a, default_w, "W"),
                  format_si(b, governed_w, "W"));
    if (result_flag_at(result->items, "view.was_set"))
        text_addf(out, "%s restored\n", result_text_at(result->items, "device"));
}

static const struct print_views VIEWS = {.text = show_result, .has_blank_line = true};

static int report(const struct govern_options *options, const struct govern_result *found)
{
    struct result result = {0};
    govern_result_fill(&result, options, found);
    return deliver_chosen(NULL, &result, &args.format, &VIEWS);
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
    if (args.model && !str_equal(args.set, "clock"))
        return print_error(EXIT_USAGE, "--model is for clocks, not for --set %s", args.set);
    if (args.application && !args.model)
        return print_error(EXIT_USAGE, "--application needs --model");
    if (is_known(args.max_power_w) && !str_equal(args.set, "clock"))
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
        .devices = text_or_empty(args.devices),
        .knob = strcmp(args.set, "clock") ? KNOB_POWER_LIMIT : KNOB_GRAPHICS_CLOCK,
        .slo_ms = {args.ttft_ms, args.itl_ms},
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
        return print_failure(&why);
    enum err err = govern_execute(&options, &watch, &result, &why);
    int code = err ? report_failure(err, &why) : report(&options, &result);
    if (args.log && output_finish(&view.log, ERR_OK, &why) && !code)
        code = print_failure(&why);
    return code ? code : result.signal ? 128 + result.signal : EXIT_DONE;
}

static const char *const SETS[] = {"clock", "power-limit", NULL};

static const struct option_row ROWS[] = {
    NUMBER_ROW("slo-ttft-ms", args.ttft_ms, "MS",
               "hold the 95th percentile of the time to first token below MS", .min = 1e-3,
               .max = 1e7),
    NUMBER_ROW("slo-itl-ms", args.itl_ms, "MS",
               "hold the 95th percentile of the inter-token latency below MS", .min = 1e-3,
               .max = 1e7),
    NUMBER_ROW("max-power-w", args.max_power_w, "W", "hold the GPU's mean power below W", .min = 1,
               .max = 1e5),
    TEXT_ROW("metrics-url", args.metrics_url, "URL",
             "Prometheus endpoint of the server (without a path: /metrics)"),
    CHOICE_ROW("set", args.set, "KNOB", SETS, "knob to control: clock (default) or power-limit"),
    NUMBER_ROW("lowest", args.lowest, "N",
               "never below N MHz or W (default: half of the highest clock)", .min = 1, .max = 1e5),
    TEXT_ROW("model", args.model, "FILE",
             "model of `ipw power fit`: time and energy at each clock"),
    TEXT_ROW("application", args.application, "NAME",
             "application of the model (default: the only one)"),
    NUMBER_ROW("interval", args.interval_s, "S", "seconds per reading (default: 5)", .min = 0.2,
               .max = 3600, .letter = 'i'),
    NUMBER_ROW("duration", args.duration_s, "S", "stop after S seconds (default: at a signal)",
               .min = 0.2, .max = 1e8),
    FLAG_ROW("dry-run", args.dry_run, "set nothing, print what would be set; needs no root"),
    TEXT_ROW("devices", args.devices, "LIST", "GPU by index or UUID (default: the only one)"),
    REPORT_FORMAT_OPTION_ROWS(args.format),
    TEXT_ROW("log", args.log, "FILE", "write a JSON object per reading to FILE"),
    FLAG_ROW("quiet", args.quiet, "do not print each reading", .letter = 'q'),
    {0},
};

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
