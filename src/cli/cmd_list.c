/* ipw list: the drivers, devices and models of each kind, and what the unavailable ones need. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "analysis/analysis.h"
#include "catalog/hardware_json.h"
#include "cli/common.h"
#include "clients/client.h"
#include "core/json.h"
#include "core/registry.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "graders/grader.h"
#include "port/file.h"
#include "port/json_read.h"
#include "report/doctor_report.h"
#include "report/export/export.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/reports.h"
#include "rundir/store.h"
#include "runner/agent/agent.h"
#include "sensors/registry.h"

static void check(enum err (*available)(struct error *why), struct listing_row *row)
{
    struct error why = {0};
    if (available && available(&why) != ERR_OK)
        str_copy(row->missing, sizeof row->missing, why.text);
}

static enum err plots_available(struct error *why)
{
    enum err err = jv_available(why);
    return err ? err : gnuplot_available(why);
}

static void check_client(const struct client_driver *driver, struct listing_row *row)
{
    struct error why = {0};
    if (driver->available && driver->available(NULL, &why) != ERR_OK)
        str_copy(row->missing, sizeof row->missing, why.text);
}

static void check_tool(const struct tool_driver *driver, struct listing_row *row)
{
    struct error why = {0};
    check(driver->available, row);
    if (driver->confined && driver->confined(&why) != ERR_OK)
        str_copy(row->note, sizeof row->note, why.text);
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
        str_copy(row->missing, sizeof row->missing, findings.items[0].reason);
    sensor_findings_release(&findings);
}

/* The drivers of one kind, whose structs all have a name and a summary; `check_` tests whether one can be used. */
#define LIST_DRIVERS(kind, drivers, params_, check_, what)                                         \
    static void list_##kind(struct listing *listing)                                               \
    {                                                                                              \
        listing_begin(listing, #kind, what);                                                       \
        for (size_t i = 0; (drivers)[i]; i++) {                                                    \
            struct listing_row row = {(drivers)[i]->name, (drivers)[i]->summary, params_, "", ""}; \
            check_;                                                                                \
            listing_add(listing, &row);                                                            \
        }                                                                                          \
    }

LIST_DRIVERS(clients, CLIENT_DRIVERS, CLIENT_DRIVERS[i]->params,
             check_client(CLIENT_DRIVERS[i], &row), "send requests to a model (--client)")
LIST_DRIVERS(datasets, DATASET_DRIVERS, DATASET_DRIVERS[i]->params,
             check(DATASET_DRIVERS[i]->available, &row), "sources of questions (--dataset)")
LIST_DRIVERS(graders, GRADER_DRIVERS, GRADER_DRIVERS[i]->params,
             check(GRADER_DRIVERS[i]->available, &row), "check answers (--grader)")
LIST_DRIVERS(tools, TOOL_DRIVERS, TOOL_DRIVERS[i]->params, check_tool(TOOL_DRIVERS[i], &row),
             "tools that a model may call in `ipw agent` (--tools)")
LIST_DRIVERS(analyses, ANALYSIS_DRIVERS, ANALYSIS_DRIVERS[i]->params, check(jv_available, &row),
             "analyses of `ipw analyze` (--analysis)")
LIST_DRIVERS(plots, PLOT_DRIVERS, NULL, check(plots_available, &row),
             "plots of `ipw plot` (--plot)")
LIST_DRIVERS(exports, EXPORT_DRIVERS, NULL,
             check(EXPORT_DRIVERS[i]->available ? EXPORT_DRIVERS[i]->available : jv_available,
                   &row),
             "formats of `ipw export` (--to)")
LIST_DRIVERS(sensors, SENSOR_DRIVERS, NULL, check_sensor(SENSOR_DRIVERS[i], &row),
             "measure energy and power (--sensors); `ipw doctor` tests them")
LIST_DRIVERS(stores, STORE_DRIVERS, NULL, check(STORE_DRIVERS[i]->available, &row),
             "files of a run directory")

static void list_agents(struct listing *listing)
{
    listing_begin(listing, "agents", "how `ipw agent` runs an agent (--protocol, --exec)");
    for (size_t i = 0; AGENT_PROTOCOLS[i]; i++)
        listing_add(listing,
                    &(struct listing_row){AGENT_PROTOCOLS[i], AGENT_SUMMARIES[i], NULL, "", ""});
    listing_add(listing, &(struct listing_row){
                             "exec", "any program that takes OPENAI_BASE_URL (--exec COMMAND)",
                             NULL, "", ""});
}

static void list_presets(struct listing *listing)
{
    listing_begin(listing, "presets", "public datasets with their fields and grader (--dataset)");
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++)
        listing_add(listing, &(struct listing_row){preset->name, preset->summary, NULL, "", ""});
}

