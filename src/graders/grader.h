/* The contract of a grader: is an answer right?  True, false, or null with the reason.
 *
 * A driver is one .c file that exports one `const struct grader_driver` and one line in graders.def.
 * A struct grader is used by one thread at a time.  Nothing is ever guessed: an answer that cannot be
 * judged is null, never false.  An answer that is there and lacks what was asked (no letter, no
 * number) is false, with that reason.
 *
 * Ownership: the caller owns every struct here; a driver owns only what grader->state points to. */
#ifndef IPW_GRADERS_GRADER_H
#define IPW_GRADERS_GRADER_H

#include <stdbool.h>

#include "core/err.h"
#include "core/params.h"

struct text;

enum verdict { VERDICT_NULL, VERDICT_FALSE, VERDICT_TRUE };

struct grade {
    enum verdict verdict;
    double score;        /* 0..1 where the grader has degrees (F1, BLEU ...); UNKNOWN otherwise */
    unsigned attempts;   /* how often a judge was asked; 0 for a rule */
    char label[24];      /* a judge's own word: "NOT_ATTEMPTED"; "" otherwise */
    char extracted[120]; /* what was compared, cut to fit: "B", "3/4"; "" when nothing was found */
    char reason[200];    /* why null or false; "" when that is plain */
};

struct grading {
    const char *problem;
    const char *expected; /* "" when unknown */
    const char *answer;   /* the model's; may be "" */
    const char *metadata; /* one JSON object of the item; may be NULL */
};

/* A way to ask a model, lent by the caller to a grader that needs a judge. */
struct judge {
    enum err (*ask)(void *context, const char *prompt, struct text *reply, struct error *why);
    void *context;
};

struct grader_config {
    const struct params *params; /* may be NULL */
    const struct judge
        *judge; /* NULL when there is none: a grader that needs one refuses to open */
};

struct grader {
    const struct grader_driver *driver;
    void *state;
};

struct grader_driver {
    const char *name;
    const char *summary;
    const struct param_spec *params;
    bool needs_judge;
    enum err (*available)(struct error *why); /* NULL: always */
    enum err (*open)(const struct grader_config *config, struct grader *out, struct error *why);

    /* ERR_OK whenever a grade was given, null included; an error only when grading itself broke (out
     * of memory, interrupted). */
    enum err (*grade)(struct grader *grader, const struct grading *what, struct grade *out,
                      struct error *why);
    void (*close)(struct grader *grader); /* NULL: nothing to give back */
};

/* NULL-terminated, in the order of graders.def. */
extern const struct grader_driver *const GRADER_DRIVERS[];

const struct grader_driver *grader_driver_find(const char *name, struct error *why);

/* Looks whether it is available, checks the parameters, and opens. */
enum err grader_open(const struct grader_driver *driver, const struct grader_config *config,
                     struct grader *out, struct error *why) MUST_USE;
void grader_close(struct grader *grader);

/* Grades; an expected answer that is unknown ("") gives null at once. */
enum err grader_grade(struct grader *grader, const struct grading *what, struct grade *out,
                      struct error *why) MUST_USE;

#endif
