/* Letters of options in texts; the rules of how an option is named by its text are question.c's. */
#include "graders/letters.h"

#include <ctype.h>
#include <string.h>

#include "graders/prose.h"

static struct slice from(struct slice text, size_t at)
{
    return (struct slice){text.start + at, text.length - at};
}

char letter_of(const struct choice_reader *choice, char c, bool lower_too)
{
    char upper = (char)(lower_too ? toupper((unsigned char)c) : c);
    return (char)(upper >= 'A' && upper <= choice->last ? upper : NO_LETTER);
}

/* A letter that stands alone.  "A" before a word is an article, in
 * other languages at the start of a sentence, and "I" a pronoun; those of "B-cells", "C++" and "x = A"
 * are parts of a name. */
static char letter_at(const struct choice_reader *choice, const struct token *token,
                      const struct token *before, struct tokens after)
{
    struct token next = {0};
    bool one = token->kind == TOKEN_WORD && token->text.length == 1;
    char letter = (char)(one ? letter_of(choice, token->text.start[0], false) : NO_LETTER);
    bool more = token_next(&after, &next) && next.kind != TOKEN_LINE;
    bool attached = more && !next.spaced;
    if (!letter || token_in(before, " = + - / \\ _ ^ ° ") ||
        (attached && token_in(&next, " - + ' ^ _ = ")))
        return NO_LETTER;
    bool word =
        more && next.spaced && next.kind == TOKEN_WORD && isalpha((unsigned char)*next.text.start);
    bool within = choice->foreign && before->text.length &&
                  before->kind == TOKEN_WORD; /* there in lower case */
    bool article = (letter == 'A' || letter == 'I') && word && !within &&
                   !token_in(&next, " is because since as and or was along with ");
    return (char)(article ? NO_LETTER : letter);
}

char only_letter(const struct choice_reader *choice, struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token, before = {0};
    char found = NO_LETTER;
    for (; token_next(&tokens, &token); before = token)
        found = combine(found, letter_at(choice, &token, &before, tokens));
    return found;
}

/* ---- a letter at the start ---- */

struct slice without_opening(struct slice text)
{
    static const char OPENING[] =
        " option choice letter sentence statement ( [ { * _ ` \" ' $ \\text \\textbf "
        "\\mathrm \\mathbf \\boxed \\ : → ";
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token) && token_in(&token, OPENING))
        text = slice_between(tokens.at, slice_end(text));
    return slice_trim(text);
}

struct slice without_closing(struct slice text)
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
    if (choice->question.count)
        return index < choice->question.count && option_equal(&choice->question, text) == letter;
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

/* The letter that is the text after a label, or the label of an option: "B", "B) Paris". */
static char letter_after(const struct choice_reader *choice, struct slice text)
{
    text = without_opening(text);
    char letter = (char)(text.length ? letter_of(choice, text.start[0], false) : NO_LETTER);
    if (!letter)
        return NO_LETTER;
    struct slice rest = without_closing(from(text, 1));
    bool closed = rest.length < text.length - 1;
    bool alone = rest.length == 0 || (closed && is_label_of(choice, letter, strip_marks(rest)));
    return (char)(alone ? letter : NO_LETTER);
}

/* Whether another line has another letter after a label: "Best: B", "Second best: C". */
static bool has_other_labeled(const struct choice_reader *choice, char letter)
{
    struct slice rest = choice->answer, line;
    char found = letter;
    while (line_next(&rest, &line))
        found = combine(found, letter_after(choice, after_label(strip_marks(line))));
    return found != letter;
}

char letter_alone(const struct choice_reader *choice, struct slice line, bool only)
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
    letter = letter_after(choice, slice_between(colon, slice_end(line)));
    bool foreign = language_of(choice->answer) != ENGLISH && after_label(line).length;
    single = only_letter(choice, choice->answer) == letter ||
             (foreign && !has_other_labeled(choice, letter)); /* "Antwort: B) Paris" */
    return (char)(single ? letter : NO_LETTER);
}

/* Whether another letter is joined to this one: "B or C", "B) Paris and D) Rome". */
static bool joins_other(const struct choice_reader *choice, char letter, struct slice text)
{
    struct tokens tokens = tokens_of(text);
    const struct token none = {.kind = TOKEN_MARK};
    struct token token, word = {0};
    while (token_next(&tokens, &token)) {
        bool joined = token_in(&word, " or and / & , ");
        char other = letter_at(choice, &token, &none, tokens);
        if (joined && other && other != letter)
            return true;
        bool repeated = token_is(&token, "option") && token_in(&word, " or and ");
        word = repeated || token_in(&token, " ( [ * ") ? word : token;
    }
    return false;
}