/* ---- hardware ---- */

enum { LINE_WIDTH = 98 };

static void begin_hardware(struct listing *listing)
{
    listing_begin(listing, "hardware", "devices of `ipw estimate` (--hardware)");
}

/* Lists names only in `ipw list all`; JSON always has all figures. */
static void list_hardware(struct listing *listing)
{
    size_t column = 0;
    begin_hardware(listing);
    if (listing->brief) {
        listing_count(listing, hardware_count());
        return;
    }
    for (size_t i = 0; i < hardware_count(); i++) {
        const char *id = hardware_at(i)->id;
        if (listing->json) {
            hardware_write(hardware_at(i), &listing->json_writer);
            continue;
        }
        bool is_full = column + strlen(id) + 1 > LINE_WIDTH;
        text_addf(&listing->text, "%s%s", is_full ? "\n  " : i ? " " : "  ", id);
        column = (is_full ? 0 : column) + strlen(id) + 1;
    }
    if (!listing->json)
        text_add(&listing->text, "\n");
}

static enum err show_all(struct listing *listing, struct error *why)
{
    if (listing->json) {
        list_hardware(listing);
        return ERR_OK;
    }
    begin_hardware(listing);
    return listing_hardware_table(listing->color, &listing->text, why);
}

/* The whole entry, whatever the @MODE. */
static void add_entry(struct listing *listing, const struct hardware *hardware)
{
    size_t length = strcspn(hardware->id, "@");
    for (size_t i = 0; i < hardware_count(); i++) {
        const char *id = hardware_at(i)->id;
        if (strlen(id) == length && memcmp(id, hardware->id, length) == 0)
            hardware_write(hardware_at(i), &listing->json_writer);
    }
}

static enum err show_hardware(struct listing *listing, const char **ids, size_t count,
                              struct error *why)
{
    if (!count)
        return show_all(listing, why);
    if (listing->json)
        begin_hardware(listing);
    for (size_t i = 0; i < count; i++) {
        struct hardware hardware;
        enum err err = hardware_find(ids[i], &hardware, why);
        if (err)
            return err;
        if (listing->json) {
            add_entry(listing, &hardware);
        } else {
            text_add(&listing->text, i ? "\n" : "");
            listing_hardware_details(&hardware, listing->color, &listing->text);
        }
        hardware_release(&hardware);
    }
    return ERR_OK;
}

