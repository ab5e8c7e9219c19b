/* ipw list: the drivers, devices and models of each kind, and what the unavailable ones need. */
#include <unistd.h>

#include "agent_tools/tool.h"
#include "analysis/analysis.h"
#include "cli/common.h"
#include "cli/listing.h"
#include "clients/client.h"
#include "core/finding.h"
#include "core/registry.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "datasets/dataset.h"
#include "engine/onnx.h"
#include "graders/grader.h"
#include "port/file.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "report/html/html.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/reports.h"
#include "rundir/run_index.h"
#include "rundir/run_list.h"
#include "rundir/store.h"
#include "runner/agent/agent.h"
#include "runner/doctor.h"
#include "runner/sweep_preset.h"
#include "sensors/registry.h"
#include "workloads/workload.h"

static void check(enum err (*available)(struct error *why), struct listing_row *row)
{
    struct error why = {0};
    if (available && available(&why) != ERR_OK)
        chars_copy(row->missing, why.text);
}

static void check_client(const struct client_driver *driver, struct listing_row *row)
{
    struct error why = {0};
    if (driver->available && driver->available(NULL, &why) != ERR_OK)
        chars_copy(row->missing, why.text);
}

static void check_tool(const struct tool_driver *driver, struct listing_row *row)
{
    struct error why = {0};
    check(driver->available, row);
    if (driver->confined && driver->confined(&why) != ERR_OK)
        chars_copy(row->note, why.text);
}

/* Why a driver finds no hardware on this machine. */
static void check_sensor(const struct sensor_driver *driver, struct listing_row *row)
{
    struct sensor_findings findings = {0};
    bool usable = false;
    sensors_probe(&(struct sensor_config){0}, driver->name, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        enum sensor_status status = findings.items[i].status;
        usable = usable || status == SENSOR_OK || status == SENSOR_ESTIMATED;
    }
    if (!usable && findings.count)
        chars_copy(row->missing, findings.items[0].reason);
    sensor_findings_release(&findings);
}

static enum err onnx_is_available(struct error *why)
{
    const char *version;
    return onnx_available(&version, why);
}

