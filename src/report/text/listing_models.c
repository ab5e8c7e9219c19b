#include "report/text/listing_models.h"

#include <math.h>

#include "core/text.h"
#include "graph/count.h"
#include "graph/reader.h"
#include "graph/zoo/zoo.h"
#include "report/text/format.h"
#include "report/text/listing.h"

struct counts {
    double parameters, macs; /* not finite: could not be counted, and `missing` says why */
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

static void add_json(struct listing *listing, const struct zoo_entry *entry,
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

static void add_text(struct listing *listing, const struct zoo_entry *entry,
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
        text_addf(&listing->text, "  %-34s (not available: %s)\n", "", counts->missing);
}

static void begin(struct listing *listing)
{
    listing_begin(listing, "models",
                  "architectures by name (--model): parameters, MACs of one input of this size");
}

/* ---- one of them ---- */

static void add_count(struct text *out, const char *what, double count, const char *unit)
{
    char rounded[FORMAT_MAX];
    text_addf(out, "  %-12s %s", what, format_si(rounded, count, unit));
    if (isfinite(count))
        text_addf(out, " (%.0f)", count);
    text_add(out, "\n");
}

static void show_one(struct listing *listing, const struct zoo_entry *entry,
                     const struct counts *counts)
{
    struct text *out = &listing->text;
    text_addf(out, "%s: %s\n", entry->name, entry->summary);
    text_addf(out, "  %-12s %s, as %s has it\n", "family", entry->family, entry->source);
    add_count(out, "parameters", counts->parameters, "");
    add_count(out, "MACs", counts->macs, "MAC");
    if (entry->image > 0)
        text_addf(out, "  %-12s an image of %lld px\n", "of", (long long)entry->image);
    else
        text_addf(out, "  %-12s %lld tokens\n", "of", (long long)entry->tokens);
    if (zoo_has_phases(entry))
        text_addf(out, "  %-12s prefill, decode\n", "phases");
    if (entry->context_length)
        text_addf(out, "  %-12s %lld tokens\n", "trained for", (long long)entry->context_length);
    if (counts->missing[0])
        text_addf(out, "  %-12s %s\n", "missing", counts->missing);
}

static enum err not_known(const char *name, struct error *why)
{
    const char *near = zoo_nearest(name);
    return near ? err_set(why, ERR_NOT_FOUND, "no model '%.80s': did you mean %s?", name, near)
                : err_set(why, ERR_NOT_FOUND, "no model '%.80s': `ipw list models` names them",
                          name);
}

enum err listing_models_named(struct listing *listing, const char **names, size_t count,
                              struct error *why)
{
    if (listing->json)
        begin(listing);
    for (size_t i = 0; i < count; i++) {
        const struct zoo_entry *entry = zoo_find(names[i]);
        if (!entry)
            return not_known(names[i], why);
        struct counts counts = count_of(entry);
        if (listing->json)
            add_json(listing, entry, &counts);
        else
            show_one(listing, entry, &counts);
    }
    return ERR_OK;
}

/* ---- all ---- */

void listing_models(struct listing *listing)
{
    begin(listing);
    for (size_t i = 0; i < zoo_count(); i++) {
        const struct zoo_entry *entry = zoo_at(i);
        struct counts counts = count_of(entry);
        if (listing->json)
            add_json(listing, entry, &counts);
        else
            add_text(listing, entry, &counts);
    }
    listing_begin(listing, "readers", "what else a model is read from (--model)");
    for (size_t i = 0; i < graph_reader_count(); i++) {
        const struct graph_reader *reader = graph_reader_at(i);
        listing_add(listing,
                    &(struct listing_row){.name = reader->name, .summary = reader->summary});
    }
}
