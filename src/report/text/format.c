/* Formatted figures, and tables of them as text, Markdown and CSV. */
#include "report/text/format.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

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
    /* 999.95 would round to "1000": switch to the next prefix slightly earlier. */
    while (i < 7 && size >= 999.95 * PREFIXES[i].factor)
        i++;
    while (i > 0 && size > 0 && size < 0.99995 * PREFIXES[i].factor)
        i--;
    return PREFIXES[i];
}

/* Beyond the range of SI prefixes. */
static bool is_beyond_prefixes(double scaled)
{
    return fabs(scaled) >= 99999.5;
}

/* Four significant digits: the resolution of the best sensors. */
static int decimals_for(double scaled)
{
    double size = fabs(scaled);
    if (size >= 99.995)
        return 1;
    return size >= 9.9995 ? 2 : 3;
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
    else if (value != 0 && fabs(scaled) < 0.0005) /* a rounding residue, not a reading */
        str_format(to, FORMAT_MAX, "%s0.001 %s%s", value > 0 ? "< " : "> -", prefix.text, unit);
    else
        str_format(to, FORMAT_MAX, "%.*f %s%s", decimals_for(scaled), scaled, prefix.text, unit);
    return to;
}

/* An uncertainty, and the smallest one that is shown with the figure, which decides its digits. */
struct shown_error {
    double error, finest;
};

static struct shown_error scaled_by(struct shown_error shown, double factor)
{
    return (struct shown_error){shown.error * factor, shown.finest * factor};
}

/* The decimal place of the second digit; from 0.995 on it rounds to 1.0. */
static int second_digit(double error)
{
    return (int)floor(log10(error / 0.995)) - 1;
}

/* Rounded to a place before the point; the format rounds behind it. */
static double round_to(double value, int place)
{
    double step = pow(10, place);
    return place > 0 ? round(value / step) * step : value;
}

/* "12.35 ± 0.36" followed by `unit`: two digits of the uncertainty, and the value to the place of the smallest one
 * shown.  False if that is too small to be shown with the value. */
static bool format_pair(char *to, double value, struct shown_error shown, const char *unit)
{
    int of_error = second_digit(shown.error);
    int place = shown.finest > 0 ? second_digit(fmin(shown.finest, shown.error)) : of_error;
    if (place < -6)
        return false;
    value = fabs(value) < pow(10, place) / 2 ? 0 : round_to(value, place); /* no "-0.0" */
    str_format(to, FORMAT_MAX, "%.*f ± %.*f%s%s", place < 0 ? -place : 0, value,
               of_error < 0 ? -of_error : 0, round_to(shown.error, of_error), unit[0] ? " " : "",
               unit);
    return true;
}

static void format_si_pair(char *to, double value, struct shown_error shown, const char *unit)
{
    struct prefix prefix = prefix_for(fmax(fabs(value), shown.error));
    double scaled = value / prefix.factor;
    struct shown_error scaled_error = scaled_by(shown, 1 / prefix.factor);
    char name[FORMAT_MAX];
    chars_format(name, "%s%s", prefix.text, unit);
    if (is_beyond_prefixes(scaled) || is_beyond_prefixes(scaled_error.error))
        str_format(to, FORMAT_MAX, "%.3e ± %.1e %s", value, shown.error, unit);
    else if (!format_pair(to, scaled, scaled_error, name))
        format_si(to, value, unit);
}

char *format_with_error(char *to, double value, double error, const char *unit)
{
    if (!is_known(value) || !is_known(error) || error <= 0)
        return format_si(to, value, unit);
    format_si_pair(to, value, (struct shown_error){error, UNKNOWN}, unit);
    return to;
}

