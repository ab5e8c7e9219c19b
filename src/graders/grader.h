/* The contract of a grader: whether an answer is correct: true, false, unread or null, with the reason.
 *
 * A driver is one .c file that exports one `const struct grader_driver` and one line in graders.def. A struct grader is
 * used by one thread at a time.  Nothing is guessed.  Null: the item cannot be graded at all, because its expected
 * answer is unknown or no judge replied.  Unread: the grader cannot tell which answer the text gives; it counts as not
 * correct, and is reported with its number, because some of these answers may be right.
 *
 * Ownership: the caller owns every struct here; a grader's state is allocated by grader_open and freed by
 * grader_close. */
#ifndef IPW_GRADERS_GRADER_H
#define IPW_GRADERS_GRADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

struct jv;
struct text;

enum grade_verdict { VERDICT_NULL, VERDICT_FALSE, VERDICT_TRUE, VERDICT_UNREAD };

struct grade {
    enum grade_verdict verdict;
    double score;        /* 0..1 for a grader with a score (F1, BLEU ...); else UNKNOWN */
    unsigned attempts;   /* requests to the judge; 0 without one */
    char label[24];      /* the judge's reply: "NOT_ATTEMPTED"; or "" */
    char extracted[120]; /* what was compared, truncated: "B", "3/4"; "" if nothing was found */
    char reason[200];    /* why null, false or unread; "" if obvious */
};

struct grading {
    const char *problem;
    const char *expected;      /* "" if unknown */
    const char *answer;        /* the model's answer; may be "" */
    const struct jv *metadata; /* metadata of the item; or NULL */
    int64_t index; /* for corpus: position of the item in the dataset, the same for its repeats */
};

/* A metric of all answers together: "map_50", "wer". */
struct grader_quality {
    char name[24];
    double value;      /* UNKNOWN: see reason */
    double plus_minus; /* standard uncertainty over the items; or UNKNOWN */
    size_t count;      /* items that it is of */
    bool lower_is_better;
    char reason[200]; /* why unknown, or what limits it; "" */
};
enum { GRADER_QUALITIES_MAX = 8 };

/* Prompts a model; provided by the caller to a grader that needs a judge. */
struct judge {
    enum err (*ask)(void *context, const char *prompt, struct text *reply, struct error *why);
    void *context;
};

struct grader_config {
    const struct params *params; /* may be NULL */
    const struct judge *judge;   /* NULL: none; a grader that needs one cannot be opened */
};

struct grader_driver {
    const char *name;
    const char *summary;
    const struct param_spec *params; /* ends with a NULL name; NULL: none */
    bool needs_judge;
    bool has_score;     /* sets a score; an empty answer scores 0 */
    bool is_mean_score; /* its metric of all answers is their mean score, under its name */
    bool
        expects_answer; /* the expected text is an answer, and no pattern: given as such it is right */
    bool grades_empty;     /* also called for an empty answer, which is otherwise false */
    bool ignores_expected; /* also called for an item without an expected answer */
    bool is_of_all;        /* no answer has a verdict: there is a metric of all only */

    /* Whether this build supports it.  ERR_UNSUPPORTED says how to enable it.  NULL: always. */
    enum err (*available)(struct error *why);

    /* Parses the parameters into the state, which is zeroed and has state_size bytes; ERR_USAGE for an invalid value.
     * On failure only the state itself may be allocated.  NULL: no parameters. */
    size_t state_size;
    enum err (*configure)(const struct grader_config *config, void *state, struct error *why);

    /* what->answer is without reasoning, trimmed and not empty.  ERR_OK whenever there is a grade, including null; an
     * error only if grading itself was interrupted. */
    enum err (*grade)(const void *state, const struct grading *what, struct grade *out,
                      struct error *why);

    /* Optional: metrics of all answers together, where they are no means of the answers' scores; called once, after all
     * queries, outside of what is measured.  In the order of the dataset; an answer that is the name of a generated file
     * has its path here.  What cannot be computed is a quality with the reason; an error is one of the whole grader. */
    enum err (*corpus)(const void *state, const struct grading *items, size_t count,
                       struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                       struct error *why);

    /* Optional, with corpus: the same metrics if item i counts weights[i] times, for draws of items.  resample_open reads
     * the items, and returns what resample_close frees. */
    void *(*resample_open)(const void *state, const struct grading *items, size_t count);
    void (*resample)(void *opened, const unsigned *weights, double values[GRADER_QUALITIES_MAX]);
    void (*resample_close)(void *opened);

    void (*release)(void *state); /* frees what the state points to; NULL: nothing */
};

struct grader {
    const struct grader_driver *driver;
    void *state;
};

/* NULL-terminated, in the order of graders.def. */
extern const struct grader_driver *const GRADER_DRIVERS[];

const struct grader_driver *grader_driver_find(const char *name, struct error *why);

/* The default grader for an expected answer: choice for a letter, numeric for a number, list for several, math for
 * LaTeX, contains for a few words.  NULL for longer texts, which none of them can grade, and for "". */
const char *grader_default(const char *expected);

/* Checks availability, parameters and judge, and opens. */
enum err grader_open(const struct grader_driver *driver, const struct grader_config *config,
                     struct grader *out, struct error *why) MUST_USE;
void grader_close(struct grader *grader);

/* Null if the expected answer is unknown (""), false if the answer is empty apart from reasoning; otherwise the
 * driver's grade. */
enum err grader_grade(struct grader *grader, const struct grading *what, struct grade *out,
                      struct error *why) MUST_USE;

/* Metrics of all answers, by the driver's `corpus`, with the same preparation of answers; none without one.  Items whose
 * expected answer is unknown are left out, unless the driver ignores it.  Orders the items by index. */
enum err grader_corpus(const struct grader *grader, struct grading *items, size_t count,
                       struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                       struct error *why) MUST_USE;

/* Metrics of draws of answers, by the driver's `resample`; items without an expected answer do not count. */
struct grader_resampling {
    const struct grader_driver *driver;
    void *opened;
    size_t *kept; /* items that count */
    unsigned *weights;
    size_t count;
};
/* ERR_UNSUPPORTED: the driver cannot. */
enum err grader_resampling_open(const struct grader *grader, const struct grading *items,
                                size_t count, struct grader_resampling *out, struct error *why)
    MUST_USE;
/* As grader_corpus orders them; UNKNOWN where a metric is. */
void grader_resample(struct grader_resampling *resampling, const unsigned *weights,
                     double values[GRADER_QUALITIES_MAX]);
void grader_resampling_close(struct grader_resampling *resampling);

#endif
