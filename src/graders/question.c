/* The question of an answer: linear time for a question of bounded length. */
#include "graders/question.h"

#include <ctype.h>
#include <string.h>

#include "graders/fold.h"
#include "graders/formula.h"
#include "graders/number.h"
#include "graders/prose.h"
#include "graders/unit.h"

/* ---- options ---- */

static struct slice from(struct slice text, size_t at)
{
    return (struct slice){text.start + at, text.length - at};
}

/* Length of the label of an option at the start: "B) ", "(B) ", "b) ", "B. ", "B: "; 0 if there is none. */
static size_t label_length(struct slice text, char letter)
{
    size_t open = text.length && text.start[0] == '(';
    if (text.length < open + 2)
        return 0;
    bool lower = text.start[open] == tolower((unsigned char)letter);
    if ((!lower && text.start[open] != letter) ||
        !strchr(open || lower ? ")" : ").:", text.start[open + 1]))
        return 0;
    return open + 2 == text.length || slice_is_space(text.start[open + 2]) ? open + 2 : 0;
}

/* A text ends with its line or at the next label. */
static void read_options(struct asked_question *out, struct slice text)
{
    for (size_t at = 0; at < text.length; at++) {
        if (at && !slice_is_space(text.start[at - 1]))
            continue;
        struct slice rest = from(text, at);
        size_t first = label_length(rest, 'A');
        if (first) {
            out->count = 0;
            out->stem.length = at;
        }
        size_t label = first ? first : label_length(rest, (char)('A' + out->count));
        if (!label || out->count == OPTIONS_MAX)
            continue;
        rest = from(rest, label);
        const char *line = memchr(rest.start, '\n', rest.length);
        struct slice *last = out->count ? &out->options[out->count - 1] : NULL;
        if (last && slice_end(*last) > text.start + at)
            *last = slice_between(last->start, text.start + at);
        out->options[out->count++] = line ? slice_between(rest.start, line) : rest;
    }
    for (unsigned i = 0; i < out->count; i++) {
        out->options[i] = strip_marks(out->options[i]);
        if (out->options[i].length > OPTION_LENGTH)
            out->options[i].length = 0; /* too long to be repeated as a whole */
    }
}

void question_read(struct asked_question *out, struct slice text)
{
    *out = (struct asked_question){.stem = text, .asked = {text.start, 0}};
    read_options(out, text);
    struct slice rest = out->stem, sentence, last = out->asked;
    while (sentence_next(&rest, &sentence)) {
        last = sentence;
        if (memchr(sentence.start, '?', sentence.length))
            out->asked = sentence;
    }
    out->asked = out->asked.length ? out->asked : last;
}

/* ---- words ---- */

/* Whether two words are the same but for an ending: "tendon" and "tendons". */
static bool same_word(const struct token *a, const struct token *b)
{
    enum { STEM = 5, ENDING = 2 };
    size_t shorter = a->text.length < b->text.length ? a->text.length : b->text.length,
           longer = a->text.length + b->text.length - shorter, same = 0;
    while (same < shorter && tolower((unsigned char)a->text.start[same]) ==
                                 tolower((unsigned char)b->text.start[same]))
        same++;
    bool plural = longer == shorter + 1 && same == shorter;
    return (same == shorter && same == longer) || (shorter >= 3 && plural) ||
           (same >= STEM && longer - same <= ENDING);
}

static bool has_word(struct slice text, const struct token *word)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (token.kind == TOKEN_WORD && same_word(&token, word))
            return true;
    return false;
}

/* Shortest words that count: of the question, and of an option, which may be "RNA". */
enum { ASKED_SHORTEST = 4, OPTION_SHORTEST = 3 };

/* A word that a question is about, and not one that any question has. */
static bool is_content(const struct token *word, size_t shortest)
{
    static const char COMMON[] =
        " which what when where whose does that this these those following with from have has had "
        "they their there than then into most many much were will would each best answer option "
        "the and for are was its not can but all any you your our "
        "statement ";
    return word->kind == TOKEN_WORD && word->text.length >= shortest && !token_in(word, COMMON);
}

/* Whether the text has the word itself. */
static bool has_same(struct slice text, const struct token *word)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (token.text.length == word->text.length && same_word(&token, word))
            return true;
    return false;
}

bool asks_with(const struct asked_question *question, const struct token *word)
{
    struct tokens tokens = tokens_of(question->asked);
    struct token token, before = {0};
    for (; token_next(&tokens, &token); before = token)
        if (token_in(&token, " how what which ") && before.text.length == word->text.length &&
            same_word(&before, word))
            return true;
    return false;
}

