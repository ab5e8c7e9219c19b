/* Rows of a public dataset, over the protocol of the Hugging Face dataset server, page by page as they are
 * needed.  Pages are cached on disk, so that a second run requests nothing and an interrupted one
 * continues where it stopped.  HF_TOKEN in the environment gives access to gated datasets. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"
#include "datasets/row_feed.h"
#include "port/file.h"
#include "port/http.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "port/url.h"

/* ---- the server, which is public and often busy ---- */

struct hub_server {
    char base[256];        /* without a trailing slash; may hold a login */
    struct url url;        /* its parts; url.shown is for messages and file names */
    struct params headers; /* the token from HF_TOKEN, if it may be sent */
    struct http *http;     /* opened by the first request */
    uint64_t tries;
    double delay_s; /* before the first retry; doubled for each further one */
    bool has_token;
    bool withheld; /* there is a token, but the connection is not secure */
};

#define PUBLIC_SERVER "https://datasets-server.huggingface.co"

/* A page is usually a few megabytes. */
#define BODY_MAX       ((size_t)256 * 1024 * 1024)

#define DELAY_MAX_S    60.0
#define TIMEOUT        (120 * NS_PER_S)
#define TRIES_MAX      20
#define TOKEN_VARIABLE "HF_TOKEN"

/* The token is sent over https, or to a numeric loopback address; a host name could resolve to another machine. */
static void add_token(struct hub_server *server)
{
    const char *token = getenv(TOKEN_VARIABLE);
    struct text value = {0};
    if (!token || !*token)
        return;
    secret_add(token);
    server->withheld = !str_equal(server->url.scheme, "https") && !url_is_loopback(&server->url);
    if (server->withheld)
        return;
    text_addf(&value, "Bearer %s", token);
    params_set(&server->headers, "Authorization", text_get(&value));
    text_release(&value);
    server->has_token = true;
}

static void hub_server_release(struct hub_server *server)
{
    if (server->http)
        http_close(server->http);
    params_release(&server->headers);
    *server = (struct hub_server){0};
}

/* Reads base_url, tries and retry_delay. */
static enum err hub_server_init(struct hub_server *out, const struct params *params,
                                struct error *why)
{
    const char *base = params_get(params, "base_url");
    *out = (struct hub_server){0};
    if (!base || !*base)
        base = PUBLIC_SERVER;
    if (!chars_copy(out->base, base))
        return err_set(why, ERR_USAGE, "base_url: longer than %zu bytes", sizeof out->base - 1);
    while (strlen(out->base) > 0 && out->base[strlen(out->base) - 1] == '/')
        out->base[strlen(out->base) - 1] = '\0';
    struct error reason;
    enum err err = url_read(out->base, &out->url, &reason);
    if (err)
        return err_set(why, err, "base_url: %s", reason.text);
    struct params_reader read = {params, why, ERR_OK};
    out->tries = params_count(&read, "tries", 4, 1, TRIES_MAX);
    out->delay_s = params_number(&read, "retry_delay", 1, 0, INFINITY);
    if (read.err)
        hub_server_release(out);
    else
        add_token(out);
    return read.err;
}

/* Percent-encodes a value for a query or a file name: everything but letters, digits, "-", "_" and inner dots. */
static void add_encoded(struct text *out, const char *value)
{
    for (const unsigned char *s = (const unsigned char *)value; *s; s++) {
        bool inner_dot = *s == '.' && s != (const unsigned char *)value;
        char plain[2] = {(char)*s, '\0'};
        if (isalnum(*s) || *s == '-' || *s == '_' || inner_dot)
            text_add(out, plain);
        else
            text_addf(out, "%%%02X", *s);
    }
}

/* The server's error message, {"error": "..."}, if there is one. */
static void add_message(const struct text *body, struct text *out)
{
    struct jv *reply;
    if (jv_parse(text_get(body), body->length, &reply, NULL) != ERR_OK)
        return;
    const char *error = jv_get_text(reply, "error");
    char line[140];
    if (error) {
        secret_one_line(line, sizeof line, error, strlen(error));
        text_addf(out, ": %s", line);
    }
    jv_free(reply);
}