/* The letter if a remark in parentheses follows it, "C (2 A)", and none of "A (or B)". */
static char letter_remarked(const struct choice_reader *choice, char letter, struct slice rest)
{
    bool doubtful = has_token(rest, " possibly perhaps maybe ");
    return (char)(doubtful || joins_other(choice, letter, rest) ? SEVERAL_LETTERS : letter);
}

/* Whether the text after a letter and its full stop begins with a lower-case word: "E. coli". */
static bool continues_name(const struct token *letter, const struct token *next)
{
    return slice_end(letter->text)[0] == '.' && next->text.length > 2 &&
           islower((unsigned char)next->text.start[0]) &&
           isalpha((unsigned char)next->text.start[1]);
}

/* The letter at the start of the text, which may be a small one before a parenthesis: "(c) trapezoid", "c) trapezoid". */
static char first_letter(const struct choice_reader *choice, struct slice text, struct token *token,
                         struct tokens *tokens)
{
    struct token none = {.kind = TOKEN_MARK};
    *tokens = tokens_of(text);
    if (!token_next(tokens, token))
        return NO_LETTER;
    char letter = letter_at(choice, token, &none, *tokens);
    bool bracketed = tokens->at < tokens->end && *tokens->at == ')';
    return (char)(!letter && bracketed && token->text.length == 1
                      ? letter_of(choice, token->text.start[0], true)
                      : letter);
}

/* The text without an arrow or a dash before an explanation: "B => Paris", "B — Paris". */
static struct slice without_separator(struct slice text)
{
    static const char *const SEPARATORS[] = {"=>", "->", "→", "—", "– ", "- "};
    for (size_t i = 0; i < COUNT_OF(SEPARATORS); i++)
        if (slice_starts(text, SEPARATORS[i]))
            return slice_trim(from(text, strlen(SEPARATORS[i])));
    return text;
}

static struct slice before_parenthesis(struct slice sentence)
{
    const char *open = memchr(sentence.start, '(', sentence.length);
    return open ? slice_between(sentence.start, open) : sentence;
}

char letter_leading(const struct choice_reader *choice, struct slice span)
{
    struct slice text = without_opening(span), sentence;
    struct tokens tokens;
    struct token token, next = {0};
    char letter = first_letter(choice, text, &token, &tokens);
    if (!letter)
        return NO_LETTER;
    struct slice rest = without_closing(slice_between(tokens.at, slice_end(text)));
    bool closed = rest.start > tokens.at + 1 || (rest.start > tokens.at && *tokens.at != ' ');
    struct slice explanation = without_separator(rest);
    closed = closed || explanation.length < rest.length;
    rest = explanation;
    bool comma = rest.length && rest.start[0] == ',';
    rest = comma ? slice_trim(from(rest, 1)) : rest;
    tokens = tokens_of(rest);
    if (!token_next(&tokens, &next) || token_in(&next, " because since "))
        return letter;
    if (token_is(&next, "("))
        return letter_remarked(choice, letter, rest);
    if (joins_other(choice, letter, rest))
        return SEVERAL_LETTERS;
    if (closed && option_beginning(&choice->question, rest) == letter)
        return letter;
    bool word = !comma && (closed ? continues_name(&token, &next) : next.kind == TOKEN_WORD);
    if (word || !sentence_next(&rest, &sentence))
        return NO_LETTER;
    if (!comma && token_in(&next, " / + = & ❌ ✗ ")) /* "B/C" */
        return SEVERAL_LETTERS;
    sentence = before_parenthesis(sentence);
    char other = option_equal(&choice->question, strip_marks(sentence));
    if (other != letter) /* the text of its option may have other letters */
        other = combine(other, only_letter(choice, sentence));
    return (char)(is_definite(sentence) && combine(letter, other) == letter ? letter
                                                                            : SEVERAL_LETTERS);
}

