/* ipw list: what there is of each kind, and what is missing for the rest. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "cli/common.h"
#include "clients/client.h"
#include "core/json.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "graders/grader.h"
#include "port/json_read.h"
#include "report/export.h"
#include "report/gnuplot.h"
#include "report/listing.h"
#include "report/listing_models.h"
#include "report/parts.h"
#include "report/plot.h"
#include "sensors/registry.h"
#include "store/store.h"

static int list_main(int argc, char **argv);

const struct command command_list = {
    .name = "list",
    .summary =
        "clients, datasets, graders, analyses, plots, stores, sensors, models: what there is",
    .usage = "[KIND] [OPTIONS]",
    .details =
        "KIND is clients, datasets, graders, analyses, plots, exports, sensors, stores,\n"
        "models or all. Shows each with a line of what it does, and those that this build or\n"
        "this machine cannot use with what would enable them. -v shows their parameters too.",
    .run = list_main,
};

static bool check(enum err (*available)(struct error *why), struct listing_row *row)
{
    struct error why = {0};
    if (!available || available(&why) == ERR_OK)
        return true;
    str_copy(row->missing, sizeof row->missing, why.text);
    return false;
}

static void list_clients(struct listing *listing)
{
    listing_begin(listing, "clients", "what asks a model (--client)");
    for (size_t i = 0; CLIENT_DRIVERS[i]; i++) {
        const struct client_driver *driver = CLIENT_DRIVERS[i];
        struct listing_row row = {driver->name, driver->summary, driver->params, ""};
        struct error why;
        if (driver->available && driver->available(NULL, &why) != ERR_OK)
            str_copy(row.missing, sizeof row.missing, why.text);
        listing_add(listing, &row);
    }
}

static void list_datasets(struct listing *listing)
{
    listing_begin(listing, "datasets", "where questions come from (--dataset)");
    for (size_t i = 0; DATASET_DRIVERS[i]; i++) {
        const struct dataset_driver *driver = DATASET_DRIVERS[i];
        struct listing_row row = {driver->name, driver->summary, driver->params, ""};
        check(driver->available, &row);
        listing_add(listing, &row);
    }
    listing_begin(listing, "presets", "public datasets with their fields and grader (--dataset)");
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++) {
        struct listing_row row = {preset->name, preset->summary, NULL, ""};
        listing_add(listing, &row);
    }
}

static void list_graders(struct listing *listing)
{
    listing_begin(listing, "graders", "is an answer right? (--grader)");
    for (size_t i = 0; GRADER_DRIVERS[i]; i++) {
        const struct grader_driver *driver = GRADER_DRIVERS[i];
        struct listing_row row = {driver->name, driver->summary, driver->params, ""};
        check(driver->available, &row);
        listing_add(listing, &row);
    }
}

static void list_stores(struct listing *listing)
{
    listing_begin(listing, "stores", "what a run leaves in its directory");
    for (size_t i = 0; STORE_DRIVERS[i]; i++) {
        const struct store_driver *driver = STORE_DRIVERS[i];
        struct listing_row row = {driver->name, driver->summary, NULL, ""};
        check(driver->available, &row);
        listing_add(listing, &row);
    }
}

static void list_exports(struct listing *listing)
{
    listing_begin(listing, "exports", "formats of `ipw export` (--to)");
    for (size_t i = 0; EXPORT_DRIVERS[i]; i++) {
        const struct export_driver *driver = EXPORT_DRIVERS[i];
        struct listing_row row = {driver->name, driver->summary, NULL, ""};
        check(driver->available ? driver->available : jv_available, &row);
        listing_add(listing, &row);
    }
}

/* What this machine lacks: the driver's own reason, when it found nothing at all. */
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

static void list_sensors(struct listing *listing)
{
    listing_begin(listing, "sensors", "what measures (--sensors); `ipw doctor` tries them");
    for (size_t i = 0; SENSOR_DRIVERS[i]; i++) {
        const struct sensor_driver *driver = SENSOR_DRIVERS[i];
        struct listing_row row = {driver->name, driver->summary, NULL, ""};
        check_sensor(driver, &row);
        listing_add(listing, &row);
    }
}

static void list_analyses(struct listing *listing)
{
    listing_begin(listing, "analyses", "what `ipw analyze` says of a run (--analysis)");
    for (size_t i = 0; ANALYSIS_DRIVERS[i]; i++) {
        const struct analysis_driver *driver = ANALYSIS_DRIVERS[i];
        struct listing_row row = {driver->name, driver->summary, driver->params, ""};
        check(jv_available, &row);
        listing_add(listing, &row);
    }
}

static enum err plots_available(struct error *why)
{
    enum err err = jv_available(why);
    return err ? err : gnuplot_available(why);
}

static void list_plots(struct listing *listing)
{
    listing_begin(listing, "plots", "what `ipw plot` draws (--plot)");
    for (size_t i = 0; PLOT_DRIVERS[i]; i++) {
        struct listing_row row = {PLOT_DRIVERS[i]->name, PLOT_DRIVERS[i]->summary, NULL, ""};
        check(plots_available, &row);
        listing_add(listing, &row);
    }
}

static const struct {
    const char *name;
    void (*list)(struct listing *listing);
} KINDS[] = {
    {"clients", list_clients},   {"datasets", list_datasets}, {"graders", list_graders},
    {"analyses", list_analyses}, {"plots", list_plots},       {"exports", list_exports},
    {"sensors", list_sensors},   {"stores", list_stores},     {"models", listing_models},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static int unknown_kind(const char *word)
{
    const char *names[KIND_COUNT + 1] = {"all"};
    for (size_t i = 0; i < KIND_COUNT; i++)
        names[i + 1] = KINDS[i].name;
    const char *near = nearest_name(word, names, KIND_COUNT + 1);
    if (near)
        return complain("list", EXIT_USAGE, "there are no '%s': did you mean '%s'?", word, near);
    return complain("list", EXIT_USAGE, "there are no '%s': `ipw list --help` says what there is",
                    word);
}

/* What whole commands lack, such as report. */
static void add_missing_parts(struct text *out)
{
    struct text parts = {0};
    parts_text(&parts);
    if (parts.length)
        text_addf(out, "\n%s", text_get(&parts));
    text_release(&parts);
}

static int list_main(int argc, char **argv)
{
    bool json = false, verbose = false;
    const struct option_row rows[] = {
        {'v', "verbose", OPTION_FLAG, &verbose, NULL, "with their parameters", 0, 0, NULL},
        {0, "json", OPTION_FLAG, &json, NULL, "as JSON", 0, 0, NULL},
        {0},
    };
    const char *wanted = "all";
    for (int i = 1; i < argc; i++) /* no option takes a value, so the first word is the kind */
        if (argv[i][0] != '-') {
            wanted = argv[i];
            for (argc--; i < argc; i++)
                argv[i] = argv[i + 1];
        }
    int rest, code = parse_or_help(&command_list, rows, argc, argv, false, &rest);
    if (code >= 0)
        return code;
    struct listing listing;
    bool found = false;
    listing_init(&listing, json, verbose, wants_colour(STDOUT_FILENO));
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (!strcmp(wanted, "all") || !strcmp(wanted, KINDS[i].name)) {
            KINDS[i].list(&listing);
            found = true;
        }
    listing_end(&listing);
    if (!json && !strcmp(wanted, "all"))
        add_missing_parts(&listing.text);
    code = found ? put_output("list", &listing.text) : unknown_kind(wanted);
    listing_release(&listing);
    return code;
}
