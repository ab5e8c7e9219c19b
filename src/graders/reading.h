/* Where the answer stands in a completion, and what follows for its grade.
 *
 * A table of rules (reading.c) names places where models write an answer: a marker that the prompt asked for, a
 * statement, a line that is only the answer, the end of the last sentence.  A grader supplies a reader, which reads its
 * kind of value (a letter, a number, an expression) from such a place.  The first rule under which there is a value
 * decides:
 *   the expected value        true
 *   another, at a marker or in a statement of the answer    false
 *   another, found in prose   false, unless the expected value stands elsewhere in the text: then unread
 *   none under any rule, or several that differ             unread
 * Prose is read in English only; in other languages markers, lines, bold and formulas are.  Linear time. */
#ifndef IPW_GRADERS_READING_H
#define IPW_GRADERS_READING_H

#include "core/err.h"
#include "core/slice.h"
#include "graders/grader.h"
#include "graders/markers.h"

/* What a place is: how much besides the value it may have. */
enum place_kind {
    PLACE_ALONE,     /* the value and nothing else */
    PLACE_LEADING,   /* after a marker: begins with the value; a remark may follow */
    PLACE_HEAD,      /* the first line, for a value that has a text of its own, as an option */
    PLACE_BEGINNING, /* the first line: begins with the value, a sentence of its own */
    PLACE_RESULT,    /* after the last "is" or "=" of a sentence: the value ends it */
    PLACE_SENTENCE,  /* a sentence with one value somewhere */
    PLACE_CONFIRMED, /* as PLACE_ALONE; counts only if the last sentence states it, too */
    PLACE_CLAUSE, /* part of a sentence that repeats the question, with one value that the question does not have */
};

enum value_reading { READING_NONE, READING_UNCLEAR, READING_OTHER, READING_EXPECTED };

/* Reads the values of one kind, and knows the expected one. */
struct asked_question;
struct value_reader {
    const void *context;
    struct slice expected;                 /* for the reason of a false answer */
    const struct asked_question *question; /* NULL if it is not known */

    /* *value is what was read, for the grade's `extracted`. */
    enum value_reading (*read)(const void *context, struct slice span, enum place_kind kind,
                               struct slice *value);

    /* Whether the expected value may stand anywhere in the text. */
    bool (*mentions)(const void *context, struct slice text);

    /* Whether the expected value stands in the sentence, in any role.  NULL: values are not results of equations. */
    bool (*states)(const void *context, struct slice sentence);
};

void reading_grade(const struct value_reader *reader, struct slice answer, enum final_rule final,
                   struct grade *out);

#endif
