/* `ipw list`: drivers, models, hardware and runs, as text or JSON.
 *
 * Drivers of all kinds become rows of one shape (name, summary, parameters, what is missing); models are
 * built and counted at their default size; hardware is a table, or one device with every figure and source. */
#include "core/clock.h"
#include "report/text/reports.h"

#include <math.h>
#include <string.h>

#include "catalog/hardware.h"
#include "core/params.h"
#include "core/units.h"
#include "engine/shipped.h"
#include "graph/count.h"
#include "graph/reader.h"
#include "graph/zoo/zoo.h"
#include "report/text/format.h"
#include "rundir/run_index.h"
#include "rundir/run_list.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { BRIEF_INDENT = 10, BRIEF_WIDTH = 80 };
enum { PATH_SIZE = 600 };
enum { NAME_WIDTH = 23 }; /* the longest driver name is completion_tokens_kde */

void listing_init(struct listing *listing, bool json, bool verbose, bool color)
{
    *listing = (struct listing){.json = json, .verbose = verbose, .color = color};
    json_init(&listing->json_writer, &listing->text, true);
    if (json)
        json_object(&listing->json_writer, NULL);
}

void listing_begin(struct listing *listing, const char *kind, const char *what)
{
    if (listing->json) {
        if (listing->open)
            json_array_end(&listing->json_writer);
        json_array(&listing->json_writer, kind);
    } else if (listing->brief) {
        text_addf(&listing->text, "%s%s%-10s%s", listing->open ? "\n" : "",
                  listing->color ? "\x1b[1m" : "", kind, listing->color ? "\x1b[0m" : "");
        listing->column = BRIEF_INDENT;
    } else {
        text_addf(&listing->text, "%s%s%s%s: %s\n", listing->open ? "\n" : "",
                  listing->color ? "\x1b[1m" : "", kind, listing->color ? "\x1b[0m" : "", what);
    }
    listing->open = true;
}

