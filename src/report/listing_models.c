#include "report/listing_models.h"

#include <math.h>

#include "core/text.h"
#include "graph/count.h"
#include "graph/reader.h"
#include "graph/zoo.h"
#include "report/format.h"
#include "report/listing.h"

struct counts {
    double parameters, macs; /* not finite: could not be counted, and `missing` says why */
    char missing[240];
};

static struct counts count(const struct zoo_entry *entry)
{
    struct counts counts = {NAN, NAN, ""};
    struct graph_setting setting = {0};
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

void listing_models(struct listing *listing)
{
    listing_begin(listing, "models",
                  "architectures by name (--model): parameters, MACs of one input of this size");
    for (size_t i = 0; i < zoo_count(); i++) {
        const struct zoo_entry *entry = zoo_at(i);
        struct counts counts = count(entry);
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
