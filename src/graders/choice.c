/* The choice grader: the letter of a multiple-choice answer, or the text of the option where the question, or else the
 * answer, lists the options.  letters.h finds the letter; here are the options. */
#include "graders/answer.h"
#include "graders/final.h"
#include "graders/fold.h"
#include "graders/letters.h"
#include "graders/tokens.h"

/* ---- the options of the question ---- */

enum { OPTIONS_MAX = 26, OPTION_LENGTH = 200 };

struct options {
    struct slice texts[OPTIONS_MAX]; /* trimmed, without marks at the ends */
    unsigned count;
};

/* The length of the label of an option at `at`: "B) ", "(B) ", "B. ", "B: "; 0 when there is none. */
static size_t label_at(struct slice text, size_t at, char letter)
{
    const char *c = text.start + at;
    size_t left = text.length - at, open = left && c[0] == '(';
    if (at && !slice_is_space(c[-1]))
        return 0;
    if (left < open + 2 || c[open] != letter || !strchr(open ? ")" : ").:", c[open + 1]))
        return 0;
    return open + 2 == left || slice_is_space(c[open + 2]) ? open + 2 : 0;
}

/* The last list of options from A in the question; a text ends with its line or at the next label. */
static void options_read(struct options *out, struct slice question)
{
    *out = (struct options){.count = 0};
    for (size_t at = 0; at < question.length; at++) {
        size_t first = label_at(question, at, 'A');
        size_t label = first ? first : label_at(question, at, (char)('A' + out->count));
        if (first)
            out->count = 0;
        if (!label || out->count == OPTIONS_MAX)
            continue;
        const char *start = question.start + at + label, *end = slice_end(question);
        const char *line = memchr(start, '\n', (size_t)(end - start));
        if (out->count && slice_end(out->texts[out->count - 1]) > question.start + at)
            out->texts[out->count - 1] =
                slice_between(out->texts[out->count - 1].start, question.start + at);
        out->texts[out->count++] = slice_between(start, line ? line : end);
    }
    for (unsigned i = 0; i < out->count; i++) {
        out->texts[i] = fold_edges(out->texts[i]);
        if (out->texts[i].length > OPTION_LENGTH)
            out->texts[i].length = 0; /* nobody repeats it as a whole */
    }
}

/* ---- the text of an option in an answer ---- */

/* Do the tokens at `at` begin with the option, as whole words?  *end is after it. */
static bool begins_with(struct tokens at, struct slice option, const char **end)
{
    struct tokens wanted = tokens_of(option);
    struct token token, want;
    while (token_next(&wanted, &want))
        if (!token_next(&at, &token) || !token_same(&token, &want))
            return false;
    *end = at.at;
    struct tokens look = at;
    bool attached = token_next(&look, &token) && !token.spaced && token.kind != TOKEN_LINE;
    bool goes_on = attached && token_next(&look, &want) && !want.spaced && want.kind == TOKEN_WORD;
    return option.length > 0 && !goes_on;
}

/* Does the sentence name the option, and not deny it? */
static bool names_option(struct slice sentence, struct slice option, struct slice *where)
{
    struct tokens tokens = tokens_of(sentence), start = tokens;
    struct token token, before = {.kind = TOKEN_LINE};
    int denied = 0;
    for (; token_next(&tokens, &token); start = tokens, before = token) {
        const char *end;
        bool apart = token.spaced || before.kind == TOKEN_LINE || token_is_opening(&before);
        if (apart && denied <= 0 && begins_with(start, option, &end)) {
            *where = slice_between(token.text.start, end);
            return true;
        }
        denied = token_is_negation(&token) ? 4 : denied - 1;
    }
    return false;
}

/* The letter of the one option that the sentence names; '\0' when there is none, or are several.  An option within
 * a longer one is not named. */
