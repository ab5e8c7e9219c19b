/* Exports of a run to other formats.  The contract of an exporter: a `const struct export_driver` in a .c file of
 * report/export, and one line in exports.def.
 *
 * Records are passed one at a time, in constant memory; an exporter appends to export->out, which is flushed as it
 * grows.
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
#include "wire/otlp_receiver.h"

struct jv;
struct output;
struct query_trace;
struct summary;
struct traces;

struct export_run {
    const char *directory;         /* of the run, as given */
    const char *name;              /* its last component, or the name to use */
    const char *model;             /* model of the records */
    const struct summary *summary; /* NULL: an unfinished run */
    const struct jv *metadata;     /* example of each key of the metadata; with wants_metadata */
    const char *output;            /* the file or directory to create; NULL: a stream */
    bool replace;                  /* replace a run of this name in the output */
    bool raw;                      /* csv: do not escape spreadsheet formulas */
    const struct traces *traces;   /* of an agent's run; else NULL */
};

struct export
{
    const struct export_run *run;
    struct text out;
    struct output *output;    /* destination of `out` */
    struct export_push *push; /* sends `out` instead; NULL: none */
    void *state;              /* state_size bytes of the driver, zeroed */
};

struct export_record {
    struct record fields;
    struct jv *tree;                 /* the whole record; the driver may modify it */
    const struct query_trace *trace; /* of an agent's query; else NULL */
};

struct export_driver {
    const char *name;
    const char *summary;
    bool makes_files;     /* writes run->output itself, which is required */
    bool makes_directory; /* the output is a directory */
    bool wants_metadata;  /* costs another pass */
    bool is_otlp;         /* a line is a batch that can be pushed to a receiver */
    enum otlp_signal signal;
    size_t state_size;
    enum err (*available)(struct error *why); /* NULL: always; the others may be NULL, too */
    enum err (*begin)(struct export *export, struct error *why);
    enum err (*record)(struct export *export, const struct export_record *record,
                       struct error *why);
    enum err (*end)(struct export *export, struct error *why);
    void (*release)(struct export *export); /* frees what the state owns, also after a failure */
};

/* NULL-terminated, in the order of exports.def. */
extern const struct export_driver *const EXPORT_DRIVERS[];

/* By name; NULL, with the nearest name in *why. */
const struct export_driver *export_driver_find(const char *name, struct error *why);

struct export_request {
    const char *directory;
    const char *model;  /* NULL: the summary's, else that of the first record */
    const char *output; /* NULL, or "-": standard output */
    const char *name;   /* of the run; NULL: its directory's name */
    bool replace;       /* replace a run of that name in the output */
    bool raw;           /* csv: do not escape formulas */
    const char *push;   /* URL of an OTLP receiver, instead of an output; NULL: none */
};

struct export_done {
    uint64_t damaged;       /* skipped lines of the journal */
    uint64_t first_damaged; /* number of the first one, from 1 */
    double format;          /* of the journal; UNKNOWN without one */
    uint64_t pushed;        /* batches that a receiver accepted */
    int64_t rejected;       /* spans or data points of them that it dropped */
    char receiver[640];     /* its URL, without a password */
};

/* Exports a run.  A regular file is written atomically.  ERR_NOT_FOUND: no such directory, run or model; ERR_NO_DATA:
 * no records, or they lack what the format needs. */
enum err export_run(const struct export_driver *driver, const struct export_request *request,
                    struct export_done *done, struct error *why) MUST_USE;

/* A sweep, one row per attempt with a column for every knob: "csv" or "jsonl", ERR_USAGE for others. */
enum err export_sweep(const char *directory, const char *format, bool raw, struct text *out,
                      struct error *why) MUST_USE;

/* For an exporter that writes much at once: flushes the output if it is large. */
enum err export_flush(struct export *export, struct error *why) MUST_USE;

/* A number with the fewest digits that round-trip. */
void export_add_number(struct text *out, double value);

/* The text of an exported column, which may not be in the record (the run, the model); NULL: none. */
const char *export_text(const struct export_run *run, const struct record *record,
                        const struct record_field *field);

/* When a query was sent, had its first token and ended, wall clock. */
struct moments {
    int64_t from_ns, to_ns; /* since 1970 */
    int64_t first_ns;       /* the first token; or 0 */
};

/* False if the record lacks them. */
bool moments_of(const struct record *record, struct moments *out);

#endif