static bool is_retryable(int status)
{
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static enum err status_error(const struct hub_server *server, const struct http_response *response,
                             struct error *why)
{
    int status = response->status;
    struct text message = {0};
    add_message(&response->error_body, &message);
    enum err err;
    if (status == 401 || status == 403)
        err = err_set(why, ERR_DENIED, "%.60s: %s (status %d%s)", server->url.shown,
                      server->withheld ? TOKEN_VARIABLE
                          " is sent over https or to 127.0.0.1 only: use another base_url"
                      : server->has_token
                          ? "access denied for the token in " TOKEN_VARIABLE
                          : "login required: accept the dataset's terms on its page and "
                            "set " TOKEN_VARIABLE,
                      status, text_get(&message));
    else if (is_retryable(status))
        err = err_set(why, ERR_BUSY, "%.60s: status %d, %llu times%s", server->url.shown, status,
                      (unsigned long long)server->tries, text_get(&message));
    else
        err = err_set(why, ERR_NOT_FOUND, "%.60s: status %d%s", server->url.shown, status,
                      text_get(&message));
    text_release(&message);
    return err;
}

/* The delay before a retry, numbered from 1. */
static double retry_delay(const struct hub_server *server, uint64_t number, double requested_s)
{
    double delay_s = server->delay_s;
    for (uint64_t i = 1; i < number; i++)
        delay_s *= 2;
    if (is_known(requested_s) && requested_s > delay_s)
        delay_s = requested_s;
    return delay_s < DELAY_MAX_S ? delay_s : DELAY_MAX_S;
}

static enum err try_once(struct hub_server *server, const char *url, struct text *body,
                         double *requested_s, bool *again, struct error *why)
{
    struct http_response response = {0};
    text_clear(body);
    enum err err =
        http_fetch(server->http, url, &server->headers, TIMEOUT, BODY_MAX, body, &response, why);
    *requested_s = response.retry_after_s;
    *again = err == ERR_LOST || err == ERR_TIMEOUT;
    if (!err && (response.status < 200 || response.status > 299)) {
        *again = is_retryable(response.status);
        err = status_error(server, &response, why);
    }
    http_response_release(&response);
    return err;
}

/* GETs base + path into *body.  ERR_DENIED, ERR_NOT_FOUND, or ERR_BUSY after the last attempt. */
static enum err hub_server_get(struct hub_server *server, const char *path, struct text *body,
                               struct error *why)
{
    struct text url = {0};
    double requested_s = UNKNOWN;
    bool again = true;
    enum err err = server->http ? ERR_OK : http_open(&server->http, why);
    if (err)
        return err;
    text_addf(&url, "%s%s", server->base, path);
    for (uint64_t i = 0; i < server->tries && again; i++) {
        if (i > 0)
            thread_sleep(from_seconds(retry_delay(server, i, requested_s)));
        err = try_once(server, text_get(&url), body, &requested_s, &again, why);
        again = again && err;
    }
    text_release(&url);
    return err;
}

/* ---- pages ---- */

enum { HUB_PAGE_ROWS = 100 }; /* the server's limit */

struct hub_pages {
    struct hub_server server;
    bool refresh; /* ignore the cache */
    char *dataset, *config, *split;
    char *folder; /* cache of this dataset */
};

/* ---- the cache ---- */

/* $XDG_CACHE_HOME/ipw/hub/SERVER/DATASET, else under ~/.cache. */
static enum err find_folder(const struct hub_pages *pages, struct text *out, struct error *why)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        text_add(out, cache);
    else if (home && home[0] == '/')
        text_addf(out, "%s/.cache", home);
    else
        return err_set(why, ERR_NOT_FOUND, "no cache directory: set XDG_CACHE_HOME or HOME");
    text_add(out, "/ipw/hub/");
    add_encoded(out, strstr(pages->server.url.shown, "://") + 3);
    text_add(out, "/");
    add_encoded(out, pages->dataset);
    return ERR_OK;
}

static enum err parse_page(const struct text *body, const char *member, struct jv **out,
                           struct error *why)
{
    enum err err = jv_parse_repaired(text_get(body), body->length, out, why);
    if (err || jv_is_array(jv_get(*out, member)))
        return err;
    jv_free(*out);
    *out = NULL;
    return ERR_BAD_VALUE;
}

/* A response from the cache, or from the server and then cached.  A cache that cannot be written is only a
 * warning. */
static enum err get_cached(struct hub_pages *pages, const char *file, const char *query,
                           const char *member, struct jv **out, struct error *why)
{
    struct text body = {0};
    struct error reason = {0};
    *out = NULL;
    bool is_cached = !pages->refresh && file_read(file, BODY_MAX, &body, NULL) == ERR_OK &&
                     parse_page(&body, member, out, NULL) == ERR_OK;
    enum err err = is_cached ? ERR_OK : hub_server_get(&pages->server, query, &body, why);
    if (!err && !is_cached && parse_page(&body, member, out, &reason) != ERR_OK)
        err = err_set(why, ERR_IO, "%.60s: response without \"%s\" %s", pages->server.url.shown,
                      member, reason.text);
    if (!err && !is_cached &&
        (file_make_parents(file, &reason) != ERR_OK ||
         output_put(file, text_get(&body), body.length, &reason) != ERR_OK))
        log_warn("not cached: %s", reason.text);
    text_release(&body);
    return err;
}

