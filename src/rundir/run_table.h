/* A run as columns: one row per query, in the order of the records.  Out of a directory of ours or of the
 * Python IPW's: its Arrow files where they are up to date, else the journal.
 *
 * A table is of one model.  Where a directory holds several, one is taken and `models` names all.
 *
 * run_table_load creates a table, run_table_release frees it; everything below points into it.  A million queries take 8 MB a
 * number, 4 MB a word that differs, 1 MB a flag: ask for what you need. */
#ifndef IPW_RUNDIR_RUN_TABLE_H
#define IPW_RUNDIR_RUN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"

/* RUN_JOULES, RUN_TTFT ... RUN_CORRECT ... RUN_SUBJECT ...: one enum each, from record.def; record_column
 * (record.h) gives the name, unit and label of a column. */
enum run_number {
#define FIELD(member, type, path, unit, views, description)          views
#define PART(member, type, path, unit, views, description)           views
#define STATS(member, path, unit, avg_views, max_views, description) avg_views max_views
#define DERIVED(type, path, unit, views, description)                views
#define NUMBER_COLUMN(constant, name, label)                         RUN_##constant,
#include "rundir/record.def"
    RUN_NUMBERS
};

enum run_flag {
#define FIELD(member, type, path, unit, views, description) views
#define PART(member, type, path, unit, views, description)  views
#define DERIVED(type, path, unit, views, description)       views
#define FLAG_COLUMN(constant, name, label)                  RUN_##constant,
#include "rundir/record.def"
    RUN_FLAGS
};

enum run_word {
#define FIELD(member, type, path, unit, views, description) views
#define PART(member, type, path, unit, views, description)  views
#define DERIVED(type, path, unit, views, description)       views
#define WORD_COLUMN(constant, name, label)                  RUN_##constant,
#include "rundir/record.def"
    RUN_WORDS
};

/* Which columns to load.  Flags are always loaded. */
struct run_wanted {
    uint64_t numbers; /* bits: RUN_WANT(RUN_JOULES) | ... */
    uint64_t words;
};
#define RUN_WANT(column) (UINT64_C(1) << (column))
#define RUN_WANT_ALL     ((struct run_wanted){UINT64_MAX, UINT64_MAX})

enum run_source { RUN_FROM_ARROW, RUN_FROM_JOURNAL };

/* What was asked and answered, each cut to RUN_EXCERPT_MAX bytes; NULL where it is not known. */
enum { RUN_EXCERPT_MAX = 700 };
struct run_excerpt {
    char *problem, *expected, *answer;
};

struct run_table {
    size_t rows;
    double *numbers[RUN_NUMBERS]; /* NULL: not asked for, or of no query known */
    int8_t *flags[RUN_FLAGS];     /* 1, 0, or -1 for not known; never NULL */
    struct run_words {
        uint32_t *ids; /* NULL when all rows have the same */
        uint32_t same;
        char **texts; /* texts[0] is "", for not known; others in the order of their coming */
        uint32_t count;
    } words[RUN_WORDS];

    enum run_kind kind;
    const char *directory; /* as it was given */
    const char *model;     /* whose rows these are */
    char **models;         /* all that the directory has */
    size_t model_count;
    struct summary summary; /* of an unfinished run: what the first line of its journal says */
    bool has_summary;       /* summary.json was read */
    bool damaged_summary;   /* it is there, and could not be read */
    bool has_header;        /* no summary, but the first line of the journal */
    double format;          /* of the journal, where it was read; else UNKNOWN */
    struct run_excerpts {
        struct run_excerpt *items; /* items[i] is of row i * stride */
        size_t count, stride;
    } excerpts; /* none unless they were asked for */
    enum run_source source;
    bool ours;                 /* records have the struct "ipw": shares, with their evidence */
    bool uses_board, uses_gpu; /* what RUN_BASIS_JOULES and RUN_BASIS_WATTS are of */
    size_t failed;             /* rows with RUN_FAILED */
    uint64_t not_finite;       /* values that were NaN or infinite, and count as unknown */
    uint64_t negative;         /* queries with an energy below 0, which counts as unknown */
    uint64_t damaged;          /* lines of the journal that were skipped */
    uint64_t first_damaged;    /* the first of them, from 1 */
    struct run_note {          /* for the user: damaged files, several models ... */
        char text[320];
    } *notes;
    size_t note_count;
};

/* UNKNOWN where the column is not there. */
static inline double run_number(const struct run_table *table, enum run_number column, size_t row)
{
    return table->numbers[column] ? table->numbers[column][row] : UNKNOWN;
}

static inline uint32_t run_word_id(const struct run_table *table, enum run_word column, size_t row)
{
    const struct run_words *words = &table->words[column];
    return words->ids ? words->ids[row] : words->same;
}
/* "" where it is not known. */
static inline const char *run_word(const struct run_table *table, enum run_word column, size_t row)
{
    return table->words[column].texts[run_word_id(table, column, row)];
}
static inline int run_flag(const struct run_table *table, enum run_flag column, size_t row)
{
    return table->flags[column][row];
}

/* Completed: analyses of cost and speed look at these alone. */
static inline bool run_completed(const struct run_table *table, size_t row)
{
    return table->flags[RUN_FAILED][row] != 1;
}

/* "q000012", "q000012.r1", as the journal names it; RUN_INDEX and RUN_REPEAT must be loaded. */
enum { RUN_KEY_MAX = QUERY_KEY_MAX };
char *run_key(const struct run_table *table, size_t row, char *to);

/* "" where it is not known. */
static inline const char *run_hardware(const struct run_table *table)
{
    return text_or_empty(table->summary.hardware_label);
}

/* The word of all queries that have one; "several" where they differ, "" where none has one. */
static inline const char *run_common_word(const struct run_table *table, enum run_word column)
{
    const struct run_words *words = &table->words[column];
    return words->count > 2 ? "several" : words->count > 1 ? words->texts[1] : "";
}

/* How the run's energy was obtained, "counter" or "estimated", and by which sensors: of the summary, else of all
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

/* `model` is the one to take, or NULL: the summary's, else the one with most records.  ERR_NOT_FOUND:
 * no such directory, no run in it, or no such model; ERR_NO_DATA: a run without a single record;
 * ERR_BAD_VALUE: damaged, with the file and the place in it. */
enum err run_table_load(const char *directory, const char *model, struct run_wanted wanted,
                        struct run_table *out, struct error *why) MUST_USE;
void run_table_release(struct run_table *table);

/* The same, with the texts of some queries, evenly picked: all of up to `excerpts`, and of more at least
 * that many and less than twice. */
enum err run_table_load_texts(const char *directory, const char *model, struct run_wanted wanted,
                              size_t excerpts, struct run_table *out, struct error *why) MUST_USE;

#endif
