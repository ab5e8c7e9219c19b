/* The views of the result of `ipw list`: lists of drivers, models and hardware, each an item of the result.  Rows of
 * drivers have one shape (name, summary, parameters, what is missing). */
#include "report/text/reports.h"

#include <string.h>

#include "core/clock.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "report/text/page.h"
#include "rundir/run_list.h"

enum { BRIEF_INDENT = 10, BRIEF_WIDTH = 80 };
enum { NAME_WIDTH = 23 }; /* the longest driver name is completion_tokens_kde */
enum { MODEL_WIDTH = 34, IDS_WIDTH = 98 };

static const struct kind {
    const char *kind, *what;
} KINDS[] = {
    {"clients", "send requests to a model (--client)"},
    {"datasets", "sources of questions (--dataset)"},
    {"presets", "public datasets with their fields and grader (--dataset)"},
    {"graders", "check answers (--grader)"},
    {"workloads", "applications of `ipw profile` and `ipw sweep` (--workload)"},
    {"studies", "sweeps in one command (`ipw sweep --preset`)"},
    {"agents", "how `ipw agent` runs an agent (--protocol, --exec)"},
    {"tools", "tools that a model may call in `ipw agent` (--tools)"},
    {"analyses", "analyses of `ipw analyze` (--analysis)"},
    {"plots", "plots of `ipw plot` (--plot)"},
    {"exports", "formats of `ipw export` (--to)"},
    {"sensors", "measure energy and power (--sensors); `ipw doctor` tests them"},
    {"stores", "files of a run directory"},
    {"hardware", "devices of `ipw estimate` (--hardware)"},
    {"shipped", "GGUF models of ipw, for --model of profile, agent, layers, demo, estimate"},
    {"models", "architectures (--model): parameters, MACs of one input of this size"},
    {"readers", "model file formats (--model)"},
    {"runs", "measurements that were saved"},
};

void listing_heading(const char *kind, bool color, struct text *out)
{
    const struct kind *found = STR_FIND(kind, KINDS);
    text_addf(out, "%s%s%s: %s\n", color ? "\x1b[1m" : "", kind, color ? "\x1b[0m" : "",
              found ? found->what : "");
}

static bool is_kind(const struct result_item *list, const char *kind)
{
    return str_equal(list->key, kind);
}

/* ---- rows ---- */

static void write_parameters(const struct result_item *row, struct text *out)
{
    RESULT_EACH (one, result_get(row, "parameters")) {
        char left[48];
        const char *value = result_text_at(one, "value");
        chars_format(left, "%s%s%s", result_text_at(one, "name"), value[0] ? "=" : "", value);
        text_addf(out, "      %-26s %s\n", left, result_text_at(one, "help"));
    }
}

void listing_driver(const struct result_item *row, bool is_verbose, struct text *out)
{
    const char *missing = result_text_at(row, "missing");
    const char *note = result_text_at(row, "note");
    text_addf(out, "  %-*s %s\n", NAME_WIDTH, result_text_at(row, "name"),
              result_text_at(row, "summary"));
    if (missing[0])
        text_addf(out, "  %-*s (unavailable: %s)\n", NAME_WIDTH, "", missing);
    if (note[0])
        text_addf(out, "  %-*s (%s)\n", NAME_WIDTH, "", note);
    if (is_verbose)
        write_parameters(row, out);
}

static void write_accuracies(const struct result_item *row, struct text *out)
{
    const char *before = "";
    if (!result_first(result_at(row, "accuracies")))
        return;
    text_addf(out, "  %-*s published: ", MODEL_WIDTH, "");
    RESULT_EACH (accuracy, result_at(row, "accuracies")) {
        text_addf(out, "%s%.4g %% %s", before, result_number_at(accuracy, "percent"),
                  result_text_at(accuracy, "title"));
        before = "; ";
    }
    text_add(out, "\n");
}

