/* The choice grader: the letter of a multiple-choice answer, or the text of the option if the question lists them. */
#include <ctype.h>

#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/formula.h"
#include "graders/prose.h"
#include "graders/reading.h"
#include "graders/tokens.h"

/* ---- the options of the question ---- */

enum { OPTIONS_MAX = 26, OPTION_LENGTH = 200 };

struct options {
    struct slice stem; /* the question before them */
    struct slice texts[OPTIONS_MAX];
    unsigned count;
};

static struct slice from(struct slice text, size_t at)
{
    return (struct slice){text.start + at, text.length - at};
}

/* Length of the label of an option at the start: "B) ", "(B) ", "B. ", "B: "; 0 if there is none. */
static size_t label_length(struct slice text, char letter)
{
    size_t open = text.length && text.start[0] == '(';
    if (text.length < open + 2 || text.start[open] != letter ||
        !strchr(open ? ")" : ").:", text.start[open + 1]))
        return 0;
    return open + 2 == text.length || slice_is_space(text.start[open + 2]) ? open + 2 : 0;
}

/* The last list of options from A in the question; a text ends with its line or at the next label. */
static void options_read(struct options *out, struct slice question)
{
    *out = (struct options){.stem = question};
    for (size_t at = 0; at < question.length; at++) {
        if (at && !slice_is_space(question.start[at - 1]))
            continue;
        struct slice rest = from(question, at);
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
        struct slice *last = out->count ? &out->texts[out->count - 1] : NULL;
        if (last && slice_end(*last) > question.start + at)
            *last = slice_between(last->start, question.start + at);
        out->texts[out->count++] = line ? slice_between(rest.start, line) : rest;
    }
    for (unsigned i = 0; i < out->count; i++) {
        out->texts[i] = strip_marks(out->texts[i]);
        if (out->texts[i].length > OPTION_LENGTH)
            out->texts[i].length = 0; /* too long to be repeated as a whole */
    }
}

/* ---- letters ---- */

struct choice_reader {
    char wanted, last;
    struct options options;
    struct slice answer;
};

enum { NO_LETTER = '\0', SEVERAL_LETTERS = '/' };

static char letter_of(const struct choice_reader *choice, char c, bool lower_too)
{
    char upper = (char)(lower_too ? toupper((unsigned char)c) : c);
    return (char)(upper >= 'A' && upper <= choice->last ? upper : NO_LETTER);
}

/* The combined result of two places. */
static char combine(char one, char other)
{
    if (one == NO_LETTER || other == NO_LETTER || one == other)
        return (char)(one == NO_LETTER ? other : one);
    return SEVERAL_LETTERS;
}

/* A letter that stands alone.  "A" before a word is an article and "I" a pronoun; those of "B-cells", "C++" and "x = A"
 * are parts of a name. */
static char letter_at(const struct choice_reader *choice, const struct token *token,
                      const struct token *before, struct tokens after)
{
    struct token next = {0};
    bool one = token->kind == TOKEN_WORD && token->text.length == 1;
    char letter = (char)(one ? letter_of(choice, token->text.start[0], false) : NO_LETTER);
    bool more = token_next(&after, &next) && next.kind != TOKEN_LINE;
    bool attached = more && !next.spaced;
    if (!letter || token_in(before, " = + - / \\ _ ^ ") ||
        (attached && token_in(&next, " - + ' ^ _ = ")))
        return NO_LETTER;
    bool word =
        more && next.spaced && next.kind == TOKEN_WORD && isalpha((unsigned char)*next.text.start);
    bool article = (letter == 'A' || letter == 'I') && word &&
                   !token_in(&next, " is because since as and or was along with ");
    return (char)(article ? NO_LETTER : letter);
}

/* The only letter that stands alone in the text. */
static char only_letter(const struct choice_reader *choice, struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    char found = NO_LETTER;
    for (; token_next(&tokens, &token); before = token)
        found = combine(found, letter_at(choice, &token, &before, tokens));
    return found;
}

/* ---- options named by their text ---- */

