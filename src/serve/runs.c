/* The table of runs, in memory: rows sorted by id, and a sorted index for each column that was requested, built on
 * demand and kept until rows change.  A page is found by its cursor with a binary search, so that its cost does not
 * depend on the number of runs. */
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
};

struct runs {
    struct row_source *source;
    struct run_row **rows; /* sorted by id */
    size_t count;
    size_t listed;                    /* rows that are not attempts of sweeps */
    unsigned *orders[ROW_COLUMNS][2]; /* row indexes, ascending and descending; NULL: not built */
    struct text facets;               /* of the current rows; "": not built */
    struct running *running;
    size_t running_count, running_capacity;
    nanos next_scan, next_full;
    bool is_loaded, has_running;
    atomic_bool is_expired;
    pthread_mutex_t lock; /* guards the source, and rows while they are replaced */
};

/* ---- rows ---- */

static void free_row(struct run_row *row)
{
    if (row)
        run_row_release(row);
    free(row);
}

static int by_id(const void *left, const void *right)
{
    const struct run_row *const *a = left, *const *b = right;
    return strcmp((*a)->id, (*b)->id);
}

static struct run_row *find_row(struct runs *runs, const char *id)
{
    struct run_row wanted = {.id = (char *)id}, *key = &wanted;
    struct run_row **found =
        runs->count ? bsearch(&key, runs->rows, runs->count, sizeof *runs->rows, by_id) : NULL;
    return found ? *found : NULL;
}

/* ---- scanning ---- */

/* The rows found by a scan. */
struct row_scan {
    struct runs *runs;
    struct run_row **rows;
    size_t count, capacity;
    bool *kept; /* which of the old rows are kept */
};

static void add_row(struct row_scan *scan, struct run_row *row)
{
    scan->rows = xgrow(scan->rows, &scan->capacity, scan->count, sizeof *scan->rows);
    scan->rows[scan->count++] = row;
}

static void take_row(void *context, struct run_row *row)
{
    add_row(context, xmemdup(row, sizeof *row));
}

static bool keep_row(void *context, const char *id, double written_at)
{
    struct row_scan *scan = context;
    struct runs *runs = scan->runs;
    struct run_row *row = find_row(runs, id);
    if (!row || !row->is_final || row->written_at != written_at)
        return false;
    add_row(scan, row);
    struct run_row **place = bsearch(&row, runs->rows, runs->count, sizeof *runs->rows, by_id);
    scan->kept[place - runs->rows] = true;
    return true;
}

static void drop_orders(struct runs *runs)
{
    text_clear(&runs->facets);
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        for (size_t j = 0; j < 2; j++) {
            free(runs->orders[i][j]);
            runs->orders[i][j] = NULL;
        }
}

static void replace_rows(struct runs *runs, struct row_scan *scan)
{
    if (scan->count)
        qsort(scan->rows, scan->count, sizeof *scan->rows, by_id);
    pthread_mutex_lock(&runs->lock);
    struct run_row **former = runs->rows;
    size_t former_count = runs->count;
    runs->rows = scan->rows;
    runs->count = scan->count;
    runs->is_loaded = true;
    runs->listed = 0;
    runs->has_running = false;
    for (size_t i = 0; i < runs->count; i++) {
        runs->listed += !runs->rows[i]->is_attempt;
        runs->has_running |= !strcmp(runs->rows[i]->values[ROW_STATE].text, "running");
    }
    pthread_mutex_unlock(&runs->lock);
    drop_orders(runs);
    for (size_t i = 0; i < former_count; i++)
        if (!scan->kept[i])
            free_row(former[i]);
    free(former);
}

static void drop_scan(struct runs *runs, struct row_scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        if (find_row(runs, scan->rows[i]->id) != scan->rows[i])
            free_row(scan->rows[i]);
    free(scan->rows);
}