/* ---- config and split ---- */

static bool has_text(const struct jv *entry, const char *key, const char *name)
{
    const char *text = jv_get_text(entry, key);
    return text && str_equal(text, name);
}

/* The first entry with this config and split; NULL matches any. */
static const struct jv *find_split(const struct jv *entries, const char *config, const char *split)
{
    JV_EACH (entry, jv_first(entries))
        if ((!config || has_text(entry, "config", config)) &&
            (!split || has_text(entry, "split", split)))
            return entry;
    return NULL;
}

/* "default" or "main" if there is one, otherwise the first. */
static const char *choose_config(const struct jv *entries)
{
    const struct jv *entry = find_split(entries, "default", NULL);
    entry = entry ? entry : find_split(entries, "main", NULL);
    return jv_get_text(entry ? entry : jv_first(entries), "config");
}

/* "test", "validation" or "train", otherwise the first. */
static const char *choose_split(const struct jv *entries, const char *config)
{
    const struct jv *entry = find_split(entries, config, "test");
    entry = entry ? entry : find_split(entries, config, "validation");
    entry = entry ? entry : find_split(entries, config, "train");
    return jv_get_text(entry ? entry : find_split(entries, config, NULL), "split");
}

static enum err unknown_split(const struct hub_pages *pages, const struct jv *entries,
                              struct error *why)
{
    struct text known = {0};
    JV_EACH (entry, jv_first(entries)) {
        const char *config = jv_get_text(entry, "config");
        const char *split = jv_get_text(entry, "split");
        text_addf(&known, "%s%s/%s", known.length ? ", " : "", config ? config : "?",
                  split ? split : "?");
    }
    enum err err = err_set(why, ERR_NOT_FOUND, "%.60s has no %s/%s (available: %.150s)",
                           pages->dataset, pages->config ? pages->config : "*",
                           pages->split ? pages->split : "*", text_get(&known));
    text_release(&known);
    return err;
}

static char *copy_of(const char *value)
{
    return value ? xstrdup(value) : NULL;
}

static enum err choose_from(struct hub_pages *pages, const struct jv *entries, struct error *why)
{
    if (!find_split(entries, pages->config, pages->split))
        return unknown_split(pages, entries, why);
    if (!pages->config)
        pages->config = copy_of(choose_config(entries));
    if (!pages->config || !find_split(entries, pages->config, pages->split))
        return unknown_split(pages, entries, why);
    if (!pages->split)
        pages->split = copy_of(choose_split(entries, pages->config));
    if (!pages->split)
        return unknown_split(pages, entries, why);
    log_info("%s: config %s, split %s", pages->dataset, pages->config, pages->split);
    return ERR_OK;
}

static enum err choose(struct hub_pages *pages, struct error *why)
{
    struct text file = {0}, query = {0};
    struct jv *reply = NULL;
    text_addf(&file, "%s/splits.json", pages->folder);
    text_add(&query, "/splits?dataset=");
    add_encoded(&query, pages->dataset);
    enum err err = get_cached(pages, text_get(&file), text_get(&query), "splits", &reply, why);
    if (!err)
        err = choose_from(pages, jv_get(reply, "splits"), why);
    jv_free(reply);
    text_release(&file);
    text_release(&query);
    return err;
}

/* ---- the pages ---- */

static void hub_pages_release(struct hub_pages *pages)
{
    hub_server_release(&pages->server);
    free(pages->dataset);
    free(pages->config);
    free(pages->split);
    free(pages->folder);
    *pages = (struct hub_pages){0};
}

/* Chooses config and split if the parameters do not: the config named default, and test before validation
 * before train. */
static enum err hub_pages_init(struct hub_pages *out, const struct params *params,
                               struct error *why)
{
    struct text folder = {0};
    struct params_reader read = {params, why, ERR_OK};
    const char *dataset = params_get(params, "dataset");
    *out = (struct hub_pages){0};
    if (!dataset || !*dataset)
        return err_set(why, ERR_USAGE, "dataset hub needs dataset=OWNER/NAME");
    out->refresh = params_bool(&read, "refresh", false);
    enum err err = read.err ? read.err : hub_server_init(&out->server, params, why);
    out->dataset = xstrdup(dataset);
    out->config = copy_of(params_get(params, "config"));
    out->split = copy_of(params_get(params, "split"));
    if (!err)
        err = find_folder(out, &folder, why);
    if (!err)
        out->folder = xstrdup(text_get(&folder));
    if (!err && (!out->config || !out->split))
        err = choose(out, why);
    text_release(&folder);
    if (err)
        hub_pages_release(out);
    return err;
}

