/* The contains grader: the expected text occurs in the answer, as whole words. */
#include <stdlib.h>

#include "core/text.h"
#include "core/utf8.h"
#include "graders/answer.h"
#include "graders/fold.h"

struct contains {
    struct fold fold;
    bool whole_words;
    char references[REFERENCES_PATH];
};

static enum err contains_configure(const struct grader_config *config, void *state,
                                   struct error *why)
{
    struct contains *contains = state;
    enum err err = references_read(config->params, contains->references, why);
    if (!err)
        err = fold_read(config->params, &contains->fold, why);
    return err ? err : params_bool(config->params, "words", true, &contains->whole_words, why);
}

/* Is `at` a word boundary: an end of the text, or next to a character that is not part of a word? */
static bool is_break(struct slice text, size_t at)
{
    if (at == 0 || at == text.length)
        return true;
    size_t back = at - 1, length;
    while (back > 0 && at - back < UTF8_BYTES_MAX && utf8_is_continuation(text.start[back]))
        back--;
    uint32_t before = char_at((struct slice){text.start + back, at - back}, &length);
    uint32_t after = char_at((struct slice){text.start + at, text.length - at}, &length);
    return !char_is_word(before) || !char_is_word(after);
}

/* For each position of the needle, the length of its longest border. */
static size_t *borders_of(struct slice needle)
{
    size_t *borders = calloc(needle.length, sizeof *borders);
    for (size_t i = 1, matched = 0; borders && i < needle.length; i++) {
        while (matched && needle.start[i] != needle.start[matched])
            matched = borders[matched - 1];
        matched += needle.start[i] == needle.start[matched];
        borders[i] = matched;
    }
    return borders;
}

/* Knuth-Morris-Pratt: linear, however often the text almost matches. */
static enum err search(struct slice text, struct slice needle, bool whole_words, bool *found)
{
    *found = needle.length == 0;
    if (*found)
        return ERR_OK;
    size_t *borders = borders_of(needle);
    if (!borders)
        return ERR_NO_MEMORY;
    for (size_t i = 0, matched = 0; i < text.length && !*found; i++) {
        while (matched && text.start[i] != needle.start[matched])
            matched = borders[matched - 1];
        matched += text.start[i] == needle.start[matched];
        if (matched == needle.length) {
            size_t end = i + 1;
            *found = !whole_words || (is_break(text, end - matched) && is_break(text, end));
            matched = borders[matched - 1];
        }
    }
    free(borders);
    return ERR_OK;
}

static enum err compare(const struct contains *contains, const struct references *references,
                        struct slice answer, struct grade *out, struct error *why)
{
    struct text text = {0}, needle = {0};
    fold_add(&text, &contains->fold, answer);
    enum err err = text.failed ? ERR_NO_MEMORY : ERR_OK;
    grade_false(out, "the expected text is not in the answer");
    for (unsigned r = 0; r < references->count && !err && out->verdict != VERDICT_TRUE; r++) {
        struct slice wanted = slice_trim(slice_of(references->items[r]));
        bool found = false;
        text_clear(&needle);
        fold_add(&needle, &contains->fold, wanted);
        if (needle.length == 0)
            continue; /* only characters that are stripped: it would match anything */
        err = needle.failed ? ERR_NO_MEMORY
                            : search((struct slice){text_get(&text), text.length},
                                     (struct slice){text_get(&needle), needle.length},
                                     contains->whole_words, &found);
        if (found && !err) {
            grade_extracted(out, wanted);
            grade_true(out);
        }
    }
    text_release(&text);
    text_release(&needle);
    return err ? grade_no_memory(why) : ERR_OK;
}

static enum err contains_grade(const void *state, const struct grading *what, struct grade *out,
                               struct error *why)
{
    const struct contains *contains = state;
    struct references references;
    references_open(&references, what, contains->references);
    enum err err = compare(contains, &references, slice_of(what->answer), out, why);
    references_release(&references);
    return err;
}

static const struct param_spec PARAMS[] = {
    {"case", "RULE", "ignore or keep (ignore)"},
    {"strip", "WHAT", "none, edges, punctuation or all (punctuation and white space) (none)"},
    {"words", "yes|no", "only as whole words (yes)"},
    REFERENCES_PARAM,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_contains = {
    .name = "contains",
    .summary = "the answer contains the expected text, as whole words",
    .params = PARAMS,
    .state_size = sizeof(struct contains),
    .configure = contains_configure,
    .grade = contains_grade,
};