static void row_json(struct listing *listing, const struct listing_row *row)
{
    struct json *json = &listing->json_writer;
    json_object(json, NULL);
    json_string(json, "name", row->name);
    json_string(json, "summary", row->summary);
    json_bool(json, "available", row->missing[0] == '\0');
    json_string(json, "missing", row->missing[0] ? row->missing : NULL);
    if (row->note[0])
        json_string(json, "note", row->note);
    json_array(json, "parameters");
    for (const struct param_spec *spec = row->params; spec && spec->name; spec++) {
        json_object(json, NULL);
        json_string(json, "name", spec->name);
        json_string(json, "value", spec->value);
        json_string(json, "help", spec->help);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void add_name(struct listing *listing, const char *name)
{
    size_t width = strlen(name) + 1;
    if (listing->column + width > BRIEF_WIDTH) {
        text_addf(&listing->text, "\n%*s", BRIEF_INDENT, "");
        listing->column = BRIEF_INDENT;
    }
    text_addf(&listing->text, " %s", name);
    listing->column += width;
}

void listing_count(struct listing *listing, size_t count)
{
    text_addf(&listing->text, " %zu", count);
}

void listing_add(struct listing *listing, const struct listing_row *row)
{
    if (listing->brief) {
        add_name(listing, row->name);
        return;
    }
    if (listing->json) {
        row_json(listing, row);
        return;
    }
    text_addf(&listing->text, "  %-*s %s\n", NAME_WIDTH, row->name, row->summary);
    if (row->missing[0])
        text_addf(&listing->text, "  %-*s (unavailable: %s)\n", NAME_WIDTH, "", row->missing);
    if (row->note[0])
        text_addf(&listing->text, "  %-*s (%s)\n", NAME_WIDTH, "", row->note);
    for (const struct param_spec *spec = row->params; listing->verbose && spec && spec->name;
         spec++) {
        char left[48];
        str_format(left, sizeof left, "%s%s%s", spec->name, spec->value ? "=" : "",
                   spec->value ? spec->value : "");
        text_addf(&listing->text, "      %-26s %s\n", left, spec->help);
    }
}

void listing_end(struct listing *listing)
{
    if (!listing->json)
        return;
    if (listing->open)
        json_array_end(&listing->json_writer);
    json_object_end(&listing->json_writer);
    text_add(&listing->text, "\n");
}

void listing_release(struct listing *listing)
{
    text_release(&listing->text);
}

/* ---- models ---- */

struct counts {
    double parameters, macs; /* NaN: could not be counted; see `missing` */
    char missing[240];
};

static struct counts count_of(const struct zoo_entry *entry)
{
    struct counts counts = {NAN, NAN, ""};
    struct graph_options setting = {0};
    struct graph graph;
    struct error why = {0};
    if (zoo_build(entry, &setting, &graph, &why) != ERR_OK) {
        str_copy(counts.missing, sizeof counts.missing, why.text);
        return counts;
    }
    counts.parameters = graph_parameters(&graph);
    counts.macs = graph_cost_total(&graph).macs;
    graph_release(&graph);
    return counts;
}

static void add_size(struct json *json, const char *key, int64_t size)
{
    if (size > 0)
        json_integer(json, key, size);
    else
        json_null(json, key);
}

static void model_json(struct listing *listing, const struct zoo_entry *entry,
                       const struct counts *counts)
{
    struct json *json = &listing->json_writer;
    json_object(json, NULL);
    json_string(json, "name", entry->name);
    json_string(json, "summary", entry->summary);
    json_string(json, "family", entry->family);
    json_string(json, "source", entry->source);
    json_number(json, "params", counts->parameters);
    json_number(json, "macs", counts->macs);
    add_size(json, "image", entry->image);
    add_size(json, "tokens", entry->tokens);
    add_size(json, "context", entry->context);
    json_bool(json, "available", counts->missing[0] == '\0');
    json_string(json, "missing", counts->missing[0] ? counts->missing : NULL);
    json_object_end(json);
}

static void model_text(struct listing *listing, const struct zoo_entry *entry,
                       const struct counts *counts)
{
    char parameters[FORMAT_MAX], macs[FORMAT_MAX], input[32];
    str_format(input, sizeof input, "%lld %s",
               (long long)(entry->image > 0 ? entry->image : entry->tokens),
               entry->image > 0 ? "px" : "tokens");
    text_addf(&listing->text, "  %-34s %9s %12s  %-11s %s (%s)\n", entry->name,
              format_si(parameters, counts->parameters, ""), format_si(macs, counts->macs, "MAC"),
              input, entry->summary, entry->source);
    if (counts->missing[0])
        text_addf(&listing->text, "  %-34s (unavailable: %s)\n", "", counts->missing);
}

static void begin_models(struct listing *listing)
{
    listing_begin(listing, "models",
                  "architectures (--model): parameters, MACs of one input of this size");
}

static void add_count(struct text *out, const char *what, double count, const char *unit)
{
    char rounded[FORMAT_MAX];
    text_addf(out, "  %-12s %s", what, format_si(rounded, count, unit));
    if (isfinite(count))
        text_addf(out, " (%.0f)", count);
    text_add(out, "\n");
}

static void model_details(struct listing *listing, const struct zoo_entry *entry,
                          const struct counts *counts)
{
    struct text *out = &listing->text;
    text_addf(out, "%s: %s\n", entry->name, entry->summary);
    text_addf(out, "  %-12s %s (%s)\n", "family", entry->family, entry->source);
    add_count(out, "parameters", counts->parameters, "");
    add_count(out, "MACs", counts->macs, "MAC");
    if (entry->image > 0)
        text_addf(out, "  %-12s %lld x %lld pixels\n", "input", (long long)entry->image,
                  (long long)entry->image);
    else
        text_addf(out, "  %-12s %lld tokens\n", "input", (long long)entry->tokens);
    if (zoo_has_phases(entry))
        text_addf(out, "  %-12s prefill, decode\n", "phases");
    if (entry->context_length)
        text_addf(out, "  %-12s %lld tokens\n", "max context", (long long)entry->context_length);
    if (counts->missing[0])
        text_addf(out, "  %-12s %s\n", "missing", counts->missing);
}

/* All shipped models, or the one of this name; returns their number. */
static size_t add_shipped(struct listing *listing, const char *only)
{
    struct shipped_names names;
    struct error why = {0};
    size_t found = 0;
    if (shipped_list(&names, &why) != ERR_OK) {
        listing->text.failed = true;
        return 0;
    }
    for (size_t i = 0; i < names.count; i++) {
        char path[PATH_SIZE] = "-", summary[PATH_SIZE + 32];
        struct listing_row row = {.name = names.items[i], .summary = summary};
        if (only && strcmp(row.name, only) != 0)
            continue;
        if (shipped_find(row.name, path, sizeof path, &why) != ERR_OK)
            str_copy(row.missing, sizeof row.missing, why.text);
        str_format(summary, sizeof summary, "shipped: %s", path);
        listing_add(listing, &row);
        found++;
    }
    shipped_names_release(&names);
    return found;
}

static enum err unknown_model(const char *name, struct error *why)
{
    const char *near = zoo_nearest(name);
    return near ? err_set(why, ERR_NOT_FOUND, "unknown model '%.80s'; did you mean %s?", name, near)
                : err_set(why, ERR_NOT_FOUND, "unknown model '%.80s'; see `ipw list models`", name);
}

enum err listing_models_named(struct listing *listing, const char **names, size_t count,
                              struct error *why)
{
    if (listing->json)
        begin_models(listing);
    for (size_t i = 0; i < count; i++) {
        const struct zoo_entry *entry = zoo_find(names[i]);
        if (!entry && add_shipped(listing, names[i]))
            continue;
        if (!entry)
            return unknown_model(names[i], why);
        struct counts counts = count_of(entry);
        if (listing->json)
            model_json(listing, entry, &counts);
        else
            model_details(listing, entry, &counts);
    }
    return ERR_OK;
}

void listing_models(struct listing *listing)
{
    listing_begin(listing, "shipped",
                  "GGUF models of ipw, for --model of profile, agent, layers, demo, estimate");
    add_shipped(listing, NULL);
    begin_models(listing);
    if (listing->brief)
        listing_count(listing, zoo_count());
    for (size_t i = 0; !listing->brief && i < zoo_count(); i++) {
        const struct zoo_entry *entry = zoo_at(i);
        struct counts counts = count_of(entry);
        if (listing->json)
            model_json(listing, entry, &counts);
        else
            model_text(listing, entry, &counts);
    }
    listing_begin(listing, "readers", "model file formats (--model)");
    for (size_t i = 0; i < graph_reader_count(); i++) {
        const struct graph_reader *reader = graph_reader_at(i);
        listing_add(listing,
                    &(struct listing_row){.name = reader->name, .summary = reader->summary});
    }
}

/* ---- hardware ---- */

/* Four digits, or "-". */
static void add_figure_or_dash(struct table *table, double value)
{
    table_add_known(table, value, "%.4g", value);
}

/* bf16, or int8 on accelerators without it. */
static enum precision usual_precision(const struct hardware *hardware)
{
    enum precision used;
    return is_known(hardware_matmul_flops(hardware, PRECISION_BF16, &used)) ? PRECISION_BF16
                                                                            : PRECISION_INT8;
}

static void add_device(struct table *table, const struct hardware *hardware)
{
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    enum precision usual = usual_precision(hardware), used;
    char bytes[FORMAT_MAX];
    table_add(table, hardware->id);
    table_add(table, hardware->name);
    table_add(table, hardware_class_name(hardware->class));
    add_figure_or_dash(table, hardware_matmul_flops(hardware, usual, &used) / 1e12);
    table_add(table, precision_name(used));
    add_figure_or_dash(table, memory->bytes_per_s.value / 1e9);
    table_add(table, format_bytes(bytes, memory->capacity_bytes.value));
    add_figure_or_dash(table, hardware->limit_w.value);
    add_figure_or_dash(table, hardware->idle_w.value);
    table_add(table, evidence_name(hardware_evidence(hardware, usual)));
}

enum err listing_hardware_table(bool color, struct text *out, struct error *why)
{
    static const struct table_column COLUMNS[] = {
        {"id", false},  {"name", false},  {"class", false},  {"TFLOPS", true}, {"dtype", false},
        {"GB/s", true}, {"memory", true}, {"limit W", true}, {"idle W", true}, {"evidence", false},
    };
    struct table table = TABLE(COLUMNS);
    enum err err = ERR_OK;
    for (size_t i = 0; i < hardware_count() && !err; i++) {
        struct hardware hardware;
        err = hardware_find(hardware_at(i)->id, &hardware, why);
        if (!err)
            add_device(&table, &hardware);
        hardware_release(&hardware);
    }
    if (!err)
        table_print(&table, "  ", color, out);
    return err;
}

static void add_figure(struct table *table, const char *what, const struct hardware_figure *figure,
                       double scale, const char *unit)
{
    if (!is_known(figure->value))
        return;
    char cell[FORMAT_MAX];
    table_add(table, what);
    table_add(table, format_in(cell, figure->value / scale, figure->plus_minus / scale, unit));
    table_add(table, evidence_name(figure->evidence));
    table_add(table, figure->source);
}

static void add_precisions(struct table *table, const char *unit,
                           const struct hardware_figure *flops,
                           const struct hardware_figure *joules)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        char what[64];
        str_format(what, sizeof what, "%s %s peak", unit, precision_name((enum precision)i));
        add_figure(table, what, &flops[i], 1e12, "TFLOPS");
        str_format(what, sizeof what, "%s %s energy", unit, precision_name((enum precision)i));
        add_figure(table, what, &joules[i], 1e-12, "pJ/FLOP");
    }
}

