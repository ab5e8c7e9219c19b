/* The choice grader: the letter of a multiple-choice answer, or the text of the option if the question lists them. */
#include <ctype.h>

#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/formula.h"
#include "graders/letters.h"
#include "graders/prose.h"
#include "graders/question.h"
#include "graders/reading.h"
#include "graders/tokens.h"

/* ---- reading ---- */

/* Whether it is a sentence that begins with "So" or another such word. */
static bool is_conclusion(const struct choice_reader *choice, struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    const char *before = sentence.start;
    while (before > choice->answer.start && slice_is_space(before[-1]))
        before--;
    bool begins = before == choice->answer.start || strchr(".!?:", before[-1]) ||
                  memchr(before, '\n', (size_t)(sentence.start - before));
    return begins && token_next(&tokens, &token) && token_in(&token, " so therefore thus hence ");
}

/* The option that a text names, if it is a conclusion or the whole answer names no other.  Another one than the
 * expected is not certain: an option may be meant that is worded differently. */
static char option_named(const struct choice_reader *choice, struct slice text)
{
    char option = option_within(&choice->question, text);
    if (option != NO_LETTER && combine(option, only_letter(choice, text)) != option)
        return SEVERAL_LETTERS;
    if (option != NO_LETTER && !is_conclusion(choice, text) &&
        combine(option, option_within(&choice->question, choice->answer)) != option)
        return SEVERAL_LETTERS;
    if (option == NO_LETTER && !only_letter(choice, choice->answer))
        option = option_worded(&choice->question, choice->answer);
    return (char)(option == NO_LETTER || option == choice->wanted ? option : SEVERAL_LETTERS);
}

/* "Vaccination" of "Vaccination, because ..." */
static struct slice before_reason(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (token_in(&token, " because since "))
            return strip_marks(slice_between(text.start, token.text.start));
    return text;
}

/* Letters that are not ASCII: of a foreign language, and not only a few uncommon English words. */
static bool has_other_letters(struct slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.start[i] >= 0xC3)
            return true;
    return false;
}

static bool begins_line(const struct choice_reader *choice, struct slice span)
{
    const char *at = span.start;
    while (at > choice->answer.start && strchr(" \t*_>#", at[-1]))
        at--;
    return at == choice->answer.start || at[-1] == '\n';
}

/* Whether the answer is only a few words. */
static bool is_brief(struct slice answer)
{
    enum { WORDS_MAX = 4 };
    return count_words(answer) <= WORDS_MAX && is_definite(answer) && !has_alternative(answer);
}

/* The letter that begins the answer, if the text of its option follows, "(D) Green — ...", or what calls it right. */
static char labeled_at_head(const struct choice_reader *choice, struct slice sentence)
{
    struct slice text = without_opening(sentence);
    char letter = (char)(text.length ? letter_of(choice, text.start[0], false) : NO_LETTER);
    if (!letter || !is_definite(sentence))
        return NO_LETTER;
    const char *after = text.start + 1;
    struct slice rest = without_closing(slice_between(after, slice_end(sentence)));
    bool closed = rest.start > after + 1 || (rest.start > after && *after != ' ');
    if (is_called_right((struct tokens){after, slice_end(sentence)}))
        return (char)(letter_chosen(choice, sentence) == letter ? letter : NO_LETTER);
    bool same = closed && option_beginning(&choice->question, rest) == letter;
    return (char)(same ? letter : NO_LETTER);
}

/* The option with which the first sentence has most words in common, unless the text comes to another conclusion. */
static char most_words(const struct choice_reader *choice, struct slice sentence)
{
    char letter = option_akin(&choice->question, sentence);
    if (!letter || !is_definite(sentence) || concludes(choice->answer))
        return NO_LETTER;
    return (char)(only_letter(choice, sentence) ? NO_LETTER : letter);
}

/* The only option in the first clause, with few other words: "It was Turkey, which ...", "The liver. It ...".  Another
 * one than the expected is not certain: the explanation may deny it. */