/* The drivers of one kind, whose structs all have a name and a summary; `check_` tests whether one can be used. */
#define LIST_DRIVERS(kind, drivers, params_, check_)                                               \
    static void list_##kind(struct result *out, bool is_brief)                                     \
    {                                                                                              \
        (void)is_brief;                                                                            \
        result_list(out, #kind);                                                                   \
        for (size_t i = 0; (drivers)[i]; i++) {                                                    \
            struct listing_row row = {(drivers)[i]->name, (drivers)[i]->summary, params_, "", ""}; \
            check_;                                                                                \
            listing_put(out, &row);                                                                \
        }                                                                                          \
        result_end(out);                                                                           \
    }

LIST_DRIVERS(clients, CLIENT_DRIVERS, CLIENT_DRIVERS[i]->params,
             check_client(CLIENT_DRIVERS[i], &row))
LIST_DRIVERS(datasets, DATASET_DRIVERS, DATASET_DRIVERS[i]->params,
             check(DATASET_DRIVERS[i]->available, &row))
LIST_DRIVERS(graders, GRADER_DRIVERS, GRADER_DRIVERS[i]->params,
             check(GRADER_DRIVERS[i]->available, &row))
LIST_DRIVERS(tools, TOOL_DRIVERS, TOOL_DRIVERS[i]->params, check_tool(TOOL_DRIVERS[i], &row))
LIST_DRIVERS(analyses, ANALYSIS_DRIVERS, ANALYSIS_DRIVERS[i]->params, check(NULL, &row))
LIST_DRIVERS(plots, PLOT_DRIVERS, NULL, check(gnuplot_available, &row))
LIST_DRIVERS(exports, EXPORT_DRIVERS, NULL, check(EXPORT_DRIVERS[i]->available, &row))
LIST_DRIVERS(sensors, SENSOR_DRIVERS, NULL, check_sensor(SENSOR_DRIVERS[i], &row))
LIST_DRIVERS(stores, STORE_DRIVERS, NULL, check(STORE_DRIVERS[i]->available, &row))

/* The parameters of a workload, with the option that takes each. */
struct workload_params {
    struct param_spec specs[24]; /* ends with a NULL name */
    char helps[24][200];
    size_t count;
};

static void add_params(struct workload_params *out, const char *option,
                       const struct param_spec *specs)
{
    for (; specs->name && out->count + 1 < COUNT_OF(out->specs); specs++) {
        char *help = out->helps[out->count];
        str_format(help, sizeof out->helps[0], "--%s: %s", option, specs->help);
        out->specs[out->count++] = (struct param_spec){specs->name, specs->value, help};
    }
}

static void list_params(const struct workload_driver *driver, struct workload_params *out)
{
    *out = (struct workload_params){0};
    add_params(out, "param", driver->query_params);
    add_params(out, "client-param", driver->params);
    if (driver->run_batch)
        add_params(out, "client-param", WORKLOAD_BATCH_PARAMS);
}

/* What it takes, which models, what its answers are graded by. */
static void list_workloads(struct result *out, bool is_brief)
{
    (void)is_brief;
    result_list(out, "workloads");
    for (size_t i = 0; WORKLOAD_DRIVERS[i]; i++) {
        const struct workload_driver *driver = WORKLOAD_DRIVERS[i];
        struct workload_params params;
        list_params(driver, &params);
        struct listing_row row = {driver->name, driver->summary, params.specs, "", ""};
        struct text graders = {0};
        for (size_t k = 0; driver->graders[k]; k++)
            text_addf(&graders, "%s%s", k ? ", " : "", driver->graders[k]);
        chars_format(row.note, "input: %s; model: %s; graders: %s", driver->inputs,
                     driver->model_layout, text_get(&graders));
        check(onnx_is_available, &row);
        text_release(&graders);
        listing_put(out, &row);
    }
    listing_put(out,
                &(struct listing_row){WORKLOAD_TEXT, "language models (GGUF) with the client llama",
                                      NULL, "", ""});
    result_end(out);
}

static void list_studies(struct result *out, bool is_brief)
{
    (void)is_brief;
    result_list(out, "studies");
    for (const struct sweep_preset *preset = SWEEP_PRESETS; preset->name; preset++) {
        struct listing_row row = {preset->name, preset->summary, NULL, "", ""};
        chars_format(row.note, "%s", preset->knobs);
        listing_put(out, &row);
    }
    result_end(out);
}

static void list_agents(struct result *out, bool is_brief)
{
    (void)is_brief;
    result_list(out, "agents");
    for (size_t i = 0; AGENT_PROTOCOLS[i]; i++)
        listing_put(out,
                    &(struct listing_row){AGENT_PROTOCOLS[i], AGENT_SUMMARIES[i], NULL, "", ""});
    listing_put(
        out, &(struct listing_row){
                 "exec", "any program that takes OPENAI_BASE_URL (--exec COMMAND)", NULL, "", ""});
    result_end(out);
}

static void list_presets(struct result *out, bool is_brief)
{
    (void)is_brief;
    result_list(out, "presets");
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++)
        listing_put(out, &(struct listing_row){preset->name, preset->summary, NULL, "", ""});
    result_end(out);
}

static void list_findings(struct result *out, bool is_brief)
{
    (void)is_brief;
    result_list(out, "findings");
    for (enum finding_code i = 0; i < FINDING_CODES; i++) {
        const struct finding_row *finding = finding_row(i);
        struct listing_row row = {finding->code, finding->meaning, NULL, "", ""};
        chars_format(row.note, "%s%s%s: %s", finding_severity_name(finding->lowest),
                     finding->highest > finding->lowest ? " to " : "",
                     finding->highest > finding->lowest ? finding_severity_name(finding->highest)
                                                        : "",
                     finding->action);
        listing_put(out, &row);
    }
    result_end(out);
}

static const struct {
    const char *name;
    void (*put)(struct result *out, bool is_brief);
    bool is_detail; /* not in the summary of all kinds */
} KINDS[] = {
    {"clients", list_clients, false},      {"datasets", list_datasets, false},
    {"datasets", list_presets, false},     {"graders", list_graders, false},
    {"workloads", list_workloads, false},  {"studies", list_studies, true},
    {"agents", list_agents, true},         {"tools", list_tools, false},
    {"analyses", list_analyses, false},    {"plots", list_plots, false},
    {"exports", list_exports, false},      {"sensors", list_sensors, false},
    {"stores", list_stores, true},         {"hardware", listing_put_hardware, false},
    {"models", listing_put_models, false}, {"findings", list_findings, true},
};
enum { KIND_COUNT = COUNT_OF(KINDS) };

