/* Rows of a public dataset, over the protocol of the dataset server: page by page, as far as they are
 * wanted.  HF_TOKEN in the environment opens what needs a login. */
#include <stdlib.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/hub/pages.h"
#include "datasets/rows/feed.h"
#include "port/http.h"
#include "port/json_read.h"

struct rows {
    struct hub_pages pages;
    struct jv *page;
    const struct jv *entry; /* the next of the page; NULL when it is used up */
    uint64_t page_end;      /* the row after the page's last: where the next page begins */
    uint64_t next_row;
    int64_t total; /* -1 when the server does not say */
    bool ended;
};

static void drop_page(struct rows *rows)
{
    jv_free(rows->page);
    rows->page = NULL;
    rows->entry = NULL;
}

static enum err load_page(struct rows *rows, uint64_t first, struct error *why)
{
    drop_page(rows);
    enum err err = hub_pages_get(&rows->pages, first, &rows->page, why);
    if (err)
        return err;
    const struct jv *entries = jv_get(rows->page, "rows");
    rows->entry = jv_first(entries);
    rows->page_end = first + jv_count(entries);
    rows->ended = !rows->entry;
    if (!jv_integer(jv_get(rows->page, "num_rows_total"), &rows->total) || rows->total < 0)
        rows->total = -1;
    return ERR_OK;
}

/* To the entry of the next row, on whatever page it is. */
static enum err find_entry(struct rows *rows, struct error *why)
{
    for (;;) {
        for (; rows->entry; rows->entry = jv_next(rows->entry)) {
            int64_t index = 0;
            if (!jv_integer(jv_get(rows->entry, "row_idx"), &index) ||
                index >= (int64_t)rows->next_row)
                return ERR_OK;
        }
        rows->ended = rows->ended || (rows->total >= 0 && rows->page_end >= (uint64_t)rows->total);
        if (rows->ended)
            return ERR_OK;
        enum err err = load_page(rows, rows->page_end, why);
        if (err)
            return err;
    }
}

/* A row that the server cut is not the row that was meant. */
static enum err refuse_cut(const struct jv *entry, struct error *why)
{
    const struct jv *cut = jv_get(entry, "truncated_cells");
    if (!jv_first(cut))
        return ERR_OK;
    const char *name = jv_text(jv_first(cut));
    return err_set(why, ERR_BAD_VALUE, "the server cut its field '%.60s' short", name ? name : "?");
}

static enum err next_row(void *state, struct text *row, uint64_t *number, bool *end,
                         struct error *why)
{
    struct rows *rows = state;
    text_clear(row);
    enum err err = find_entry(rows, why);
    *end = !err && rows->ended && !rows->entry;
    if (err || *end)
        return err;
    const struct jv *entry = rows->entry;
    int64_t index;
    rows->entry = jv_next(entry);
    *number = jv_integer(jv_get(entry, "row_idx"), &index) ? (uint64_t)index : rows->next_row;
    rows->next_row = *number + 1;
    err = refuse_cut(entry, why);
    if (err)
        return err;
    const struct jv *value = jv_get(entry, "row");
    if (!jv_is_object(value))
        return err_set(why, ERR_BAD_VALUE, "the server gave no row");
    return jv_print(value, row) ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}

static enum err skip_rows(void *state, uint64_t count, struct error *why)
{
    struct rows *rows = state;
    rows->next_row += count;
    if (rows->next_row < rows->page_end)
        return ERR_OK;
    if (rows->total >= 0 && rows->next_row >= (uint64_t)rows->total) {
        drop_page(rows);
        rows->ended = true;
        return ERR_OK;
    }
    return load_page(rows, rows->next_row / HUB_PAGE_ROWS * HUB_PAGE_ROWS, why);
}

static void close_rows(void *state)
{
    struct rows *rows = state;
    drop_page(rows);
    hub_pages_release(&rows->pages);
    free(rows);
}

static enum err hub_available(struct error *why)
{
    enum err err = jv_available(why);
    return err ? err : http_available(why);
}

static enum err hub_open(const struct dataset_config *config, struct dataset *out,
                         struct error *why)
{
    struct rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    enum err err = hub_pages_init(&rows->pages, config->params, why);
    if (!err)
        err = load_page(rows, 0, why); /* it also tells how many rows there are */
    if (err) {
        close_rows(rows);
        return err;
    }
    struct row_source source = {
        .next = next_row,
        .skip = skip_rows,
        .close = close_rows,
        .state = rows,
        .unit = "row",
        .count = rows->total,
    };
    return feed_open(config->params, source, rows->pages.dataset, out, why);
}

static const struct param_spec PARAMS[] = {
    {"dataset", "OWNER/NAME", "the dataset on the hub"},
    {"config", "NAME", "its configuration (default, where there is one)"},
    {"split", "NAME", "its split (test, validation or train, whichever is there)"},
    {"base_url", "URL", "another server of the same protocol (the public one)"},
    {"refresh", "BOOL", "ask again for pages that are in the cache (false)"},
    {"tries", "NUMBER", "how often a busy server is asked (4)"},
    {"retry_delay", "SECONDS", "pause before the second try, doubled each time (1)"},
    FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_hub = {
    .name = "hub",
    .summary = "a public dataset over the network, kept in a cache",
    .params = PARAMS,
    .available = hub_available,
    .open = hub_open,
    .next = feed_next,
    .close = feed_close,
};
