#include "datasets/rows/shuffle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/grow.h"
#include "core/random.h"
#include "core/text.h"
#include "port/file.h"

struct place {
    long long offset;
    size_t length;
    uint64_t number;
    bool is_bad; /* the bytes are the reason, not a row */
};

struct shuffled {
    int fd;
    struct place *places;
    size_t count, capacity;
    size_t next;
};

static void shuffled_close(void *state)
{
    struct shuffled *shuffled = state;
    if (shuffled->fd >= 0)
        close(shuffled->fd);
    free(shuffled->places);
    free(shuffled);
}

static enum err keep(struct shuffled *shuffled, const char *bytes, struct place place,
                     struct error *why)
{
    struct place *places =
        grow(shuffled->places, &shuffled->capacity, shuffled->count, sizeof *places);
    if (!places)
        return err_set(why, ERR_NO_MEMORY, "shuffle: out of memory");
    shuffled->places = places;
    enum err err = file_write_at(shuffled->fd, bytes, place.length, place.offset);
    if (err)
        return err_set(why, err, "shuffle: the scratch file: %s", err_text(err));
    places[shuffled->count++] = place;
    return ERR_OK;
}

static enum err keep_all(struct shuffled *shuffled, const struct row_source *from,
                         struct error *why)
{
    struct text row = {0};
    long long offset = 0;
    bool end = false;
    enum err err = ERR_OK;
    while (!err) {
        struct error reason = {0};
        uint64_t number = 0;
        err = from->next(from->state, &row, &number, &end, &reason);
        if (end)
            break;
        bool is_bad = err == ERR_BAD_VALUE;
        if (err && !is_bad) {
            err_set(why, err, "%s", reason.text);
            break;
        }
        const char *bytes = is_bad ? reason.text : text_get(&row);
        size_t length = is_bad ? strlen(reason.text) : row.length;
        err = keep(shuffled, bytes, (struct place){offset, length, number, is_bad}, why);
        offset += (long long)length;
    }
    text_release(&row);
    return err;
}

static enum err shuffled_next(void *state, struct text *row, uint64_t *number, bool *end,
                              struct error *why)
{
    struct shuffled *shuffled = state;
    text_clear(row);
    *end = shuffled->next == shuffled->count;
    if (*end)
        return ERR_OK;
    const struct place *place = &shuffled->places[shuffled->next++];
    *number = place->number;
    char *bytes = malloc(place->length + 1);
    if (!bytes)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    enum err err = file_read_at(shuffled->fd, bytes, place->length, place->offset);
    bytes[place->length] = '\0';
    if (err)
        err_set(why, err, "the scratch file: %s", err_text(err));
    else if (place->is_bad)
        err = err_set(why, ERR_BAD_VALUE, "%s", bytes);
    else
        text_add_bytes(row, bytes, place->length);
    free(bytes);
    return !err && row->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : err;
}

static enum err shuffled_skip(void *state, uint64_t rows, struct error *why)
{
    (void)why;
    struct shuffled *shuffled = state;
    size_t left = shuffled->count - shuffled->next;
    shuffled->next += rows < left ? (size_t)rows : left;
    return ERR_OK;
}

enum err row_shuffle(struct row_source *source, uint64_t seed, struct error *why)
{
    struct shuffled *shuffled = calloc(1, sizeof *shuffled);
    if (!shuffled)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    shuffled->fd = -1;
    enum err err = file_open_scratch(&shuffled->fd, why);
    if (!err)
        err = keep_all(shuffled, source, why);
    if (err) {
        shuffled_close(shuffled);
        return err;
    }
    struct random random = random_from(seed, 0);
    random_shuffle(&random, shuffled->places, shuffled->count, sizeof *shuffled->places);
    source->close(source->state);
    *source = (struct row_source){
        .next = shuffled_next,
        .skip = shuffled_skip,
        .close = shuffled_close,
        .state = shuffled,
        .unit = source->unit,
        .count = (int64_t)shuffled->count,
    };
    return ERR_OK;
}