char letter_bracketed(const struct choice_reader *choice, struct slice text)
{
    if (text.length < 3 || !strchr(")]", slice_end(text)[-1]) || !strchr("([", slice_end(text)[-3]))
        return NO_LETTER;
    char letter = letter_of(choice, slice_end(text)[-2], false);
    struct slice name = slice_trim((struct slice){text.start, text.length - 3});
    return (char)(letter ? combine(letter, combine(only_letter(choice, text),
                                                   option_equal(&choice->question, name)))
                         : NO_LETTER);
}

/* ---- a letter in a sentence ---- */

bool is_called_right(struct tokens tokens)
{
    struct token token = {0};
    while (token_next(&tokens, &token) &&
           token_in(&token, " ) * is 's also the clearly definitely "))
        ;
    if (token_in(&token, " best ") && token_next(&tokens, &token)) /* "is the best description" */
        return token.kind == TOKEN_WORD;
    if (token_in(&token, " only ") && token_next(&tokens, &token)) /* "is the only option with" */
        return token_in(&token, " option choice one answer ");
    if (token_in(&token, " most ") && !token_next(&tokens, &token))
        return false;
    if (token_in(&token, " fits ") && token_next(&tokens, &token))
        return token_is(&token, "best");
    if (!token_in(&token, " correct right answer accurate choice option "))
        return false;
    while (token_next(&tokens, &token) &&
           token_in(&token, " answer choice option one too . ! * ) "))
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
    if (token_is(before, "only") && before->text.start == first->text.start) /* "Only D fits." */
        return true;
    if (more && !explained)
        return false;
    if (token_in(before,
                 " option choice letter corresponds matches ")) /* "..., which matches B." */
        return true;
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
        bool linked = (token_is(&token, "with") && token_in(&word, " go going went ")) ||
                      (token_is(&token, "to") && token_is(&word, "corresponds"));
        if (!opening && !linked)
            word = token;
        before = token;
    }
    return NO_LETTER;
}

char letter_chosen(const struct choice_reader *choice, struct slice sentence)
{
    char letter = letter_chosen_in(choice, sentence);
    struct slice rest = choice->answer, other;
    while (letter && sentence_next(&rest, &other))
        letter = combine(letter, is_definite(other) ? letter_chosen_in(choice, other) : NO_LETTER);
    return letter;
}

char letter_chosen_once(const struct choice_reader *choice)
{
    struct slice rest = choice->answer, sentence;
    char letter = NO_LETTER;
    while (sentence_next(&rest, &sentence)) {
        struct tokens tokens = tokens_of(sentence);
        struct token first = {0};
        token_next(&tokens, &first);
        bool looks = token_in(&first, " let's let first next consider or but no ");
        bool doubtful = looks || (letter && !is_definite(sentence));
        if (token_in(&first, " wait hmm actually ") || (doubtful && only_letter(choice, sentence)))
            return NO_LETTER;
        letter =
            combine(letter, is_definite(sentence) ? letter_chosen_in(choice, sentence) : NO_LETTER);
    }
    return letter;
}

/* Whether the text has a letter that is closed, as the label of an option is: "(B)", "B:". */
static bool has_label(const struct choice_reader *choice, struct slice text)
{
    for (size_t i = 0; i + 1 < text.length; i++)
        if (letter_of(choice, text.start[i], false) && strchr(").:", text.start[i + 1]) &&
            (i == 0 || !isalnum((unsigned char)text.start[i - 1])))
            return true;
    return false;
}

char letter_at_head(const struct choice_reader *choice)
{
    struct slice rest = choice->answer, sentence;
    if (!sentence_next(&rest, &sentence))
        return NO_LETTER;
    struct slice text = without_opening(sentence), explanation = strip_marks(rest);
    char letter = (char)(text.length ? letter_of(choice, text.start[0], false) : NO_LETTER);
    bool alone = letter && !without_closing(from(text, 1)).length && text.length > 1;
    bool explained = explanation.length && !has_token(rest, " wrong incorrect false ") &&
                     isupper((unsigned char)explanation.start[0]) &&
                     !memchr(rest.start, '?', rest.length) && !has_label(choice, rest);
    return (char)(alone && explained ? letter : NO_LETTER);
}

char expected_letter(struct slice expected, unsigned options)
{
    struct choice_reader reader = {.last = (char)('A' + (int)options - 1)};
    struct slice text = without_opening(strip_marks(expected));
    bool alone = text.length == 1 || (text.length && strchr(").:", text.start[1]));
    return (char)(alone ? letter_of(&reader, text.start[0], true) : NO_LETTER);
}
