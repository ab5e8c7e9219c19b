/* The table of runs: the run index, updated from its source when that has changed, and asked for each page.  A page
 * begins behind the row that its cursor names, so that its cost does not depend on the number of runs, and rows that
 * are added or removed in between neither repeat nor skip others. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/journal.h"
#include "rundir/run_list.h"
#include "serve/api.h"
#include "serve/runs.h"
#include "serve/serve.h"

enum {
    PAGE_DEFAULT = 50,
    PAGE_MAX = 1000,
    FACETS_MAX = 200,
    COUNTED_MAX = 20000, /* limit of rows to count for a filter */
};
#define SCAN_PERIOD (1 * NS_PER_S)
#define FULL_PERIOD (60 * NS_PER_S)
enum { SCAN_SHARE = 10 }; /* scanning takes at most a tenth of the time */

struct running {
    char *id;
    struct run_progress progress;
    bool is_found; /* by the last search for runs in progress */
};

struct runs {
    struct row_source *source;
    struct run_index *index; /* NULL: not opened yet */
    uint64_t stamp;          /* of the index, for the following two */
    size_t listed;           /* rows that are not attempts of sweeps */
    struct text facets;      /* JSON; "": not built */
    struct running *running;
    size_t running_count, running_capacity;
    struct sweep_best *bests;
    size_t best_count, best_capacity;
    nanos next_scan, next_full;
    unsigned scans;
    bool is_loaded, has_running;
    atomic_bool is_expired;
    pthread_mutex_t lock; /* guards is_loaded and listed, which other threads read */
};

/* ---- rows ---- */

void run_row_to_json(const struct run_row *row, struct json *json)
{
    char when[CLOCK_TEXT_MAX];
    json_string(json, "id", row->id);
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        enum run_column column = (enum run_column)i;
        double number = ROW_COLUMN[i].is_text ? UNKNOWN : run_row_number(row, column);
        if (ROW_COLUMN[i].is_text)
            json_string(json, ROW_COLUMN[i].name, run_row_text(row, column));
        else if (column != ROW_CREATED)
            json_number(json, ROW_COLUMN[i].name, number);
        else
            json_string(json, ROW_COLUMN[i].name,
                        is_known(number) ? clock_text(when, from_seconds(number)) : NULL);
    }
}

static void take_copy(void *context, const struct run_row *row)
{
    struct rows *rows = context;
    *XADD(rows->rows, rows->count, rows->capacity) = run_row_copy(row);
}

void rows_release(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->rows[i]);
    free(rows->rows);
    *rows = (struct rows){0};
}

/* After an error of the index, which fails this request, the next one fills it again from the source. */
static enum err check_index(struct runs *runs, enum err err)
{
    if (err && run_index_recover(runs->index, err)) {
        runs->next_full = 0;
        runs_expire(runs);
    }
    return err;
}

enum err runs_select(struct runs *runs, const struct run_query *query, run_take_row *take,
                     void *context, struct error *why)
{
    return check_index(runs, run_index_select(runs->index, query, take, context, why));
}

enum err runs_copy(struct runs *runs, const struct run_query *query, struct rows *out,
                   struct error *why)
{
    *out = (struct rows){0};
    return runs_select(runs, query, take_copy, out, why);
}

/* NULL if the index has none; the caller frees it. */
static struct run_row *find_row(struct runs *runs, const char *id)
{
    const struct run_query query = {.id = id};
    struct rows found;
    enum err err = runs_copy(runs, &query, &found, NULL);
    struct run_row *row = !err && found.count ? found.rows[0] : NULL;
    if (row)
        found.rows[0] = NULL;
    rows_release(&found);
    return row;
}

/* ---- scanning ---- */

static void take_row(void *context, const struct run_row *row, const struct summary *summary)
{
    run_update_put(context, row, summary);
}

static bool keep_row(void *context, const char *id, int64_t written_at)
{
    return run_update_keep(context, id, written_at);
}