/* Whether two texts are equal, or equal as expressions. */
static bool same_text(struct slice option, struct slice text, bool as_expressions)
{
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    static const struct tolerance TOLERANCE = {.relative = 1e-9};
    bool equal;
    if (!option.length || !text.length || text.length > OPTION_LENGTH)
        return false;
    return as_expressions ? !formula_equal(&TOLERANCE, option, text, &equal) && equal
                          : fold_equal(&FOLD, option, text);
}

static char find_option(const struct choice_reader *choice, struct slice text, bool as_expressions)
{
    char found = NO_LETTER;
    for (unsigned i = 0; i < choice->options.count; i++)
        if (same_text(choice->options.texts[i], text, as_expressions))
            found = combine(found, (char)('A' + i));
    return found;
}

/* The only option that is equal to the text, or else as an expression. */
static char option_equal(const struct choice_reader *choice, struct slice text)
{
    char found = find_option(choice, text, false);
    return found ? found : find_option(choice, text, true);
}

/* The only option whose text occurs; one that is part of a longer one that occurs does not count. */
static char option_within(const struct choice_reader *choice, struct slice text)
{
    static const struct fold FOLD = {.strip = FOLD_EDGES};
    const struct options *options = &choice->options;
    bool occurs[OPTIONS_MAX];
    char found = NO_LETTER;
    for (unsigned i = 0; i < options->count; i++)
        occurs[i] = options->texts[i].length && fold_occurs(&FOLD, text, options->texts[i]);
    for (unsigned i = 0; i < options->count; i++) {
        bool part = false;
        for (unsigned k = 0; k < options->count; k++)
            part = part ||
                   (k != i && occurs[k] && options->texts[k].length > options->texts[i].length &&
                    fold_occurs(&FOLD, options->texts[k], options->texts[i]));
        if (occurs[i] && !part)
            found = combine(found, (char)('A' + i));
    }
    return found;
}

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

/* Whether the text has a word of this option that neither the question nor another option has. */
static bool has_own_word(const struct options *options, unsigned option, struct slice text)
{
    struct tokens tokens = tokens_of(options->texts[option]);
    struct token word;
    while (token_next(&tokens, &word)) {
        bool own = word.kind == TOKEN_WORD && word.text.length >= 3 && has_word(text, &word) &&
                   !has_word(options->stem, &word);
        for (unsigned i = 0; i < options->count && own; i++)
            own = i == option || !has_word(options->texts[i], &word);
        if (own)
            return true;
    }
    return false;
}

/* The only option of which the answer has words of its own: "Kant" for "Immanuel Kant". */
static char option_worded(const struct choice_reader *choice, struct slice text)
{
    char found = NO_LETTER;
    for (unsigned i = 0; i < choice->options.count; i++)
        if (has_own_word(&choice->options, i, text))
            found = combine(found, (char)('A' + i));
    return found;
}

/* ---- a letter at the start ---- */

/* The text without what may stand before a letter: "option (", "\\text{", "choice". */
static struct slice without_opening(struct slice text)
{
    static const char OPENING[] = " option choice letter ( [ { * _ ` \" ' $ \\text \\textbf "
                                  "\\mathrm \\mathbf \\boxed \\ : → ";
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token) && token_in(&token, OPENING))
        text = slice_between(tokens.at, slice_end(text));
    return slice_trim(text);
}

/* The text without what may close a letter: ")", "}", "**". */
static struct slice without_closing(struct slice text)
{
    while (text.length && strchr(")]}*_`\"'$.:;\\ ", text.start[0]))
        text = from(text, 1);
    return slice_trim(text);
}

/* Whether the text after "B) " is that of this option: by its text or, if the options are not known, short. */
static bool is_label_of(const struct choice_reader *choice, char letter, struct slice text)
{
    enum { WORDS_MAX = 8 };
    unsigned index = (unsigned)(letter - 'A'), words = 0;
    struct tokens tokens = tokens_of(text);
    struct token token;
    if (choice->options.count)
        return index < choice->options.count && option_equal(choice, text) == letter;
    for (; token_next(&tokens, &token); words += token.kind == TOKEN_WORD)
        if (words == 0 && token_in(&token, " incorrect wrong no ")) /* a verdict on the option */
            return false;
    return words <= WORDS_MAX && isupper((unsigned char)text.start[0]) &&
           only_letter(choice, choice->answer) == letter;
}