static enum err read_rows(struct runs *runs, struct error *why)
{
    struct row_scan scan = {.runs = runs, .kept = xcalloc(runs->count + 1, sizeof(bool))};
    const struct row_handler handler = {take_row, keep_row, &scan};
    enum err err = row_source_read(runs->source, &handler, why);
    if (err)
        drop_scan(runs, &scan);
    else
        replace_rows(runs, &scan);
    free(scan.kept);
    return err;
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

/* ---- orders ---- */

struct ordering {
    struct runs *runs;
    size_t column;
    bool descending;
};

/* Unknown values sort last in both directions; ties are broken by id, so that a cursor is unambiguous. */
static int compare_rows(const struct ordering *by, const struct run_row *a, const struct run_row *b)
{
    int sign = by->descending ? -1 : 1;
    if (ROW_COLUMN[by->column].is_text) {
        const char *x = a->values[by->column].text, *y = b->values[by->column].text;
        if (!x != !y)
            return x ? -1 : 1;
        int order = x ? strcmp(x, y) : 0;
        return order ? sign * order : sign * strcmp(a->id, b->id);
    }
    double x = a->values[by->column].number, y = b->values[by->column].number;
    if (is_known(x) != is_known(y))
        return is_known(x) ? -1 : 1;
    if (is_known(x) && x != y)
        return x < y ? -sign : sign;
    return sign * strcmp(a->id, b->id);
}

static int compare_places(const void *left, const void *right, void *context)
{
    const struct ordering *by = context;
    return compare_rows(by, by->runs->rows[*(const unsigned *)left],
                        by->runs->rows[*(const unsigned *)right]);
}

/* qsort_r is not POSIX: a merge sort costs the same for any input order. */
static void merge_sort(unsigned *items, unsigned *spare, size_t count, struct ordering *by)
{
    if (count < 2)
        return;
    size_t half = count / 2, i = 0, j = half;
    merge_sort(items, spare, half, by);
    merge_sort(items + half, spare, count - half, by);
    memcpy(spare, items, count * sizeof *items);
    for (size_t k = 0; k < count; k++)
        items[k] = j == count || (i < half && compare_places(&spare[i], &spare[j], by) <= 0)
                       ? spare[i++]
                       : spare[j++];
}

static const unsigned *get_order(struct ordering *by)
{
    struct runs *runs = by->runs;
    unsigned **order = &runs->orders[by->column][by->descending];
    if (*order)
        /* cppcheck-suppress identicalInnerCondition ; no condition, the value */
        return *order;
    unsigned *items = xreallocarray(NULL, runs->listed + 1, sizeof *items);
    unsigned *spare = xreallocarray(NULL, runs->listed + 1, sizeof *spare);
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++)
        if (!runs->rows[i]->is_attempt)
            items[count++] = (unsigned)i;
    merge_sort(items, spare, count, by);
    free(spare);
    *order = items;
    return items;
}

/* ---- pages ---- */

struct page {
    struct ordering by;
    const struct request *request;
    unsigned limit;
    size_t from;
    bool is_filtered;
};

static const size_t FILTERS[] = {ROW_KIND,   ROW_MODEL,   ROW_HARDWARE, ROW_STATE,
                                 ROW_CLIENT, ROW_DATASET, ROW_PRECISION};
static const size_t SEARCHED[] = {ROW_NAME, ROW_MODEL, ROW_HARDWARE, ROW_DATASET, ROW_CLIENT};

bool runs_match(const struct request *request, const struct run_row *row)
{
    const char *search = request_param(request, "q");
    bool is_found = !search;
    for (size_t i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        const char *wanted = request_param(request, ROW_COLUMN[FILTERS[i]].name);
        const char *text = row->values[FILTERS[i]].text;
        if (wanted && (!text || strcmp(text, wanted) != 0))
            return false;
    }
    for (size_t i = 0; !is_found && i < sizeof SEARCHED / sizeof *SEARCHED; i++) {
        const char *text = row->values[SEARCHED[i]].text;
        is_found = text && str_contains_nocase(text, search);
    }
    return is_found;
}

static enum err find_column(const char *name, size_t *out, struct error *why)
{
    for (*out = 0; *out < ROW_COLUMNS; ++*out)
        if (!strcmp(ROW_COLUMN[*out].name, name))
            return ERR_OK;
    return err_set(why, ERR_USAGE, "sort: unknown column '%.60s'", name);
}