/* Rows from `first` on, up to HUB_PAGE_ROWS; *out has an array "rows". */
static enum err hub_pages_get(struct hub_pages *pages, uint64_t first, struct jv **out,
                              struct error *why)
{
    struct text file = {0}, query = {0};
    text_addf(&file, "%s/", pages->folder);
    add_encoded(&file, pages->config);
    text_add(&file, "/");
    add_encoded(&file, pages->split);
    text_addf(&file, "/rows-%010" PRIu64 ".json", first);
    text_add(&query, "/rows?dataset=");
    add_encoded(&query, pages->dataset);
    text_add(&query, "&config=");
    add_encoded(&query, pages->config);
    text_add(&query, "&split=");
    add_encoded(&query, pages->split);
    text_addf(&query, "&offset=%" PRIu64 "&length=%d", first, HUB_PAGE_ROWS);
    *out = NULL;
    enum err err = get_cached(pages, text_get(&file), text_get(&query), "rows", out, why);
    text_release(&file);
    text_release(&query);
    return err;
}

/* ---- rows ---- */

struct hub_rows {
    struct hub_pages pages;
    struct jv *page;
    const struct jv *entry; /* the next row of the page; NULL at its end */
    uint64_t page_end;      /* first row of the next page */
    uint64_t next_row;
    int64_t total; /* -1: not reported by the server */
    bool ended;
};

static void drop_page(struct hub_rows *rows)
{
    jv_free(rows->page);
    rows->page = NULL;
    rows->entry = NULL;
}

static enum err load_page(struct hub_rows *rows, uint64_t first, struct error *why)
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

/* Advances to the next row, loading another page if necessary. */
static enum err find_row(struct hub_rows *rows, struct error *why)
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

/* The server truncates large cells: such a row is not the original. */
static enum err check_truncated(const struct jv *entry, struct error *why)
{
    const struct jv *cells = jv_get(entry, "truncated_cells");
    if (!jv_first(cells))
        return ERR_OK;
    const char *name = jv_text(jv_first(cells));
    return err_set(why, ERR_BAD_VALUE, "the server truncated the field '%.60s'", name ? name : "?");
}

static enum err next_row(void *state, struct jv **row, uint64_t *number, struct error *why)
{
    struct hub_rows *rows = state;
    *row = NULL;
    enum err err = find_row(rows, why);
    if (err || !rows->entry)
        return err;
    const struct jv *entry = rows->entry;
    int64_t index;
    rows->entry = jv_next(entry);
    *number = jv_integer(jv_get(entry, "row_idx"), &index) ? (uint64_t)index : rows->next_row;
    rows->next_row = *number + 1;
    err = check_truncated(entry, why);
    if (err)
        return err;
    const struct jv *value = jv_get(entry, "row");
    if (!jv_is_object(value))
        return err_set(why, ERR_BAD_VALUE, "the server sent no row");
    *row = jv_copy(value);
    return ERR_OK;
}

static enum err skip_rows(void *state, uint64_t count, struct error *why)
{
    struct hub_rows *rows = state;
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
    struct hub_rows *rows = state;
    drop_page(rows);
    hub_pages_release(&rows->pages);
    free(rows);
}

static enum err hub_open(const struct dataset_config *config, struct dataset *out,
                         struct error *why)
{
    struct hub_rows *rows = XNEW(rows);
    enum err err = hub_pages_init(&rows->pages, config->params, why);
    if (!err)
        err = load_page(rows, 0, why); /* also reports the number of rows */
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
    return row_feed_open(config->params, source, rows->pages.dataset, out, why);
}

static const struct param_spec PARAMS[] = {
    {"dataset", "OWNER/NAME", "the dataset on the hub"},
    {"config", "NAME", "configuration (default, if there is one)"},
    {"split", "NAME", "split (test, validation or train, whichever exists first)"},
    {"base_url", "URL", "another server with this protocol (the public one)"},
    {"refresh", "BOOL", "request cached pages again (false)"},
    {"tries", "NUMBER", "attempts with a busy server (4)"},
    {"retry_delay", "SECONDS", "delay before the first retry, doubled each time (1)"},
    ROW_FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_hub = {
    .name = "hub",
    .summary = "a public dataset over the network, cached on disk",
    .params = PARAMS,
    .available = http_available,
    .open = hub_open,
    .next = row_feed_next,
    .close = row_feed_close,
};
