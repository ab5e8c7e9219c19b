#include "report/text/format.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "core/text.h"
#include "rundir/summary.h"

struct prefix {
    double factor;
    const char *text;
};

static struct prefix prefix_for(double value)
{
    static const struct prefix PREFIXES[] = {
        {1e-9, "n"}, {1e-6, "µ"}, {1e-3, "m"}, {1, ""},
        {1e3, "k"},  {1e6, "M"},  {1e9, "G"},  {1e12, "T"},
    };
    double size = fabs(value);
    size_t i = 3;
    /* 999.95 would round to "1000": step up a little before the border. */
    while (i < 7 && size >= 999.95 * PREFIXES[i].factor)
        i++;
    while (i > 0 && size > 0 && size < 0.99995 * PREFIXES[i].factor)
        i--;
    return PREFIXES[i];
}

/* What no prefix brings to a readable size. */
static bool is_beyond_prefixes(double scaled)
{
    double size = fabs(scaled);
    return size >= 99999.5 || (size > 0 && size < 0.0005);
}

/* Four significant digits: what the best of these sensors can carry. */
static int decimals_for(double scaled)
{
    double size = fabs(scaled);
    return size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
}

char *format_si(char *to, double value, const char *unit)
{
    if (!is_known(value)) {
        str_copy(to, FORMAT_MAX, "-");
        return to;
    }
    struct prefix prefix = prefix_for(value);
    double scaled = value / prefix.factor;
    if (is_beyond_prefixes(scaled))
        str_format(to, FORMAT_MAX, "%.3e %s", value, unit);
    else
        str_format(to, FORMAT_MAX, "%.*f %s%s", decimals_for(scaled), scaled, prefix.text, unit);
    return to;
}

char *format_rough(char *to, double value, const char *unit)
{
    if (!is_known(value) || value == 0)
        return format_si(to, value, unit);
    double step = pow(10, floor(log10(fabs(value))) - 1);
    value = round(value / step) * step;
    struct prefix prefix = prefix_for(value);
    double scaled = value / prefix.factor;
    if (is_beyond_prefixes(scaled)) {
        str_format(to, FORMAT_MAX, "%.1e %s", value, unit);
        return to;
    }
    str_format(to, FORMAT_MAX, "%.*f %s%s", fabs(scaled) < 9.95 ? 1 : 0, scaled, prefix.text, unit);
    return to;
}

char *format_with_error(char *to, double value, double error, const char *unit)
{
    if (!is_known(value) || !is_known(error))
        return format_si(to, value, unit);
    struct prefix prefix = prefix_for(value);
    double scaled = value / prefix.factor, scaled_error = error / prefix.factor;
    if (is_beyond_prefixes(scaled) || fabs(scaled_error) >= 99999.5) {
        str_format(to, FORMAT_MAX, "%.3e ± %.1e %s", value, error, unit);
        return to;
    }
    /* Of an uncertainty two digits say enough, and fewer would show a small one as 0.  From 0.995
     * on it rounds to 1.0. */
    int decimals =
        scaled_error > 0 ? 1 - (int)floor(log10(scaled_error / 0.995)) : decimals_for(scaled);
    decimals = decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
    str_format(to, FORMAT_MAX, "%.*f ± %.*f %s%s", decimals, scaled, decimals, scaled_error,
               prefix.text, unit);
    return to;
}

/* Counts with all their digits, other numbers with four. */
static void format_plain(char *to, double value, double error, const char *unit)
{
    const char *space = unit[0] ? " " : "";
    if (error > 0)
        str_format(to, FORMAT_MAX, "%.4g ± %.2g%s%s", value, error, space, unit);
    else if (!unit[0] && value == floor(value) && fabs(value) < 1e15)
        str_format(to, FORMAT_MAX, "%.0f", value);
    else
        str_format(to, FORMAT_MAX, "%.4g%s%s", value, space, unit);
}