/* Whether another line is only another letter. */
static bool has_other_line(const struct choice_reader *choice, char letter)
{
    struct slice rest = choice->answer, line;
    while (line_next(&rest, &line)) {
        struct slice text = strip_marks(line);
        if (text.length == 1 && letter_of(choice, text.start[0], false) && text.start[0] != letter)
            return true;
    }
    return false;
}

/* The letter of a line that has nothing else but perhaps the text of its option: "B", "(b)", "**B) Paris**".
 * `only`: with such a text, or after a label ("Best: B"), it must be the only letter of the answer. */
static char letter_alone(const struct choice_reader *choice, struct slice line, bool only)
{
    struct slice text = without_opening(line);
    if (!text.length)
        return NO_LETTER;
    struct slice rest = without_closing(from(text, 1));
    char letter = letter_of(choice, text.start[0], rest.length == 0);
    bool single = !only || only_letter(choice, choice->answer) == letter;
    bool closed = rest.length < text.length - 1;
    if (letter && rest.length == 0 && only && has_other_line(choice, letter))
        return SEVERAL_LETTERS;
    if (letter &&
        (rest.length == 0 || (closed && single && is_label_of(choice, letter, strip_marks(rest)))))
        return letter;
    const char *colon = memchr(line.start, ':', line.length);
    if (!colon || colon == line.start || !is_definite(slice_between(line.start, colon)))
        return NO_LETTER;
    text = without_opening(slice_between(colon, slice_end(line)));
    letter = letter_of(choice, text.length ? text.start[0] : ' ', false);
    single = only_letter(choice, choice->answer) == letter;
    return (char)(letter && single && !without_closing(from(text, 1)).length ? letter : NO_LETTER);
}

/* The letter that begins a place.  Another one in the same sentence makes it unclear, unless a reason follows: "B
 * because A and C ...". */
static char letter_leading(const struct choice_reader *choice, struct slice span)
{
    struct slice text = without_opening(span), sentence;
    struct tokens tokens = tokens_of(text);
    struct token token, next = {0}, none = {.kind = TOKEN_MARK};
    if (!token_next(&tokens, &token))
        return NO_LETTER;
    char letter = letter_at(choice, &token, &none, tokens);
    bool bracketed = text.start > span.start && text.start[-1] == '(' && tokens.at < tokens.end &&
                     *tokens.at == ')';
    if (!letter && bracketed && token.text.length == 1) /* "(c) trapezoid" */
        letter = letter_of(choice, token.text.start[0], true);
    if (!letter)
        return NO_LETTER;
    struct slice rest = without_closing(slice_between(tokens.at, slice_end(text)));
    bool closed = rest.start > tokens.at + 1 || (rest.start > tokens.at && *tokens.at != ' ');
    bool comma = rest.length && rest.start[0] == ',';
    rest = comma ? slice_trim(from(rest, 1)) : rest;
    tokens = tokens_of(rest);
    if (!token_next(&tokens, &next) || token_in(&next, " because since "))
        return letter;
    if (!closed && token_is(&next, "(")) { /* "C (2 A)", "A (or B)" */
        while (token_next(&tokens, &next) && !token_is(&next, ")"))
            if (token_in(&next, " or and possibly perhaps maybe "))
                return SEVERAL_LETTERS;
        return (char)(token_next(&tokens, &next) && token_in(&next, " or and / , ")
                          ? SEVERAL_LETTERS
                          : letter);
    }
    bool name = closed && !comma && islower((unsigned char)*next.text.start) &&
                next.text.length > 2 && isalpha((unsigned char)next.text.start[1]) &&
                slice_end(token.text)[0] == '.'; /* "E. coli" */
    if (name || (!closed && !comma && next.kind == TOKEN_WORD) || !sentence_next(&rest, &sentence))
        return NO_LETTER;
    if (!comma && token_in(&next, " / + = & ❌ ✗ ")) /* "B/C" */
        return SEVERAL_LETTERS;
    char other = option_equal(choice, strip_marks(sentence));
    if (other != letter) /* the text of its option may have other letters */
        other = combine(other, only_letter(choice, sentence));
    return (char)(is_definite(sentence) && combine(letter, other) == letter ? letter
                                                                            : SEVERAL_LETTERS);
}

