/* The rows of `runs`: finding, listing and writing them.  Each filter has an index and lists are newest first, so that
 * a page costs the same however many runs there are. */
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "db/db.h"
#include "db/driver.h"
#include "rundir/summary.h"

enum { VALUES_MAX = 12 };

struct condition {
    struct text sql;
    const char *values[VALUES_MAX];
    char numbers[2][32];
    char beginning[64], after[64];
    size_t count;
};

static void add_condition(struct condition *condition, const char *column, const char *comparison,
                          const char *value)
{
    condition->values[condition->count++] = value;
    text_addf(&condition->sql, "%s\"%s\" %s $%zu", condition->count > 1 ? " AND " : " WHERE ",
              column, comparison, condition->count);
}

static bool is_hex(const char *word)
{
    return *word && strspn(word, "0123456789abcdef") == strlen(word);
}

/* An id, a prefix of one as a range that the primary key can answer, or a name. */
static void add_run(struct condition *condition, const char *run)
{
    enum { SHORTEST = 4 };
    size_t length = strlen(run);
    if (!is_hex(run) || length < SHORTEST || length >= RUN_ID_MAX) {
        add_condition(condition, "name", "=", run);
        return;
    }
    chars_copy(condition->beginning, run);
    chars_format(condition->after, "%sg", run); /* after all digits */
    add_condition(condition, "id", ">=", condition->beginning);
    add_condition(condition, "id", "<", condition->after);
}

static void add_filter(struct condition *condition, const struct db_filter *filter)
{
    const struct {
        const char *column, *value;
    } EQUAL[] = {{"kind", filter->kind},       {"model", filter->model},
                 {"host", filter->host},       {"hardware", filter->hardware},
                 {"dataset", filter->dataset}, {"sweep", filter->sweep}};
    if (filter->run)
        add_run(condition, filter->run);
    for (size_t i = 0; i < COUNT_OF(EQUAL); i++)
        if (EQUAL[i].value)
            add_condition(condition, EQUAL[i].column, "=", EQUAL[i].value);
    chars_format(condition->numbers[0], "%.6f", filter->since);
    chars_format(condition->numbers[1], "%.6f", filter->before);
    if (is_known(filter->since))
        add_condition(condition, "began", ">=", condition->numbers[0]);
    if (is_known(filter->before))
        add_condition(condition, "began", "<", condition->numbers[1]);
}

/* ---- rows ---- */

static double number_of(const struct db_value *value)
{
    if (value->is_null || value->type == DB_TEXT)
        return UNKNOWN;
    return value->type == DB_REAL ? value->real : (double)value->integer;
}

struct listing {
    db_take_run *take;
    void *context;
};

/* Indexes in the list of columns (db.c). */
enum { ID, NAME, KIND, HOST, DIGEST, BYTES, FORMAT, PUSHED, BEGAN };

static enum err take_row(void *context, const struct db_value *values, size_t count)
{
    const struct listing *listing = context;
    if (count < DB_RUNS_FIGURES + SUMMARY_INDEXES + 2)
        return ERR_BAD_VALUE;
    const struct db_run run = {
        .id = db_text(&values[ID]),
        .name = db_text(&values[NAME]),
        .kind = db_text(&values[KIND]),
        .host = db_text(&values[HOST]),
        .digest = db_text(&values[DIGEST]),
        .pushed_at = number_of(&values[PUSHED]),
        .began_at = number_of(&values[BEGAN]),
        .bytes = number_of(&values[BYTES]),
        .figures = &values[DB_RUNS_FIGURES],
        .sweep = db_text(&values[DB_RUNS_FIGURES + SUMMARY_INDEXES]),
        .path = db_text(&values[DB_RUNS_FIGURES + SUMMARY_INDEXES + 1]),
    };
    return run.id && run.name && run.digest ? listing->take(listing->context, &run) : ERR_BAD_VALUE;
}

enum err db_list(struct db *db, const struct db_filter *filter, db_take_run *take, void *context,
                 struct error *why)
{
    struct condition condition = {0};
    struct listing listing = {take, context};
    struct text sql = {0};
    add_filter(&condition, filter);
    text_add(&sql, "SELECT ");
    for (size_t i = 0; i < DB_RUNS_FIGURES + SUMMARY_INDEXES; i++)
        text_addf(&sql, "%s\"%s\"", i ? ", " : "", db_column(DB_RUNS, i).name);
    text_addf(&sql, ", sweep, path FROM runs%s ORDER BY began DESC, id DESC",
              text_get(&condition.sql));
    if (filter->limit)
        text_addf(&sql, " LIMIT %u", filter->limit);
    enum err err =
        db_query(db, text_get(&sql), condition.values, condition.count, take_row, &listing, why);
    text_release(&condition.sql);
    text_release(&sql);
    return err;
}

struct stamp {
    double count, pushed_at;
};

static enum err take_stamp(void *context, const struct db_value *values, size_t count)
{
    struct stamp *stamp = context;
    if (count != 2)
        return ERR_BAD_VALUE;
    *stamp = (struct stamp){number_of(&values[0]), number_of(&values[1])};
    return ERR_OK;
}

enum err db_stamp(struct db *db, double *count, double *pushed_at, struct error *why)
{
    struct stamp stamp = {UNKNOWN, UNKNOWN};
    enum err err =
        db_query(db, "SELECT count(*), max(pushed) FROM runs", NULL, 0, take_stamp, &stamp, why);
    *count = stamp.count;
    *pushed_at = stamp.pushed_at;
    return err;
}

const char *db_run_text(const struct db_run *run, size_t i)
{
    return run->figures[i].type == DB_TEXT ? db_text(&run->figures[i]) : NULL;
}

double db_run_number(const struct db_run *run, size_t i)
{
    return number_of(&run->figures[i]);
}

static void put_figure(const struct db_run *run, size_t i, struct result *result)
{
    const struct db_column column = db_column(DB_RUNS, DB_RUNS_FIGURES + i);
    bool is_time = i == summary_index_place(SUMMARY_INDEX_started) ||
                   i == summary_index_place(SUMMARY_INDEX_finished);
    const char *unit = is_time ? UNIT_TIME : summary_index(i)->unit;
    if (column.type == DB_TEXT)
        result_text(result, column.name, db_run_text(run, i));
    else
        result_number(result, column.name, db_run_number(run, i), unit ? unit : "");
}

void db_run_put(const struct db_run *run, struct result *result)
{
    result_group(result, NULL);
    result_text(result, "id", run->id);
    result_text(result, "name", run->name);
    result_text(result, "kind", run->kind);
    result_text(result, "host", run->host);
    result_text(result, "digest", run->digest);
    result_text(result, "sweep", run->sweep);
    result_number(result, "bytes", run->bytes, "B");
    result_number(result, "pushed", run->pushed_at, UNIT_TIME);
    result_number(result, "began", run->began_at, UNIT_TIME);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        put_figure(run, i, result);
    result_end(result);
}
