/* The contract of a dataset: a stream of questions, with answers where they are known.
 *
 * A driver is one .c file that exports one `const struct dataset_driver` and one line in datasets.def.
 * A dataset is read once from front to back, by one thread, in constant memory however large it is,
 * and gives the same items in the same order each time it is opened with the same parameters.
 *
 * Ownership: the caller owns every struct here; a driver owns only what dataset->state points to. */
#ifndef IPW_DATASETS_DATASET_H
#define IPW_DATASETS_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

/* One question.  All strings are valid UTF-8, owned by the item, and never NULL after a next; "" when
 * the dataset does not say. */
struct item {
    char *id;       /* the dataset's own; the row number when it has none */
    char *problem;  /* what is asked, ready to be sent */
    char *answer;   /* what is expected; "" when unknown */
    char *subject;  /* "general" when the dataset does not say */
    char *metadata; /* one JSON object: the rest of the row */
    char *grader;   /* how this item wants to be graded, where that differs from item to item */
};
void item_release(struct item *item);

struct dataset {
    const struct dataset_driver *driver;
    char name[96];         /* for people and for the directory: "mmlu-pro", "questions" */
    char grader[48];       /* the default grader of its items; "" when nothing suits */
    struct params grading; /* parameters for that grader */
    int64_t count;         /* items altogether; -1 when only reading to the end would tell */
    void *state;
};

struct dataset_config {
    const struct params *params; /* --dataset-param; may be NULL */
};

struct dataset_driver {
    const char *name;
    const char *summary;
    const struct param_spec *params;

    /* Can this build use it?  ERR_UNSUPPORTED with what enables it.  NULL: always. */
    enum err (*available)(struct error *why);

    /* Opens and looks at enough of it to refuse what cannot work: a missing file, a field that is not
     * there (with the fields that are), an empty dataset.  *out is zeroed with driver, name and
     * count = -1 set. */
    enum err (*open)(const struct dataset_config *config, struct dataset *out, struct error *why);

    /* The next item in *out (zeroed by the caller, released by it), or *end set at the end.  A row that
     * cannot be used is ERR_BAD_VALUE with its number in *why; the next call goes on after it. */
    enum err (*next)(struct dataset *dataset, struct item *out, bool *end, struct error *why);

    void (*close)(struct dataset *dataset);
};

/* ---- the list (datasets.def) and the presets (presets.def) ---- */

/* NULL-terminated, in the order of datasets.def. */
extern const struct dataset_driver *const DATASET_DRIVERS[];

/* A public set mapped onto a driver, its fields and a grader. */
struct dataset_preset {
    const char *name; /* "mmlu-pro" */
    const char *summary;
    const char *driver; /* "hub"; "path=DIR" among the parameters makes it read that instead */
    const char *params; /* key=value words for the driver */
    const char *grader;
};
extern const struct dataset_preset DATASET_PRESETS[]; /* ends with a NULL name */

/* Opens by the name of a driver or of a preset, or by a path (DIR of save_to_disk, *.jsonl, *.csv).
 * Checks the parameters against the driver's list.  A name that is none of these is ERR_NOT_FOUND with
 * the near names. */
enum err dataset_open(const char *name, const struct dataset_config *config, struct dataset *out,
                      struct error *why) MUST_USE;
enum err dataset_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
    MUST_USE;
void dataset_close(struct dataset *dataset);

#endif
