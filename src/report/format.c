#include "report/format.h"

#include <math.h>

#include "core/text.h"
#include "core/units.h"

struct prefix {
    double factor;
    const char *text;
};

static struct prefix prefix_for(double value)
{
    static const struct prefix PREFIXES[] = {
        {1e-9, "n"}, {1e-6, "µ"}, {1e-3, "m"}, {1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"},
    };
    double size = fabs(value);
    size_t i = 3;
    /* 999.95 would round to "1000": step up a little before the border. */
    while (i < 6 && size >= 999.95 * PREFIXES[i].factor)
        i++;
    while (i > 0 && size > 0 && size < 0.99995 * PREFIXES[i].factor)
        i--;
    return PREFIXES[i];
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
    str_format(to, FORMAT_MAX, "%.*f %s%s", decimals_for(scaled), scaled, prefix.text, unit);
    return to;
}

char *format_with_error(char *to, double value, double error, const char *unit)
{
    if (!is_known(value) || !is_known(error))
        return format_si(to, value, unit);
    struct prefix prefix = prefix_for(value);
    double scaled = value / prefix.factor, scaled_error = error / prefix.factor;
    int decimals = decimals_for(scaled_error) - 1; /* of an uncertainty two digits say enough */
    int most = decimals_for(scaled);
    if (decimals > most)
        decimals = most;
    str_format(to, FORMAT_MAX, "%.*f ± %.*f %s%s", decimals, scaled, decimals, scaled_error,
               prefix.text, unit);
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

char *format_bytes(char *to, double bytes)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    if (!is_known(bytes)) {
        str_copy(to, FORMAT_MAX, "-");
        return to;
    }
    for (; i < 4 && bytes >= 1023.95; i++)
        bytes /= 1024;
    str_format(to, FORMAT_MAX, i ? "%.1f %s" : "%.0f %s", bytes, UNITS[i]);
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