static void write_model(const struct result_item *row, bool is_verbose, struct text *out)
{
    char parameters[FORMAT_MAX], macs[FORMAT_MAX], input[32];
    double image = result_number_at(row, "image");
    const char *missing = result_text_at(row, "missing");
    chars_format(input, "%.0f %s", is_known(image) ? image : result_number_at(row, "tokens"),
                 is_known(image) ? "px" : "tokens");
    text_addf(out, "  %-*s %9s %12s  %-11s %s (%s)\n", MODEL_WIDTH, result_text_at(row, "name"),
              format_si(parameters, result_number_at(row, "params"), ""),
              format_si(macs, result_number_at(row, "macs"), "MAC"), input,
              result_text_at(row, "summary"), result_text_at(row, "source"));
    if (missing[0])
        text_addf(out, "  %-*s (unavailable: %s)\n", MODEL_WIDTH, "", missing);
    if (is_verbose)
        write_accuracies(row, out);
}

static void write_ids(const struct result_item *list, struct text *out)
{
    size_t column = 0;
    const char *before = "  ";
    RESULT_EACH (row, list) {
        const char *id = result_text_at(row, "id");
        bool is_full = column + strlen(id) + 1 > IDS_WIDTH;
        text_addf(out, "%s%s", is_full ? "\n  " : before, id);
        column = (is_full ? 0 : column) + strlen(id) + 1;
        before = " ";
    }
    text_add(out, "\n");
}

/* ---- the views ---- */

static void write_lists(const struct result *result, bool verbose, bool color, struct text *out)
{
    const char *before = "";
    RESULT_EACH (list, result->items) {
        text_add(out, before);
        before = "\n";
        listing_heading(list->key, color, out);
        if (is_kind(list, "hardware")) {
            write_ids(list, out);
            continue;
        }
        RESULT_EACH (row, list)
            if (result_get(row, "macs"))
                write_model(row, verbose, out);
            else
                listing_driver(row, verbose, out);
    }
    for (const char *line = NULL; (line = result_line(&result->notes, line)); before = "")
        text_addf(out, "%s%s\n", before, line);
}

static void listing_text(const struct result *result, bool color, struct text *out)
{
    write_lists(result, false, color, out);
}

static void listing_verbose(const struct result *result, bool color, struct text *out)
{
    write_lists(result, true, color, out);
}

/* Names only; for long lists their length. */
static void listing_brief(const struct result *result, bool color, struct text *out)
{
    const char *before = "";
    RESULT_EACH (list, result->items) {
        size_t column = BRIEF_INDENT;
        text_addf(out, "%s%s%-*s%s", before, color ? "\x1b[1m" : "", BRIEF_INDENT, list->key,
                  color ? "\x1b[0m" : "");
        before = "\n";
        if (is_kind(list, "hardware") || is_kind(list, "models")) {
            text_addf(out, " %zu", result_length(list));
            continue;
        }
        RESULT_EACH (row, list) {
            const char *name = result_text_at(row, "name");
            size_t width = strlen(name) + 1;
            if (column + width > BRIEF_WIDTH) {
                text_addf(out, "\n%*s", BRIEF_INDENT, "");
                column = BRIEF_INDENT;
            }
            text_addf(out, " %s", name);
            column += width;
        }
    }
    text_add(out, "\n\n`ipw list KIND` describes those of one kind, `ipw list all` everything,\n"
                  "`ipw list runs [DIR]` the runs that were saved.\n");
}

/* What a service lists: names alone. */
static void listing_names(const struct result *result, bool color, struct text *out)
{
    const struct result_item *models = result_find(result, "models");
    (void)color;
    if (!result_first(models))
        text_add(out, "the service lists no models\n");
    RESULT_EACH (name, models)
        text_addf(out, "%s\n", plain_text(result_string(name)).text);
}

const struct print_views LISTING_VIEWS = {.text = listing_text};
const struct print_views LISTING_VERBOSE_VIEWS = {.text = listing_verbose};
const struct print_views LISTING_BRIEF_VIEWS = {.text = listing_brief};
const struct print_views LISTING_NAMES_VIEWS = {.text = listing_names};

/* ---- runs of a database ---- */

static void add_known_text(struct table *table, const char *text)
{
    table_add(table, text[0] ? text : "-");
}

