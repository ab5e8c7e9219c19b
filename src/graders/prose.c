/* The vocabulary of statements, in one place: what an English sentence says about the value in it.  Linear time. */
#include "graders/prose.h"

#include <ctype.h>
#include <string.h>

#include "graders/fold.h"
#include "graders/number.h"
#include "graders/tokens.h"

/* ---- lines ---- */

static struct slice skip(struct slice text, size_t count)
{
    return (struct slice){text.start + count, text.length - count};
}

bool line_next(struct slice *rest, struct slice *line)
{
    while (rest->length) {
        const char *end = memchr(rest->start, '\n', rest->length);
        *line = slice_trim(slice_between(rest->start, end ? end : slice_end(*rest)));
        *rest = end ? slice_between(end + 1, slice_end(*rest)) : (struct slice){rest->start, 0};
        if (line->length)
            return true;
    }
    return false;
}

struct slice last_line(struct slice text)
{
    struct slice line = {text.start, 0};
    do {
        text = slice_trim(text);
        size_t at = text.length;
        while (at && text.start[at - 1] != '\n')
            at--;
        line = slice_trim(skip(text, at));
        text.length = at;
    } while (text.length && (slice_starts(line, "\\end{") || slice_starts(line, "```") ||
                             slice_is(line, "\\]") || slice_is(line, "$$")));
    return line;
}

static bool is_mark(char c)
{
    return c && strchr("*_`\"'> \t", c);
}

/* Whether the text is one formula in dollar signs. */
static bool is_in_dollars(struct slice text)
{
    return text.length > 2 && text.start[0] == '$' && slice_end(text)[-1] == '$' &&
           !memchr(text.start + 1, '$', text.length - 2);
}

struct slice strip_marks(struct slice text)
{
    text = slice_trim(text);
    size_t hashes = 0;
    while (hashes < text.length && text.start[hashes] == '#')
        hashes++;
    if (hashes < text.length && text.start[hashes] == ' ') /* a heading; not "#42" */
        text = skip(text, hashes);
    while (text.length && (is_mark(text.start[0]) || text.start[0] == ','))
        text = skip(text, 1);
    while (text.length && (is_mark(slice_end(text)[-1]) || strchr(".!,", slice_end(text)[-1])))
        text.length--;
    return is_in_dollars(text) ? slice_trim(skip((struct slice){text.start, text.length - 1}, 1))
                               : text;
}

struct slice after_label(struct slice line)
{
    enum { WORDS_MAX = 3 };
    const char *colon = memchr(line.start, ':', line.length);
    struct slice label = slice_between(line.start, colon ? colon : line.start);
    bool is_label =
        label.length && !has_value(label) && is_definite(label) && count_words(label) <= WORDS_MAX;
    return is_label ? slice_between(colon + 1, slice_end(line)) : (struct slice){line.start, 0};
}

bool line_only_opens(struct slice line)
{
    return slice_starts(line, "```") || slice_is(line, "$$") || slice_is(line, "\\[");
}

/* ---- formulas in a text ---- */

static const struct delimiter {
    const char *open, *close;
} DELIMITERS[] = {
    {"$$", "$$"},
    {"$", "$"},
    {"\\(", "\\)"},
    {"\\[", "\\]"},
    {"\\begin{align*}", "\\end{align*}"},
    {"\\begin{align}", "\\end{align}"},
    {"\\begin{equation*}", "\\end{equation*}"},
    {"\\begin{equation}", "\\end{equation}"},
};

/* Whether the two dollar signs are those of prices: "$15, which is 25% of $60". */
static bool is_money(const struct delimiter *with, const char *start, const char *close,
                     const char *end)
{
    return slice_is(slice_of(with->open), "$") && isdigit((unsigned char)*start) &&
           (slice_is_space(close[-1]) || (close + 1 < end && isdigit((unsigned char)close[1])));
}

static const char *formula_close(const struct delimiter *with, const char *start, const char *end)
{
    end = end - start > FORMULA_REACH ? start + FORMULA_REACH : end;
    for (const char *c = start; c < end; c++)
        if (*c == '\\' && c + 1 < end && c[1] == '$')
            c++;
        else if (slice_starts(slice_between(c, end), with->close))
            return c;
    return NULL;
}

/* The delimiter that begins at the start; NULL if there is none. */
static const struct delimiter *delimiter_at(struct slice text)
{
    for (size_t i = 0; i < COUNT_OF(DELIMITERS); i++)
        if (slice_starts(text, DELIMITERS[i].open))
            return &DELIMITERS[i];
    return NULL;
}