/* The letter in brackets at the end: "London (D)". */
static char letter_bracketed(const struct choice_reader *choice, struct slice text)
{
    if (text.length < 3 || !strchr(")]", slice_end(text)[-1]) || !strchr("([", slice_end(text)[-3]))
        return NO_LETTER;
    char letter = letter_of(choice, slice_end(text)[-2], false);
    struct slice name = slice_trim((struct slice){text.start, text.length - 3});
    return (char)(letter ? combine(letter,
                                   combine(only_letter(choice, text), option_equal(choice, name)))
                         : NO_LETTER);
}

/* ---- a letter in a sentence ---- */

/* Whether the tokens after a letter call it the answer: "is correct", "is the best answer". */
static bool is_called_right(struct tokens tokens)
{
    struct token token = {0};
    while (token_next(&tokens, &token) && token_in(&token, " ) * is 's the clearly definitely "))
        ;
    if (token_in(&token, " best ") && token_next(&tokens, &token)) /* "is the best description" */
        return token.kind == TOKEN_WORD;
    if (token_in(&token, " most ") && !token_next(&tokens, &token))
        return false;
    if (!token_in(&token, " correct right answer accurate choice option "))
        return false;
    while (token_next(&tokens, &token) && token_in(&token, " answer choice option one . ! * ) "))
        ;
    return tokens.at >= tokens.end || token_in(&token, " because since , ; . ! : ");
}

/* Whether the sentence gives the letter as its choice: "So B.", "I'd pick (B).", "It's B: ..." */
static bool is_chosen(const struct token *before, const struct token *first, struct tokens after)
{
    static const char CHOICES[] =
        " so therefore thus hence → it's that's pick choose select say option choice go going ";
    static const char SUBJECTS[] =
        " so therefore thus hence it it's that that's this i i'd i'm i'll we the → ";
    struct token token = {0};
    bool more = token_next(&after, &token);
    bool bracketed = more && token_in(&token, " ) ] ");
    while (more && token_in(&token, " ) ] * . ! "))
        more = token_next(&after, &token);
    bool explained = more && token_in(&token, " : ; — ") && token_in(before, " it's that's so ");
    if (more && !explained)
        return false;
    if (bracketed && token_in(first, " so therefore thus hence ")) /* "So it is helicase (B)." */
        return true;
    return token_in(before, " so therefore thus hence → ") ||
           (token_in(before, CHOICES) && token_in(first, SUBJECTS));
}

/* The letter that a sentence with only one chooses. */
static char letter_chosen_in(const struct choice_reader *choice, struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, word = {0}, first = {0};
    char found = only_letter(choice, sentence);
    while (found && found != SEVERAL_LETTERS && token_next(&tokens, &token)) {
        if (letter_at(choice, &token, &before, tokens) &&
            (is_called_right(tokens) || is_chosen(&word, &first, tokens)))
            return found;
        bool opening = token_in(&token, " ( [ * , : ");
        first = first.text.length ? first : token;
        if (!opening && !token_is(&token, "with")) /* "go with" */
            word = token;
        if (token_is(&token, "with") && !token_in(&word, " go going went "))
            word = token;
        before = token;
    }
    return NO_LETTER;
}

/* The letter that the sentence chooses, and no other sentence of the answer another one. */
static char letter_chosen(const struct choice_reader *choice, struct slice sentence)
{
    char letter = letter_chosen_in(choice, sentence);
    struct slice rest = choice->answer, other;
    while (letter && sentence_next(&rest, &other))
        letter = combine(letter, is_definite(other) ? letter_chosen_in(choice, other) : NO_LETTER);
    return letter;
}

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
    char option = option_within(choice, text);
    if (option != NO_LETTER && !is_conclusion(choice, text) &&
        combine(option, option_within(choice, choice->answer)) != option)
        return SEVERAL_LETTERS;
    if (option == NO_LETTER && !only_letter(choice, choice->answer))
        option = option_worded(choice, choice->answer);
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