static const struct {
    const char *name;
    void (*list)(struct listing *listing);
} KINDS[] = {
    {"clients", list_clients},   {"datasets", list_datasets}, {"datasets", list_presets},
    {"graders", list_graders},   {"agents", list_agents},     {"tools", list_tools},
    {"analyses", list_analyses}, {"plots", list_plots},       {"exports", list_exports},
    {"sensors", list_sensors},   {"stores", list_stores},     {"hardware", list_hardware},
    {"models", listing_models},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

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

/* Missing libraries that disable whole commands, such as report. */
static void add_missing_parts(struct text *out)
{
    struct text parts = {0};
    parts_text(&parts);
    if (parts.length)
        text_addf(out, "\n%s", text_get(&parts));
    text_release(&parts);
}

/* All entries of one kind, or of every kind. */
static int list_kinds(struct listing *listing, const char *wanted)
{
    bool found = false;
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (!strcmp(wanted, "all") || !strcmp(wanted, KINDS[i].name)) {
            KINDS[i].list(listing);
            found = true;
        }
    listing_end(listing);
    if (!listing->json && !strcmp(wanted, "all"))
        add_missing_parts(&listing->text);
    return found ? put_output(&listing->text) : unknown_kind(wanted);
}

/* Names only; for long lists their length. */
static int list_summary(struct listing *listing)
{
    listing->brief = !listing->json;
    for (size_t i = 0; i < KIND_COUNT; i++)
        KINDS[i].list(listing);
    listing_end(listing);
    if (listing->brief)
        text_add(&listing->text, "\n\n`ipw list KIND` describes those of one kind, `ipw list all` "
                                 "everything,\n`ipw list runs [DIR]` the runs that were saved.\n");
    return put_output(&listing->text);
}

/* Shows some entries of one kind in detail. */
static int list_named(struct listing *listing,
                      enum err (*show)(struct listing *, const char **, size_t, struct error *),
                      const char **ids, size_t count)
{
    struct error why = {0};
    enum err err = show(listing, ids, count, &why);
    listing_end(listing);
    if (err)
        return print_error(err == ERR_NOT_FOUND ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
    return put_output(&listing->text);
}

static enum err show_runs(struct listing *listing, const char **words, size_t count,
                          struct error *why)
{
    if (count > 1)
        return err_set(why, ERR_NOT_FOUND, "unexpected argument '%s': give one DIR", words[1]);
    if (!count && !file_is_directory("runs"))
        return err_set(why, ERR_BAD_VALUE,
                       "no directory 'runs' here: measure with `ipw profile`, or give one: `ipw "
                       "list runs DIR`");
    return listing_runs(listing, count ? words[0] : "runs", why);
}

/* The models of a running service, by its own names. */
static enum err service_models(const char *client_name, const char *url, struct client_models *out,
                               struct error *why)
{
    struct client client;
    const struct client_driver *driver = client_driver_find(client_name, why);
    if (!driver)
        return ERR_NOT_FOUND;
    enum err err = client_open(driver, &(struct client_config){.base_url = url}, &client, why);
    if (err)
        return err;
    err = client.driver->models(&client, out, why);
    client_close(&client);
    return err;
}

static int list_service(struct listing *listing, const char *client_name, const char *url)
{
    struct client_models models = {0};
    struct error why = {0};
    enum err err = service_models(client_name, url, &models, &why);
    if (!err && !listing->json && models.count == 0)
        text_add(&listing->text, "the service lists no models\n");
    if (!err && listing->json)
        listing_begin(listing, "models", "");
    for (size_t i = 0; !err && i < models.count; i++)
        if (listing->json)
            json_string(&listing->json_writer, NULL, models.names[i]);
        else
            text_addf(&listing->text, "%s\n", plain_text(models.names[i]).text);
    client_models_release(&models);
    if (err)
        return print_error(err == ERR_NOT_FOUND ? EXIT_USAGE : EXIT_FAILED, "%s", why.text);
    listing_end(listing);
    return put_output(&listing->text);
}

static bool json, verbose;
static const char *client_name, *client_url;

/* clang-format off */
static const struct option_row ROWS[] = {
    {.letter = 'v', .name = "verbose", .type = OPTION_FLAG, .target = &verbose,
     .help = "also show parameters"},
    {.name = "json", .type = OPTION_FLAG, .target = &json, .help = "print JSON"},
    {.name = "client", .type = OPTION_TEXT, .target = &client_name, .value = "NAME",
     .help = "models: list those of a running service, e.g. openai"},
    {.name = "client-base-url", .type = OPTION_TEXT, .target = &client_url, .value = "URL",
     .help = "its address (default: the client's own)"},
    {.name = "base-url", .type = OPTION_HINT, .help = "use --client-base-url URL"},
    {0},
};
/* clang-format on */

static int list_main(const char **words, size_t count)
{
    struct listing listing;
    const char *wanted = count ? words[0] : "";
    int code;
    if (strcmp(wanted, "visualizations") == 0) /* name in the Python IPW */
        wanted = "plots";
    if ((client_name || client_url) && strcmp(wanted, "models") != 0)
        return print_error(EXIT_USAGE, "--client and --client-base-url are for `ipw list models`");
    listing_init(&listing, json, verbose, wants_color(STDOUT_FILENO));
    if (!count)
        code = list_summary(&listing);
    else if (client_name || client_url)
        code = list_service(&listing, client_name ? client_name : "openai", client_url);
    else if (!strcmp(wanted, "hardware"))
        code = list_named(&listing, show_hardware, words + 1, count - 1);
    else if (!strcmp(wanted, "runs"))
        code = list_named(&listing, show_runs, words + 1, count - 1);
    else if (!strcmp(wanted, "models") && count > 1)
        code = list_named(&listing, listing_models_named, words + 1, count - 1);
    else if (count > 1)
        code = print_error(EXIT_USAGE, "unexpected argument '%s': give one KIND", words[1]);
    else
        code = list_kinds(&listing, wanted);
    listing_release(&listing);
    return code;
}

const struct command command_list = {
    .name = "list",
    .summary = "list clients, datasets, graders, plots, sensors, hardware, models ...",
    .usage = "[KIND] [ID...] [OPTIONS]",
    .details =
        "KIND is clients, datasets, graders, agents, tools, analyses, plots, exports, sensors,\n"
        "stores, hardware, models, runs or all. Shows a one-line description of each, and what is\n"
        "missing for those that this build or machine cannot use. -v also shows their parameters.\n"
        "With ID, shows one device with every figure and its source, or one model with its family\n"
        "and size. `ipw list runs [DIR]` lists the runs saved in DIR (default: runs).",
    .rows = ROWS,
    .words = WORDS_ANY,
    .run = list_main,
};
