/* Turns items of the dataset into queries: numbered, repeated, without completed ones, each with its scheduled time,
 * and rendered into a prompt. */
#include "runner/profile/supply.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/text.h"
#include "core/xalloc.h"

void query_release(struct query *query)
{
    item_release(&query->item);
    *query = (struct query){0};
}

/* ---- sets of queries ---- */

/* A larger index is that of a damaged key: the set never takes more than this. */
enum { SET_BYTES_MAX = 1 << 30 };

void query_set_add(struct query_set *set, uint64_t index, unsigned repeat)
{
    if (repeat >= set->repeats || index >= UINT64_C(8) * SET_BYTES_MAX / set->repeats)
        return; /* not a query of this run */
    uint64_t place = index * set->repeats + repeat;
    size_t need = (size_t)(place / 8) + 1;
    if (need > set->bytes) {
        size_t bytes = need * 2 + 64;
        set->bits = xrealloc(set->bits, bytes);
        memset(set->bits + set->bytes, 0, bytes - set->bytes);
        set->bytes = bytes;
    }
    unsigned char bit = (unsigned char)(1U << (place % 8));
    set->count += !(set->bits[place / 8] & bit);
    set->bits[place / 8] |= bit;
}

static bool has_place(const struct query_set *set, uint64_t place)
{
    return place / 8 < set->bytes && (set->bits[place / 8] >> (place % 8) & 1);
}

bool query_set_has(const struct query_set *set, uint64_t index, unsigned repeat)
{
    return set && repeat < set->repeats && has_place(set, index * set->repeats + repeat);
}

bool query_set_next(const struct query_set *set, uint64_t *at, uint64_t *index, unsigned *repeat)
{
    for (; *at / 8 < set->bytes; ++*at) {
        if (!has_place(set, *at))
            continue;
        *index = *at / set->repeats;
        *repeat = (unsigned)(*at % set->repeats);
        ++*at;
        return true;
    }
    return false;
}

void query_set_release(struct query_set *set)
{
    free(set->bits);
    *set = (struct query_set){.repeats = set->repeats};
}

/* ---- windows of a text as items ---- */

struct window_feed {
    const struct client_windows *windows;
    size_t given;
};

static enum err next_window(struct dataset *dataset, struct item *out, bool *end, struct error *why)
{
    (void)why;
    struct window_feed *feed = dataset->state;
    const struct client_windows *windows = feed->windows;
    struct text text = {0};
    char id[24];
    *end = feed->given == windows->count;
    if (*end)
        return ERR_OK;
    size_t from = windows->text_at[feed->given];
    size_t to = windows->text_at[feed->given + 1];
    text_add_repaired(&text, windows->text.bytes + from, to - from);
    (void)chars_format(id, "%zu", feed->given++);
    str_set(&out->id, id);
    str_take(&out->problem, &text);
    return ERR_OK;
}

static void close_windows(struct dataset *dataset)
{
    free(dataset->state);
}

static const struct dataset_driver WINDOWS = {
    .name = "windows", .next = next_window, .close = close_windows};

/* The dataset is open: only its items are replaced. */
static void use_windows(const struct client_windows *windows, struct dataset *dataset)
{
    struct window_feed *feed = XNEW(feed);
    if (dataset->driver)
        dataset->driver->close(dataset);
    feed->windows = windows;
    dataset->driver = &WINDOWS;
    dataset->state = feed;
    dataset->count = (int64_t)windows->count;
}

/* ---- the supply ---- */

static enum err open_dataset(struct supply *supply, struct error *why)
{
    enum err err = dataset_open(supply->name, &supply->config, &supply->dataset, why);
    if (!err && supply->windows)
        use_windows(supply->windows, &supply->dataset);
    return err;
}

enum err supply_open(struct supply *supply, const struct supply_options *options, struct error *why)
{
    *supply = (struct supply){
        .name = options->dataset,
        .config.params = options->params,
        .windows = options->windows,
        .done = options->done,
        .max_items = options->max_items,
        .shard = options->shard,
        .shards = options->shards,
        .repeats = options->repeats,
        .rate = options->rate,
        .random = {options->seed},
        .total = -1,
    };
    enum err err = open_dataset(supply, why);
    if (err)
        return err;
    pthread_mutex_init(&supply->lock, NULL);
    int64_t items = supply->dataset.count;
    if (items >= 0 && (uint64_t)items > supply->max_items)
        items = (int64_t)supply->max_items;
    if (items >= 0 && supply->shards)
        items = items / supply->shards + (items % supply->shards >= supply->shard);
    if (items >= 0)
        supply->total =
            items * supply->repeats - (int64_t)(options->done ? options->done->count : 0);
    if (items >= 0 && supply->total < 0)
        supply->total = 0; /* earlier starts completed more than is requested now */
    return ERR_OK;
}