static struct slice without_article(struct slice text)
{
    static const char *const ARTICLES[] = {"A ", "An ", "The ", "a ", "an ", "the "};
    for (size_t i = 0; i < sizeof ARTICLES / sizeof *ARTICLES; i++)
        if (slice_starts(text, ARTICLES[i]))
            return strip_marks(from(text, strlen(ARTICLES[i])));
    return strip_marks(text);
}

static struct slice first_sentence(struct slice text)
{
    struct slice rest = text, sentence = text;
    sentence_next(&rest, &sentence);
    return sentence;
}

/* Whether an explanation may begin here: "Turkey - it stayed neutral", "The liver, which ...". */
static bool begins_explanation(struct slice rest)
{
    return rest.length == 0 || slice_starts(rest, " — ") || slice_starts(rest, " – ") ||
           slice_starts(rest, " (") || slice_starts(rest, ". ") || slice_starts(rest, ".\n") ||
           slice_starts(rest, ", ") || slice_starts(rest, ": ") || slice_starts(rest, "; ") ||
           rest.start[0] == '\n';
}

/* The option that is the beginning of the answer, before an explanation.  Another one than the expected is not certain:
 * the explanation may deny it. */
static char option_at_head(const struct choice_reader *choice, struct slice line)
{
    char option = NO_LETTER;
    for (size_t at = 1; at <= line.length && at <= OPTION_LENGTH && !option; at++)
        if (begins_explanation(from(line, at)))
            option = find_option(choice, without_article((struct slice){line.start, at}), false);
    return (char)(option == NO_LETTER || option == choice->wanted ? option : SEVERAL_LETTERS);
}

static char read_letter(const struct choice_reader *choice, struct slice span, enum place_kind kind)
{
    struct slice text = strip_marks(span), sentence = text, rest = text;
    char letter = NO_LETTER;
    if (kind == PLACE_HEAD)
        return is_definite(first_sentence(text)) ? option_at_head(choice, text) : NO_LETTER;
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
    letter = letter ? letter : option_equal(choice, text);
    if (!letter && kind == PLACE_ALONE && is_brief(choice->answer)) /* "Kant" */
        letter = option_named(choice, text);
    if (letter || kind == PLACE_ALONE || kind == PLACE_BEGINNING)
        return letter;
    sentence_next(&rest, &sentence);
    if (kind == PLACE_LEADING && is_definite(sentence))
        letter = letter_bracketed(choice, strip_marks(sentence));
    letter = letter ? letter : option_equal(choice, strip_marks(sentence));
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
        index < choice->options.count ? choice->options.texts[index] : (struct slice){0};
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
    uint64_t options;
    enum err err = params_count(config->params, "options", 10, &options, why);
    if (!err && (options < 2 || options > 26))
        return err_set(why, ERR_USAGE, "options=%llu: expected 2 to 26",
                       (unsigned long long)options);
    choice->options = err ? 0 : (unsigned)options;
    return err ? err : final_read(config->params, &choice->final, why);
}

/* The expected letter: "C", "(c)", "C. Paris"; NUL if it is none. */
static char expected_letter(struct slice expected, unsigned options)
{
    struct choice_reader reader = {.last = (char)('A' + (int)options - 1)};
    struct slice text = without_opening(strip_marks(expected));
    bool alone = text.length == 1 || (text.length && strchr(").:", text.start[1]));
    return (char)(alone ? letter_of(&reader, text.start[0], true) : NO_LETTER);
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
    if (what->problem)
        options_read(&reader.options, slice_of(what->problem));
    if (reader.options.count > 1 && reader.wanted < 'A' + (int)reader.options.count &&
        reader.options.count < count)
        count = reader.options.count;
    reader.last = (char)('A' + (int)count - 1);
    struct value_reader with = {&reader, {&reader.wanted, 1}, choice_read, choice_mentions};
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