/* "17.ID": after this row or, if it no longer exists, from this index on. */
static enum err read_cursor(struct page *page, const unsigned *order, struct error *why)
{
    const char *given = request_param(page->request, "cursor");
    const char *dot = given ? strchr(given, '.') : NULL;
    char digits[24];
    uint64_t place;
    if (!given)
        return ERR_OK;
    if (!dot || !str_format(digits, sizeof digits, "%.*s", (int)(dot - given), given) ||
        parse_u64(digits, &place))
        return err_set(why, ERR_USAGE, "cursor: not from a previous page");
    struct runs *runs = page->by.runs;
    const struct run_row *row = find_row(runs, dot + 1);
    page->from = place < runs->listed ? (size_t)place : runs->listed;
    if (!row || row->is_attempt)
        return ERR_OK;
    size_t low = 0, high = runs->listed;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_rows(&page->by, runs->rows[order[middle]], row) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    page->from = low;
    return ERR_OK;
}

static enum err read_page(struct runs *runs, const struct request *request, struct page *page,
                          struct error *why)
{
    const char *sort = request_param(request, "sort"), *order = request_param(request, "order");
    *page = (struct page){
        .by = {.runs = runs, .descending = true}, .request = request, .limit = PAGE_DEFAULT};
    enum err err = find_column(sort ? sort : "created_at", &page->by.column, why);
    if (!err && order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
        err = err_set(why, ERR_USAGE, "order: asc or desc");
    page->by.descending = !order || strcmp(order, "desc") == 0;
    page->is_filtered = request_param(request, "q");
    for (size_t i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++)
        page->is_filtered |= request_param(request, ROW_COLUMN[FILTERS[i]].name) != NULL;
    return err ? err : request_count(request, "limit", 1, PAGE_MAX, &page->limit, why);
}

/* Number of matching rows; UNKNOWN if counting them would cost more than the page. */
static double count_matching(const struct page *page)
{
    const struct runs *runs = page->by.runs;
    size_t count = 0;
    if (!page->is_filtered)
        return (double)runs->listed;
    if (runs->listed > COUNTED_MAX)
        return UNKNOWN;
    for (size_t i = 0; i < runs->count; i++)
        count += !runs->rows[i]->is_attempt && runs_match(page->request, runs->rows[i]);
    return (double)count;
}

/* The values available for filters. */
static void put_facets(struct runs *runs, struct json *json)
{
    static const size_t COLUMNS[] = {ROW_KIND, ROW_MODEL, ROW_HARDWARE};
    if (!runs->facets.length) {
        struct json facets;
        json_init(&facets, &runs->facets, false);
        json_object(&facets, NULL);
        for (size_t c = 0; c < sizeof COLUMNS / sizeof *COLUMNS; c++) {
            struct ordering by = {runs, COLUMNS[c], false};
            const unsigned *order = get_order(&by);
            const char *last = NULL;
            unsigned count = 0;
            json_array(&facets, ROW_COLUMN[COLUMNS[c]].name);
            for (size_t i = 0; i < runs->listed && count < FACETS_MAX; i++) {
                const char *text = runs->rows[order[i]]->values[COLUMNS[c]].text;
                if (!text || (last && !strcmp(text, last)))
                    continue;
                json_string(&facets, NULL, last = text);
                count++;
            }
            json_array_end(&facets);
        }
        json_object_end(&facets);
    }
    json_raw(json, "facets", text_get(&runs->facets));
}

enum err runs_page(struct runs *runs, const struct request *request, struct json *json,
                   struct error *why)
{
    struct page page;
    struct text next = {0};
    unsigned taken = 0;
    enum err err = read_page(runs, request, &page, why);
    if (err)
        return err;
    const unsigned *order = get_order(&page.by);
    if ((err = read_cursor(&page, order, why)))
        return err;
    size_t i = page.from;
    json_array(json, "runs");
    for (const struct run_row *last = NULL; i < runs->listed; i++) {
        const struct run_row *row = runs->rows[order[i]];
        if (page.is_filtered && !runs_match(request, row))
            continue;
        if (taken++ == page.limit && last) {
            text_addf(&next, "%zu.%s", i, last->id);
            break;
        }
        json_object(json, NULL);
        run_row_to_json(row, json);
        json_object_end(json);
        last = row;
    }
    json_array_end(json);
    put_facets(runs, json);
    json_string(json, "next_cursor", next.length ? text_get(&next) : NULL);
    json_number(json, "total", count_matching(&page));
    text_release(&next);
    return ERR_OK;
}

/* ---- the table ---- */

enum err runs_open(const struct serve_options *options, struct runs **out, struct error *why)
{
    struct runs *runs = *out = xcalloc(1, sizeof *runs);
    pthread_mutex_init(&runs->lock, NULL);
    return row_source_open(options, &runs->source, why);
}

void runs_close(struct runs *runs)
{
    if (!runs)
        return;
    for (size_t i = 0; i < runs->count; i++)
        free_row(runs->rows[i]);
    free(runs->rows);
    for (size_t i = 0; i < runs->running_count; i++)
        free(runs->running[i].id);
    free(runs->running);
    drop_orders(runs);
    text_release(&runs->facets);
    row_source_close(runs->source);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}

struct run_row *runs_at(struct runs *runs, size_t i)
{
    struct ordering newest = {runs, ROW_CREATED, true};
    return i < runs->listed ? runs->rows[get_order(&newest)[i]] : NULL;
}

/* ---- runs in progress ---- */

static bool is_running(const struct run_row *row)
{
    return !strcmp(row->values[ROW_STATE].text, "running");
}

/* Progress by the run's journal; only new lines are read. */
static struct running *running_of(struct runs *runs, const char *id)
{
    for (size_t i = 0; i < runs->running_count; i++)
        if (!strcmp(runs->running[i].id, id))
            return &runs->running[i];
    runs->running =
        xgrow(runs->running, &runs->running_capacity, runs->running_count, sizeof *runs->running);
    runs->running[runs->running_count] = (struct running){.id = xstrdup(id)};
    return &runs->running[runs->running_count++];
}

/* Drops the progress of runs that have ended. */
static void forget_ended(struct runs *runs)
{
    for (size_t i = runs->running_count; i-- > 0;) {
        const struct run_row *row = find_row(runs, runs->running[i].id);
        if (row && is_running(row))
            continue;
        free(runs->running[i].id);
        runs->running[i] = runs->running[--runs->running_count];
    }
}

static void put_progress(struct runs *runs, const struct run_row *row, struct json *json)
{
    char directory[FILE_PATH_MAX];
    struct running *running = row && is_running(row) ? running_of(runs, row->id) : NULL;
    if (!running || row_source_directory(runs->source, row->id, directory, NULL) ||
        run_progress_read(directory, &running->progress, NULL)) {
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
    struct json json;
    forget_ended(runs);
    json_init(&json, out, false);
    json_array(&json, NULL);
    for (size_t i = 0; runs->has_running && i < runs->count; i++) {
        const struct run_row *row = runs->rows[i];
        if (!is_running(row))
            continue;
        json_object(&json, NULL);
        json_string(&json, "id", row->id);
        json_string(&json, "name", row->values[ROW_NAME].text);
        json_string(&json, "kind", row->values[ROW_KIND].text);
        put_progress(runs, row, &json);
        json_object_end(&json);
    }
    json_array_end(&json);
}

enum err runs_put(struct runs *runs, const char *id, const char *directory, struct json *json,
                  struct error *why)
{
    struct run_row attempt;
    const struct run_row *row = find_row(runs, id);
    if (row)
        run_row_to_json(row, json);
    put_progress(runs, row, json);
    if (row)
        return ERR_OK;
    enum err err = err_explain(why, run_row_of(directory, id, &attempt));
    if (!err) {
        run_row_to_json(&attempt, json);
        run_row_release(&attempt);
    }
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

enum err runs_directory(struct runs *runs, const char *id, char to[static FILE_PATH_MAX],
                        struct error *why)
{
    return row_source_directory(runs->source, id, to, why);
}
