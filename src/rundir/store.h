/* The contract of a store: an output format for the records of a run.
 *
 * The journal (journal.h) is authoritative, and written during the run.  Stores are derived from it at the end, in one
 * pass and in constant memory, and can be rebuilt at any time.  A driver is one .c file that exports one `const struct
 * store_driver` and one line in stores.def.
 *
 * Ownership: the caller owns every struct here; a driver owns only what store->state points to, from a
 * successful open until close. */
#ifndef IPW_RUNDIR_STORE_H
#define IPW_RUNDIR_STORE_H

#include "core/err.h"
#include "port/arrow.h"

struct hf_dataset;
struct journal_index;
struct jv;
struct summary;

struct store {
    const struct store_driver *driver;
    void *state;
};

struct store_run {
    const char *directory; /* of the run */
    const char *model;     /* as given by the user: names a column */
    /* Object with an example value of each key of the items' metadata, to make columns; may be NULL. */
    const struct jv *metadata;
};

struct store_driver {
    const char *name;
    const char *summary;
    enum err (*available)(struct error *why); /* NULL: always */
    enum err (*open)(const struct store_run *run, struct store *out, struct error *why);

    /* Adds one complete record: the query line merged with all later lines.  NULL: not needed. */
    enum err (*put)(struct store *store, const struct jv *record, struct error *why);

    /* Called after all records: publishes the result atomically.  *summary is the run's, or NULL.  NULL: nothing to
     * do. */
    enum err (*finish)(struct store *store, const struct summary *summary, struct error *why);

    /* Frees everything and removes unfinished output.  NULL: free(store->state) is enough. */
    void (*close)(struct store *store);
};

/* NULL-terminated, in the order of stores.def. */
extern const struct store_driver *const STORE_DRIVERS[];
extern const struct store_driver store_arrow; /* a dataset on disk, below */

enum err store_open(const struct store_driver *driver, const struct store_run *run,
                    struct store *out, struct error *why) MUST_USE;
enum err store_put(struct store *store, const struct jv *record, struct error *why) MUST_USE;
enum err store_finish(struct store *store, const struct summary *summary, struct error *why)
    MUST_USE;
void store_close(struct store *store);

/* Fills all stores from the records of a journal, with the summary's constants merged into each.  A store that was not
 * compiled in is skipped with a warning. */
enum err stores_fill(const struct store_run *run, struct journal_index *records,
                     const struct summary *summary, struct error *why) MUST_USE;

/* ---- datasets on disk (hf_dataset.c) ---- */

/* A dataset on disk in the format of Hugging Face and the Python IPW, written row by row.  hf_dataset_open allocates
 * what hf_dataset_close frees; an unfinished dataset is removed. */

/* Takes ownership of the fields, also if it fails; NULL: out of memory. */
enum err hf_dataset_open(const char *directory, struct arrow_field *root, struct hf_dataset **out,
                         struct error *why) MUST_USE;
enum err hf_dataset_add(struct hf_dataset *dataset, const struct jv *row, struct error *why)
    MUST_USE;
enum err hf_dataset_finish(struct hf_dataset *dataset, struct error *why) MUST_USE;
void hf_dataset_close(struct hf_dataset *dataset); /* NULL is allowed */

#endif