static int unknown_kind(const char *word)
{
    const char *names[KIND_COUNT + 2] = {"all", "runs"};
    for (size_t i = 0; i < KIND_COUNT; i++)
        names[i + 2] = KINDS[i].name;
    const char *near = nearest_name(word, names, KIND_COUNT + 2);
    if (near)
        return print_error(EXIT_USAGE, "unknown kind '%s'; did you mean '%s'?", word, near);
    return print_error(EXIT_USAGE, "unknown kind '%s'; see `ipw list --help`", word);
}

static bool is_verbose;
static struct format_options format;
static const char *client_name, *client_url, *output;

/* Ends the result, and prints it: a table as `text`, if that is not NULL. */
static int deliver_listing(struct result *result, const struct print_views *views,
                           const struct text *text)
{
    enum print_format printed = format_chosen(&format, output);
    struct text out = {0};
    result_end(result);
    result_print(result, printed, views, !output && wants_color(STDOUT_FILENO), &out);
    text_add(&out, printed == PRINT_JSON ? "\n" : "");
    int code;
    if (printed == PRINT_TABLE && text)
        code = deliver(output, text);
    else if (printed == PRINT_CSV)
        code = deliver_data(output, &out);
    else
        code = deliver(output, &out);
    text_release(&out);
    return code;
}

/* All entries of one kind, or of every kind. */
static int list_kinds(struct result *result, const char *wanted)
{
    bool is_all = str_equal(wanted, "all"), found = false;
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (is_all || str_equal(wanted, KINDS[i].name)) {
            KINDS[i].put(result, false);
            found = true;
        }
    if (is_all) /* libraries that disable whole commands, such as report */
        doctor_note_parts(gnuplot_available, result);
    if (result_length(result->items) == 1 && !str_equal(wanted, "hardware"))
        result_table(result, wanted, NULL);
    return found
               ? deliver_listing(result, is_verbose ? &LISTING_VERBOSE_VIEWS : &LISTING_VIEWS, NULL)
               : unknown_kind(wanted);
}

static int list_summary(struct result *result)
{
    bool is_brief = format_chosen(&format, output) == PRINT_TABLE;
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (!is_brief || !KINDS[i].is_detail)
            KINDS[i].put(result, is_brief);
    return deliver_listing(result, &LISTING_BRIEF_VIEWS, NULL);
}

static int print_unknown(enum err err, const struct error *why)
{
    return print_error(err == ERR_NOT_FOUND ? EXIT_USAGE : EXIT_FAILED, "%s", why->text);
}

static int list_hardware(struct result *result, const char **ids, size_t count)
{
    enum print_format printed = format_chosen(&format, output);
    bool color = !output && wants_color(STDOUT_FILENO), is_markdown = printed == PRINT_MARKDOWN;
    struct text text = {0};
    struct error why = {0};
    enum err err = ERR_OK;
    int code;
    if (count) {
        err = listing_put_hardware_named(result, ids, count, color, &text, &why);
    } else if (is_markdown || printed == PRINT_TABLE) {
        if (!is_markdown)
            listing_heading("hardware", color, &text);
        err = listing_hardware_table(is_markdown, color, &text, &why);
    } else {
        listing_put_hardware(result, false);
    }
    if (err)
        code = print_unknown(err, &why);
    else if (!count && is_markdown)
        code = deliver(output, &text);
    else
        code = deliver_listing(result, NULL, &text);
    text_release(&text);
    return code;
}

static int list_models_named(struct result *result, const char **names, size_t count)
{
    struct text text = {0};
    struct error why = {0};
    enum err err = listing_put_models_named(result, names, count, &text, &why);
    result_table(result, "models", NULL);
    int code = err ? print_unknown(err, &why) : deliver_listing(result, NULL, &text);
    text_release(&text);
    return code;
}

