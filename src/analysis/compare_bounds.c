#include "analysis/compare_bounds.h"

#include <ctype.h>
#include <string.h>

#include "core/registry.h"
#include "core/text.h"
#include "core/units.h"

static enum err unknown_metric(const char *name, struct error *why)
{
    const char *names[COMPARE_METRICS];
    struct text all = {0};
    for (size_t i = 0; i < COMPARE_METRICS; i++) {
        names[i] = COMPARE_METRIC_INFO[i].name;
        text_addf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = nearest_name(name, names, COMPARE_METRICS);
    enum err err =
        near ? err_set(why, ERR_USAGE, "unknown metric '%s': did you mean '%s'?", name, near)
             : err_set(why, ERR_USAGE, "unknown metric '%s': use one of %s", name, text_get(&all));
    text_release(&all);
    return err;
}

static const char *skip_spaces(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static enum err parse_bound(const char *at, struct compare_check *out)
{
    char number[64];
    size_t length = strlen(at);
    while (length && isspace((unsigned char)at[length - 1]))
        length--;
    out->relative = length && at[length - 1] == '%';
    length -= out->relative;
    if (length >= sizeof number)
        return ERR_BAD_VALUE;
    memcpy(number, at, length);
    number[length] = '\0';
    enum err err = parse_double(number, &out->bound);
    if (out->relative)
        out->bound /= 100;
    return err;
}

enum err compare_check_parse(const char *text, struct compare_check *out, struct error *why)
{
    char name[64];
    const char *at = skip_spaces(text);
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    *out = (struct compare_check){.metric = COMPARE_METRICS};
    const char *sign = skip_spaces(at + length);
    if (!str_copy(out->text, sizeof out->text, text) || !length || length >= sizeof name ||
        (*sign != '>' && *sign != '<'))
        return err_set(why, ERR_USAGE,
                       "'%.100s' is not a bound: write METRIC > BOUND or METRIC < BOUND, as in "
                       "'energy_per_output_token > +5%%'",
                       text);
    memcpy(name, at, length);
    name[length] = '\0';
    for (size_t i = 0; i < COMPARE_METRICS; i++)
        if (strcmp(COMPARE_METRIC_INFO[i].name, name) == 0)
            out->metric = (enum compare_metric)i;
    if (out->metric == COMPARE_METRICS)
        return unknown_metric(name, why);
    out->above = *sign == '>';
    out->or_equal = sign[1] == '=';
    if (parse_bound(sign + 1 + out->or_equal, out))
        return err_set(
            why, ERR_USAGE,
            "'%.100s' has no number for a bound: +5%% is a share of the baseline, 0.5 is "
            "in the metric's unit",
            text);
    return ERR_OK;
}

enum compare_outcome compare_check_judge(const struct compare_check *check,
                                         const struct comparison *comparison, bool confident)
{
    const struct contrast *found = &comparison->metrics[check->metric].found;
    const struct contrast_figure *figure = check->relative ? &found->relative : &found->difference;
    double value = confident ? check->above ? figure->low : figure->high : figure->value;
    if (check->relative && found->a == 0 && found->b == 0)
        value = 0; /* a relative difference of 0 and 0 is undefined, but nothing differs */
    else if (!is_known(figure->value))
        return CHECK_UNKNOWN;
    if (compare_is_blocked(comparison, check->metric))
        return CHECK_NOT_COMPARABLE;
    if (confident && !compare_is_repeated(comparison))
        return CHECK_UNREPEATED;
    if (!is_known(value))
        return CHECK_HOLDS; /* too few queries to be sure of anything */
    if (value == check->bound)
        return check->or_equal ? CHECK_FAILS : CHECK_HOLDS;
    return (value > check->bound) == check->above ? CHECK_FAILS : CHECK_HOLDS;
}
