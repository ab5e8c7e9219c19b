/* Markers and statements of the answer: \boxed{X}, "#### X", "Answer: X", "the answer is X".  Slices point into the
 * text that was searched. */
#ifndef IPW_GRADERS_MARKERS_H
#define IPW_GRADERS_MARKERS_H

#include <stdbool.h>

#include "core/err.h"
#include "core/slice.h"

struct params;

/* ---- the parameter "final" ---- */

enum final_rule {
    FINAL_AUTO,   /* the rules of reading.c in their order */
    FINAL_MARKED, /* those of markers only */
    FINAL_LINE,   /* the last line that is not blank */
    FINAL_WHOLE,  /* everything */
};

#define FINAL_PARAM {"final", "RULE", "where the answer is: auto, marked, line or whole (auto)"}

enum err final_read(const struct params *params, enum final_rule *rule, struct error *why) MUST_USE;

/* ---- places ---- */

/* Longer places have no answer: values are compared in more than linear time. */
enum { PLACES_MAX = 8, PLACE_LONGEST = 4000 };

/* Places found by one rule: their values must agree. */
struct places {
    struct slice at[PLACES_MAX];
    unsigned count;
};

void places_add(struct places *places, struct slice span);

/* The last of the markers: the boxes of a line, a #### with a value, "Answer: X". */
void find_marker(struct slice text, struct places *out);

/* X of the last "answer is X", which is not denied or doubted. */
void find_answer_is(struct slice text, struct places *out);

/* Whether the marker has a value in its own line; after a heading "Answer:" there may be a whole solution. */
bool has_marked_line(struct slice text);

/* ---- the marked answer, for graders that compare texts ---- */

struct marked {
    bool found;         /* a marker; else `line` and `block` are by the rule */
    struct slice line;  /* trimmed */
    struct slice block; /* for a value that starts a line: up to the next blank line */
};

/* False if FINAL_MARKED finds no marker; *out is then the whole text. */
bool marked_find(struct slice text, enum final_rule rule, struct marked *out);

/* The value of an expected answer: the box or the #### of a solution, else the whole text. */
struct slice expected_value(struct slice expected);

#endif
