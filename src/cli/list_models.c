/* The rows of `ipw list`, and its models: the shipped ones, the architectures of the catalog, which are built and counted at their
 * default size, and the model file formats. */
#include "cli/listing.h"

#include <math.h>
#include <stdlib.h>

#include "catalog/accuracy.h"
#include "core/params.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/shipped.h"
#include "graph/count.h"
#include "graph/reader.h"
#include "graph/zoo/zoo.h"
#include "report/text/format.h"
#include "report/text/reports.h"

void listing_put(struct result *out, const struct listing_row *row)
{
    result_group(out, NULL);
    result_text(out, "name", row->name);
    result_text(out, "summary", row->summary);
    result_flag(out, "available", row->missing[0] == '\0');
    result_text(out, "missing", str_or_null(row->missing));
    result_optional_text(out, "note", str_or_null(row->note));
    result_list(out, "parameters");
    for (const struct param_spec *spec = row->params; spec && spec->name; spec++) {
        result_group(out, NULL);
        result_text(out, "name", spec->name);
        result_text(out, "value", spec->value);
        result_text(out, "help", spec->help);
        result_end(out);
    }
    result_end(out);
    result_end(out);
}

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
        chars_copy(counts.missing, why.text);
        return counts;
    }
    counts.parameters = graph_parameters(&graph);
    counts.macs = graph_cost_total(&graph).macs;
    graph_release(&graph);
    return counts;
}

static void put_size(struct result *out, const char *key, int64_t size)
{
    if (size > 0)
        result_integer(out, key, size);
    else
        result_null(out, key);
}

/* `name`: of the model that was asked for; other models may share its architecture. */
static void put_accuracies(struct result *out, const char *name)
{
    struct accuracy items[ACCURACIES_MAX];
    size_t count = model_accuracies(name, items);
    result_list(out, "accuracies");
    for (size_t i = 0; i < count; i++)
        accuracy_to_result(out, &items[i]);
    result_end(out);
}

static void put_model(struct result *out, const struct zoo_entry *entry,
                      const struct counts *counts, const char *name)
{
    result_group(out, NULL);
    result_text(out, "name", entry->name);
    result_text(out, "summary", entry->summary);
    result_text(out, "family", entry->family);
    result_text(out, "source", entry->source);
    result_number(out, "params", counts->parameters, "");
    result_number(out, "macs", counts->macs, "");
    put_size(out, "image", entry->image);
    put_size(out, "tokens", entry->tokens);
    put_size(out, "context", entry->context);
    result_flag(out, "available", counts->missing[0] == '\0');
    result_text(out, "missing", str_or_null(counts->missing));
    put_accuracies(out, name);
    result_end(out);
}

/* All shipped models, or the one of this name; returns their number. */
static size_t put_shipped(struct result *out, const char *only)
{
    struct shipped_names names;
    struct error why = {0};
    size_t found = 0;
    shipped_list(&names);
    for (size_t i = 0; i < names.count; i++) {
        struct listing_row row = {.name = names.items[i]};
        char *path;
        if (only && !str_equal(row.name, only))
            continue;
        if (shipped_find(row.name, &path, &why) != ERR_OK)
            chars_copy(row.missing, why.text);
        char *summary = xformat("shipped: %s", path ? path : "-");
        row.summary = summary;
        listing_put(out, &row);
        free(summary);
        free(path);
        found++;
    }
    shipped_names_release(&names);
    return found;
}

void listing_put_models(struct result *out, bool is_brief)
{
    result_list(out, "shipped");
    put_shipped(out, NULL);
    result_end(out);
    result_list(out, "models");
    for (size_t i = 0; i < zoo_count(); i++) {
        if (is_brief) { /* their number alone: counting each takes long */
            result_text(out, NULL, zoo_at(i)->name);
            continue;
        }
        struct counts counts = count_of(zoo_at(i));
        put_model(out, zoo_at(i), &counts, zoo_at(i)->name);
    }
    result_end(out);
    result_list(out, "readers");
    for (size_t i = 0; i < graph_reader_count(); i++)
        listing_put(out, &(struct listing_row){.name = graph_reader_at(i)->name,
                                               .summary = graph_reader_at(i)->summary});
    result_end(out);
}

/* ---- some models in detail: as text, which has more than the result ---- */

static enum err unknown_model(const char *name, struct error *why)
{
    char near[160];
    return zoo_suggest(name, near, sizeof near)
               ? err_set(why, ERR_NOT_FOUND, "unknown model '%.80s'; did you mean %s?", name, near)
               : err_set(why, ERR_NOT_FOUND, "unknown model '%.80s'; see `ipw list models`", name);
}

static void add_count(struct text *out, const char *what, double count, const char *unit)
{
    char rounded[FORMAT_MAX];
    text_addf(out, "  %-12s %s", what, format_si(rounded, count, unit));
    if (isfinite(count))
        text_addf(out, " (%.0f)", count);
    text_add(out, "\n");
}

static void write_details(const struct zoo_entry *entry, const struct counts *counts,
                          struct text *out)
{
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

static void write_accuracies(const char *name, struct text *out)
{
    struct accuracy items[ACCURACIES_MAX];
    size_t count = model_accuracies(name, items);
    for (size_t i = 0; i < count; i++)
        text_addf(out, "  %-12s %.4g %% %s, published for %s%s%s (%s)\n", i ? "" : "accuracy",
                  items[i].percent, items[i].benchmark->title, items[i].model,
                  items[i].note ? ", " : "", items[i].note ? items[i].note : "", items[i].source);
}

enum err listing_put_models_named(struct result *out, const char **names, size_t count,
                                  struct text *text, struct error *why)
{
    result_list(out, "models");
    for (size_t i = 0; i < count; i++) {
        const struct zoo_entry *entry = zoo_find(names[i]);
        size_t at = out->count;
        if (entry) {
            struct counts counts = count_of(entry);
            put_model(out, entry, &counts, names[i]);
            write_details(entry, &counts, text);
            write_accuracies(names[i], text);
        } else if (put_shipped(out, names[i])) {
            listing_driver(&out->items[at], false, text);
        } else {
            return unknown_model(names[i], why);
        }
    }
    result_end(out);
    return ERR_OK;
}
