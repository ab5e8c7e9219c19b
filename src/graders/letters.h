/* The letter that an answer to a multiple-choice question chooses.  Plain data; nothing to release. */
#ifndef IPW_GRADERS_LETTERS_H
#define IPW_GRADERS_LETTERS_H

#include "core/err.h"
#include "core/slice.h"

struct letters {
    char first;  /* 'A'..'Z'; '\0' when none was found */
    char second; /* another one with equal evidence; '\0' when there is none */
};

/* `options` is their number: the letters are those from A.  ERR_NO_MEMORY only. */
enum err letters_find(struct slice answer, unsigned options, struct letters *out) MUST_USE;

/* The letter of an expected answer: "B", "(b)", "B. text"; '\0' when it is not one. */
enum err letters_expected(struct slice expected, unsigned options, char *out) MUST_USE;

#endif
