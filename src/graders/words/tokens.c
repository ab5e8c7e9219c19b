#include "graders/words/tokens.h"

#include <stdlib.h>

#include "core/grow.h"
#include "graders/words/utf8.h"

static enum err tokens_add(struct tokens *tokens, struct slice word)
{
    struct slice *words = grow(tokens->words, &tokens->capacity, tokens->count, sizeof *words);
    if (!words)
        return ERR_NO_MEMORY;
    tokens->words = words;
    words[tokens->count++] = word;
    return ERR_OK;
}

enum err tokens_split(struct tokens *tokens, struct slice text)
{
    enum err err = ERR_OK;
    size_t start = 0;
    for (size_t at = 0, step; at < text.length && !err; at += step) {
        uint32_t c = utf8_read((struct slice){text.start + at, text.length - at}, &step);
        if (!utf8_is_space(c))
            continue;
        if (at > start)
            err = tokens_add(tokens, (struct slice){text.start + start, at - start});
        start = at + step;
    }
    if (!err && text.length > start)
        err = tokens_add(tokens, (struct slice){text.start + start, text.length - start});
    return err;
}

struct place {
    struct slice word;
    uint32_t *id;
};

static int by_word(const void *a, const void *b)
{
    const struct slice x = ((const struct place *)a)->word, y = ((const struct place *)b)->word;
    int order = memcmp(x.start, y.start, x.length < y.length ? x.length : y.length);
    return order ? order : (x.length > y.length) - (x.length < y.length);
}

enum err tokens_number(struct tokens *const *texts, size_t count)
{
    size_t total = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        total += texts[i]->count;
    struct place *places = malloc((total ? total : 1) * sizeof *places);
    if (!places)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        struct tokens *t = texts[i];
        free(t->ids);
        t->ids = malloc((t->count ? t->count : 1) * sizeof *t->ids);
        if (!t->ids) {
            free(places);
            return ERR_NO_MEMORY;
        }
        for (size_t k = 0; k < t->count; k++)
            places[used++] = (struct place){t->words[k], &t->ids[k]};
    }
    qsort(places, used, sizeof *places, by_word);
    uint32_t id = 0;
    for (size_t i = 0; i < used; i++) {
        if (i && !slice_equal(places[i].word, places[i - 1].word))
            id++;
        *places[i].id = id;
    }
    free(places);
    return ERR_OK;
}

void tokens_release(struct tokens *tokens)
{
    free(tokens->words);
    free(tokens->ids);
    *tokens = (struct tokens){0};
}
