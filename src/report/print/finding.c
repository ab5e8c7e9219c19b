/* Results in brief: the finding of each in its phrases, and the warnings of all. */
#include <math.h>
#include <string.h>

#include "core/finding.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/layout.h"
#include "report/print/print.h"

enum { WIDTH = 78, LABEL_INDENT = 14, FINDING_LINES = 2 };

/* Length of the words from `at` that fit on a line. */
static size_t fitting(const char *at, size_t width)
{
    size_t columns = 0, end = 0, i = 0;
    for (; at[i]; i++) {
        if (at[i] == ' ')
            end = i;
        columns += !utf8_is_continuation(at[i]);
        if (columns > width)
            return end ? end : i;
    }
    return i;
}

size_t wrap_words(struct text *out, const char *label, size_t indent, size_t max, const char *words)
{
    size_t width = WIDTH - indent;
    size_t lines = 0;
    text_addf(out, "%-*s", (int)indent, label);
    for (const char *at = words; *at && lines < max; lines++) {
        bool last = lines + 1 == max;
        size_t length = fitting(at, last ? width - 4 : width);
        if (last && strlen(at) <= fitting(at, width))
            length = strlen(at);
        if (lines)
            text_addf(out, "%*s", (int)indent, "");
        text_addf(out, "%.*s%s\n", (int)length, at, last && at[length] ? " ..." : "");
        at += length;
        at += *at == ' ';
    }
    return lines;
}

/* "86.7 % correct (95 % CI: 75.8 % to 93.1 %)": a share has no ±. */
static void add_phrase(const struct result *result, const struct result_phrase *phrase,
                       struct text *out)
{
    const struct result_item *item = result_find(result, phrase->path);
    char figure[LAYOUT_CELL_MAX], high[LAYOUT_CELL_MAX];
    if (!result_is_known(item) || (item->kind == RESULT_COUNT && item->number == 0))
        return;
    text_add(out, phrase->before + (out->length ? 0 : strspn(phrase->before, ", ")));
    if (item->kind == RESULT_TEXT) { /* of any length */
        text_add_plain(out, result_string(item));
        text_add(out, phrase->after);
        return;
    }
    if (item->kind == RESULT_NUMBER && !item->unit[0] && !is_known(item->error))
        chars_format(figure, "%.*f", fabs(item->number) < 10 ? 2 : 0, item->number);
    else
        layout_number(figure, item->number, item->error, item->unit);
    text_addf(out, "%s%s", figure, phrase->after);
    if (is_known(item->low) && is_known(item->high) && str_equal(item->unit, "%")) {
        layout_number(figure, item->low, UNKNOWN, item->unit);
        layout_number(high, item->high, UNKNOWN, item->unit);
        text_addf(out, " (95 %% CI: %s to %s)", figure, high);
    }
}

static struct text words_of(const struct result *result)
{
    struct text words = {0};
    if (result->err == ERR_NO_DATA)
        text_addf(&words, "not enough data: %s", result->why.text);
    for (const struct result_phrase *phrase = result->finding; phrase && phrase->path; phrase++)
        add_phrase(result, phrase, &words);
    return words;
}

static size_t put_finding(const struct result *result, struct text *out)
{
    struct text words = words_of(result);
    char label[32];
    chars_format(label, "   %s", result->name);
    size_t lines = wrap_words(out, label, LABEL_INDENT, FINDING_LINES,
                              words.length ? text_get(&words) : "none");
    text_release(&words);
    return lines;
}

void finding_words(const struct result_item *finding, bool has_action, bool color, struct text *out)
{
    const char *severity = result_text_at(finding, "severity");
    const char *gpu = result_text_at(finding, "gpu");
    const char *application = result_text_at(finding, "application");
    bool is_red = color && str_equal(severity, finding_severity_name(FINDING_INVALID));
    text_addf(out, "%s%s:%s ", is_red ? "\033[31m" : "", severity, is_red ? "\033[0m" : "");
    if (gpu[0] || application[0])
        text_addf(out, "%s%s%s: ", plain_text(gpu).text, gpu[0] && application[0] ? " " : "",
                  plain_text(application).text);
    text_add(out, plain_text(result_text_at(finding, "text")).text);
    if (has_action)
        text_addf(out, ": %s", result_text_at(finding, "action"));
    text_addf(out, " [%s]", plain_text(result_text_at(finding, "code")).text);
}

void findings_text(const struct result_item *findings, bool color, struct text *out)
{
    RESULT_EACH (finding, findings) {
        text_add(out, "   ");
        finding_words(finding, false, color, out);
        text_add(out, "\n");
    }
    if (result_first(findings))
        text_add(out, "\n");
}

/* Findings, which have their severity, and warnings of all results, each once. */
static size_t gather_warnings(const struct result *results, size_t count, struct text *out)
{
    size_t found = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        const struct result *result = &results[i % count];
        const struct text *lines = i < count ? &result->notes : &result->warnings;
        for (const char *line = NULL; (line = result_line(lines, line));) {
            const char *before = NULL;
            const char *severity = i < count ? "" : "warning: ";
            size_t length = strlen(severity);
            while ((before = result_line(out, before)) &&
                   (strncmp(before, severity, length) != 0 || !str_equal(before + length, line)))
                continue;
            if (!before && ++found)
                result_add_line(out, "%s%s", severity, line);
        }
    }
    return found;
}

/* As many as fit into `lines` lines, and the number of further ones. */
static void put_warnings(const struct result *results, size_t count, size_t lines, struct text *out)
{
    struct text all = {0};
    size_t left = gather_warnings(results, count, &all);
    size_t used = 0;
    for (const char *line = NULL; (line = result_line(&all, line)); left--) {
        struct text words = {0};
        bool fits = used + FINDING_LINES + (left > 1) <= lines;
        text_add(&words, plain_text(line).text);
        if (fits)
            used += wrap_words(out, "", LABEL_INDENT, FINDING_LINES, text_get(&words));
        text_release(&words);
        if (!fits)
            break;
    }
    if (left)
        text_addf(out, "%*s%zu more warning%s: -v shows %s\n", LABEL_INDENT, "", left,
                  str_plural(left), left == 1 ? "it" : "them");
    text_release(&all);
}

void result_findings(const struct result *results, size_t count, size_t lines, struct text *out)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += put_finding(&results[i], out);
    put_warnings(results, count, lines > used ? lines - used : 0, out);
}

enum { CONCLUSION_LINES = 8 };

void result_brief(const struct result *result, size_t rows, bool color, struct text *out)
{
    struct text words = words_of(result);
    wrap_words(out, "", 1, CONCLUSION_LINES, text_get(&words));
    if (!result->err)
        result_tables(result, rows, color, out);
    put_warnings(result, 1, FINDING_LINES, out);
    text_release(&words);
}