char *format_figure(char *to, double value, double error, const char *unit)
{
    bool is_share = strcmp(unit, "%") == 0;
    if (!is_known(value))
        str_copy(to, FORMAT_MAX, "-");
    else if (is_share && error > 0)
        str_format(to, FORMAT_MAX, "%.1f ± %.1f %%", 100 * value, 100 * error);
    else if (is_share)
        format_percent(to, value);
    else if (!unit[0] || strchr(unit, '/'))
        format_plain(to, value, error, unit);
    else if (error > 0)
        format_with_error(to, value, error, unit);
    else
        format_si(to, value, unit);
    return to;
}

char *format_percent(char *to, double share)
{
    if (is_known(share))
        str_format(to, FORMAT_MAX, share >= 0.9995 ? "%.0f %%" : "%.1f %%", 100 * share);
    else
        str_copy(to, FORMAT_MAX, "-");
    return to;
}

static const char *const BYTE_UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};

/* Index of the unit, which is also the power of 1024. */
static size_t bytes_unit(double bytes)
{
    size_t i = 0;
    for (; i < 4 && bytes >= 1023.95; i++)
        bytes /= 1024;
    return i;
}

char *format_method(char *to, const char *method)
{
    if (!method[0])
        str_copy(to, FORMAT_MAX, "by an unknown method");
    else if (strcmp(method, "several") == 0)
        str_copy(to, FORMAT_MAX, "by several methods");
    else if (strcmp(method, "estimated") == 0)
        str_copy(to, FORMAT_MAX, "estimated");
    else
        str_format(to, FORMAT_MAX, "measured (%.24s)", method);
    return to;
}

char *format_common(char *to, double share)
{
    str_format(to, FORMAT_MAX, share < 0.0995 ? "±%.1f %% common" : "±%.0f %% common", 100 * share);
    return to;
}

char *format_bytes(char *to, double bytes)
{
    if (!is_known(bytes)) {
        str_copy(to, FORMAT_MAX, "-");
        return to;
    }
    size_t i = bytes_unit(bytes);
    str_format(to, FORMAT_MAX, i ? "%.1f %s" : "%.0f %s", bytes / pow(1024, (double)i),
               BYTE_UNITS[i]);
    return to;
}

char *format_bytes_of(char *to, double used, double total)
{
    if (!is_known(total))
        return format_bytes(to, used);
    char whole[FORMAT_MAX], part[FORMAT_MAX] = "-";
    size_t i = bytes_unit(total);
    if (is_known(used))
        str_format(part, sizeof part, i ? "%.1f" : "%.0f", used / pow(1024, (double)i));
    str_format(to, FORMAT_MAX, "%s/%s", part, format_bytes(whole, total));
    return to;
}

char *format_duration(char *to, double s)
{
    if (!is_known(s))
        str_copy(to, FORMAT_MAX, "-");
    else if (s < 60)
        format_si(to, s, "s");
    else if (s < 3600)
        str_format(to, FORMAT_MAX, "%d m %02d s", (int)(s / 60), (int)fmod(s, 60));
    else
        str_format(to, FORMAT_MAX, "%d h %02d m", (int)(s / 3600), (int)(fmod(s, 3600) / 60));
    return to;
}

char *format_time(char *to, nanos wall)
{
    time_t whole = (time_t)(wall / NS_PER_S);
    struct tm parts;
    char day[32];
    gmtime_r(&whole, &parts);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    str_format(to, FORMAT_MAX, "%s.%03dZ", day, (int)(wall % NS_PER_S / NS_PER_MS));
    return to;
}

void format_findings(const struct summary_conditions *conditions, bool color, struct text *out)
{
    for (int severity = FINDING_BREAKS; severity >= FINDING_NOTE; severity--)
        for (size_t i = 0; i < conditions->finding_count; i++) {
            const struct summary_finding *finding = &conditions->findings[i];
            bool red = color && severity == FINDING_BREAKS;
            if ((int)finding->severity == severity)
                text_addf(out, "   %s%s: %s%s\n", red ? "\033[31m" : "",
                          severity == FINDING_NOTE ? "note" : "warning", finding->text,
                          red ? "\033[0m" : "");
        }
    if (conditions->finding_count)
        text_add(out, "\n");
}