/* *failed: the index cannot be updated; the other errors are of the source. */
static enum err update_rows(struct runs *runs, enum err *failed, struct error *why)
{
    struct run_update *update;
    size_t running;
    *failed = run_update_begin(runs->index, &update, why);
    if (*failed)
        return *failed;
    const struct row_handler handler = {take_row, keep_row, update};
    enum err err = row_source_read(runs->source, &handler, why);
    *failed = run_update_end(update, !err, &running, err ? NULL : why);
    runs->has_running = running > 0;
    return err ? err : *failed;
}

/* What is derived from the rows is computed again once they have changed. */
static enum err count_rows(struct runs *runs, struct error *why)
{
    uint64_t stamp = run_index_stamp(runs->index);
    size_t listed = runs->listed;
    enum err err = ERR_OK;
    if (runs->stamp != stamp || !runs->is_loaded) {
        text_clear(&runs->facets);
        err = check_index(runs, run_index_count(runs->index, &(struct run_query){0}, &listed, why));
    }
    if (err)
        return err;
    runs->stamp = stamp;
    pthread_mutex_lock(&runs->lock);
    runs->listed = listed;
    runs->is_loaded = true;
    pthread_mutex_unlock(&runs->lock);
    return ERR_OK;
}

static enum err read_rows(struct runs *runs, struct error *why)
{
    enum err err, failed;
    if (!runs->index) /* by the thread that uses it: it may take seconds */
        runs->index = run_index_open(row_source_folder(runs->source));
    do
        err = update_rows(runs, &failed, why);
    while (failed && run_index_recover(runs->index, failed));
    runs->scans++;
    return err ? err : count_rows(runs, why);
}

void runs_expire(struct runs *runs)
{
    atomic_store(&runs->is_expired, true);
}

enum err runs_refresh(struct runs *runs, struct error *why)
{
    nanos began = clock_now();
    bool is_expired = atomic_exchange(&runs->is_expired, false);
    if (runs->is_loaded && began < runs->next_scan && !is_expired)
        return ERR_OK;
    if (runs->is_loaded && began < runs->next_full && !runs->has_running &&
        !row_source_changed(runs->source)) {
        runs->next_scan = began + SCAN_PERIOD;
        return ERR_OK;
    }
    enum err err = read_rows(runs, why);
    nanos now = clock_now(), rest = SCAN_SHARE * (now - began);
    runs->next_scan = now + (rest > SCAN_PERIOD ? rest : SCAN_PERIOD);
    runs->next_full = now + FULL_PERIOD;
    return err;
}

/* ---- cursors: "ID.VALUE", both in hexadecimal, of the last row of a page; without VALUE it is unknown ---- */

static void add_hex(struct text *to, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        text_addf(to, "%02x", ((const unsigned char *)bytes)[i]);
}

static void set_cursor(struct text *to, const struct run_row *row, enum run_column column)
{
    size_t place = run_row_place(column);
    text_clear(to);
    add_hex(to, row->id, strlen(row->id));
    if (!run_row_has(row, place))
        return;
    text_add(to, ".");
    if (ROW_COLUMN[column].is_text)
        add_hex(to, row->values[place].text, strlen(row->values[place].text));
    else
        add_hex(to, &row->values[place].number, sizeof row->values[place].number);
}

/* *at is then behind the digits.  The caller frees the bytes, which end in a NUL. */
static char *read_hex(const char **at, size_t *length)
{
    char *bytes = xmalloc(strlen(*at) / 2 + 1);
    *length = 0;
    for (; hex_digit((*at)[0]) >= 0 && hex_digit((*at)[1]) >= 0; *at += 2)
        bytes[(*length)++] = (char)(hex_digit((*at)[0]) << 4 | hex_digit((*at)[1]));
    bytes[*length] = '\0';
    return bytes;
}

/* A row that stands for the cursor; its strings are freed by cursor_release. */
struct cursor {
    struct run_row row;
    char *id, *value;
};

static void cursor_release(struct cursor *cursor)
{
    free(cursor->id);
    free(cursor->value);
}

