/* What tokens and electricity cost, by the user's own price file; the program ships no prices.
 *
 *     {"currency": "USD", "electricity_per_kwh": 0.25,
 *      "models": {"gpt-4o": {"input_per_million": 2.5, "output_per_million": 10,
 *                            "cached_input_per_million": 1.25}}}
 *
 * electricity_per_kwh, models and cached_input_per_million may be missing; "source", "date" and
 * "note" may be added at either level.  A struct prices owns all of it: prices_free takes it back. */
#ifndef IPW_METRICS_PRICES_H
#define IPW_METRICS_PRICES_H

#include <stddef.h>

#include "core/err.h"

struct prices;

/* A file that cannot be read or does not have this form is an error that names the place. */
enum err prices_load(const char *path, struct prices **out, struct error *why) MUST_USE;

/* The same from bytes in memory; `name` stands for the file in errors. */
enum err prices_parse(const char *name, const char *bytes, size_t length, struct prices **out,
                      struct error *why) MUST_USE;
void prices_free(struct prices *prices); /* NULL is fine */

const char *prices_currency(const struct prices *prices);

struct token_cost {
    double input, output, total; /* in the file's currency; UNKNOWN for a model it does not have */
};

/* The model's exact id, or else the one entry that normalises to the same name (model_name.h); with
 * several of those the cost is unknown.  cached_tokens are part of the prompt: UNKNOWN counts as none,
 * and without a price of their own they cost what the others do. */
struct token_cost prices_tokens(const struct prices *prices, const char *model,
                                double prompt_tokens, double cached_tokens, double output_tokens);

/* joules / 3.6e6 x electricity_per_kwh; UNKNOWN when either is. */
double prices_electricity(const struct prices *prices, double joules);

#endif
