/* The options of a question, shown as lettered lines.  A struct choices points into its row. */
#ifndef IPW_DATASETS_ROWS_CHOICES_H
#define IPW_DATASETS_ROWS_CHOICES_H

#include <stddef.h>

#include "core/err.h"

struct jv;
struct text;
struct random;

enum { CHOICES_MAX = 26 };

struct choices {
    const struct jv *options[CHOICES_MAX]; /* in the order in which they are shown */
    size_t count;
};

/* What a dataset writes for the right option.  ANSWER_ANY: whatever it can be, so long as only one
 * reading makes sense. */
enum answer_kind { ANSWER_ANY, ANSWER_LETTER, ANSWER_INDEX, ANSWER_TEXT };
enum err answer_kind_parse(const char *word, enum answer_kind *out, struct error *why) MUST_USE;

/* `fields` names one array or object, or with "|" the fields that hold one option each. */
enum err choices_find(const struct jv *row, const char *fields, struct choices *out,
                      struct error *why) MUST_USE;

void choices_shuffle(struct choices *choices, struct random *random);

/* "A. first" and so on, one a line. */
void choices_add_lines(const struct choices *choices, struct text *out);

/* The letter of the right option.  A letter or an index (from 0) means the dataset's own order, so
 * `given` is the order before any shuffling. */
enum err choices_letter(const struct choices *shown, const struct choices *given,
                        const struct jv *answer, enum answer_kind kind, char *letter,
                        struct error *why) MUST_USE;

#endif
