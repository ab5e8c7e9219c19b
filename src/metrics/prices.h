/* Cost of tokens, electricity and device time according to the user's price file; the program ships no prices.
 *
 *     {"currency": "USD", "electricity_per_kwh": 0.25, "device_per_hour": 2.5, "gco2_per_kwh": 380,
 *      "models": {"gpt-4o": {"input_per_million": 2.5, "output_per_million": 10,
 *                            "cached_input_per_million": 1.25}}}
 *
 * Only the currency is required, and at least one price; "source", "date" and "note" are allowed at either level.
 * prices_load allocates a struct prices, which prices_free frees. */
#ifndef IPW_METRICS_PRICES_H
#define IPW_METRICS_PRICES_H

#include "core/err.h"

struct prices;
struct tariff;

/* ERR_BAD_VALUE names the file and the key that is wrong. */
enum err prices_load(const char *path, struct prices **out, struct error *why) MUST_USE;
void prices_free(struct prices *prices); /* NULL is allowed */

const char *prices_currency(const struct prices *prices);

struct token_cost {
    double input, output,
        total; /* in the currency of the file; UNKNOWN for a model without a price */
};

/* Matches the exact model id, else the only entry with the same normalized name (catalog/model.h); when
 * several match, the cost is unknown.  cached_tokens are part of the prompt: UNKNOWN counts as 0, and
 * without a cached price they cost the same as other prompt tokens. */
struct token_cost prices_tokens(const struct prices *prices, const char *model,
                                double prompt_tokens, double cached_tokens, double output_tokens);

/* Prices of electricity and device time. */
const struct tariff *prices_tariff(const struct prices *prices);

#endif
