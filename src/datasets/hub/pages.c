#include "datasets/hub/pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

#define PAGE_MAX ((size_t)256 * 1024 * 1024)

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
        return err_set(why, ERR_NOT_FOUND, "no place for a cache: set XDG_CACHE_HOME or HOME");
    text_add(out, "/ipw/hub/");
    hub_add_encoded(out, strstr(pages->server.base, "://") + 3);
    text_add(out, "/");
    hub_add_encoded(out, pages->dataset);
    return out->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}

static bool read_cached(const char *path, struct jv **out)
{
    struct text body = {0};
    bool found = file_read(path, PAGE_MAX, &body, NULL) == ERR_OK &&
                 jv_parse(text_get(&body), body.length, out, NULL) == ERR_OK;
    text_release(&body);
    return found;
}

/* A reply from the disk, or from the server and then also on the disk.  A cache that cannot be
 * written costs time, not the run. */
static enum err get(struct hub_pages *pages, const char *file, const char *query,
                    const char *member, struct jv **out, struct error *why)
{
    struct text body = {0};
    struct error reason = {0};
    *out = NULL;
    if (!pages->refresh && read_cached(file, out)) {
        if (jv_is_array(jv_get(*out, member)))
            return ERR_OK;
        jv_free(*out); /* not what we wrote: ask again */
        *out = NULL;
    }
    enum err err = hub_server_get(&pages->server, query, &body, why);
    if (!err && (jv_parse(text_get(&body), body.length, out, &reason) != ERR_OK ||
                 !jv_is_array(jv_get(*out, member)))) {
        jv_free(*out);
        *out = NULL;
        err = err_set(why, ERR_IO, "%.60s: a reply without \"%s\" %s", pages->server.base, member,
                      reason.text);
    }
    if (!err && (file_make_parents(file, &reason) != ERR_OK ||
                 file_replace(file, text_get(&body), body.length, &reason) != ERR_OK))
        log_warn("not kept for the next time: %s", reason.text);
    text_release(&body);
    return err;
}

/* ---- config and split ---- */

static bool is_named(const struct jv *entry, const char *key, const char *name)
{
    const char *text = jv_text(jv_get(entry, key));
    return text && strcmp(text, name) == 0;
}

/* The entry that fits what was asked for, with the name preferred for `key`. */
static const struct jv *find_entry(const struct jv *entries, const char *config, const char *split)
{
    for (const struct jv *entry = jv_first(entries); entry; entry = jv_next(entry))
        if ((!config || is_named(entry, "config", config)) &&
            (!split || is_named(entry, "split", split)))
            return entry;
    return NULL;
}

/* The first config, but "default" or "main" before any other. */
static const char *choose_config(const struct jv *entries)
{
    static const char *const LIKELY[] = {"default", "main", NULL};
    for (size_t i = 0; i < sizeof LIKELY / sizeof *LIKELY; i++) {
        const struct jv *entry = find_entry(entries, LIKELY[i], NULL);
        if (entry)
            return jv_text(jv_get(entry, "config"));
    }
    return NULL;
}

static const char *choose_split(const struct jv *entries, const char *config)
{
    static const char *const LIKELY[] = {"test", "validation", "train", NULL};
    for (size_t i = 0; i < sizeof LIKELY / sizeof *LIKELY; i++) {
        const struct jv *entry = find_entry(entries, config, LIKELY[i]);
        if (entry)
            return jv_text(jv_get(entry, "split"));
    }
    return NULL;
}

static enum err no_entry(const struct hub_pages *pages, const struct jv *entries, struct error *why)
{
    struct text known = {0};
    for (const struct jv *entry = jv_first(entries); entry; entry = jv_next(entry)) {
        const char *config = jv_text(jv_get(entry, "config"));
        const char *split = jv_text(jv_get(entry, "split"));
        text_addf(&known, "%s%s/%s", known.length ? ", " : "", config ? config : "?",
                  split ? split : "?");
    }
    enum err err = err_set(why, ERR_NOT_FOUND, "%.60s has no %s/%s: it has %.150s", pages->dataset,
                           pages->config ? pages->config : "*", pages->split ? pages->split : "*",
                           text_get(&known));
    text_release(&known);
    return err;
}