bool formula_next(struct slice *rest, struct slice *formula)
{
    const char *end = slice_end(*rest);
    unsigned failures = 0;
    for (const char *c = rest->start; c < end && failures < FORMULA_FAILURES; c++) {
        const struct delimiter *with =
            *c == '$' || *c == '\\' ? delimiter_at(slice_between(c, end)) : NULL;
        c += *c == '\\' && c + 1 < end && c[1] == '$';
        if (!with)
            continue;
        const char *start = c + strlen(with->open), *close = formula_close(with, start, end);
        failures += !close;
        if (!close || close == start || is_money(with, start, close, end)) {
            c = start - 1;
            continue;
        }
        *formula = slice_trim(slice_between(start, close));
        *rest = slice_between(close + strlen(with->close), end);
        return true;
    }
    return false;
}

/* ---- sentences ---- */

bool has_value(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (isdigit((unsigned char)*token.text.start) ||
            token_in(&token, " $ \\( \\[ \\boxed \\frac ") ||
            (token.text.length == 1 && isupper((unsigned char)*token.text.start) &&
             !token_is(&token, "I")))
            return true;
    return false;
}

bool is_balanced(struct slice text)
{
    int depth = 0;
    for (size_t i = 0; i < text.length; i++)
        depth += (text.start[i] == '(') - (text.start[i] == ')');
    return depth == 0;
}

/* English words that make a sentence a denial, a condition, a bound or a guess. */
static const char DOUBTS[] =
    " neither nor none either unless except wrong incorrect false untrue "
    "unlikely if whether maybe perhaps might may could unsure unclear unable impossible instead "
    "eliminate eliminated rule ruled guess tempting mistake misconception excluding assuming "
    "suppose doubt know sorry unfortunately mentions far close wanted worst trap distractor "
    "asks consider excluded reject rejected disagree anything seems appears below above almost "
    "nearly exceeds says claims ";

bool is_negation(const struct token *word)
{
    struct slice text = word->text;
    bool contracted = text.length > 3 && (slice_is(skip(text, text.length - 3), "n't") ||
                                          slice_is(skip(text, text.length - 4), "’t"));
    return word->kind == TOKEN_WORD && (contracted || token_in(word, " not no never cannot "));
}

bool is_doubt(const struct token *word)
{
    if (word->text.length == 3 && word->text.start[0] == 'M') /* the month */
        return false;
    return is_negation(word) || (word->kind == TOKEN_WORD && token_in(word, DOUBTS));
}

/* "at least", "more than", "would need", but for "adds up to" */
static bool is_doubtful_phrase(const struct token *second, const struct token *first,
                               const struct token *token)
{
    static const char OTHERS[] = " people many some most ";
    return (token_is(first, "at") && token_in(token, " least most ")) ||
           (token_is(token, "than") && token_in(first, " more less fewer rather ")) ||
           (token_is(first, "would") && token_is(token, "need")) ||
           (token_is(first, "too") && token->kind == TOKEN_WORD) ||
           (token_in(token, " say think believe pick choose assume ") &&
            (token_in(first, OTHERS) || (token_is(first, "would") && token_in(second, OTHERS)))) ||
           (token_is(first, "up") && token_is(token, "to") &&
            !token_in(second, " add adds adding sum sums comes "));
}

bool is_definite(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, second = {0};
    for (; token_next(&tokens, &token); second = before, before = token)
        if (is_doubt(&token) || token_in(&token, " ? ？ ") ||
            is_doubtful_phrase(&second, &before, &token))
            return false;
    return true;
}

enum language language_of(struct slice text)
{
    enum { FOREIGN_WORDS = 3 };
    static const char WORDS[] =
        " the is are was were be been of and it its it's so this that that's these those there has "
        "have had he she they we you your i i'd i'll i'm to therefore thus hence total equals "
        "gives "
        "left contains needs must can will would does which what because only ";
    static const char OTHERS[] =
        " as or more at some see for on in by from with say times let's next now ";
    struct tokens tokens = tokens_of(text);
    struct token token;
    unsigned words = 0, others = 0;
    while (token_next(&tokens, &token)) {
        if (token_in(&token, WORDS))
            return ENGLISH;
        others += token_in(&token, OTHERS);
        if (token_is_cjk(&token))
            return UNCERTAIN;
        words += token.kind == TOKEN_WORD && !isdigit((unsigned char)*token.text.start);
    }
    if (words == 0) /* nothing to misunderstand */
        return FOREIGN;
    return words >= FOREIGN_WORDS && !others ? FOREIGN : UNCERTAIN;
}