/* Per joule or watt; the prefix is applied to the denominator: 0.022 1/J is "22 /kJ". */
static void format_per(char *to, double value, struct shown_error shown, const char *unit,
                       bool rough)
{
    double size = is_known(shown.error) ? fmax(fabs(value), shown.error) : fabs(value);
    int step = 0; /* powers of 1000 in the denominator */
    for (; size > 0 && size < 0.99995 && step < 4; step++)
        size *= 1e3;
    for (; size >= 999.95 && step > -3; step--)
        size /= 1e3;
    static const char *const PREFIXES[] = {"n", "µ", "m", "", "k", "M", "G", "T"};
    double factor = pow(10, 3 * step);
    double scaled = value * factor;
    char name[FORMAT_MAX];
    chars_format(name, "/%s%s", PREFIXES[step + 3], unit);
    if (is_beyond_prefixes(size))
        str_format(to, FORMAT_MAX, "%.3e /%s", value, unit);
    else if (value == 0 && !(shown.error > 0))
        str_format(to, FORMAT_MAX, "0 /%s", unit);
    else if (!(shown.error > 0) || !format_pair(to, scaled, scaled_by(shown, factor), name))
        str_format(to, FORMAT_MAX, "%.*f %s", rough ? fabs(scaled) < 9.95 : decimals_for(scaled),
                   scaled, name);
}

/* Counts with all digits, other numbers with four. */
static void format_plain(char *to, double value, struct shown_error shown, const char *unit)
{
    const char *space = unit[0] ? " " : "";
    double error = shown.error;
    bool fits = fabs(value) < 1e12 && error > 0 && error < 1e12;
    if (fits && format_pair(to, value, shown, unit))
        return;
    if (error > 0 && !fits)
        str_format(to, FORMAT_MAX, "%.3e ± %.1e%s%s", value, error, space, unit);
    else if (!unit[0] && value == floor(value) && fabs(value) < 1e15)
        str_format(to, FORMAT_MAX, "%.0f", value);
    else
        str_format(to, FORMAT_MAX,
                   fabs(value) >= 9999.5 && fabs(value) < 1e12 ? "%.0f%s%s" : "%.4g%s%s", value,
                   space, unit);
}

char *format_in(char *to, double value, double error, const char *unit)
{
    if (is_known(value))
        format_plain(to, value, (struct shown_error){error, UNKNOWN}, unit);
    else
        str_copy(to, FORMAT_MAX, "-");
    return to;
}

char *format_figure(char *to, double value, double error, const char *unit)
{
    return format_figure_beside(to, value, error, UNKNOWN, UNKNOWN, unit);
}

char *format_figure_beside(char *to, double value, double error, double low, double high,
                           const char *unit)
{
    bool is_inverse = str_starts(unit, "1/");
    bool is_rate = str_equal(unit, "1/s");
    struct shown_error shown = {error, (high - low) / 2};
    if (!is_known(value))
        str_copy(to, FORMAT_MAX, "-");
    else if (str_equal(unit, "%") && error > 0)
        format_plain(to, 100 * value, scaled_by(shown, 100), unit);
    else if (str_equal(unit, "%"))
        format_percent(to, value);
    else if (is_inverse && !is_rate)
        format_per(to, value, shown, unit + 2, false);
    else if (is_rate || !unit[0])
        format_plain(to, value, shown, is_rate ? unit + 1 : unit); /* "/ks" is not used */
    else if (error > 0)
        format_si_pair(to, value, shown, unit);
    else
        format_si(to, value, unit);
    return to;
}

/* Two digits of the error or three of the amount, at least hundredths. */
char *format_amount(char *to, double value, double error, const char *currency)
{
    enum { DECIMALS_MAX = 15 };
    double size = fabs(value);
    const char *space = currency[0] ? " " : "";
    int decimals = size > 0 && size < 1 ? 2 - (int)floor(log10(size)) : 2;
    if (!is_known(value)) {
        str_copy(to, FORMAT_MAX, "-");
        return to;
    }
    if (error < 5e-4 * size) /* below the displayed digits */
        error = UNKNOWN;
    if (error > 0) {
        int place = (int)floor(log10(error / 0.995)) - 1; /* from 0.995 on it rounds to 1.0 */
        decimals = place < 0 ? -place : 0;
    }
    decimals = decimals < DECIMALS_MAX ? decimals : DECIMALS_MAX;
    if (size >= 1e15 || error >= 1e15) /* implausibly large amount */
        str_format(to, FORMAT_MAX, "%.3e%s%.8s", value, space, currency);
    else if (error > 0)
        str_format(to, FORMAT_MAX, "%.*f ± %.*f%s%.8s", decimals, value, decimals, error, space,
                   currency);
    else
        str_format(to, FORMAT_MAX, "%.*f%s%.8s", decimals, value, space, currency);
    return to;
}