static void add_memories(struct table *table, const struct hardware *hardware)
{
    for (size_t i = 0; i < hardware->memory_count; i++) {
        const struct hardware_memory *memory = &hardware->memories[i];
        char what[96];
        str_format(what, sizeof what, "%s bandwidth", memory->name);
        add_figure(table, what, &memory->bytes_per_s, 1e9, "GB/s");
        str_format(what, sizeof what, "%s capacity", memory->name);
        if (memory->capacity_bytes.value < 1e9)
            add_figure(table, what, &memory->capacity_bytes, 1024.0 * 1024, "MiB");
        else
            add_figure(table, what, &memory->capacity_bytes, 1e9, "GB");
        str_format(what, sizeof what, "%s energy", memory->name);
        add_figure(table, what, &memory->joules_per_byte, 1e-12, "pJ/B");
    }
}

static void add_modes(const struct hardware *hardware, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"mode", false},  {"limit W", true}, {"clock", true},   {"memory", true},
        {"energy", true}, {"idle W", true},  {"source", false},
    };
    struct table table = TABLE(COLUMNS);
    if (!hardware->point_count)
        return;
    for (size_t i = 0; i < hardware->point_count; i++) {
        const struct hardware_point *point = &hardware->points[i];
        table_addf(&table, "@%s", point->name);
        add_figure_or_dash(&table, point->limit_w);
        add_figure_or_dash(&table, point->clock_ratio);
        add_figure_or_dash(&table, point->memory_ratio);
        add_figure_or_dash(&table, point->energy_ratio);
        add_figure_or_dash(&table, point->idle_w);
        table_add(&table, point->source);
    }
    text_add(out, "\n");
    table_print(&table, "  ", color, out);
}