bool is_hypothetical(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0};
    for (; token_next(&tokens, &token); before = token)
        if (token_is(&token, "would") && !token_is(&before, "i"))
            return true;
    return false;
}

bool has_alternative(struct slice sentence)
{
    return has_token(sentence, " but ; ") || is_hypothetical(sentence);
}

bool is_readable(struct slice sentence)
{
    return sentence.length && is_balanced(sentence) && !has_alternative(sentence) &&
           language_of(sentence) == ENGLISH && is_definite(sentence);
}

/* Also a number in words. */
static bool states_value(struct slice sentence)
{
    struct number ignored;
    return has_value(sentence) || number_in_words(sentence, &ignored);
}

/* "(Going from left to right would give 28.)" */
static bool is_remark(struct slice sentence)
{
    const char *end = slice_end(sentence);
    bool closed = sentence.length > 2 && (end[-1] == ')' || (end[-1] == '.' && end[-2] == ')'));
    return closed && sentence.start[0] == '(' && is_balanced(sentence);
}

struct slice last_sentence(struct slice text)
{
    struct slice sentence, last = {text.start, 0}, valued = last;
    while (sentence_next(&text, &sentence)) {
        if (is_remark(sentence) && last.length)
            continue;
        valued = states_value(sentence) ? sentence : valued;
        last = sentence;
    }
    return valued.length ? valued : last;
}

struct slice conclusion(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, next;
    const char *start = sentence.start;
    while (token_next(&tokens, &token))
        if (token_in(&token, " therefore thus hence → ; ") ||
            (token_is(&token, "so") && token_next(&tokens, &next) &&
             !token_in(&next, " on that far ")))
            start = token.text.start;
    return slice_between(start, slice_end(sentence));
}

bool concludes(struct slice text)
{
    return has_token(text, " so therefore thus hence wait ");
}

/* Whether a value follows: ", which gives 5", ", as described in B". */
static bool leads_to_value(const struct token *token, struct tokens after)
{
    struct token verb = {0};
    return token_next(&after, &verb) &&
           ((token_is(token, "which") &&
             token_in(&verb, " gives equals simplifies corresponds matches ")) ||
            (token_is(token, "as") && token_in(&verb, " described shown stated ")));
}

/* Whether the token begins a reason that follows its claim: "13, as 5^2 + 12^2 = 169". */
static bool begins_reason(const struct token *token, const struct token *before,
                          struct tokens after)
{
    struct token next = {0};
    if (token_next(&after, &next) && token_in(&next, " is are was well ")) /* ", as is B" */
        return false;
    if (!before->text.length || token_in(before, " and but "))
        return false;
    return token_in(token, " because since ") ||
           (token_is(before, ",") && token_in(token, " as using "));
}

/* The last token that is a value; the start of the text if there is none. */
static const char *last_value(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    const char *last = text.start;
    while (token_next(&tokens, &token))
        if (has_value(token.text))
            last = token.text.start;
    return last;
}

struct slice main_clause(struct slice sentence)
{
    static const char WORDS[] =
        " because since when where while whereas attained which who given as using being ";
    const char *last = last_value(sentence);
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0};
    int depth = 0;
    for (; token_next(&tokens, &token); before = token) {
        struct slice rest = slice_between(token.text.start, slice_end(sentence));
        depth += token_is(&token, "(") - token_is(&token, ")");
        if (depth > 0) /* a remark */
            continue;
        if (leads_to_value(&token, tokens))
            continue;
        if (begins_reason(&token, &before, tokens))
            return concludes(rest) ? (struct slice){sentence.start, 0}
                                   : slice_between(sentence.start, token.text.start);
        if (token_in(&token, WORDS) && before.text.length && last > token.text.start)
            return (struct slice){sentence.start, 0};
    }
    return sentence;
}

/* Whether a bracket that opens at the token closes at the end of the sentence. */
static bool closes_at_end(struct tokens tokens)
{
    struct token token;
    int depth = 1;
    while (depth > 0 && token_next(&tokens, &token))
        depth += token_is(&token, "(") - token_is(&token, ")");
    while (token_next(&tokens, &token))
        if (!token_in(&token, " . * _ ! "))
            return false;
    return depth == 0;
}

/* ", or 12.6", ", which is 12.6", ", i.e. 12.6", ", where x > 0" */
static bool begins_remark(const struct token *token, struct tokens after)
{
    struct token verb = {0};
    return token_in(token, " or i where ") ||
           (token_is(token, "which") && token_next(&after, &verb) &&
            token_in(&verb, " is are equals also "));
}