static int list_runs(struct result *result, const char **words, size_t count)
{
    const char *parent = count ? words[0] : "runs";
    struct run_list list;
    struct text text = {0};
    struct error why = {0}, ignored = {0};
    if (count > 1)
        return print_error(EXIT_USAGE, "unexpected argument '%s': give one DIR", words[1]);
    if (!count && !file_is_directory("runs"))
        return print_error(EXIT_FAILED, "no directory 'runs' here: measure with `ipw profile`, or "
                                        "give one: `ipw list runs DIR`");
    enum err err = run_list_load(parent, &list, &why);
    if (err)
        return print_unknown(err, &why);
    /* A read-only folder can still be listed. */
    (void)!run_index_refresh(parent, &list, &ignored);
    run_list_put(&list, result);
    result_table(result, "runs", NULL);
    listing_runs(&list, parent, !output && wants_color(STDOUT_FILENO), &text);
    int code = deliver_listing(result, NULL, &text);
    run_list_release(&list);
    text_release(&text);
    return code;
}

/* The models of a running service, by its own names. */
static enum err service_models(const char *service, const char *url, struct client_models *out,
                               struct error *why)
{
    struct client client;
    const struct client_driver *driver = client_driver_find(service, why);
    if (!driver)
        return ERR_NOT_FOUND;
    enum err err = client_open(driver, &(struct client_config){.base_url = url}, &client, why);
    if (err)
        return err;
    err = client.driver->models(&client, out, why);
    client_close(&client);
    return err;
}

static int list_service(struct result *result, const char *service, const char *url)
{
    struct client_models models = {0};
    struct error why = {0};
    enum err err = service_models(service, url, &models, &why);
    result_list(result, "models");
    for (size_t i = 0; !err && i < models.count; i++)
        result_text(result, NULL, models.names[i]);
    result_end(result);
    client_models_release(&models);
    return err ? print_unknown(err, &why) : deliver_listing(result, &LISTING_NAMES_VIEWS, NULL);
}

static const struct option_row ROWS[] = {
    FLAG_ROW("verbose", is_verbose, "also show parameters", .letter = 'v'),
    FORMAT_OPTION_ROWS(format),
    OUTPUT_OPTION_ROW(output),
    TEXT_ROW("client", client_name, "NAME", "models: list those of a running service, e.g. openai"),
    TEXT_ROW("client-base-url", client_url, "URL", "its address (default: the client's own)"),
    HINT_ROW("base-url", "use --client-base-url URL"),
    {0},
};

static int list_main(const char **words, size_t count)
{
    struct result result = {0};
    const char *wanted = count ? words[0] : "";
    int code;
    if (str_equal(wanted, "visualizations")) /* name in the Python IPW */
        wanted = "plots";
    if ((client_name || client_url) && !str_equal(wanted, "models"))
        return print_error(EXIT_USAGE, "--client and --client-base-url are for `ipw list models`");
    result_begin(&result, "list");
    if (!count)
        code = list_summary(&result);
    else if (client_name || client_url)
        code = list_service(&result, client_name ? client_name : "openai", client_url);
    else if (str_equal(wanted, "hardware"))
        code = list_hardware(&result, words + 1, count - 1);
    else if (str_equal(wanted, "runs"))
        code = list_runs(&result, words + 1, count - 1);
    else if (str_equal(wanted, "models") && count > 1)
        code = list_models_named(&result, words + 1, count - 1);
    else if (count > 1)
        code = print_error(EXIT_USAGE, "unexpected argument '%s': give one KIND", words[1]);
    else
        code = list_kinds(&result, wanted);
    result_release(&result);
    return code;
}

const struct command command_list = {
    .name = "list",
    .summary = "list clients, datasets, graders, plots, sensors, hardware, models ...",
    .usage = "[KIND] [ID...] [OPTIONS]",
    .details =
        "KIND is clients, datasets, graders, workloads, studies, agents, tools, analyses, plots,\n"
        "exports, sensors, stores, hardware, models, findings, runs or all. Shows a one-line\n"
        "description of each, and what is missing for those that this build or machine cannot\n"
        "use. -v also shows their parameters.\n"
        "With ID, shows one device with every figure and its source, or one model with its family\n"
        "and size. `ipw list runs [DIR]` lists the runs saved in DIR (default: runs).",
    .rows = ROWS,
    .words = WORDS_ANY,
    .run = list_main,
};
