/* Words are numbered by sorting all words of the compared texts once. */
#include "graders/words.h"

#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "graders/fold.h"

void words_split(struct words *words)
{
    struct slice text = {text_get(&words->text), words->text.length}, word = {text.start, 0};
    for (size_t at = 0, step = 0; at <= text.length; at += step) {
        struct slice rest = {text.start + at, text.length - at};
        bool ends = !rest.length || char_is_space(char_at(rest, &step));
        step = rest.length ? step : 1;
        if (!ends) {
            word.length += step;
            continue;
        }
        XGROW(words->items, words->count, words->capacity);
        words->items[words->count] = word;
        words->count += word.length > 0;
        word = (struct slice){rest.start + step, 0};
    }
}

/* A word and where its number is stored. */
struct occurrence {
    struct slice word;
    uint32_t *id;
};

static int by_word(const void *a, const void *b)
{
    const struct slice x = ((const struct occurrence *)a)->word;
    const struct slice y = ((const struct occurrence *)b)->word;
    int order = memcmp(x.start, y.start, x.length < y.length ? x.length : y.length);
    return order ? order : (x.length > y.length) - (x.length < y.length);
}

void words_number(struct words *const *texts, size_t count)
{
    size_t total = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        total += texts[i]->count;
    struct occurrence *all = xreallocarray(NULL, total, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        struct words *words = texts[i];
        words->ids = xreallocarray(words->ids, words->count, sizeof *words->ids);
        for (size_t k = 0; k < words->count; k++)
            all[used++] = (struct occurrence){words->items[k], &words->ids[k]};
    }
    qsort(all, used, sizeof *all, by_word);
    uint32_t id = 0;
    for (size_t i = 0; i < used; i++) {
        if (i && !slice_equal(all[i].word, all[i - 1].word))
            id++;
        *all[i].id = id;
    }
    free(all);
}

void words_release(struct words *words)
{
    text_release(&words->text);
    free(words->items);
    free(words->ids);
    *words = (struct words){0};
}
