/* A run as columns: one row per query, in the order of the records.  Loaded from a directory of ours or of the Python
 * IPW: from its Arrow files if they are up to date, else from the journal.
 *
 * A table covers one model.  If a directory has several, one is chosen and `models` lists all.
 *
 * run_table_load creates a table, run_table_release frees it; everything below points into it.  A million queries take
 * 8 MB per number, 4 MB per word column, 1 MB per flag: load only what you need. */
#ifndef IPW_RUNDIR_RUN_TABLE_H
#define IPW_RUNDIR_RUN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"

/* RUN_JOULES, RUN_TTFT ... RUN_CORRECT ... RUN_SUBJECT ...: one enum per kind, from record.def; record_column
 * (record.h) returns the name, unit and label of a column. */
enum run_number {
#define NUMBER_COLUMN(constant, name, label) (RUN_##constant, )
#include "rundir/record.def"
    RUN_NUMBERS
};

enum run_flag {
#define FLAG_COLUMN(constant, name, label) (RUN_##constant, )
#include "rundir/record.def"
    RUN_FLAGS
};

enum run_word {
#define WORD_COLUMN(constant, name, label) (RUN_##constant, )
#include "rundir/record.def"
    RUN_WORDS
};

/* Which columns to load, a bit for each: RUN_WANT(RUN_JOULES) | ...  Flags are always loaded. */
typedef unsigned __int128 run_columns; /* NOLINT: there will be more than 64 */
struct run_wanted {
    run_columns numbers, words;
};
#define RUN_WANT(column) ((run_columns)1 << (column))
#define RUN_WANT_ALL     ((struct run_wanted){~(run_columns)0, ~(run_columns)0})

enum run_source { RUN_FROM_ARROW, RUN_FROM_JOURNAL };

/* Question and answer, each truncated to RUN_EXCERPT_MAX bytes; NULL if unknown. */
enum { RUN_EXCERPT_MAX = 700 };
struct run_excerpt {
    char *problem, *expected, *answer;
};

struct run_table {
    size_t rows;
    double *numbers[RUN_NUMBERS]; /* NULL: not loaded, or unknown for all queries */
    int8_t *flags[RUN_FLAGS];     /* 1, 0, or -1: unknown; never NULL */
    struct run_words {
        uint32_t *ids; /* NULL: the same for all rows */
        uint32_t same;
        char **texts; /* texts[0] is "": unknown; others in order of first occurrence */
        uint32_t count;
    } words[RUN_WORDS];

    enum run_kind kind;
    const char *directory; /* as passed: the caller's string, which outlives the table */
    const char *model;     /* model of these rows */
    char **models;         /* all models in the directory */
    size_t model_count;
    struct summary summary; /* for an unfinished run: from the first line of its journal */
    bool has_summary;       /* summary.json was read */
    bool damaged_summary;   /* it exists, but could not be read */
    bool has_header;        /* no summary, but the first line of the journal */
    double format;          /* of the journal, if it was read; else UNKNOWN */
    struct run_excerpts {
        struct run_excerpt *items; /* items[i] is for row i * stride */
        size_t count, stride;
    } excerpts; /* empty unless requested */
    enum run_source source;
    bool ours;                 /* records have the struct "ipw": energy shares with evidence */
    bool uses_board, uses_gpu; /* source of RUN_BASIS_JOULES and RUN_BASIS_WATTS */
    size_t failed, canceled;   /* rows with RUN_FAILED, with RUN_CANCELED */
    uint64_t not_finite;       /* NaN or infinite values, treated as unknown */
    uint64_t negative;         /* queries with a negative energy, treated as unknown */
    uint64_t damaged;          /* skipped lines of the journal */
    uint64_t first_damaged;    /* number of the first one, from 1 */
    struct run_note {          /* for the user: damaged files, several models ... */
        char text[320];
    } *notes;
    size_t note_count;
};

/* UNKNOWN if the column was not loaded. */
static inline double run_number(const struct run_table *table, enum run_number column, size_t row)
{
    return table->numbers[column] ? table->numbers[column][row] : UNKNOWN;
}

static inline uint32_t run_word_id(const struct run_table *table, enum run_word column, size_t row)
{
    const struct run_words *words = &table->words[column];
    return words->ids ? words->ids[row] : words->same;
}
/* "" if unknown. */
static inline const char *run_word(const struct run_table *table, enum run_word column, size_t row)
{
    return table->words[column].texts[run_word_id(table, column, row)];
}
static inline int run_flag(const struct run_table *table, enum run_flag column, size_t row)
{
    return table->flags[column][row];
}

/* What an answer counts in an accuracy: 1, 0 (incorrect or unread), or -1: not graded, so not in the denominator. */
static inline int run_verdict(const struct run_table *table, size_t row)
{
    return table->flags[RUN_UNREAD][row] == 1 ? 0 : table->flags[RUN_CORRECT][row];
}

/* Completed: analyses of cost and speed use only these. */
static inline bool run_completed(const struct run_table *table, size_t row)
{
    return table->flags[RUN_FAILED][row] != 1 && table->flags[RUN_CANCELED][row] != 1;
}
static inline size_t run_completed_count(const struct run_table *table)
{
    return table->rows - table->failed - table->canceled;
}

/* "q000012", "q000012.r1", as in the journal; RUN_INDEX and RUN_REPEAT must be loaded. */
enum { RUN_KEY_MAX = QUERY_KEY_MAX };
char *run_key(const struct run_table *table, size_t row, char *to);

/* "" if unknown. */
static inline const char *run_hardware(const struct run_table *table)
{
    return text_or_empty(table->summary.hardware_label);
}

/* The common word of all queries that have one; "several" if they differ, "" if none has one. */
static inline const char *run_common_word(const struct run_table *table, enum run_word column)
{
    const struct run_words *words = &table->words[column];
    return words->count > 2 ? "several" : words->count > 1 ? words->texts[1] : "";
}

/* Method and source of the run's energy, "counter" or "estimated", and the sensors: from the summary, else from all
 * queries (RUN_METHOD, RUN_SOURCE). */
static inline const char *run_energy_method(const struct run_table *table)
{
    const char *method = table->summary.energy.method;
    return method ? method : run_common_word(table, RUN_METHOD);
}
static inline const char *run_energy_source(const struct run_table *table)
{
    const char *source = table->summary.energy.source;
    return source ? source : run_common_word(table, RUN_SOURCE);
}

/* `model` is the one to load, or NULL: the summary's, else the one with the most records.  ERR_NOT_FOUND: no such
 * directory, not a run, or no such model; ERR_NO_DATA: a run without any record; ERR_BAD_VALUE: damaged, with the file
 * and the position. */
enum err run_table_load(const char *directory, const char *model, struct run_wanted wanted,
                        struct run_table *out, struct error *why) MUST_USE;
void run_table_release(struct run_table *table);

/* The same, with the texts of evenly selected queries: all of up to `excerpts`, otherwise at least that many and less
 * than twice. */
enum err run_table_load_texts(const char *directory, const char *model, struct run_wanted wanted,
                              size_t excerpts, struct run_table *out, struct error *why) MUST_USE;

#endif
