/* Rows of the run index.  A row is made of a summary, or of a directory without one, by the functions here alone, so
 * that a run has the same row whoever writes it: the command that measured it, `ipw list runs`, or the dashboard. */
#include "rundir/run_row.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/precision.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/run_path.h"

const struct run_row_column ROW_COLUMN[ROW_COLUMNS] = {
#define TEXT(constant, name, index)   {name, SUMMARY_INDEX_##index, true},
#define NUMBER(constant, name, index) {name, SUMMARY_INDEX_##index, false},
    ROWS_OWN(TEXT, NUMBER)
#undef TEXT
#undef NUMBER
#define ROW_TEXT(constant, name, index)   ({name, SUMMARY_INDEX_##index, true}, )
#define ROW_NUMBER(constant, name, index) ({name, SUMMARY_INDEX_##index, false}, )
#include "rundir/record.def"
};

const enum run_column RUN_SEARCHED[RUN_SEARCHED_COUNT] = {ROW_NAME, ROW_MODEL, ROW_HARDWARE,
                                                          ROW_DATASET, ROW_CLIENT};

/* ---- columns ---- */

/* The places of columns, and the columns of places; built once. */
static size_t PLACES[ROW_COLUMNS];
static struct {
    const char *name;
    bool is_text;
} AT_PLACE[ROW_VALUES];
static struct run_row UNKNOWN_ROW;

static void find_places(void)
{
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        PLACES[i] = i;
        if (i >= ROW_OWN)
            PLACES[i] = ROW_OWN + summary_index_place((enum summary_index)ROW_COLUMN[i].index);
    }
    UNKNOWN_ROW.written_at = INTEGER_UNKNOWN;
    for (size_t i = 0; i < ROW_VALUES; i++) {
        const struct summary_field *figure = i < ROW_OWN ? NULL : summary_index(i - ROW_OWN);
        AT_PLACE[i].name = figure ? figure->index_name : ROW_COLUMN[i].name;
        AT_PLACE[i].is_text = figure ? figure->at.type == FIELD_TEXT : ROW_COLUMN[i].is_text;
        if (!AT_PLACE[i].is_text)
            UNKNOWN_ROW.values[i].number = UNKNOWN;
    }
}

static void init_places(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_places);
}

size_t run_row_place(enum run_column column)
{
    init_places();
    return PLACES[column];
}

const char *run_row_name(size_t place)
{
    init_places();
    return AT_PLACE[place].name;
}

bool run_row_is_text(size_t place)
{
    init_places();
    return AT_PLACE[place].is_text;
}

const struct summary_field *run_row_figure(enum run_column column)
{
    enum summary_index index = (enum summary_index)ROW_COLUMN[column].index;
    const struct summary_field *field =
        index == SUMMARY_INDEX_none ? NULL : summary_index(summary_index_place(index));
    return field && field->label ? field : NULL;
}

/* ---- values ---- */

bool run_row_has(const struct run_row *row, size_t place)
{
    return run_row_is_text(place) ? row->values[place].text != NULL
                                  : is_known(row->values[place].number);
}

void run_row_init(struct run_row *row, const char *id)
{
    init_places();
    *row = UNKNOWN_ROW;
    row->id = id;
    row->values[ROW_NAME].text = str_last_part(id);
}

const char *run_row_precision(const struct run_row *row)
{
    static const char *const NAMES[33] = {
        [2] = "2-bit", [3] = "3-bit", [4] = "4-bit",   [5] = "5-bit",
        [6] = "6-bit", [8] = "8-bit", [16] = "16-bit", [32] = "32-bit",
    };
    const char *model = run_row_text(row, ROW_MODEL);
    double bits = model ? bits_in_name(model) : UNKNOWN;
    return is_known(bits) ? NAMES[(size_t)bits] : NULL;
}

void run_row_of_summary(const char *id, const struct summary *summary, struct run_row *out)
{
    run_row_init(out, id);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        const struct summary_field *field = summary_index(i);
        if (run_row_is_text(ROW_OWN + i))
            out->values[ROW_OWN + i].text = summary_index_text(field, summary);
        else
            out->values[ROW_OWN + i].number = json_field_number(&field->at, summary);
    }
    out->values[ROW_KIND].text = run_kind_name(run_kind_named(summary->run_kind));
    out->values[ROW_STATE].text = summary->interrupted == 1 ? "interrupted" : "done";
    out->values[ROW_CREATED].number =
        is_known(summary->started_at) ? summary->started_at : summary->generated_at;
    out->values[ROW_PRECISION].text = run_row_precision(out);
}

void run_row_of_entry(const char *id, const char *directory, const struct run_list_entry *entry,
                      struct run_row *out)
{
    if (entry->has_summary) {
        run_row_of_summary(id, &entry->summary, out);
        out->written_at = entry->written_at;
        return;
    }
    bool is_running = run_dir_check_idle(directory, NULL) == ERR_BUSY;
    run_row_init(out, id);
    out->values[ROW_KIND].text = run_kind_name(entry->kind);
    out->values[ROW_STATE].text = is_running ? "running" : "interrupted";
    out->values[ROW_CREATED].number = entry->began_at;
}

bool run_row_is_running(const struct run_row *row)
{
    const char *state = run_row_text(row, ROW_STATE);
    return state && str_equal(state, "running");
}

/* ---- copies ---- */

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *copy_text(const char *text, char **to)
{
    size_t size = text_size(text);
    char *copy = *to;
    if (!text)
        return NULL;
    memcpy(copy, text, size);
    *to += size;
    return copy;
}

struct run_row *run_row_copy(const struct run_row *row)
{
    size_t size = sizeof *row + text_size(row->id);
    for (size_t i = 0; i < ROW_VALUES; i++)
        if (run_row_is_text(i))
            size += text_size(row->values[i].text);
    struct run_row *copy = xmalloc(size);
    char *to = (char *)(copy + 1);
    *copy = *row;
    copy->id = copy_text(row->id, &to);
    for (size_t i = 0; i < ROW_VALUES; i++)
        if (run_row_is_text(i))
            copy->values[i].text = copy_text(row->values[i].text, &to);
    return copy;
}

/* ---- order ---- */

int run_row_compare(const struct run_row *a, const struct run_row *b, size_t place,
                    bool is_descending)
{
    bool has_a = run_row_has(a, place), has_b = run_row_has(b, place);
    int order = 0;
    if (has_a != has_b)
        return has_a ? -1 : 1;
    if (has_a && run_row_is_text(place))
        order = strcmp(a->values[place].text, b->values[place].text);
    else if (has_a)
        order = (a->values[place].number > b->values[place].number) -
                (a->values[place].number < b->values[place].number);
    if (!order)
        order = strcmp(a->id, b->id);
    return is_descending ? -order : order;
}