static char option_at_head(const struct choice_reader *choice, struct slice text)
{
    enum { OTHER_WORDS = 3, BESIDE_OPTIONS = 2 };
    struct slice rest = text, sentence, clause;
    if (!sentence_next(&rest, &sentence))
        return NO_LETTER;
    char option =
        (char)(is_definite(sentence) ? option_beginning(&choice->question, text) : NO_LETTER);
    if (option)
        return (char)(option == choice->wanted ? option : SEVERAL_LETTERS);
    char letter = labeled_at_head(choice, sentence);
    if (letter)
        return (char)(letter == choice->wanted ? letter : NO_LETTER);
    if (letter_at_head(choice) == choice->wanted || letter_chosen_once(choice) == choice->wanted)
        return choice->wanted;
    letter = most_words(choice, sentence);
    if (letter)
        return (char)(letter == choice->wanted ? letter : NO_LETTER);
    if (!clause_next(&sentence, &clause) || !is_definite(clause))
        return NO_LETTER;
    letter = option_equal(&choice->question, strip_marks(clause)); /* "Eleven: 2 + 12 - 3." */
    if (combine(letter, only_letter(choice, text)) == letter && letter == choice->wanted &&
        !concludes(text))
        return letter;
    struct slice first = slice_between(clause.start, slice_end(sentence));
    option = option_within(&choice->question, first);
    if (option == NO_LETTER || option == SEVERAL_LETTERS || concludes(text) ||
        option_within(&choice->question, clause) != option)
        return NO_LETTER;
    unsigned words = count_words(choice->question.options[option - 'A']);
    bool others = option_within(&choice->question, text) != option;
    if (count_words(clause) > words + (others ? BESIDE_OPTIONS : OTHER_WORDS))
        return NO_LETTER;
    option = combine(option, only_letter(choice, text));
    return (char)(option == choice->wanted ? option : SEVERAL_LETTERS);
}

/* The only option in a clause that repeats the question, if the clause begins the answer or no other option is in it. */
static char option_in_clause(const struct choice_reader *choice, struct slice clause)
{
    char option = option_within(&choice->question, clause);
    bool begins = slice_trim(choice->answer).start == clause.start;
    if (!begins)
        option = combine(option, option_within(&choice->question, choice->answer));
    if (option != NO_LETTER)
        option = combine(option, only_letter(choice, choice->answer));
    return (char)(option == choice->wanted ? option : NO_LETTER);
}

/* Whether the text concludes with another option: "Alaska (C) is large, but a territory; so Texas (A)." */
static bool concludes_with_other(const struct choice_reader *choice, struct slice text, char letter)
{
    struct slice end = conclusion(last_sentence(text));
    char named = combine(only_letter(choice, end), option_within(&choice->question, end));
    return concludes(end) && named != NO_LETTER && named != letter;
}

static char read_letter(const struct choice_reader *choice, struct slice span, enum place_kind kind)
{
    struct slice text = strip_marks(span), sentence = text, rest = text;
    char letter = NO_LETTER;
    if (kind == PLACE_HEAD) {
        letter = option_at_head(choice, choice->answer);
        bool other = letter && concludes_with_other(choice, choice->answer, letter);
        return (char)(other ? NO_LETTER : letter);
    }
    if (kind == PLACE_CLAUSE)
        return option_in_clause(choice, span);
    if (kind == PLACE_SENTENCE) {
        letter = letter_chosen(choice, span);
        if (!letter && language_of(span) == FOREIGN &&
            has_other_letters(span)) /* only the whole text is */
            letter = only_letter(choice, span);
        return letter ? letter : option_named(choice, span);
    }
    bool line = !memchr(text.start, '\n', text.length);
    bool bold = span.start > choice->answer.start && span.start[-1] == '*';
    if (kind == PLACE_ALONE && !bold && !begins_line(choice, span)) { /* "Airway first! C." */
        letter = letter_alone(choice, text, true);
        return (char)(letter && only_letter(choice, choice->answer) == letter ? letter : NO_LETTER);
    }
    if (line && kind != PLACE_RESULT)
        letter = letter_alone(choice, text, kind != PLACE_LEADING);
    struct slice claim = kind == PLACE_BEGINNING ? before_reason(text) : text;
    if (!letter && (kind == PLACE_LEADING || kind == PLACE_BEGINNING)) {
        letter = letter_leading(choice, text);
        bool only = claim.length < text.length || only_letter(choice, choice->answer) == letter;
        if (letter && kind == PLACE_BEGINNING && !(is_definite(claim) && only))
            return SEVERAL_LETTERS;
    }
    text = claim;
    letter = letter ? letter : option_equal(&choice->question, text);
    if (!letter && kind == PLACE_ALONE && is_brief(choice->answer)) /* "Kant" */
        letter = option_named(choice, text);
    if (letter || kind == PLACE_ALONE || kind == PLACE_BEGINNING)
        return letter;
    sentence_next(&rest, &sentence);
    if (kind == PLACE_LEADING && is_definite(sentence))
        letter = letter_bracketed(choice, strip_marks(sentence));
    letter = letter ? letter : option_equal(&choice->question, strip_marks(sentence));
    if (!letter && is_definite(sentence))
        letter = kind == PLACE_LEADING ? letter_chosen(choice, sentence) : NO_LETTER;
    if (!letter && is_definite(sentence))
        letter = option_named(choice, sentence);
    return letter;
}