void supply_close(struct supply *supply)
{
    dataset_close(&supply->dataset);
    pthread_mutex_destroy(&supply->lock);
}

static nanos next_due(struct supply *supply)
{
    if (supply->rate <= 0)
        return 0;
    if (supply->due == 0)
        supply->due = clock_now();
    else
        supply->due += from_seconds(-log(random_unit(&supply->random)) / supply->rate);
    return supply->due;
}

/* Rewinds the dataset; ends the supply if it has no rows. */
static enum err next_repeat(struct supply *supply, struct error *why)
{
    supply->repeat++;
    supply->ended = supply->repeat >= supply->repeats || supply->index == 0;
    supply->index = 0;
    if (supply->ended)
        return ERR_OK;
    dataset_close(&supply->dataset);
    enum err err = open_dataset(supply, why);
    supply->ended = err != ERR_OK;
    return err;
}

static enum err take_row(struct supply *supply, struct query *out, bool *usable, struct error *why)
{
    bool end = supply->index >= supply->max_items;
    *usable = false;
    enum err err = end ? ERR_OK : dataset_next(&supply->dataset, &out->item, &end, why);
    if (!err && end)
        return next_repeat(supply, why);
    if (err == ERR_BAD_VALUE) {
        if (supply->repeat == 0 && supply->bad_rows++ == 0) /* the same rows in each repeat */
            supply->first_bad = *why;
        item_release(&out->item);
        return ERR_OK;
    }
    if (err)
        return err;
    out->index = supply->index++;
    out->repeat = supply->repeat;
    *usable = !query_set_has(supply->done, out->index, out->repeat) &&
              (!supply->shards || out->index % supply->shards == supply->shard - 1);
    if (!*usable)
        item_release(&out->item);
    return ERR_OK;
}

enum err supply_next(struct supply *supply, struct query *out, bool *end, struct error *why)
{
    enum err err = ERR_OK;
    bool usable = false;
    *out = (struct query){0};
    pthread_mutex_lock(&supply->lock);
    while (!err && !supply->ended && !usable)
        err = take_row(supply, out, &usable, why);
    if (err)
        supply->ended = true; /* so that other workers do not retry */
    if (usable) {
        query_key(out->index, out->repeat, out->key);
        out->due = next_due(supply);
    }
    *end = !usable;
    pthread_mutex_unlock(&supply->lock);
    if (err)
        query_release(out);
    return err;
}

/* ---- prompts ---- */

/* Length of "{name}", and the name; 0 if the brace is not a placeholder. */
static size_t field_at(const char *at, char name[64])
{
    size_t length = strcspn(at + 1, "{}\n");
    if (at[1 + length] != '}' || length == 0 || length >= 64)
        return 0;
    memcpy(name, at + 1, length);
    name[length] = '\0';
    return length + 2;
}

/* Other braces, as in JSON, are literal. */
static bool is_placeholder(const char *name)
{
    static const char CHARACTERS[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "_-. ";
    return name[strspn(name, CHARACTERS)] == '\0' && name[0] != ' ';
}

static enum err refuse_field(const char *name, const struct item *item, struct error *why)
{
    struct text known = {0};
    item_field_names(item, &known);
    err_set(why, ERR_USAGE,
            "--template: unknown placeholder {%s} (a literal brace is \\{ or \\}); question %.40s "
            "has %s",
            name, item->id, text_get(&known));
    text_release(&known);
    return ERR_USAGE;
}

static bool add_field(const struct prompt_form *form, const struct item *item, const char *name,
                      struct text *out)
{
    bool is_found = item_field(item, name, out);
    if (is_found && form->answer_format && str_equal(name, "problem"))
        text_addf(out, "\n\n%s", form->answer_format);
    return is_found;
}

enum err prompt_render(const struct prompt_form *form, const struct item *item, struct text *out,
                       struct error *why)
{
    char name[64];
    text_clear(out);
    if (!form->template_text) {
        (void)add_field(form, item, "problem", out);
        return ERR_OK;
    }
    for (const char *c = form->template_text; *c;) {
        size_t used = *c == '{' ? field_at(c, name) : 0;
        if (used && !add_field(form, item, name, out)) {
            if (is_placeholder(name))
                return refuse_field(name, item, why);
            used = 0;
        }
        if (!used && *c == '\\')
            used = template_add_escape(c, out);
        else if (!used)
            text_add_bytes(out, c, used = 1);
        c += used;
    }
    return ERR_OK;
}
