/* Findings: what may be wrong with figures.  core/finding.def has all of them, each with its code, severity, meaning and
 * what to do; a producer raises one with the figures of the case.
 *
 * Ownership: a list owns its findings; a finding is plain data. */
#ifndef IPW_CORE_FINDING_H
#define IPW_CORE_FINDING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct result;

enum finding_severity {
    FINDING_NOTE,    /* the figures are not affected */
    FINDING_WARNING, /* figures are less certain than their ±, or some data is excluded */
    FINDING_INVALID, /* figures do not mean what they say: not to be compared, no optimum */
    FINDING_SEVERITIES
};

enum finding_code {
#define FINDING(id, code, severity, meaning, action)              FINDING_##id,
#define FINDING_RANGE(id, code, lowest, highest, meaning, action) FINDING_##id,
#include "core/finding.def"
#undef FINDING
#undef FINDING_RANGE
    FINDING_CODES
};

struct finding_row {
    const char *code, *meaning, *action;
    enum finding_severity lowest, highest;
};

const struct finding_row *finding_row(enum finding_code code);

const char *finding_severity_name(enum finding_severity severity);
/* Of a name in JSON, also of those that earlier versions wrote ("breaks", "void").  Any other was written by a later
 * version: a warning, since it may matter. */
enum finding_severity finding_severity_named(const char *name);

/* What a finding of measurements at several clocks refers to.  The names of a curve may be empty. */
enum finding_scope { FINDING_OF_RUN, FINDING_OF_DATA, FINDING_OF_GPU, FINDING_OF_CURVE };

struct finding {
    char code[32]; /* of the table, or of a later version */
    enum finding_severity severity;
    enum finding_scope scope;
    char gpu[40], application[64];
    size_t rows;    /* of the data, that are affected */
    char text[320]; /* a sentence with its figures */
};

struct findings {
    struct finding *items;
    size_t count, capacity;
};

void findings_release(struct findings *findings);

/* Adds a finding of its lowest severity; it is valid until the next one is added. */
struct finding *finding_raise(struct findings *findings, enum finding_code code, const char *format,
                              ...) PRINTF_LIKE(3, 4);
/* The same with a severity of its range. */
struct finding *finding_raise_as(struct findings *findings, enum finding_code code,
                                 enum finding_severity severity, const char *format, ...)
    PRINTF_LIKE(4, 5);
void findings_add(struct findings *findings, const struct finding *finding);

const char *finding_action(const struct finding *finding); /* NULL for a later version's */
bool finding_is(const struct finding *finding, enum finding_code code);
/* The first with this code, or NULL. */
const struct finding *finding_of(const struct finding *items, size_t count, enum finding_code code);

/* The most severe first; those of one severity in the order of the table, then of raising. */
void findings_order(struct finding *items, size_t count);

/* A list of all in that order: `code`, `severity`, `text`, `action`; with a scope, also `gpu`, `application`, `rows`. */
void findings_to_result(const struct findings *findings, const char *key, struct result *result);

/* The codes, each once, comma-separated, in the order of the table. */
void findings_codes(const struct findings *findings, char *to, size_t size);

#endif
