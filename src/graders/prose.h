/* What prose says about an answer: whether a sentence states something, where the last one is, what follows it.  The
 * words are English; sentences of other languages are recognized as such and not interpreted. */
#ifndef IPW_GRADERS_PROSE_H
#define IPW_GRADERS_PROSE_H

#include <stdbool.h>

#include "core/slice.h"

/* ---- lines ---- */

/* Takes the next line that is not blank, trimmed. */
bool line_next(struct slice *rest, struct slice *line);

/* The last line that is not blank, but for one that only closes a formula or a code block. */
struct slice last_line(struct slice text);

/* The value of a line "Label: value"; empty if there is no label of a few words. */
struct slice after_label(struct slice line);

/* Whether the line only opens a formula or a code block. */
bool line_only_opens(struct slice line);

/* The text without Markdown, quotes, dollar signs and a full stop around it. */
struct slice strip_marks(struct slice text);

/* Takes the next formula, in $, $$, \(, \[ or an environment; false if there is none. */
bool formula_next(struct slice *rest, struct slice *formula);

/* Longest formula or box: a longer search for its end is given up, and after several of these the next one, too. */
enum { FORMULA_REACH = 1000, FORMULA_FAILURES = 32 };

/* ---- sentences ---- */

/* Whether there is a digit, a letter that stands alone, or a formula. */
bool has_value(struct slice text);

/* Whether the round brackets close. */
bool is_balanced(struct slice text);

/* Whether a word makes its sentence a denial, a condition, a bound or a guess. */
struct token;
bool is_doubt(const struct token *word);

/* "not", "isn't" and the like. */
bool is_negation(const struct token *word);

/* Whether a sentence says something definite: not a question, a denial, a condition, a bound or a guess. */
bool is_definite(struct slice sentence);

/* Whether a sentence can be understood: English, definite, without alternatives. */
bool is_readable(struct slice sentence);

/* Whether there is a "would", other than in "I would say". */
bool is_hypothetical(struct slice sentence);

/* Whether it is hypothetical, or has a second clause after "but" or ";". */
bool has_alternative(struct slice sentence);

enum language { ENGLISH, FOREIGN, UNCERTAIN };

/* English has one of its common words.  Foreign are several words, none of which is English, and a text without words; not a text without spaces,
 * where the value may be denied in the same word. */
enum language language_of(struct slice text);

/* Whether the text has a conclusion: "so", "therefore", "wait". */
bool concludes(struct slice text);

/* The last sentence that has a value and is no remark in parentheses; else the last one. */
struct slice last_sentence(struct slice text);

/* The clause after the last "so": "The square is never negative, so the minimum is -5." */
struct slice conclusion(struct slice sentence);

/* The sentence without a reason after it; empty if it has a value in another subordinate clause, "4, attained when x =
 * 2". */
struct slice main_clause(struct slice sentence);

/* The sentence without another form of its value after that: "4π, or about 12.6", "2.5 hours (150 minutes)", "7/2, which
 * is 3.5". */
struct slice without_restatement(struct slice sentence);

/* ---- whole answers ---- */

/* Whether the text breaks off within a sentence. */
bool is_cut(struct slice text);

/* Whether a sentence refuses to answer: "I cannot determine ...", "there isn't enough information". */
bool has_refusal(struct slice text);

/* The text without a last part that only explains or checks the answer. */
struct slice without_afterword(struct slice text);

/* The text up to where a model that has answered asks itself the next question: under a heading, or, *by_paragraph, in
 * a paragraph that has a question mark. */
struct slice before_next_question(struct slice text, bool *by_paragraph);

#endif
