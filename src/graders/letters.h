/* The letter of an option as such: alone in a line, at the start of a text, chosen in a sentence.  A result is a letter,
 * NO_LETTER or SEVERAL_LETTERS. */
#ifndef IPW_GRADERS_LETTERS_H
#define IPW_GRADERS_LETTERS_H

#include <stdbool.h>

#include "core/slice.h"
#include "graders/question.h"
#include "graders/tokens.h"

struct choice_reader {
    char wanted, last;
    bool foreign; /* the answer's language */
    struct asked_question question;
    struct slice answer;
};

/* The letter of the character if there is an option of that letter; `lower_too`: in lower case, too. */
char letter_of(const struct choice_reader *choice, char c, bool lower_too);

/* The only letter that stands alone in the text. */
char only_letter(const struct choice_reader *choice, struct slice text);

/* The text without what may stand before a letter: "option (", "\\text{", "choice". */
struct slice without_opening(struct slice text);

/* The text without what may close a letter: ")", "}", "**". */
struct slice without_closing(struct slice text);

/* The letter of a line that has nothing else but perhaps the text of its option: "B", "(b)", "**B) Paris**".
 * `only`: with such a text, or after a label ("Best: B"), it must be the only letter of the answer. */
char letter_alone(const struct choice_reader *choice, struct slice line, bool only);

/* The letter that begins a place.  Another one in the same sentence makes it unclear, unless a reason follows: "B
 * because A and C ...". */
char letter_leading(const struct choice_reader *choice, struct slice span);

/* The letter in brackets at the end: "London (D)". */
char letter_bracketed(const struct choice_reader *choice, struct slice text);

/* Whether the tokens after a letter call it the answer: "is correct", "is the best answer". */
bool is_called_right(struct tokens tokens);

/* The letter that the sentence chooses, and no other sentence of the answer another one. */
char letter_chosen(const struct choice_reader *choice, struct slice sentence);

/* The only letter that any sentence of the answer chooses, if no other one only looks at another: "Let's start with A",
 * "Or C." */
char letter_chosen_once(const struct choice_reader *choice);

/* The letter that is the whole first sentence, "B. A firewall ...", before an explanation without another label. */
char letter_at_head(const struct choice_reader *choice);

/* The letter of an expected answer, of so many options: "C", "(c)", "C. Paris"; NO_LETTER if it is none. */
char expected_letter(struct slice expected, unsigned options);

#endif