static enum err read_cursor(const char *given, enum run_column column, struct cursor *out,
                            struct error *why)
{
    size_t place = run_row_place(column), length = 0, value_length = 0;
    *out = (struct cursor){.id = read_hex(&given, &length)};
    run_row_init(&out->row, out->id);
    out->row.values[ROW_NAME].text = NULL;
    bool has_value = *given == '.';
    if (has_value) {
        given++;
        out->value = read_hex(&given, &value_length);
    }
    if (*given || !length)
        return err_set(why, ERR_USAGE, "cursor: not from a previous page");
    if (has_value && ROW_COLUMN[column].is_text)
        out->row.values[place].text = out->value;
    else if (value_length == sizeof out->row.values[place].number)
        memcpy(&out->row.values[place].number, out->value, value_length);
    return ERR_OK;
}

/* ---- pages ---- */

static const enum run_column FILTERS[] = {ROW_KIND,   ROW_MODEL,   ROW_HARDWARE, ROW_STATE,
                                          ROW_CLIENT, ROW_DATASET, ROW_PRECISION};

void runs_filter(const struct request *request, struct run_query *out)
{
    out->search = request_param(request, "q");
    for (size_t i = 0; i < COUNT_OF(FILTERS); i++)
        out->equal[FILTERS[i]] = request_param(request, ROW_COLUMN[FILTERS[i]].name);
}

static bool is_filtered(const struct run_query *query)
{
    bool is = query->search;
    for (size_t i = 0; i < COUNT_OF(FILTERS); i++)
        is |= query->equal[FILTERS[i]] != NULL;
    return is;
}

static enum err find_column(const char *name, enum run_column *out, struct error *why)
{
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (str_equal(ROW_COLUMN[i].name, name)) {
            *out = (enum run_column)i;
            return ERR_OK;
        }
    return err_set(why, ERR_USAGE, "sort: unknown column '%.60s'", name);
}

/* Except for the cursor. */
static enum err read_query(const struct request *request, struct run_query *out, unsigned *limit,
                           struct error *why)
{
    const char *sort = request_param(request, "sort"), *order = request_param(request, "order");
    *out = (struct run_query){0};
    *limit = PAGE_DEFAULT;
    enum err err = find_column(sort ? sort : "created_at", &out->sort, why);
    if (!err && order && !str_equal(order, "asc") && !str_equal(order, "desc"))
        err = err_set(why, ERR_USAGE, "order: asc or desc");
    out->is_descending = !order || str_equal(order, "desc");
    runs_filter(request, out);
    return err ? err : request_count(request, "limit", 1, PAGE_MAX, limit, why);
}

/* Number of matching rows, of which the page has `taken`; UNKNOWN if counting them would cost more than the page. */
static enum err count_matching(struct runs *runs, const struct run_query *query, size_t taken,
                               double *out, struct error *why)
{
    size_t count = is_filtered(query) ? taken : runs->listed;
    bool is_counted = !is_filtered(query) || runs->listed <= COUNTED_MAX;
    bool is_whole = !query->after && taken < query->limit;
    enum err err = ERR_OK;
    if (is_filtered(query) && is_counted && !is_whole)
        err = check_index(runs, run_index_count(runs->index, query, &count, why));
    *out = is_counted ? (double)count : UNKNOWN;
    return err;
}

static void take_facet(void *context, const char *text)
{
    json_string(context, NULL, text);
}

/* The values available for filters. */
static enum err put_facets(struct runs *runs, struct json *json, struct error *why)
{
    static const enum run_column COLUMNS[] = {ROW_KIND, ROW_MODEL, ROW_HARDWARE};
    enum err err = ERR_OK;
    if (!runs->facets.length) {
        struct json facets;
        json_init(&facets, &runs->facets, false);
        json_object(&facets, NULL);
        for (size_t i = 0; !err && i < COUNT_OF(COLUMNS); i++) {
            json_array(&facets, ROW_COLUMN[COLUMNS[i]].name);
            err = run_index_texts(runs->index, COLUMNS[i], FACETS_MAX, take_facet, &facets, why);
            json_array_end(&facets);
        }
        json_object_end(&facets);
    }
    json_raw(json, "facets", text_get(&runs->facets));
    if (err)
        text_clear(&runs->facets);
    return check_index(runs, err);
}

