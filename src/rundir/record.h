/* A record: the data of one query, or of one repetition of a measured command.  The members come from record.def, which
 * also defines their locations in records.jsonl, in the Arrow files, in the table of a run and in exports.
 *
 * The runner fills parts of a record as they become known and journals each (record_line); a reader merges
 * the lines and gets the members back (record_from_json).
 *
 * Ownership: a record owns nothing.  Strings and trees belong to the caller. */
#ifndef IPW_RUNDIR_RECORD_H
#define IPW_RUNDIR_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/json_field.h"
#include "core/units.h"

struct energy;
struct json;
struct jv;
struct text;

struct record_stats {
    double avg, max, median, min;
};

/* struct energy (core/energy.h) with borrowed strings; every member may be unknown. */
struct record_energy {
    double joules, plus_minus, statistical, coverage, idle_joules, active_joules;
    const char *method, *source;
    int64_t updates;
    int8_t low_confidence;
    const char *note;
};

struct record {
#define FIELD(member, type, path, unit, description, ...) FIELD_C_##type member;
#define EXTRA(member, type, path, unit, description, ...) FIELD_C_##type member;
#define STATS(member, path, unit, description, avg, max)  struct record_stats member;
#define GROUP(type, member, path)                         struct type member;
#include "rundir/record.def"
};

/* Sets everything to unknown. */
void record_init(struct record *record);

struct record_energy record_energy_of(const struct energy *energy); /* points into *energy */
void record_energy_get(const struct record_energy *from, struct energy *out);
extern const struct json_field RECORD_ENERGY_FIELDS[]; /* ends with a row without a path */
void record_energy_from_json(const struct jv *value, struct record_energy *out);

/* ---- JSON ---- */

/* The figures of a model are below model_metrics.<model>, as in the Python IPW; paths that begin with "/" are not. */
#define RECORD_MODELS "model_metrics"
static inline struct json_base record_base(const char *model)
{
    return (struct json_base){RECORD_MODELS, model};
}

/* A line of the journal, without its newline: {"kind": kind, "key": key, ...} and the known values. */
void record_line(const struct record *record, const char *model, const char *kind, const char *key,
                 struct text *line);

/* The members point into the tree.  energy_basis of a record of the Python IPW is the kind that counts in it. */
void record_from_json(const struct jv *tree, const char *model, struct record *out);

/* The figures of a record by model: it may have several. */
const struct jv *record_models(const struct jv *tree);

/* ---- fields that hold JSON: written into *text, which the record then points to ---- */

/* `evaluation`, in the format of the Python IPW; "", UNKNOWN and 0 if absent. */
struct evaluation {
    char grader[64], label[24], extracted[120], reason[200];
    char judge[128]; /* model that graded what the grader could not read; "" if none */
    double score;
    unsigned attempts; /* of a judge */
    bool is_undecided; /* the judge gave no verdict */
};
void record_put_evaluation(struct record *record, const struct evaluation *evaluation,
                           struct text *text);
/* The grader, the score, and why there is no grade. */
void record_evaluation(const struct record *record, struct evaluation *out);

/* Sets the verdict: 1, 0, or -1 without one, and whether the grader could not read the answer.  Readers that know no
 * unread answers get `lm_correctness`, which is then false. */
void record_put_verdict(struct record *record, int correct, bool is_unread);

/* 1 if `evaluation.status` says that the answer is unread, 0 if it says something else, -1 without one: no grading, or
 * an earlier version, which did not distinguish unread answers. */
int grading_is_unread(const char *status);

/* An element of the list `devices`: a device's share of the query's energy. */
struct record_device {
    const char *id;
    bool in_total;
    const struct energy *energy;
    double prefill_joules, decode_joules, window_joules;
};
void record_device_to_json(struct json *list, const struct record_device *device);

/* `failed_attempts`: one that failed and was retried; and the joules of all of them in a record that was read. */
void record_put_failed_attempt(struct record *record, unsigned attempt, const struct energy *energy,
                               struct text *text);
double record_failed_joules(const struct record *record);

/* The rule of the Python IPW: the board counts if the record says so, or if an older record was read by a board's
 * backend; but if the board's energy is unknown, the GPUs count, for energy and power together. */
bool record_counts_board(const char *basis, const char *backend, bool is_board_known);

/* ---- the table of fields ---- */

enum record_role {
    ROLE_FIELD,    /* a member */
    ROLE_EXTRA,    /* a member, only in the journal */
    ROLE_PART,     /* part of a group */
    ROLE_GROUP,    /* a record_energy; its parts follow */
    ROLE_NULLABLE, /* a struct that may be null; its fields follow */
    ROLE_EMPTY,    /* a struct without fields */
    ROLE_DERIVED,  /* no member: a column of the table or of an export */
};

/* Which change of a figure is an improvement. */
enum better { BETTER_LOWER = -1, BETTER_NEITHER, BETTER_HIGHER };
const char *better_name(int better); /* "lower" */

enum record_column_kind { COLUMN_NONE, COLUMN_NUMBER, COLUMN_FLAG, COLUMN_WORD };

struct record_field {
    struct json_field at; /* at.path: for ROLE_DERIVED the places */
    enum record_role role;
    const char *unit, *description;
    enum record_column_kind column_kind;
    int column;                     /* RUN_...: an enum of run_table.h */
    const char *name, *label;       /* of that column */
    const char *export_name;        /* NULL: not exported */
    const char *former_export_name; /* in earlier versions, as at.former; NULL: the same */
    const char *statistic_key;      /* in summary.json; NULL: no statistic */
    const char *statistic_label;    /* "": only in JSON */
    const char *statistic_unit;
    double statistic_scale;
};

/* In the order of record.def; terminated by a row without a path. */
extern const struct record_field RECORD_FIELDS[];

/* Columns of flat exports, from 0, in their order. */
enum {
    RECORD_EXPORTS = 0
#define EXPORT(name) (+1)
#include "rundir/record.def"
};
const struct record_field *record_export(size_t place);

/* The distributions over queries in a summary. */
enum record_statistic {
#define STATISTIC(constant, key, label, unit, scale) (STATISTIC_##constant, )
#include "rundir/record.def"
    RECORD_STATISTICS
};
const struct record_field *record_statistic(enum record_statistic statistic);
/* In the order of summary.json and of tables, from 0. */
enum record_statistic record_statistic_at(size_t place);

/* The order of the rows of a view with these names: first those in `frozen`, in its order, which may have names without
 * a row; then the others. order[place] is an index in `names`. */
void record_order(const char *const *names, size_t count, const char *const *frozen,
                  size_t frozen_count, size_t *order);

/* The row of a column of the run's table; `column` is a value of that kind's enum. */
const struct record_field *record_column(enum record_column_kind kind, int column);

#endif