struct slice without_restatement(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0};
    for (bool valued = false; token_next(&tokens, &token); before = token) {
        struct slice rest = slice_between(token.text.start, slice_end(sentence));
        bool remark = token_is(&before, ",") && begins_remark(&token, tokens) && is_definite(rest);
        bool bracket = token_is(&token, "(") && token.spaced &&
                       (before.kind == TOKEN_WORD || token_in(&before, " } $ ° * ")) &&
                       closes_at_end(tokens);
        if (valued && (remark || bracket))
            return slice_trim(
                slice_between(sentence.start, remark ? before.text.start : token.text.start));
        valued = valued || has_value(token.text);
    }
    return sentence;
}

/* ---- whole answers ---- */

/* An earlier sentence has its full stop, or the last word leads to another. */
bool is_cut(struct slice text)
{
    static const char LEADING[] =
        " the a an and then or to of is so we because for with in by that ";
    struct slice last = last_line(text), rest = last, sentence;
    struct tokens tokens = tokens_of(last);
    struct token token = {0};
    unsigned sentences = 0;
    while (sentence_next(&rest, &sentence))
        sentences++;
    while (token_next(&tokens, &token))
        ;
    return (sentences > 1 && last.length && isalpha((unsigned char)slice_end(last)[-1])) ||
           (token_in(&token, LEADING) && islower((unsigned char)token.text.start[0])); /* "3 A" */
}

/* "I cannot determine ...", "there isn't enough information", "sorry"; not "the numbers that we know". */
static bool refuses(struct slice sentence)
{
    static const char WORDS[] =
        " know determine enough information answer sure certain decide tell solve ";
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    bool word = false, negated = false;
    while (token_next(&tokens, &token)) {
        if (token_in(&token, " sorry unfortunately "))
            return true;
        word = word || token_in(&token, WORDS);
        negated = negated || is_negation(&token) || token_in(&token, " unable impossible unsure ");
    }
    return word && negated;
}

bool has_refusal(struct slice text)
{
    struct slice sentence;
    while (sentence_next(&text, &sentence))
        if (refuses(sentence))
            return true;
    return false;
}

/* "Check: ...", "Let me verify ...", "Explanation: ..." */
static bool is_afterword(struct slice sentence)
{
    static const char FIRST[] =
        " check verification explanation note proof reasoning why hope let feel substituting ";
    struct tokens tokens = tokens_of(strip_marks(sentence));
    struct token token;
    for (bool first = true; token_next(&tokens, &token); first = false)
        if ((first && token_in(&token, FIRST)) || token_in(&token, " check verify "))
            return true;
    return false;
}

struct slice without_afterword(struct slice text)
{
    struct slice rest = text, sentence;
    for (bool valued = false; sentence_next(&rest, &sentence);
         valued = valued || has_value(sentence))
        if (valued && is_afterword(sentence)) {
            struct slice after = slice_between(sentence.start, slice_end(text));
            bool chooses = concludes(after) || has_token(after, " go going choose pick ");
            return chooses ? text : slice_between(text.start, sentence.start);
        }
    return text;
}

/* "Question 2:", "Q:", "Next question" */
static bool is_question_heading(struct slice line)
{
    struct tokens tokens = tokens_of(line);
    struct token word = {0}, mark = {0};
    if (!token_next(&tokens, &word) || !token_next(&tokens, &mark))
        return false;
    return (token_in(&word, " question problem q ") &&
            (token_in(&mark, " : # ") || isdigit((unsigned char)*mark.text.start))) ||
           (token_in(&word, " q1 q2 q3 q4 q5 ") && token_is(&mark, ":")) ||
           (token_is(&word, "next") && token_is(&mark, "question"));
}

/* Whether a blank line precedes. */
static bool begins_paragraph(struct slice text, struct slice line)
{
    const char *at = line.start;
    unsigned ends = 0;
    for (; at > text.start && slice_is_space(at[-1]); at--)
        ends += at[-1] == '\n';
    return ends > 1 && at > text.start;
}

struct slice before_next_question(struct slice text, bool *by_paragraph)
{
    struct slice rest = text, line;
    *by_paragraph = false;
    for (bool valued = false; line_next(&rest, &line); valued = valued || has_value(line)) {
        struct slice before = slice_between(text.start, line.start);
        if (is_question_heading(strip_marks(line)))
            return valued ? before : text; /* or a list of questions from the start */
        *by_paragraph =
            valued && begins_paragraph(text, line) && memchr(line.start, '?', line.length);
        if (*by_paragraph)
            return before;
    }
    return text;
}
