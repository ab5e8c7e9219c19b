/* A run in another program's format.  The contract of an exporter: a `const struct export_driver` in a .c file of
 * report/export, and one line in exports.def.
 *
 * Records are given one after the other and in constant memory; an exporter adds to export->out, which is
 * written away as it grows.
 *
 * Ownership: the caller owns every struct here, export->state included; a driver owns only what it puts into its
 * state. */
#ifndef IPW_REPORT_EXPORT_H
#define IPW_REPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/text.h"
#include "rundir/record.h"

struct jv;
struct output;
struct query_trace;
struct summary;
struct traces;

struct export_run {
    const char *directory;         /* the run's, as it was given */
    const char *name;              /* its last part, or what it is to be called */
    const char *model;             /* whose records */
    const struct summary *summary; /* NULL of an unfinished run */
    const struct jv *metadata;     /* an example value of each key of the items' own metadata; with
                                  wants_metadata only */
    const char *output;            /* the file or directory to make; NULL for a stream */
    bool replace;                  /* a run of this name, where the output has one */
    bool raw;                      /* csv: texts as they are, formulas of spreadsheets too */
    const struct traces *traces;   /* of an agent's run; NULL of any other */
};

struct export
{
    const struct export_run *run;
    struct text out;
    struct output *output; /* where `out` goes */
    void *state;           /* state_size bytes of the driver, zero at first */
};

struct export_record {
    struct record fields;
    struct jv *tree;                 /* all of it; the driver may change it */
    const struct query_trace *trace; /* of an agent's query; NULL of any other */
};

struct export_driver {
    const char *name;
    const char *summary;
    bool makes_files;     /* writes run->output itself, which must be given */
    bool makes_directory; /* and that is a directory */
    bool wants_metadata;  /* which costs another pass */
    size_t state_size;
    enum err (*available)(struct error *why); /* NULL: always; the others may be NULL, too */
    enum err (*begin)(struct export *export, struct error *why);
    enum err (*record)(struct export *export, const struct export_record *record,
                       struct error *why);
    enum err (*end)(struct export *export, struct error *why);
    void (*release)(struct export *export); /* what the state owns, also after a failure */
};

/* NULL-terminated, in the order of exports.def. */
extern const struct export_driver *const EXPORT_DRIVERS[];

/* By its name; NULL, with the nearest in *why. */
const struct export_driver *export_driver_find(const char *name, struct error *why);

struct export_request {
    const char *directory;
    const char *model;  /* NULL: the summary's, else that of the first record */
    const char *output; /* NULL, or "-": standard output */
    const char *name;   /* of the run; NULL: its directory's */
    bool replace;       /* what the output holds of a run of that name */
    bool raw;           /* csv: texts as they are */
};

struct export_done {
    uint64_t damaged;       /* lines of the journal that were left out */
    uint64_t first_damaged; /* the first of them, from 1 */
    double format;          /* of the journal; UNKNOWN without one */
};

/* All of it.  A regular file appears whole or not at all.  ERR_NOT_FOUND: no such directory, run or model;
 * ERR_NO_DATA: no record, or the records lack what the format needs. */
enum err export_run(const struct export_driver *driver, const struct export_request *request,
                    struct export_done *done, struct error *why) MUST_USE;

/* A sweep, one row per attempt with a column for every knob: "csv" or "jsonl", ERR_USAGE for others. */
enum err export_sweep(const char *directory, const char *format, bool raw, struct text *out,
                      struct error *why) MUST_USE;

/* For an exporter that writes much at once: what has gathered goes out when it is enough. */
enum err export_pass_on(struct export *export, struct error *why) MUST_USE;

/* A number with the fewest digits that give it back. */
void export_add_number(struct text *out, double value);

/* The text of an exported column, which may be in no record (the run, the model); NULL without one. */
const char *export_text(const struct export_run *run, const struct record *record,
                        const struct record_field *field);

/* When a query was sent, had its first token and ended, on the wall clock. */
struct moments {
    int64_t from_ns, to_ns; /* since 1970 */
    int64_t first_ns;       /* the first token; between the two, or 0 where there was none */
};

/* False where the record does not have them. */
bool moments_of(const struct record *record, struct moments *out);

#endif
