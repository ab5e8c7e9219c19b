#include "report/text/listing.h"

#include "core/params.h"

enum { NAME_WIDTH = 23 }; /* the longest name of a driver, completion_tokens_kde, and a little */

void listing_init(struct listing *listing, bool json, bool verbose, bool colour)
{
    *listing = (struct listing){.json = json, .verbose = verbose, .colour = colour};
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
    } else {
        text_addf(&listing->text, "%s%s%s%s: %s\n", listing->open ? "\n" : "",
                  listing->colour ? "\x1b[1m" : "", kind, listing->colour ? "\x1b[0m" : "", what);
    }
    listing->open = true;
}

static void add_json(struct listing *listing, const struct listing_row *row)
{
    struct json *json = &listing->json_writer;
    json_object(json, NULL);
    json_string(json, "name", row->name);
    json_string(json, "summary", row->summary);
    json_bool(json, "available", row->missing[0] == '\0');
    json_string(json, "missing", row->missing[0] ? row->missing : NULL);
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

void listing_add(struct listing *listing, const struct listing_row *row)
{
    if (listing->json) {
        add_json(listing, row);
        return;
    }
    text_addf(&listing->text, "  %-*s %s\n", NAME_WIDTH, row->name, row->summary);
    if (row->missing[0])
        text_addf(&listing->text, "  %-*s (not available: %s)\n", NAME_WIDTH, "", row->missing);
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
