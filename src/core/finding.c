/* The table of findings, and lists of those that were raised. */
#include "core/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"

static const struct finding_row ROWS[FINDING_CODES] = {
#define FINDING(id, code, severity, meaning, action)                                               \
    [FINDING_##id] = {code, meaning, action, FINDING_##severity, FINDING_##severity},
#define FINDING_RANGE(id, code, lowest, highest, meaning, action)                                  \
    [FINDING_##id] = {code, meaning, action, FINDING_##lowest, FINDING_##highest},
#include "core/finding.def"
#undef FINDING
#undef FINDING_RANGE
};

const struct finding_row *finding_row(enum finding_code code)
{
    return &ROWS[code];
}

/* FINDING_CODES if it is none of ours. */
static enum finding_code code_named(const char *name)
{
    const struct finding_row *found = STR_FIND(name, ROWS);
    return found ? (enum finding_code)(found - ROWS) : FINDING_CODES;
}

/* ---- severities ---- */

const char *finding_severity_name(enum finding_severity severity)
{
    static const char *const NAMES[FINDING_SEVERITIES] = {"note", "warning", "invalid"};
    return NAMES[severity];
}

enum finding_severity finding_severity_named(const char *name)
{
    if (str_equal(name, "breaks") || str_equal(name, "void")) /* of earlier versions */
        return FINDING_INVALID;
    for (enum finding_severity i = 0; i < FINDING_SEVERITIES; i++)
        if (str_equal(name, finding_severity_name(i)))
            return i;
    return FINDING_WARNING;
}

/* ---- a list ---- */

void findings_release(struct findings *findings)
{
    free(findings->items);
    *findings = (struct findings){0};
}

void findings_add(struct findings *findings, const struct finding *finding)
{
    *XADD(findings->items, findings->count, findings->capacity) = *finding;
}

PRINTF_LIKE(4, 0)
static struct finding *raise_one(struct findings *findings, enum finding_code code,
                                 enum finding_severity severity, const char *format,
                                 va_list arguments)
{
    struct finding finding = {.severity = severity};
    chars_copy(finding.code, ROWS[code].code);
    vsnprintf(finding.text, sizeof finding.text, format, arguments);
    findings_add(findings, &finding);
    return &findings->items[findings->count - 1];
}

struct finding *finding_raise(struct findings *findings, enum finding_code code, const char *format,
                              ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct finding *finding = raise_one(findings, code, ROWS[code].lowest, format, arguments);
    va_end(arguments);
    return finding;
}

struct finding *finding_raise_as(struct findings *findings, enum finding_code code,
                                 enum finding_severity severity, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct finding *finding = raise_one(findings, code, severity, format, arguments);
    va_end(arguments);
    return finding;
}

bool finding_is(const struct finding *finding, enum finding_code code)
{
    return str_equal(finding->code, ROWS[code].code);
}

const struct finding *finding_of(const struct finding *items, size_t count, enum finding_code code)
{
    for (size_t i = 0; i < count; i++)
        if (finding_is(&items[i], code))
            return &items[i];
    return NULL;
}

/* ---- order ---- */

struct place {
    enum finding_severity severity;
    enum finding_code code;
    size_t index;
};

static int by_place(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->severity != q->severity)
        return p->severity > q->severity ? -1 : 1;
    if (p->code != q->code)
        return p->code < q->code ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

static struct place *places_of(const struct finding *items, size_t count)
{
    struct place *places = xcalloc(count, sizeof *places);
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){items[i].severity, code_named(items[i].code), i};
    qsort(places, count, sizeof *places, by_place);
    return places;
}

void findings_order(struct finding *items, size_t count)
{
    struct place *places = places_of(items, count);
    struct finding *ordered = xcalloc(count, sizeof *ordered);
    for (size_t i = 0; i < count; i++)
        ordered[i] = items[places[i].index];
    if (count)
        memcpy(items, ordered, count * sizeof *items);
    free(ordered);
    free(places);
}

/* ---- output ---- */

const char *finding_action(const struct finding *finding)
{
    enum finding_code code = code_named(finding->code);
    return code < FINDING_CODES ? ROWS[code].action : NULL;
}

static void put(const struct finding *finding, struct result *result)
{
    result_group(result, NULL);
    result_text(result, "code", finding->code);
    result_text(result, "severity", finding_severity_name(finding->severity));
    if (finding->scope != FINDING_OF_RUN) {
        result_text(result, "gpu", str_or_null(finding->gpu));
        result_text(result, "application", str_or_null(finding->application));
        result_count(result, "rows", finding->rows);
    }
    result_text(result, "text", finding->text);
    result_text(result, "action", finding_action(finding));
    result_end(result);
}

void findings_to_result(const struct findings *findings, const char *key, struct result *result)
{
    struct place *places = places_of(findings->items, findings->count);
    result_list(result, key);
    for (size_t i = 0; i < findings->count; i++)
        put(&findings->items[places[i].index], result);
    result_end(result);
    free(places);
}

void findings_codes(const struct findings *findings, char *to, size_t size)
{
    struct text codes = {0};
    for (enum finding_code code = 0; code < FINDING_CODES; code++)
        if (finding_of(findings->items, findings->count, code))
            text_addf(&codes, "%s%s", codes.length ? "," : "", ROWS[code].code);
    (void)str_copy(to, size, text_get(&codes));
    text_release(&codes);
}
