/* What `ipw list` lists, as a result (core/result.h).  The caller owns the result and the text. */
#ifndef IPW_CLI_LISTING_H
#define IPW_CLI_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct param_spec;
struct result;
struct text;

struct listing_row {
    const char *name, *summary;
    const struct param_spec *params; /* may be NULL */
    char missing[240];               /* why it is unavailable; "" if it is available */
    char note[240];                  /* important note for users; or "" */
};

/* Adds a row to the open list. */
void listing_put(struct result *out, const struct listing_row *row);

/* The lists of all models and of all hardware; is_brief: names alone. */
void listing_put_models(struct result *out, bool is_brief);
void listing_put_hardware(struct result *out, bool is_brief);

/* Only these, in detail, also as text; ERR_NOT_FOUND: unknown name. */
enum err listing_put_models_named(struct result *out, const char **names, size_t count,
                                  struct text *text, struct error *why) MUST_USE;
enum err listing_put_hardware_named(struct result *out, const char **ids, size_t count, bool color,
                                    struct text *text, struct error *why) MUST_USE;

/* All hardware as a table, or in Markdown. */
enum err listing_hardware_table(bool is_markdown, bool color, struct text *out, struct error *why)
    MUST_USE;

#endif
