/* The letter of a multiple-choice answer, found in a reply.
 *
 * 1. Definite statements: \boxed{B}; "answer: B", "answer is B" (also option, choice); "B is correct",
 *    "(B) is the right answer"; and a last line that is nothing but a letter.  The last of them wins.
 * 2. Without one, lines that begin with a letter as options are written, "B.", "(B)", "B) text":
 *    they must agree.
 * 3. Without those, letters in brackets or bold and "option B" anywhere: they must agree.
 *
 * A capital A before another word is the article, and I the pronoun.  Nothing is allocated. */
#ifndef IPW_GRADERS_CHOICE_LETTERS_H
#define IPW_GRADERS_CHOICE_LETTERS_H

#include "core/slice.h"

struct letters {
    char first;  /* 'A'..'Z'; '\0' when none was found */
    char second; /* another one with as good a claim; '\0' when there is none */
};

/* `count` is how many letters there are to choose from: 4 means A to D. */
struct letters letters_find(struct slice reply, unsigned count);

/* The letter that an expected answer is: "B", "(b)", "B. text"; '\0' when it is none. */
char letters_expected(struct slice expected, unsigned count);

#endif