void mask_asked_words(const struct asked_question *question, char *answer)
{
    enum { STEM_LONGEST = 2000 };
    struct tokens tokens = tokens_of(slice_of(answer));
    struct token token;
    while (question->stem.length <= STEM_LONGEST && token_next(&tokens, &token))
        if (is_doubt(&token) && !is_negation(&token) && has_same(question->stem, &token))
            memset(answer + (token.text.start - answer), 'z', token.text.length);
}

/* ---- options named by their text ---- */

char combine(char one, char other)
{
    if (one == NO_LETTER || other == NO_LETTER || one == other)
        return (char)(one == NO_LETTER ? other : one);
    return SEVERAL_LETTERS;
}

/* The number of a text that has little else, as "about" and a unit: "three hours". */
static bool is_number(struct slice text, struct number *out)
{
    enum { UNIT_WORDS = 4 };
    if (!number_first(text, out) && !number_in_words(text, out))
        return false;
    struct slice before = slice_between(text.start, out->where.start),
                 unit = slice_between(slice_end(out->where), slice_end(text));
    return count_words(before) <= 1 && count_words(unit) <= UNIT_WORDS && !has_value(before) &&
           !has_value(unit) && is_definite(text);
}

static bool same_number(const struct tolerance *tolerance, struct slice a, struct slice b)
{
    struct number first, second;
    return is_number(a, &first) && is_number(b, &second) &&
           number_equal(tolerance, &first, &second) &&
           !units_differ(slice_between(slice_end(first.where), slice_end(a)),
                         slice_between(slice_end(second.where), slice_end(b)));
}

/* Whether two texts are equal, or equal as expressions. */
static bool same_text(struct slice option, struct slice text, bool as_expressions)
{
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    static const struct tolerance TOLERANCE = {.relative = 1e-9};
    bool equal;
    if (!option.length || !text.length || text.length > OPTION_LENGTH)
        return false;
    if (!as_expressions)
        return fold_equal(&FOLD, option, text);
    return (!formula_equal(&TOLERANCE, option, text, &equal) && equal) ||
           same_number(&TOLERANCE, option, text);
}

static char find_option(const struct asked_question *question, struct slice text,
                        bool as_expressions)
{
    char found = NO_LETTER;
    for (unsigned i = 0; i < question->count; i++)
        if (same_text(question->options[i], text, as_expressions))
            found = combine(found, (char)('A' + i));
    return found;
}

static char option_same(const struct asked_question *question, struct slice text)
{
    return find_option(question, text, false);
}

char option_equal(const struct asked_question *question, struct slice text)
{
    char found = find_option(question, text, false);
    return found ? found : find_option(question, text, true);
}

/* The only option whose text occurs; one that is part of a longer one that occurs does not count. */
char option_within(const struct asked_question *question, struct slice text)
{
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    bool occurs[OPTIONS_MAX];
    char found = NO_LETTER;
    for (unsigned i = 0; i < question->count; i++)
        occurs[i] = question->options[i].length && fold_occurs(&FOLD, text, question->options[i]);
    for (unsigned i = 0; i < question->count; i++) {
        bool part = false;
        for (unsigned k = 0; k < question->count; k++)
            part = part || (k != i && occurs[k] &&
                            question->options[k].length > question->options[i].length &&
                            fold_occurs(&FOLD, question->options[k], question->options[i]));
        if (occurs[i] && !part)
            found = combine(found, (char)('A' + i));
    }
    return found;
}

/* Whether the text has a word of this option that neither the question nor another option has. */
static bool has_own_word(const struct asked_question *question, unsigned option, struct slice text)
{
    struct tokens tokens = tokens_of(question->options[option]);
    struct token word;
    while (token_next(&tokens, &word)) {
        bool own = is_content(&word, OPTION_SHORTEST) && has_word(text, &word) &&
                   !has_word(question->stem, &word);
        for (unsigned i = 0; i < question->count && own; i++)
            own = i == option || !has_word(question->options[i], &word);
        if (own)
            return true;
    }
    return false;
}

/* The only option of which the answer has words of its own: "Kant" for "Immanuel Kant". */
char option_worded(const struct asked_question *question, struct slice text)
{
    char found = NO_LETTER;
    for (unsigned i = 0; i < question->count; i++)
        if (has_own_word(question, i, text))
            found = combine(found, (char)('A' + i));
    return found;
}

static struct slice without_article(struct slice text)
{
    static const char *const ARTICLES[] = {"A ", "An ", "The ", "a ", "an ", "the "};
    for (size_t i = 0; i < COUNT_OF(ARTICLES); i++)
        if (slice_starts(text, ARTICLES[i]))
            return strip_marks(from(text, strlen(ARTICLES[i])));
    return strip_marks(text);
}

