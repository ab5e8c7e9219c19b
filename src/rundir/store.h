/* The contract of a store: somewhere that the finished records of a run go.
 *
 * The truth of a run is its journal (journal.h), written as the run goes.  Stores are made of it at
 * the end, in one pass and in constant memory, and can be made again at any time.  A driver is one .c
 * file that exports one `const struct store_driver` and one line in stores.def.
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
struct record;
struct summary;

struct store {
    const struct store_driver *driver;
    void *state;
};

struct store_run {
    const char *directory;     /* the run's */
    const char *model;         /* as the user wrote it: names a column */
    const struct jv *metadata; /* an object with one example value of each key that the items' own
                                  metadata have, so that columns can be made; may be NULL */
};

struct store_driver {
    const char *name;
    const char *summary;
    enum err (*available)(struct error *why); /* NULL: always */
    enum err (*open)(const struct store_run *run, struct store *out, struct error *why);

    /* One finished record: the query line with all that came later merged into it.  NULL: not needed. */
    enum err (*put)(struct store *store, const struct jv *record, struct error *why);

    /* All records were given: makes the result visible, whole or not at all.  *summary is the run's,
     * or NULL.  NULL: nothing is left to do. */
    enum err (*finish)(struct store *store, const struct summary *summary, struct error *why);

    /* Frees everything; what was not finished leaves no trace.  NULL: free(store->state) does. */
    void (*close)(struct store *store);
};

/* NULL-terminated, in the order of stores.def. */
extern const struct store_driver *const STORE_DRIVERS[];

enum err store_open(const struct store_driver *driver, const struct store_run *run,
                    struct store *out, struct error *why) MUST_USE;
enum err store_put(struct store *store, const struct jv *record, struct error *why) MUST_USE;
enum err store_finish(struct store *store, const struct summary *summary, struct error *why)
    MUST_USE;
void store_close(struct store *store);

/* Fills all of them from the records of a journal, with what *machine knows merged into each.  A store that this build
 * lacks is skipped with a warning. */
enum err stores_fill(const struct store_run *run, struct journal_index *records,
                     const struct record *machine, const struct summary *summary, struct error *why)
    MUST_USE;

/* ---- datasets on disk (hf_dataset.c) ---- */

/* A dataset on disk as Hugging Face saves it, and as the Python IPW reads it, one row at a time.  hf_dataset_open allocates
 * what hf_dataset_close frees; what was not finished leaves nothing behind. */

/* ERR_UNSUPPORTED, with how to install it, in a build without Arrow or JSON. */
enum err hf_dataset_available(struct error *why) MUST_USE;

/* Takes the fields over, also when it fails; NULL: out of memory. */
enum err hf_dataset_open(const char *directory, struct arrow_field *root, struct hf_dataset **out,
                         struct error *why) MUST_USE;
enum err hf_dataset_add(struct hf_dataset *dataset, const struct jv *row, struct error *why)
    MUST_USE;
enum err hf_dataset_finish(struct hf_dataset *dataset, struct error *why) MUST_USE;
void hf_dataset_close(struct hf_dataset *dataset); /* NULL is none */

#endif