static enum err set(char **field, const char *value)
{
    *field = value ? strdup(value) : NULL;
    return value && !*field ? ERR_NO_MEMORY : ERR_OK;
}

static enum err choose_from(struct hub_pages *pages, const struct jv *entries, struct error *why)
{
    if (!find_entry(entries, pages->config, pages->split))
        return no_entry(pages, entries, why);
    if (!pages->config && set(&pages->config, choose_config(entries)) != ERR_OK)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    if (!pages->config || !find_entry(entries, pages->config, pages->split))
        return no_entry(pages, entries, why);
    if (!pages->split && set(&pages->split, choose_split(entries, pages->config)) != ERR_OK)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    if (!pages->split)
        return no_entry(pages, entries, why);
    log_info("%s: config %s, split %s", pages->dataset, pages->config, pages->split);
    return ERR_OK;
}

static enum err choose(struct hub_pages *pages, struct error *why)
{
    struct text file = {0}, query = {0};
    struct jv *reply = NULL;
    text_addf(&file, "%s/splits.json", pages->folder);
    text_add(&query, "/splits?dataset=");
    hub_add_encoded(&query, pages->dataset);
    enum err err = file.failed || query.failed
                       ? err_set(why, ERR_NO_MEMORY, "out of memory")
                       : get(pages, text_get(&file), text_get(&query), "splits", &reply, why);
    if (!err)
        err = choose_from(pages, jv_get(reply, "splits"), why);
    jv_free(reply);
    text_release(&file);
    text_release(&query);
    return err;
}

/* ---- the pages ---- */

enum err hub_pages_init(struct hub_pages *out, const struct params *params, struct error *why)
{
    struct text folder = {0};
    const char *dataset = params_get(params, "dataset");
    *out = (struct hub_pages){0};
    if (!dataset || !*dataset)
        return err_set(why, ERR_USAGE, "dataset hub needs dataset=OWNER/NAME");
    enum err err = hub_server_init(&out->server, params, why);
    if (!err)
        err = params_truth(params, "refresh", false, &out->refresh, why);
    if (!err && (set(&out->dataset, dataset) || set(&out->config, params_get(params, "config")) ||
                 set(&out->split, params_get(params, "split"))))
        err = err_set(why, ERR_NO_MEMORY, "out of memory");
    if (!err)
        err = find_folder(out, &folder, why);
    if (!err && set(&out->folder, text_get(&folder)) != ERR_OK)
        err = err_set(why, ERR_NO_MEMORY, "out of memory");
    if (!err && (!out->config || !out->split))
        err = choose(out, why);
    text_release(&folder);
    if (err)
        hub_pages_release(out);
    return err;
}

void hub_pages_release(struct hub_pages *pages)
{
    hub_server_release(&pages->server);
    free(pages->dataset);
    free(pages->config);
    free(pages->split);
    free(pages->folder);
    *pages = (struct hub_pages){0};
}

enum err hub_pages_get(struct hub_pages *pages, uint64_t first, struct jv **out, struct error *why)
{
    struct text file = {0}, query = {0};
    text_addf(&file, "%s/", pages->folder);
    hub_add_encoded(&file, pages->config);
    text_add(&file, "/");
    hub_add_encoded(&file, pages->split);
    text_addf(&file, "/rows-%010" PRIu64 ".json", first);
    text_add(&query, "/rows?dataset=");
    hub_add_encoded(&query, pages->dataset);
    text_add(&query, "&config=");
    hub_add_encoded(&query, pages->config);
    text_add(&query, "&split=");
    hub_add_encoded(&query, pages->split);
    text_addf(&query, "&offset=%" PRIu64 "&length=%d", first, HUB_PAGE_ROWS);
    *out = NULL;
    enum err err = file.failed || query.failed
                       ? err_set(why, ERR_NO_MEMORY, "out of memory")
                       : get(pages, text_get(&file), text_get(&query), "rows", out, why);
    text_release(&file);
    text_release(&query);
    return err;
}