static void add_stored_run(struct table *table, const struct result_item *run)
{
    char cell[FORMAT_MAX];
    const char *const path[] = {"hardware", "model", "dataset"};
    table_addf(table, "%.8s", result_text_at(run, "id"));
    add_known_text(table, result_text_at(run, "kind"));
    table_addf(table, "%.16s", clock_text(cell, from_seconds(result_number_at(run, "began"))));
    add_known_text(table, result_text_at(run, "host"));
    for (size_t i = 0; i < COUNT_OF(path); i++)
        add_known_text(table, result_text_at(run, path[i]));
    double queries = result_number_at(run, "queries");
    table_add_known(table, queries, "%.0f", queries);
    add_known_text(table, format_with_error(cell, result_number_at(run, "joules"),
                                            result_number_at(run, "plus_minus"), "J"));
    add_known_text(table, format_si(cell, result_number_at(run, "joules_per_output_token"), "J"));
    double accuracy = result_number_at(run, "accuracy");
    table_add_known(table, accuracy, "%.1f %%", 100 * accuracy);
    add_known_text(table, result_text_at(run, "name"));
}

static void write_stored_runs(struct print_page *page)
{
    const struct result *result = page->result;
    const struct table_column columns[] = {
        {"run", false},          TEXT_COLUMN(run_kind),
        TEXT_COLUMN(started),    {"host", false},
        TEXT_COLUMN(hardware),   TEXT_COLUMN(model),
        TEXT_COLUMN(dataset),    FIGURE_COLUMN(queries),
        FIGURE_COLUMN(joules),   FIGURE_COLUMN(joules_per_output_token),
        FIGURE_COLUMN(accuracy), {"name", false}};
    struct table table = TABLE(columns);
    RESULT_EACH (run, result->items)
        add_stored_run(&table, run);
    bool is_empty = !table.count && !page->is_markdown;
    text_add(page->out, is_empty ? "no runs\n" : "");
    if (is_empty)
        table_release(&table);
    else
        page_table(page, &table, "");
}

const struct print_views STORED_RUNS_VIEWS = {.page = write_stored_runs, .has_blank_line = true};

/* ---- runs, from their summaries, which have more than their row in JSON ---- */

static void add_run(struct table *table, const struct run_list_entry *entry)
{
    const struct summary *summary = &entry->summary;
    char cell[FORMAT_MAX];
    table_add(table, entry->name);
    table_add(table, run_kind_name(entry->kind));
    if (!entry->has_summary) {
        table_add(table, "(unfinished)");
        for (int i = 0; i < 5; i++)
            table_add(table, "");
        return;
    }
    const struct record_energy *energy = &summary->energy;
    bool estimated = energy->method && str_equal(energy->method, "estimated");
    table_add(table, text_or_empty(summary->model));
    table_add(table, text_or_empty(summary->dataset_name));
    if (summary->total_queries == INTEGER_UNKNOWN)
        table_add(table, "-");
    else
        table_addf(table, "%lld %s", (long long)summary->total_queries,
                   run_kind_unit(entry->kind, summary->total_queries != 1));
    if (is_known(energy->joules))
        table_addf(table, "%s%s", estimated ? "~" : "",
                   format_with_error(cell, energy->joules, energy->plus_minus, "J"));
    else
        table_add(table, "-");
    table_add(table, is_known(summary->seconds) ? format_duration(cell, summary->seconds) : "-");
    table_add(table, is_known(summary->started_at)
                         ? clock_text(cell, from_seconds(summary->started_at))
                         : "-");
}

void listing_runs(const struct run_list *list, const char *parent, bool color, struct text *out)
{
    const struct table_column columns[] = {
        {"run", false},       TEXT_COLUMN(run_kind), {"model or command", false},
        TEXT_COLUMN(dataset), {"measured", true},    FIGURE_COLUMN(joules),
        {"time", true},       TEXT_COLUMN(started)};
    struct table table = TABLE(columns);
    listing_heading("runs", color, out);
    for (size_t i = 0; i < list->count; i++)
        add_run(&table, &list->entries[i]);
    if (list->count)
        table_print(&table, "  ", color, out);
    else
        text_addf(out, "  (none in %s)\n", parent);
    table_release(&table);
}
