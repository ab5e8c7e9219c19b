/* The contract of a dataset: a stream of questions, with expected answers if known.
 *
 * A driver is one .c file that exports one `const struct dataset_driver` and one line in datasets.def.
 * A dataset is read once from front to back, by one thread, in constant memory regardless of its size,
 * and yields the same items in the same order each time it is opened with the same parameters.
 *
 * Ownership: the caller owns every struct here; a driver owns only what dataset->state points to. */
#ifndef IPW_DATASETS_DATASET_H
#define IPW_DATASETS_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

struct jv;
struct text;

/* One question.  All strings are valid UTF-8, owned by the item, and never NULL after next; "" if the dataset has
 * none.  The metadata is owned too. */
struct item {
    char *id;              /* the dataset's id, else the row number */
    char *problem;         /* the prompt, ready to be sent */
    char *answer;          /* the expected answer; "" if unknown */
    char *subject;         /* "general" if the dataset has none */
    struct jv *metadata;   /* an object: the other fields of the row */
    char *grader;          /* grader of this item, if items differ */
    int64_t output_length; /* tokens to generate ("output_length" in the metadata); 0: not given */
};
void item_release(struct item *item);

/* Appends a field as text: "problem", "subject", "id", or a path in the metadata ("by.name"); false: no such field. */
bool item_field(const struct item *item, const char *name, struct text *out);
/* The names of the fields that it has, "{problem}, {subject}, ...". */
void item_field_names(const struct item *item, struct text *out);
/* Expands an escape sequence of a template as C does: \n, \t, \\, \{ and \}; others are unchanged.  Returns its length. */
size_t template_add_escape(const char *at, struct text *out);

struct dataset {
    const struct dataset_driver *driver;
    char name[96];         /* for display and directory names: "mmlu-pro", "questions" */
    char grader[48];       /* default grader of its items; "" for none */
    struct params grading; /* parameters for that grader */
    int64_t count;         /* number of items; -1 if unknown before the end */
    void *state;
};

struct dataset_config {
    const struct params *params; /* --dataset-param; may be NULL */
};

struct dataset_driver {
    const char *name;
    const char *summary;
    const struct param_spec *params;

    /* Whether this build supports it.  ERR_UNSUPPORTED says how to enable it.  NULL: always. */
    enum err (*available)(struct error *why);

    /* Opens the dataset and reads enough to reject invalid input: a missing file, a missing field (listing the existing
     * ones), an empty dataset.  *out is zeroed with driver, name and count = -1 set. */
    enum err (*open)(const struct dataset_config *config, struct dataset *out, struct error *why);

    /* The next item in *out (zeroed by the caller, released by it), or *end.  An invalid row is
     * ERR_BAD_VALUE with its number in *why; the next call continues after it. */
    enum err (*next)(struct dataset *dataset, struct item *out, bool *end, struct error *why);

    void (*close)(struct dataset *dataset);

    /* A problem is the path of a file, of many and large ones: dataset_hash takes the names and sizes of those that are
     * not text. */
    bool has_media;
};

/* ---- the list (datasets.def) and the presets (presets.def) ---- */

/* NULL-terminated, in the order of datasets.def. */
extern const struct dataset_driver *const DATASET_DRIVERS[];

/* A public dataset mapped to a driver, its fields and a grader. */
struct dataset_preset {
    const char *name; /* "mmlu-pro" */
    const char *summary;
    const char *driver; /* "hub"; a parameter "path=DIR" reads a local copy instead */
    const char *params; /* key=value words for the driver */
    const char *grader;
    const char *answer_format; /* asked for after each question; NULL: nothing is */
};
extern const struct dataset_preset DATASET_PRESETS[]; /* ends with a NULL name */

/* Opens by the name of a driver or preset, or by a path (directory of save_to_disk, of images or of sound, *.jsonl, *.csv).
 * Checks the parameters against the driver's list.  An unknown name is ERR_NOT_FOUND with similar
 * names. */
enum err dataset_open(const char *name, const struct dataset_config *config, struct dataset *out,
                      struct error *why) MUST_USE;
enum err dataset_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
    MUST_USE;
void dataset_close(struct dataset *dataset);

/* In which form a dataset asks for its answers, in addition to its problems: "End your reply with ..."; NULL: as its
 * problems do. */
const char *dataset_answer_format(const char *name);

/* A hash of the file or directory that the dataset is read from, in hexadecimal; "" if it is not read from a file.  Of
 * the images or sound of a directory, names and sizes are hashed. */
void dataset_hash(const char *name, const struct params *params, char *to, size_t size);

/* Driver hf: whether a directory was written by save_to_disk. */
bool dataset_is_saved(const char *directory);

/* Driver text: tokens per window (parameter window, validated), and bytes of a passage per token. */
enum { DATASET_TEXT_WINDOW = 512, DATASET_TEXT_TOKEN_BYTES = 4 };
enum err dataset_text_window(const struct params *params, uint64_t *out, struct error *why)
    MUST_USE;

/* Sets every field that is still NULL to its default: "", "general", {}.  dataset_next does so for a driver, which
 * fills an item with str_set and str_take (core/xalloc.h). */
void item_complete(struct item *item);

#endif