struct page {
    struct json *json;
    enum run_column sort;
    unsigned limit, taken;
    struct text next;
};

static void take_page_row(void *context, const struct run_row *row)
{
    struct page *page = context;
    if (page->taken++ == page->limit) /* there is another page */
        return;
    json_object(page->json, NULL);
    run_row_to_json(row, page->json);
    json_object_end(page->json);
    if (page->taken == page->limit)
        set_cursor(&page->next, row, page->sort);
}

static enum err put_page(struct runs *runs, const struct run_query *query, struct page *page,
                         struct error *why)
{
    struct json *json = page->json;
    double total = UNKNOWN;
    json_array(json, "runs");
    enum err err = runs_select(runs, query, take_page_row, page, why);
    json_array_end(json);
    if (!err)
        err = count_rows(runs, why);
    if (!err)
        err = put_facets(runs, json, why);
    if (!err)
        err = count_matching(runs, query, page->taken, &total, why);
    json_string(json, "next_cursor", page->taken > page->limit ? text_get(&page->next) : NULL);
    json_number(json, "total", total);
    return err;
}

enum err runs_page(struct runs *runs, const struct request *request, struct json *json,
                   struct error *why)
{
    const char *given = request_param(request, "cursor");
    struct run_query query;
    struct cursor cursor = {0};
    struct page page = {.json = json};
    enum err err = read_query(request, &query, &page.limit, why);
    if (!err && given)
        err = read_cursor(given, query.sort, &cursor, why);
    page.sort = query.sort;
    query.after = given ? &cursor.row : NULL;
    query.limit = page.limit + 1;
    if (!err)
        err = put_page(runs, &query, &page, why);
    cursor_release(&cursor);
    text_release(&page.next);
    return err;
}

/* ---- sweeps ---- */

static void clear_best(struct sweep_best *best)
{
    free(best->conclusion);
    free(best->setting);
    *best = (struct sweep_best){.id = best->id};
}

struct sweep_best *runs_sweep_best(struct runs *runs, const struct run_row *row)
{
    size_t i = 0;
    while (i < runs->best_count && !str_equal(runs->bests[i].id, row->id))
        i++;
    if (i == runs->best_count) {
        XGROW(runs->bests, i, runs->best_capacity);
        runs->bests[runs->best_count++] = (struct sweep_best){.id = xstrdup(row->id)};
    }
    struct sweep_best *best = &runs->bests[i];
    bool has_ended = row->written_at != INTEGER_UNKNOWN;
    if (best->written_at != row->written_at || (!has_ended && best->scan != runs->scans))
        clear_best(best);
    best->written_at = row->written_at;
    best->scan = runs->scans;
    return best;
}

/* ---- the table ---- */

enum err runs_open(const struct serve_options *options, struct runs **out, struct error *why)
{
    struct runs *runs = *out = XNEW(runs);
    pthread_mutex_init(&runs->lock, NULL);
    return row_source_open(options, &runs->source, why);
}

void runs_close(struct runs *runs)
{
    if (!runs)
        return;
    for (size_t i = 0; i < runs->running_count; i++)
        free(runs->running[i].id);
    free(runs->running);
    for (size_t i = 0; i < runs->best_count; i++) {
        clear_best(&runs->bests[i]);
        free(runs->bests[i].id);
    }
    free(runs->bests);
    text_release(&runs->facets);
    run_index_close(runs->index);
    row_source_close(runs->source);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}

/* ---- runs in progress ---- */

/* Progress by the run's journal; only new lines are read. */
static struct running *running_of(struct runs *runs, const char *id)
{
    for (size_t i = 0; i < runs->running_count; i++)
        if (str_equal(runs->running[i].id, id))
            return &runs->running[i];
    XGROW(runs->running, runs->running_count, runs->running_capacity);
    runs->running[runs->running_count] = (struct running){.id = xstrdup(id)};
    return &runs->running[runs->running_count++];
}