static enum value_reading choice_read(const void *context, struct slice span, enum place_kind kind,
                                      struct slice *value)
{
    const struct choice_reader *choice = context;
    char letter = read_letter(choice, span, kind);
    *value = span;
    struct tokens tokens = tokens_of(span);
    struct token token;
    while (kind == PLACE_LEADING && token_next(&tokens, &token))
        if (token.text.length == 1 && toupper((unsigned char)token.text.start[0]) == letter) {
            *value = token.text; /* what follows it in the line may take it back */
            break;
        }
    if (letter == NO_LETTER)
        return READING_NONE;
    if (letter == SEVERAL_LETTERS)
        return READING_UNCLEAR;
    return letter == choice->wanted ? READING_EXPECTED : READING_OTHER;
}

static bool choice_mentions(const void *context, struct slice text)
{
    const struct choice_reader *choice = context;
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    unsigned index = (unsigned)(choice->wanted - 'A');
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (token.text.length == 1 && token.text.start[0] == choice->wanted)
            return true;
    struct slice option =
        index < choice->question.count ? choice->question.options[index] : (struct slice){0};
    return option.length && fold_occurs(&FOLD, text, option);
}

/* ---- the grader ---- */

struct choice {
    enum final_rule final;
    unsigned options;
};

static enum err choice_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct choice *choice = state;
    struct params_reader read = {config->params, why, ERR_OK};
    choice->options = (unsigned)params_count(&read, "options", 10, 2, 26);
    return read.err ? read.err : final_read(config->params, &choice->final, why);
}

static enum err choice_grade(const void *state, const struct grading *what, struct grade *out,
                             struct error *why)
{
    const struct choice *choice = state;
    unsigned count = choice->options;
    struct choice_reader reader = {.wanted = expected_letter(slice_of(what->expected), count)};
    (void)why;
    if (!reader.wanted) {
        grade_null(out, "the expected answer is not a letter from A to %c: %.80s",
                   (char)('A' + (int)count - 1), what->expected);
        return ERR_OK;
    }
    struct text answer = {0};
    answer_plain(&answer, what->answer);
    reader.answer = slice_of(text_get(&answer));
    reader.foreign = language_of(reader.answer) == FOREIGN;
    if (what->problem)
        question_read(&reader.question, slice_of(what->problem));
    if (reader.question.count > 1 && reader.wanted < 'A' + (int)reader.question.count &&
        reader.question.count < count)
        count = reader.question.count;
    reader.last = (char)('A' + (int)count - 1);
    struct value_reader with = {
        &reader,     {&reader.wanted, 1}, what->problem ? &reader.question : NULL,
        choice_read, choice_mentions,     NULL};
    reading_grade(&with, reader.answer, choice->final, out);
    text_release(&answer);
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"options", "COUNT", "number of options, 2 to 26 (10: A to J)"},
    FINAL_PARAM,
    {NULL, NULL, NULL},
};

const struct grader_driver grader_choice = {
    .name = "choice",
    .summary = "the letter of a multiple-choice answer",
    .params = PARAMS,
    .expects_answer = true,
    .state_size = sizeof(struct choice),
    .configure = choice_configure,
    .grade = choice_grade,
};