/* Whether an explanation may begin here: "Turkey - it stayed neutral", "The liver, which ...". */
static bool begins_explanation(struct slice rest)
{
    return rest.length == 0 || slice_starts(rest, " — ") || slice_starts(rest, " – ") ||
           slice_starts(rest, " (") || slice_starts(rest, ". ") || slice_starts(rest, ".\n") ||
           slice_starts(rest, ", ") || slice_starts(rest, ": ") || slice_starts(rest, "; ") ||
           rest.start[0] == '\n';
}

char option_beginning(const struct asked_question *question, struct slice text)
{
    char found = NO_LETTER;
    for (size_t at = 1; at <= text.length && at <= OPTION_LENGTH && !found; at++)
        if (begins_explanation(from(text, at)))
            found = option_same(question, without_article((struct slice){text.start, at}));
    return found;
}

/* Share of the option's words that the text has; 0 for an option of a single word. */
static double common_words(struct slice option, struct slice stem, struct slice text)
{
    struct tokens tokens = tokens_of(option);
    struct token word;
    unsigned words = 0, common = 0;
    while (token_next(&tokens, &word)) {
        if (!is_content(&word, OPTION_SHORTEST) || has_word(stem, &word))
            continue;
        words++;
        common += has_word(text, &word);
    }
    return words > 1 ? (double)common / words : 0;
}

char option_akin(const struct asked_question *question, struct slice text)
{
    double best = 0, second = 0;
    char found = NO_LETTER;
    for (unsigned i = 0; i < question->count; i++) {
        double share = common_words(question->options[i], question->stem, text);
        second = share > best ? best : share > second ? share : second;
        found = (char)(share > best ? 'A' + (int)i : found);
        best = share > best ? share : best;
    }
    return (char)(best >= 0.5 && second <= best / 2 ? found : NO_LETTER);
}

/* ---- restatements ---- */

/* How many of the question's words a clause has. */
static unsigned shared_words(struct slice asked, struct slice clause)
{
    struct tokens tokens = tokens_of(asked);
    struct token word;
    unsigned shared = 0;
    while (token_next(&tokens, &word))
        shared += is_content(&word, ASKED_SHORTEST) && has_word(clause, &word);
    return shared;
}

static unsigned content_words(struct slice asked)
{
    struct tokens tokens = tokens_of(asked);
    struct token word;
    unsigned count = 0;
    while (token_next(&tokens, &word))
        count += is_content(&word, ASKED_SHORTEST);
    return count;
}

bool is_off_topic(const struct asked_question *question, struct slice sentence)
{
    return content_words(question->asked) >= 2 && shared_words(question->asked, sentence) == 0;
}

bool clause_next(struct slice *rest, struct slice *clause)
{
    static const char BOUNDARIES[] =
        " , ; : ( ) — – but while whereas although though because since so as ";
    struct tokens tokens = tokens_of(*rest);
    struct token token;
    const char *start = rest->start;
    if (!slice_trim(*rest).length)
        return false;
    while (token_next(&tokens, &token)) {
        bool attached =
            token_is(&token, ",") && tokens.at < tokens.end && !slice_is_space(*tokens.at);
        if (attached || !token_in(&token, BOUNDARIES))
            continue;
        *clause = slice_trim(slice_between(start, token.text.start));
        start = tokens.at;
        if (clause->length) {
            *rest = slice_between(start, slice_end(*rest));
            return true;
        }
    }
    *clause = slice_trim(slice_between(start, slice_end(*rest)));
    *rest = (struct slice){slice_end(*rest), 0};
    return clause->length > 0;
}

static bool has_negation(struct slice clause)
{
    struct tokens tokens = tokens_of(clause);
    struct token token;
    while (token_next(&tokens, &token))
        if (is_negation(&token))
            return true;
    return false;
}

void find_restatement(const struct asked_question *question, struct slice text, struct places *out)
{
    enum { ASKED_LONGEST = 400 };
    unsigned words = content_words(question->asked), best = words / 2 + 1;
    struct slice sentence, clause;
    bool exception = has_negation(question->asked) || has_token(question->asked, " except ");
    if (!words || question->asked.length > ASKED_LONGEST)
        return;
    while (sentence_next(&text, &sentence)) {
        bool asks = memchr(sentence.start, '?', sentence.length);
        while (clause_next(&sentence, &clause)) {
            unsigned shared = shared_words(question->asked, clause);
            bool excepted = exception && has_negation(clause);
            bool definite = excepted || ((!exception || !question->count) && is_definite(clause));
            if (asks || shared < best || !definite)
                continue;
            out->count = shared > best ? 0 : out->count;
            best = shared;
            places_add(out, clause);
        }
    }
    struct slice last = out->count ? out->at[out->count - 1] : text;
    struct slice after = slice_between(slice_end(last), slice_end(text));
    if (concludes(after) || memchr(after.start, '=', after.length)) /* an intermediate value */
        out->count = 0;
}