static char option_named(const struct options *options, struct slice sentence, struct slice *where)
{
    unsigned best = OPTIONS_MAX, rivals = 0;
    for (unsigned i = 0; i < options->count; i++) {
        struct slice found;
        if (!names_option(sentence, options->texts[i], &found))
            continue;
        bool inside = best < OPTIONS_MAX && found.start >= where->start &&
                      slice_end(found) <= slice_end(*where);
        bool around = best < OPTIONS_MAX && found.start <= where->start &&
                      slice_end(found) >= slice_end(*where);
        rivals += best < OPTIONS_MAX && !inside && !around;
        if (best == OPTIONS_MAX || (around && !inside)) {
            best = i;
            *where = found;
        }
    }
    return (char)(best < OPTIONS_MAX && !rivals ? 'A' + best : '\0');
}

/* Does the answer repeat the options before the sentence, and name none before that? */
static bool repeats_options(const struct options *options, struct slice answer,
                            struct slice sentence)
{
    const char *first = options->texts[0].start;
    unsigned labels = 0; /* the first of the list is one of them */
    for (size_t at = 0; answer.start + at < first; at++)
        for (char letter = 'A'; letter <= 'Z'; letter++)
            labels += label_at(answer, at, letter) > 0;
    return labels == 1 && sentence.start >= slice_end(options->texts[options->count - 1]);
}

/* In the marked answer, else in the last sentence.  `repeated`: the options are those that the answer itself lists. */
static char option_answered(const struct options *options, struct slice answer, bool repeated,
                            struct slice *where)
{
    struct final_answer final;
    bool found = final_find(answer, FINAL_AUTO, &final);
    struct slice sentence = final_sentence(final.line);
    if (!found || final.marker == FINAL_NONE)
        sentence = text_last_sentence(answer);
    if (options->count < 2 || !sentence.length || slice_end(sentence)[-1] == '?')
        return '\0';
    return (char)(repeated && !repeats_options(options, answer, sentence)
                      ? '\0'
                      : option_named(options, sentence, where));
}

/* ---- the grader ---- */

struct choice {
    unsigned options;
};

static enum err choice_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct choice *choice = state;
    uint64_t options;
    enum err err = params_count(config->params, "options", 10, &options, why);
    if (!err && (options < 2 || options > 26))
        return err_set(why, ERR_USAGE, "options=%llu: expected 2 to 26",
                       (unsigned long long)options);
    choice->options = err ? 0 : (unsigned)options;
    return err;
}

static void compare(char wanted, struct letters found, char last, struct grade *out)
{
    if (!found.first) {
        grade_false(out, "no letter from A to %c in the answer", last);
    } else if (found.second) {
        char both[] = {found.first, '/', found.second, '\0'};
        grade_extracted(out, slice_of(both));
        grade_false(out, "ambiguous: both %c and %c", found.first, found.second);
    } else {
        grade_extracted(out, (struct slice){&found.first, 1});
        if (found.first == wanted)
            grade_true(out);
        else
            grade_false(out, "%c, expected %c", found.first, wanted);
    }
}

static enum err choice_grade(const void *state, const struct grading *what, struct grade *out,
                             struct error *why)
{
    unsigned count = ((const struct choice *)state)->options;
    char last = (char)('A' + (int)count - 1), wanted, named = '\0';
    struct letters found;
    struct options options;
    struct slice where = {0};
    enum err err = letters_expected(slice_of(what->expected), count, &wanted);
    struct slice answer = slice_of(what->answer), first = text_before_question(answer);
    if (!err)
        err = letters_find(first, count, &found);
    if (!err && !found.first && first.length < answer.length)
        err = letters_find(first = answer, count, &found);
    if (err)
        return grade_no_memory(why);
    if (!wanted) {
        grade_null(out, "the expected answer is not a letter from A to %c: %.80s", last,
                   what->expected);
        return ERR_OK;
    }
    if (found.listed || (!found.first && what->problem)) {
        options_read(&options, found.listed ? first : slice_of(what->problem));
        named = option_answered(&options, first, found.listed, &where);
    }
    if (named)
        found = (struct letters){.first = named};
    compare(wanted, found, last, out);
    if (named)
        grade_extracted(out, where);
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"options", "COUNT", "number of options, 2 to 26 (10: A to J)"},
    {NULL, NULL, NULL},
};

const struct grader_driver grader_choice = {
    .name = "choice",
    .summary = "the letter of a multiple-choice answer",
    .params = PARAMS,
    .state_size = sizeof(struct choice),
    .configure = choice_configure,
    .grade = choice_grade,
};
