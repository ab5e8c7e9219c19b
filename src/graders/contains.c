/* The contains grader: the expected text stands somewhere in the answer, as whole words. */
#include <stdlib.h>

#include "core/text.h"
#include "graders/grader.h"
#include "graders/words/fold.h"
#include "graders/words/references.h"
#include "graders/words/reply.h"
#include "graders/words/utf8.h"

struct contains {
    struct fold fold;
    bool whole_words;
    char path[64];
};

static enum err contains_open(const struct grader_config *config, struct grader *out,
                              struct error *why)
{
    struct contains *contains = calloc(1, sizeof *contains);
    if (!contains)
        return out_of_memory(why);
    enum err err = references_read(config->params, contains->path, sizeof contains->path, why);
    if (!err)
        err = fold_read(config->params, &contains->fold, why);
    if (!err)
        err = params_truth(config->params, "words", true, &contains->whole_words, why);
    if (err) {
        free(contains);
        return err;
    }
    out->state = contains;
    return ERR_OK;
}

/* Is there a break in the text before `at`: its ends, or a character that is no part of a word on
 * either side? */
static bool is_break(struct slice text, size_t at)
{
    if (at == 0 || at == text.length)
        return true;
    size_t back = at - 1, length;
    while (back > 0 && at - back < UTF8_BYTES_MAX &&
           ((unsigned char)text.start[back] & 0xC0) == 0x80)
        back--;
    uint32_t before = utf8_read((struct slice){text.start + back, at - back}, &length);
    uint32_t after = utf8_read((struct slice){text.start + at, text.length - at}, &length);
    return !utf8_is_word(before) || !utf8_is_word(after);
}

/* For each place in the needle, how far back its longest border reaches. */
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

/* By Knuth, Morris and Pratt: linear, however often the text almost matches. */
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
                        struct slice reply, struct grade *out, struct error *why)
{
    struct text text = {0}, needle = {0};
    fold_add(&text, &contains->fold, reply);
    enum err err = text.failed ? ERR_NO_MEMORY : ERR_OK;
    grade_say(out, VERDICT_FALSE, "the expected text is not in the answer");
    for (unsigned r = 0; r < references->count && !err && out->verdict != VERDICT_TRUE; r++) {
        struct slice wanted = slice_trim(slice_of(references->items[r]));
        bool found = false;
        text_clear(&needle);
        fold_add(&needle, &contains->fold, wanted);
        if (needle.length == 0)
            continue; /* nothing but marks that are stripped: it says nothing */
        err = needle.failed ? ERR_NO_MEMORY
                            : search((struct slice){text_get(&text), text.length},
                                     (struct slice){text_get(&needle), needle.length},
                                     contains->whole_words, &found);
        if (found && !err) {
            grade_extracted(out, wanted);
            grade_say(out, VERDICT_TRUE, "%s", "");
        }
    }
    text_release(&text);
    text_release(&needle);
    return err ? out_of_memory(why) : ERR_OK;
}

static enum err contains_grade(struct grader *grader, const struct grading *what, struct grade *out,
                               struct error *why)
{
    const struct contains *contains = grader->state;
    struct reply reply;
    bool empty;
    enum err err = reply_open(&reply, what->answer, &empty, out, why);
    if (err)
        return err;
    if (!empty) {
        struct references references;
        references_open(&references, what, contains->path);
        err = compare(contains, &references, reply_slice(&reply), out, why);
        references_release(&references);
    }
    reply_release(&reply);
    return err;
}

static void contains_close(struct grader *grader)
{
    free(grader->state);
}

static const struct param_spec PARAMS[] = {
    {"case", "RULE", "ignore or keep (ignore)"},
    {"strip", "WHAT", "none, edges, punctuation or all, which is white space too (none)"},
    {"words", "yes|no", "only as whole words (yes)"},
    REFERENCES_PARAM,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_contains = {
    .name = "contains",
    .summary = "the expected text stands in the answer, as whole words",
    .params = PARAMS,
    .open = contains_open,
    .grade = contains_grade,
    .close = contains_close,
};