void format_tariff(const struct tariff *tariff, const char *currency, struct text *out)
{
    const char *between = "at ";
    if (is_known(tariff->price_per_kwh)) {
        text_addf(out, "%s%.6g %s%s", between, tariff->price_per_kwh, currency,
                  currency[0] ? "/kWh" : "per kWh");
        between = ", ";
    }
    if (is_known(tariff->device_price_per_hour)) {
        text_addf(out, "%s%.6g %s%sper device hour", between, tariff->device_price_per_hour,
                  currency, currency[0] ? " " : "");
        between = ", ";
    }
    if (is_known(tariff->gco2_per_kwh))
        text_addf(out, "%s%.6g gCO2e/kWh", between, tariff->gco2_per_kwh);
}

const char *format_scope(const struct tariff *tariff)
{
    if (is_known(tariff->gco2_per_kwh))
        return "electricity at the devices, without cooling (PUE); emissions location-based, of "
               "electricity only";
    return is_known(tariff->price_per_kwh) ? "electricity at the devices, without cooling (PUE)"
                                           : "";
}

char *format_cost(char *to, const struct charge *charge, const char *currency)
{
    return format_amount(to, charge->cost, charge->cost_plus_minus, currency);
}

char *format_emissions(char *to, const struct charge *charge)
{
    return format_with_error(to, charge->gco2e, charge->gco2e_plus_minus, "gCO2e");
}

char *format_rough(char *to, double value, const char *unit)
{
    if (!is_known(value) || value == 0)
        return format_figure(to, value, UNKNOWN, unit);
    double step = pow(10, floor(log10(fabs(value))) - 1);
    value = round(value / step) * step;
    if (str_starts(unit, "1/")) {
        format_per(to, value, (struct shown_error){UNKNOWN, UNKNOWN}, unit + 2, true);
        return to;
    }
    struct prefix prefix = prefix_for(value);
    double scaled = value / prefix.factor;
    if (is_beyond_prefixes(scaled) || fabs(scaled) < 0.0005)
        return format_si(to, value, unit);
    str_format(to, FORMAT_MAX, "%.*f %s%s", fabs(scaled) < 9.95 ? 1 : 0, scaled, prefix.text, unit);
    return to;
}