void listing_hardware_details(const struct hardware *hardware, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"figure", false},
        {"value", true},
        {"evidence", false},
        {"source", false},
    };
    struct table table = TABLE(COLUMNS);
    text_addf(out, "%s: %s, %s of %s", hardware->id, hardware->name,
              hardware_class_name(hardware->class), hardware->vendor);
    if (hardware->year)
        text_addf(out, ", %d", hardware->year);
    text_add(out, "\n");
    for (const char *const *alias = hardware->aliases; *alias; alias++)
        text_addf(out, "%s%s%s", alias == hardware->aliases ? "  also: " : ", ", *alias,
                  alias[1] ? "" : "\n");
    add_precisions(&table, "matrix", hardware->matrix_flops, hardware->matrix_joules);
    add_precisions(&table, "vector", hardware->vector_flops, hardware->vector_joules);
    add_memories(&table, hardware);
    add_figure(&table, "limit", &hardware->limit_w, 1, "W");
    add_figure(&table, "idle", &hardware->idle_w, 1, "W");
    add_figure(&table, "launch", &hardware->launch_s, 1e-6, "µs");
    add_figure(&table, "units", &hardware->units, 1, "");
    add_figure(&table, "compute share", &hardware->compute_share, 1, "");
    add_figure(&table, "memory share", &hardware->memory_share, 1, "");
    add_figure(&table, "kernels", &hardware->kernels, 1, "");
    add_figure(&table, "host launch", &hardware->host_launch_s, 1e-6, "µs");
    add_figure(&table, "link bandwidth", &hardware->link_bytes_per_s, 1e9, "GB/s");
    add_figure(&table, "link latency", &hardware->link_latency_s, 1e-6, "µs");
    add_figure(&table, "link peers", &hardware->link_peers, 1, "");
    add_figure(&table, "links", &hardware->link_count, 1, "");
    text_add(out, "\n");
    table_print(&table, "  ", color, out);
    add_modes(hardware, color, out);
}