/* Drops the progress of runs that have ended. */
static void forget_ended(struct runs *runs, const struct rows *found)
{
    for (size_t i = 0; i < found->count; i++)
        running_of(runs, found->rows[i]->id)->is_found = true;
    for (size_t i = runs->running_count; i-- > 0;) {
        bool is_found = runs->running[i].is_found;
        runs->running[i].is_found = false;
        if (is_found)
            continue;
        free(runs->running[i].id);
        runs->running[i] = runs->running[--runs->running_count];
    }
}

static void put_progress(struct runs *runs, const struct run_row *row, struct json *json)
{
    struct running *running = row && run_row_is_running(row) ? running_of(runs, row->id) : NULL;
    char *directory = NULL;
    bool is_read = running && !row_source_directory(runs->source, row->id, &directory, NULL) &&
                   !run_progress_read(directory, &running->progress, NULL);
    free(directory);
    if (!is_read) {
        json_null(json, "progress");
        return;
    }
    const struct run_progress *progress = &running->progress;
    double elapsed = seconds(clock_wall()) - progress->started_at;
    double done = (double)progress->done, left = progress->total - done;
    double per_s = (done - (double)progress->before) / elapsed; /* since this start of the run */
    json_object(json, "progress");
    json_integer(json, "done", (int64_t)progress->done);
    json_number(json, "total", progress->total > 0 ? progress->total : UNKNOWN);
    json_integer(json, "failed", (int64_t)progress->failed);
    json_number(json, "elapsed_s", progress->started_at > 0 ? elapsed : UNKNOWN);
    json_number(json, "eta_s", left >= 0 && progress->total > 0 ? ratio(left, per_s) : UNKNOWN);
    json_object_end(json);
}

void runs_running(struct runs *runs, struct text *out)
{
    struct run_query query = {.sort = ROW_NAME};
    struct rows found = {0};
    struct json json;
    query.equal[ROW_STATE] = "running";
    if (runs->has_running && runs_copy(runs, &query, &found, NULL))
        rows_release(&found);
    forget_ended(runs, &found);
    json_init(&json, out, false);
    json_array(&json, NULL);
    for (size_t i = 0; i < found.count; i++) {
        const struct run_row *row = found.rows[i];
        json_object(&json, NULL);
        json_string(&json, "id", row->id);
        json_string(&json, "name", run_row_text(row, ROW_NAME));
        json_string(&json, "kind", run_row_text(row, ROW_KIND));
        put_progress(runs, row, &json);
        json_object_end(&json);
    }
    json_array_end(&json);
    rows_release(&found);
}

/* An attempt of a sweep, which the index does not have. */
static enum err put_attempt(const char *id, const char *directory, struct json *json,
                            struct error *why)
{
    struct run_list_entry entry;
    struct run_row row;
    bool found;
    run_list_read(directory, &entry, &found);
    if (!found)
        return err_explain(why, ERR_NOT_FOUND);
    run_row_of_entry(id, directory, &entry, &row);
    run_row_to_json(&row, json);
    run_list_entry_release(&entry);
    return ERR_OK;
}

enum err runs_put(struct runs *runs, const char *id, const char *directory, struct json *json,
                  struct error *why)
{
    struct run_row *row = find_row(runs, id);
    if (row)
        run_row_to_json(row, json);
    put_progress(runs, row, json);
    enum err err = row ? ERR_OK : put_attempt(id, directory, json, why);
    free(row);
    return err;
}

bool runs_is_loaded(struct runs *runs)
{
    pthread_mutex_lock(&runs->lock);
    bool is_loaded = runs->is_loaded;
    pthread_mutex_unlock(&runs->lock);
    return is_loaded;
}

size_t runs_count(struct runs *runs)
{
    pthread_mutex_lock(&runs->lock);
    size_t count = runs->listed;
    pthread_mutex_unlock(&runs->lock);
    return count;
}

const char *runs_display(const struct runs *runs)
{
    return row_source_display(runs->source);
}

enum err runs_directory(struct runs *runs, const char *id, char **to, struct error *why)
{
    return row_source_directory(runs->source, id, to, why);
}