char *format_p(char *to, double p, bool is_bound)
{
    static const double MARKS[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1};
    size_t i = 0;
    while (i < COUNT_OF(MARKS) - 1 && p * (1 + 1e-9) >= MARKS[i])
        i++;
    if (!is_known(p))
        str_copy(to, FORMAT_MAX, "-");
    else if (p < MARKS[0] || (is_bound && p < 1))
        str_format(to, FORMAT_MAX, "< %g", MARKS[i]);
    else
        str_format(to, FORMAT_MAX, "%.3f", p);
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

char *format_unread(char *to, double unread_share, double accuracy_at_most)
{
    char share[FORMAT_MAX], most[FORMAT_MAX];
    to[0] = '\0';
    if (unread_share > 0)
        str_format(to, FORMAT_MAX, "%.20s unread: at most %.20s",
                   format_percent(share, unread_share), format_percent(most, accuracy_at_most));
    return to;
}

char *format_accuracy(char *to, double accuracy, double unread_share, double accuracy_at_most)
{
    char share[FORMAT_MAX], most[FORMAT_MAX];
    format_percent(share, accuracy);
    if (unread_share > 0)
        str_format(to, FORMAT_MAX, "%.20s to %.20s", share, format_percent(most, accuracy_at_most));
    else
        str_copy(to, FORMAT_MAX, share);
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
    else if (str_equal(method, "several"))
        str_copy(to, FORMAT_MAX, "by several methods");
    else if (str_equal(method, "estimated"))
        str_copy(to, FORMAT_MAX, "estimated");
    else
        str_format(to, FORMAT_MAX, "measured (%.24s)", method);
    return to;
}

char *format_common(char *to, double share)
{
    str_format(to, FORMAT_MAX,
               share < 0.0995 ? "±%.1f %% common to all, cancels in differences"
                              : "±%.0f %% common to all, cancels in differences",
               100 * share);
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
        chars_format(part, i ? "%.1f" : "%.0f", used / pow(1024, (double)i));
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

char *format_about(char *to, double s)
{
    if (s < 100)
        str_format(to, FORMAT_MAX, "about %.0f s", fmax(s, 1));
    else if (s < 100 * 60)
        str_format(to, FORMAT_MAX, "about %.0f min", s / 60);
    else
        str_format(to, FORMAT_MAX, "about %.0f h", s / 3600);
    return to;
}

void format_activities(const struct result *result, const struct result_item *conditions,
                       struct text *out)
{
    static const struct {
        const char *key, *label;
    } UNITS[] = {{"sm_active", "SM"},     {"sm_occupancy", "occupancy"},
                 {"dram_active", "DRAM"}, {"tensor_active", "tensor"},
                 {"fp64_active", "FP64"}, {"fp32_active", "FP32"},
                 {"fp16_active", "FP16"}, {"utilization", "utilization"}};
    RESULT_EACH (device, result, result_at(result, conditions, "devices")) {
        const struct result_item *activity = result_get(result, device, "activity");
        const char *between = "";
        const char *source = result_text_at(result, activity, "source");
        if (!activity || !source[0])
            continue;
        text_addf(out, "   %s activity: ", result_text_at(result, device, "id"));
        for (size_t k = 0; k < COUNT_OF(UNITS); k++) {
            double share = result_number_at(result, activity, UNITS[k].key);
            if (!is_known(share))
                continue;
            text_addf(out, "%s%s %.0f %%", between, UNITS[k].label, 100 * share);
            between = ", ";
        }
        text_addf(out, " (%s)\n", source);
    }
}

/* ---- tables ---- */

void table_init(struct table *table, const struct table_column *columns, size_t width)
{
    assert(width <= TABLE_COLUMNS_MAX);
    *table = (struct table){.columns = columns, .width = width};
}

void table_release(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){0};
}

void table_add(struct table *table, const char *cell)
{
    XGROW(table->cells, table->count, table->capacity);
    table->cells[table->count++] = xstrdup(cell);
}

void table_add_number(struct table *table, double value)
{
    static const double EXACT_MAX =
        9007199254740992.; /* above 2^53 not every integer is a double */
    char cell[40] = "";
    if (is_known(value))
        chars_format(cell, fabs(value) < EXACT_MAX && value == trunc(value) ? "%.0f" : "%.9g",
                     value);
    table_add(table, cell);
}

static void PRINTF_LIKE(2, 0) add_formatted(struct table *table, const char *format, va_list args)
{
    char cell[256];
    vsnprintf(cell, sizeof cell, format, args);
    table_add(table, cell);
}

void table_addf(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_formatted(table, format, args);
    va_end(args);
}

void table_add_known(struct table *table, double value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (is_known(value))
        add_formatted(table, format, args);
    else
        table_add(table, "-");
    va_end(args);
}

/* Display width of a cell: it may contain anything, and CSV keeps it unchanged. */
static size_t cell_width(const char *cell)
{
    size_t width = 0;
    for (size_t left = strlen(cell), taken; left; cell += taken, left -= taken) {
        char shown[PLAIN_MAX + 1];
        shown[plain_character(cell, left, shown, &taken)] = '\0';
        width += utf8_width(shown);
    }
    return width;
}

/* Width of a column, 0 if there are rows and all its cells are empty. */
static size_t column_width(const struct table *table, size_t column)
{
    size_t widest = 0;
    for (size_t i = column; i < table->count; i += table->width) {
        size_t width = cell_width(table->cells[i]);
        if (width > widest)
            widest = width;
    }
    size_t title = utf8_width(table->columns[column].title);
    if (widest == 0 && table->count)
        return 0;
    return widest > title ? widest : title;
}

static void pad(struct text *out, size_t spaces)
{
    while (spaces-- > 0)
        text_add(out, " ");
}

static void write_row(const struct table *table, const size_t *widths, const char *const *cells,
                      const char *indent, struct text *out)
{
    size_t owed = 0; /* pending spaces, only written before a further cell */
    text_add(out, indent);
    for (size_t c = 0; c < table->width; c++) {
        if (widths[c] == 0)
            continue;
        size_t space = widths[c] - cell_width(cells[c]);
        if (!cells[c][0]) {
            owed += 2 + space;
            continue;
        }
        pad(out, owed + (table->columns[c].right ? space : 0));
        text_add_plain(out, cells[c]);
        owed = 2 + (table->columns[c].right ? 0 : space);
    }
    text_add(out, "\n");
}

void table_widen(const struct table *table, size_t *widths)
{
    for (size_t c = 0; c < table->width; c++) {
        size_t width = column_width(table, c);
        if (width > widths[c])
            widths[c] = width;
    }
}

void table_write_header(const struct table *table, const size_t *widths, const char *indent,
                        bool color, struct text *out)
{
    const char *titles[TABLE_COLUMNS_MAX];
    for (size_t c = 0; c < table->width; c++)
        titles[c] = table->columns[c].title;
    text_add(out, color ? "\033[1m" : "");
    write_row(table, widths, titles, indent, out);
    text_add(out, color ? "\033[0m" : "");
}

void table_write_rows(const struct table *table, const size_t *widths, const char *indent,
                      struct text *out)
{
    for (size_t i = 0; i + table->width <= table->count; i += table->width)
        write_row(table, widths, (const char *const *)&table->cells[i], indent, out);
}

void table_write(const struct table *table, const char *indent, bool color, struct text *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    table_widen(table, widths);
    table_write_header(table, widths, indent, color, out);
    table_write_rows(table, widths, indent, out);
}

void table_print(struct table *table, const char *indent, bool color, struct text *out)
{
    table_write(table, indent, color, out);
    table_release(table);
}

/* ---- Markdown ---- */

/* Escapes characters that would end a cell or begin markup. */
void markdown_add(struct text *out, const char *string)
{
    for (size_t left = strlen(string), taken; left; string += taken, left -= taken) {
        char shown[PLAIN_MAX];
        size_t length = plain_character(string, left, shown, &taken);
        if (strchr("|\\`*_<>[]", shown[0]))
            text_add(out, "\\");
        text_add_bytes(out, shown, length);
    }
}

void markdown_add_list(struct text *out, const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        size_t indent = strspn(lines, " ");
        struct text line = {0};
        text_add_bytes(&line, lines + indent, indent < length ? length - indent : 0);
        if (line.length) {
            text_add(out, "- ");
            markdown_add(out, text_get(&line));
            text_add(out, "\n");
        }
        text_release(&line);
        lines += length + (lines[length] == '\n');
    }
}

void table_write_markdown(const struct table *table, struct text *out)
{
    for (size_t c = 0; c < table->width; c++)
        text_addf(out, "| %s ", table->columns[c].title);
    text_add(out, "|\n");
    for (size_t c = 0; c < table->width; c++)
        text_addf(out, "|%s", table->columns[c].right ? "---:" : "---");
    text_add(out, "|\n");
    for (size_t i = 0; i + table->width <= table->count; i += table->width) {
        for (size_t c = 0; c < table->width; c++) {
            text_add(out, "| ");
            markdown_add(out, table->cells[i + c]);
            text_add(out, " ");
        }
        text_add(out, "|\n");
    }
}

/* ---- CSV ---- */

void table_write_csv(const struct table *table, struct text *out)
{
    for (size_t c = 0; c < table->width; c++)
        text_addf(out, "%s%s", c ? "," : "", table->columns[c].title);
    text_add(out, "\n");
    for (size_t i = 0; i + table->width <= table->count; i += table->width) {
        for (size_t c = 0; c < table->width; c++) {
            text_add(out, c ? "," : "");
            csv_add_text(out, table->cells[i + c]);
        }
        text_add(out, "\n");
    }
}