/* ---- runs, from their summaries ---- */

static void put_run(struct json *json, const struct run_list_entry *entry)
{
    const struct summary *summary = entry->has_summary ? &entry->summary : NULL;
    json_object(json, NULL);
    json_string(json, "directory", entry->name);
    json_string(json, "kind", run_kind_name(entry->kind));
    json_bool(json, "complete", entry->has_summary);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        const struct summary_field *column = summary_index(i);
        if (column->at.type == FIELD_TEXT)
            json_string(json, column->index_name, summary_index_text(column, summary));
        else
            json_number(json, column->index_name,
                        summary ? json_field_number(&column->at, summary) : UNKNOWN);
    }
    json_object_end(json);
}

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
    bool estimated = energy->method && !strcmp(energy->method, "estimated");
    table_add(table, summary->model ? summary->model : "");
    table_add(table, summary->dataset_name ? summary->dataset_name : "");
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

static void write_runs(const struct run_list *list, bool color, struct text *out)
{
    const struct table_column columns[] = {
        {"run", false},       TEXT_COLUMN(run_kind), {"model or command", false},
        TEXT_COLUMN(dataset), {"measured", true},    FIGURE_COLUMN(joules),
        {"time", true},       TEXT_COLUMN(started)};
    struct table table = TABLE(columns);

    for (size_t i = 0; i < list->count; i++)
        add_run(&table, &list->entries[i]);
    table_print(&table, "  ", color, out);
}

enum err listing_runs(struct listing *listing, const char *parent, struct error *why)
{
    struct run_list list;
    struct error ignored = {0};
    enum err err = run_list_load(parent, &list, why);
    if (err)
        return err;
    /* A read-only folder can still be listed. */
    (void)!run_index_refresh(parent, &list, &ignored);
    listing_begin(listing, "runs", "measurements that were saved");
    for (size_t i = 0; listing->json && i < list.count; i++)
        put_run(&listing->json_writer, &list.entries[i]);
    if (!listing->json && list.count)
        write_runs(&list, listing->color, &listing->text);
    if (!listing->json && !list.count)
        text_addf(&listing->text, "  (none in %s)\n", parent);
    run_list_release(&list);
    return ERR_OK;
}
