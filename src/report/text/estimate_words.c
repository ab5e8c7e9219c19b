/* Words of estimates: formatted figures, and those of a result with their uncertainty. */
#include "report/text/estimate_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"

void words_add(char *to, const char *format, ...)
{
    size_t length = strlen(to);
    va_list values;
    if (length && length + 2 < WORDS_MAX) {
        str_copy(to + length, WORDS_MAX - length, ", ");
        length += 2;
    }
    va_start(values, format);
    vsnprintf(to + length, WORDS_MAX - length, format, values);
    va_end(values);
}

char *words_each(char *to, const char *unit)
{
    str_format(to, WORDS_MAX, "per %s", unit);
    return to;
}

char *words_estimated(char *to, double value, double plus_minus, const char *unit)
{
    char figure[FORMAT_MAX];
    if (!is_known(value))
        str_copy(to, WORDS_MAX, "-");
    else
        str_format(to, WORDS_MAX, "~%s", format_with_error(figure, value, plus_minus, unit));
    return to;
}

char *words_share(char *to, double share)
{
    if (!is_known(share))
        str_copy(to, WORDS_MAX, "-");
    else if (share > 0 && share < 0.001)
        str_copy(to, WORDS_MAX, "< 0.1 %");
    else
        str_format(to, WORDS_MAX, "%.1f %%", 100 * share);
    return to;
}

char *words_rate(char *to, double rate)
{
    char figure[FORMAT_MAX];
    if (!is_known(rate))
        str_copy(to, WORDS_MAX, "-");
    else if (rate < 9999.5)
        str_format(to, WORDS_MAX, rate < 9.995 ? "%.3g" : "%.0f", rate);
    else
        str_copy(to, WORDS_MAX, str_trim(format_si(figure, rate, "")));
    return to;
}

/* ---- of the result of an estimate ---- */

/* "9.9 to 45 mJ", "0.9 mJ to 1.2 J". */
static void words_range(char *to, double from, double until, const char *unit)
{
    char low[FORMAT_MAX], high[FORMAT_MAX];
    format_rough(low, from, unit);
    format_rough(high, until, unit);
    char *space = strchr(low, ' ');
    const char *other = strchr(high, ' ');
    if (space && other && str_equal(space, other))
        *space = '\0'; /* common unit */
    str_format(to, WORDS_MAX, "%s to %s", low, high);
}

/* Paths of a figure and its uncertainty in a group. */
struct uncertain {
    const char *value, *plus_minus, *low, *high, *unit;
};

/* A figure with its unit, followed by `each`. */
static char *words_shipped(char *to, const struct result *result, const struct result_item *group,
                           const struct uncertain *at, const char *each)
{
    char figure[FORMAT_MAX], range[WORDS_MAX];
    const char *about = *at->unit == 'J' ? "~" : "";
    double value = result_number_at(group, at->value);
    if (!is_known(value)) {
        str_format(to, WORDS_MAX, "-%s", each);
    } else if (!result_flag_at(result->items, "view.is_exceeded_as_shipped")) {
        double plus_minus = result_number_at(group, at->plus_minus);
        str_format(to, WORDS_MAX, "%s%s%s", about,
                   format_with_error(figure, value, plus_minus, at->unit), each);
    } else {
        words_range(range, result_number_at(group, at->low), result_number_at(group, at->high),
                    at->unit);
        str_format(to, WORDS_MAX, "%s%s%s (%.60s as shipped)", about,
                   format_rough(figure, value, at->unit), each, range);
    }
    return to;
}

char *words_energy(char *to, const struct result *result, const char *group, const char *unit)
{
    static const struct uncertain ENERGY = {"energy_j", "plus_minus", "low", "high", "J"};
    char each[64];
    chars_format(each, " per %.40s", unit);
    return words_shipped(to, result, result_find(result, group), &ENERGY, each);
}

char *words_latency(char *to, const struct result *result)
{
    static const struct uncertain LATENCY = {"latency_s", "latency_plus_minus", "latency_low_s",
                                             "latency_high_s", "s"};
    return words_shipped(to, result, result->items, &LATENCY, "");
}

char *words_divided(char *to, const struct result_item *estimate)
{
    char share[WORDS_MAX];
    double divided = result_number_at(estimate, "setting.divided");
    if (!(divided < 0.995))
        return NULL;
    str_format(to, WORDS_MAX,
               "tensor parallel over %.0f devices: %s of MACs split, rest replicated",
               result_number_at(estimate, "setting.tensor_parallel"), words_share(share, divided));
    return to;
}

struct tariff words_tariff(const struct result_item *operating)
{
    return (struct tariff){
        .price_per_kwh = result_value(result_at(operating, "price_per_kwh")),
        .gco2_per_kwh = result_value(result_at(operating, "gco2_per_kwh")),
        .device_price_per_hour = result_value(result_at(operating, "device_price_per_hour")),
    };
}
