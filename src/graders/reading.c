/* The rules by which an answer is found.  Every search is one pass with bounded lookahead, so that it takes linear time
 * even for a hostile completion. */
#include "graders/reading.h"

#include <ctype.h>

#include "core/params.h"
#include "core/text.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/number.h"
#include "graders/tokens.h"

/* ---- the parameter ---- */

enum err final_read(const struct params *params, enum final_rule *rule, struct error *why)
{
    static const char *const NAMES[] = {"auto", "marked", "line", "whole"};
    const char *given = params_get(params, "final");
    *rule = FINAL_AUTO;
    for (size_t i = 0; given && i < sizeof NAMES / sizeof *NAMES; i++)
        if (str_equal_nocase(given, NAMES[i])) {
            *rule = (enum final_rule)i;
            return ERR_OK;
        }
    if (given)
        return err_set(why, ERR_USAGE, "final=%s: expected auto, marked, line or whole", given);
    return ERR_OK;
}

/* ---- lines and marks ---- */

static struct slice skip(struct slice text, size_t count)
{
    return (struct slice){text.start + count, text.length - count};
}

/* Takes the next line that is not blank, trimmed. */
static bool line_next(struct slice *rest, struct slice *line)
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

static struct slice first_line(struct slice text)
{
    struct slice line = {text.start, 0};
    line_next(&text, &line);
    return line;
}

/* The last line, but for one that only closes a formula or a code block. */
static struct slice last_line(struct slice text)
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

/* ---- markers: \boxed{X} ---- */

static bool is_escaped(struct slice text, size_t at)
{
    return at && text.start[at - 1] == '\\';
}

/* Longest formula or box: a longer search for its end is given up. */
enum { REACH = 4000 };

/* Position of the brace that closes the one at `open`; the end of the text if there is none in reach. */
static size_t closing_brace(struct slice text, size_t open)
{
    unsigned long depth = 0;
    for (size_t at = open; at < text.length && at - open < REACH; at++) {
        if (is_escaped(text, at))
            continue;
        depth += text.start[at] == '{';
        depth -= text.start[at] == '}';
        if (depth == 0)
            return at;
    }
    return text.length;
}

/* The brace of the next \boxed{ or \fbox{ at or after `at`; the end of the text if there is none. */
static size_t next_box(struct slice text, size_t at)
{
    for (; at < text.length; at++) {
        struct slice rest = skip(text, at);
        size_t length = slice_starts(rest, "\\boxed") ? 6 : slice_starts(rest, "\\fbox") ? 5 : 0;
        for (; length && length < rest.length && rest.start[length] == ' '; length++)
            continue;
        if (length && length < rest.length && rest.start[length] == '{')
            return at + length;
    }
    return at;
}

/* Whether the text between two boxes joins them to a list: "and", "or", a comma. */
static bool joins_boxes(struct slice between)
{
    struct tokens tokens = tokens_of(between);
    struct token token;
    bool joins = false;
    while (token_next(&tokens, &token)) {
        joins = joins || token_in(&token, " and or , ");
        if (!token_in(&token, " and or , ; $ { } ( ) [ ] \\ \\quad \\qquad \\text ") ||
            token.kind == TOKEN_LINE)
            return false;
    }
    return joins;
}

enum { SPANS_MAX = 8 };

/* Places found by one rule: their values must agree. */
struct spans {
    struct slice at[SPANS_MAX];
    unsigned count;
};

static void add_span(struct spans *spans, struct slice span)
{
    if (slice_trim(span).length && spans->count < SPANS_MAX)
        spans->at[spans->count++] = slice_trim(span);
}

/* The boxes of the last line that has one.  Boxes that are joined are one list. */
static void find_boxed(struct slice text, struct spans *out)
{
    size_t end = 0;
    for (size_t at = next_box(text, 0); at < text.length; at = next_box(text, end)) {
        size_t close = closing_brace(text, at);
        if (close == text.length) { /* cut, or a brace too many */
            end = at + 1;
            continue;
        }
        struct slice between = slice_between(text.start + end, text.start + at);
        bool same_line = !memchr(between.start, '\n', between.length);
        const char *command = text.start + at;
        while (*command != '\\')
            command--;
        struct slice *last = out->count ? &out->at[out->count - 1] : NULL;
        if (!same_line)
            out->count = 0;
        if (same_line && last && joins_boxes(slice_between(text.start + end, command)))
            *last = slice_between(last->start, text.start + close + 1);
        else
            add_span(out, slice_between(text.start + at + 1, text.start + close));
        end = close + 1;
    }
}

/* ---- markers: #### X ---- */

static void find_hashes(struct slice text, struct spans *out)
{
    struct slice line;
    while (line_next(&text, &line)) {
        if (!slice_starts(line, "####"))
            continue;
        struct slice value = strip_marks(skip(line, 4));
        struct number number;
        bool short_value = value.length == 1 || number_whole(value, &number);
        if (short_value) { /* and no heading */
            out->count = 0;
            add_span(out, value);
        }
    }
}

/* ---- markers: Answer: X, and statements: the answer is X ---- */

/* English words that make a sentence a denial, a condition, a bound or a guess. */
static const char DOUBTS[] =
    " not no never cannot neither nor none either unless except wrong incorrect false untrue unlikely "
    "if whether maybe perhaps might may could unsure unclear unable impossible instead than "
    "least most almost nearly under over below above exceeds eliminate eliminated rule ruled "
    "guess tempting mistake misconception excluding assuming suppose doubt know need sorry "
    "unfortunately mentions far too close wanted worst trap distractor people asks consider "
    "excluded reject rejected disagree anything ";

static bool is_doubt(const struct token *token)
{
    struct slice text = token->text;
    bool contracted = text.length > 3 && (slice_is(skip(text, text.length - 3), "n't") ||
                                          slice_is(skip(text, text.length - 4), "’t"));
    return token->kind == TOKEN_WORD && (contracted || token_in(token, DOUBTS));
}

bool is_definite(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, before = {0}, second = {0};
    for (; token_next(&tokens, &token); second = before, before = token)
        if (is_doubt(&token) || token_in(&token, " ? ？ ") ||
            (token_is(&token, "to") && token_is(&before, "up") &&
             !token_in(&second, " add adds adding sum sums comes "))) /* "up to 7" */
            return false;
    return true;
}

/* Lines that only open a formula or a code block. */
static bool only_opens(struct slice line)
{
    return slice_starts(line, "```") || slice_is(line, "$$") || slice_is(line, "\\[");
}

/* The value after a marker: the rest of its line, or the next line that is not blank.  Without the closing part of a
 * quote or a tag: {"answer": "X"}, <answer>X</answer>. */
static struct slice value_after(const char *at, const char *end)
{
    struct slice rest = slice_between(at, end), line = {at, 0};
    while (rest.length && strchr("*_:>\"` \t", rest.start[0]))
        rest = skip(rest, 1);
    bool quoted = rest.start > at && rest.start[-1] == '"';
    while (line_next(&rest, &line) && only_opens(line))
        ;
    for (size_t i = 0; i + 1 < line.length; i++)
        if ((quoted && line.start[i] == '"') || (line.start[i] == '<' && line.start[i + 1] == '/'))
            line.length = i;
    return slice_trim(line);
}

enum statement { STATEMENT_NONE, STATEMENT_MARKER, STATEMENT_VERB };

/* What follows the noun "answer": a colon, or "is".  *value is then after it. */
static enum statement statement_after(struct tokens tokens, bool starts_line, bool single,
                                      const char **value)
{
    enum { WORDS_MAX = 8 };
    struct token token;
    for (unsigned words = 0; words <= WORDS_MAX && token_next(&tokens, &token);) {
        *value = tokens.at;
        if (token.kind == TOKEN_LINE)
            return starts_line && words == 0 ? STATEMENT_MARKER : STATEMENT_NONE; /* a heading */
        if (is_doubt(&token) || token_in(&token, " . ! ? ; "))
            return STATEMENT_NONE;
        if (token_in(&token, " : ： = → "))
            return words <= 3 ? STATEMENT_MARKER : STATEMENT_NONE;
        if (token_in(&token, " - – — > ") && words == 0 && token.spaced)
            return STATEMENT_MARKER;
        if (token_in(&token, " is are was be equals "))
            return STATEMENT_VERB;
        bool bare = token_in(&token, " $ ( \\boxed ") || isdigit((unsigned char)*token.text.start) ||
                    (token.text.length == 1 && isupper((unsigned char)*token.text.start));
        if (starts_line && words == 0 && bare && token.spaced && single) { /* "Answer 16" */
            *value = token.text.start;
            return STATEMENT_MARKER;
        }
        words += token.kind == TOKEN_WORD;
    }
    return STATEMENT_NONE;
}

/* The last statement of one kind. */
static void find_statement(struct slice text, enum statement kind, struct spans *out)
{
    static const char LEADS[] = " the final correct my our best right short exact ";
    struct tokens tokens = tokens_of(text);
    struct token token;
    bool starts_line = true, doubtful = false;
    while (token_next(&tokens, &token)) {
        const char *value = tokens.at;
        bool noun = token_in(&token, " answer answers ") ||
                    (kind == STATEMENT_VERB && token_in(&token, " option choice "));
        enum statement found =
            noun && !doubtful ? statement_after(tokens, starts_line, token_is(&token, "answer"), &value)
                             : STATEMENT_NONE;
        if (found == kind) {
            const struct slice *last = out->count ? &out->at[out->count - 1] : NULL;
            bool next_line = last && last->start < token.text.start &&
                             !slice_trim(slice_between(slice_end(*last), token.text.start)).length;
            out->count = next_line ? out->count : 0; /* "Answer: A\nAnswer: B" */
            add_span(out, value_after(value, slice_end(text)));
        }
        bool ends = token.kind == TOKEN_LINE || token_in(&token, " . ! ? ");
        doubtful = !ends && (doubtful || is_doubt(&token));
        starts_line = token.kind == TOKEN_LINE ||
                      (starts_line && (token.kind == TOKEN_MARK || token_in(&token, LEADS)));
    }
}

static void find_answer_marker(struct slice text, struct spans *out)
{
    find_statement(text, STATEMENT_MARKER, out);
}

static void find_answer_is(struct slice text, struct spans *out)
{
    find_statement(text, STATEMENT_VERB, out);
}

/* The last of the three markers. */
static void find_marker(struct slice text, struct spans *out)
{
    void (*const FINDERS[])(struct slice, struct spans *) = {find_answer_marker, find_hashes,
                                                             find_boxed};
    for (size_t i = 0; i < sizeof FINDERS / sizeof *FINDERS; i++) {
        struct spans found = {.count = 0};
        FINDERS[i](text, &found);
        if (found.count && (!out->count || found.at[0].start >= out->at[0].start))
            *out = found;
    }
}

/* ---- lines and bold ---- */

/* Whether there is a digit, a letter that stands alone or a formula. */
static bool has_value(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (isdigit((unsigned char)*token.text.start) || token_in(&token, " $ \\boxed ") ||
            (token.text.length == 1 && isupper((unsigned char)*token.text.start)))
            return true;
    return false;
}

static void find_whole(struct slice text, struct spans *out)
{
    add_span(out, text);
}

static bool is_balanced(struct slice sentence)
{
    int depth = 0;
    for (size_t i = 0; i < sentence.length; i++)
        depth += (sentence.start[i] == '(') - (sentence.start[i] == ')');
    return depth == 0;
}

/* The last line, and its last sentence: "Airway first! C." */
static void find_last_line(struct slice text, struct spans *out)
{
    struct slice line = last_line(text), rest = line, sentence = line;
    while (sentence_next(&rest, &sentence))
        ;
    add_span(out, line);
    if (sentence.start > line.start && slice_is_space(sentence.start[-1]) && is_balanced(sentence))
        add_span(out, sentence);
}

static void find_first_line(struct slice text, struct spans *out)
{
    add_span(out, first_line(text));
}

/* The only text in bold that has a value, or the only one. */
static void find_bold(struct slice text, struct spans *out)
{
    struct slice line, bold, valued = {0}, any = {0};
    unsigned count = 0, values = 0;
    while (line_next(&text, &line))
        for (struct slice rest = line; bold_next(&rest, &bold); count++) {
            if (!is_definite(line))
                return;
            any = bold;
            values += has_value(bold);
            if (has_value(bold))
                valued = has_value(rest) ? (struct slice){bold.start, 0} : bold;
        }
    if (values == 1)
        add_span(out, valued);
    else if (count == 1)
        add_span(out, any);
}

/* ---- prose ---- */

enum language { ENGLISH, FOREIGN, UNCERTAIN };

/* English has one of its common words; is_definite knows its denials and bounds.  Foreign are several words, none of
 * which is English, with a letter that is not ASCII; not those without spaces, where the value may be denied in the
 * same word. */
static enum language language_of(struct slice sentence)
{
    enum { FOREIGN_WORDS = 3 };
    static const char WORDS[] = " the is are was of and it so this that there has have he she they "
                                "we to i i'd i'll i'm therefore thus hence total equals gives left has contains needs ";
    static const char OTHERS[] = " as or more at some see for on in by from with say times let's next now ";
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    unsigned words = 0, others = 0, letters = 0;
    while (token_next(&tokens, &token)) {
        if (token_in(&token, WORDS))
            return ENGLISH;
        others += token_in(&token, OTHERS);
        if (token_is_cjk(&token))
            return UNCERTAIN;
        bool word = token.kind == TOKEN_WORD && !isdigit((unsigned char)*token.text.start);
        for (size_t i = 0; i < token.text.length && word; i++)
            letters += (unsigned char)token.text.start[i] >= 0xC3;
        words += word;
    }
    return words >= FOREIGN_WORDS && letters && !others ? FOREIGN : UNCERTAIN;
}

bool is_foreign(struct slice text)
{
    return language_of(text) == FOREIGN;
}

/* Whether the text breaks off within a sentence: an earlier one has its full stop, or the last word leads to another. */
static bool is_cut(struct slice text)
{
    static const char LEADING[] = " the a an and then or to of is so we because for with in by that ";
    struct slice last = last_line(text), rest = last, sentence;
    struct tokens tokens = tokens_of(last);
    struct token token = {0};
    unsigned sentences = 0;
    while (sentence_next(&rest, &sentence))
        sentences++;
    while (token_next(&tokens, &token))
        ;
    return (sentences > 1 && last.length && isalpha((unsigned char)slice_end(last)[-1])) ||
           token_in(&token, LEADING);
}

/* Whether a sentence refuses to answer: "I cannot determine ...", "there isn't enough information". */
static bool has_refusal(struct slice text)
{
    static const char WORDS[] =
        " know determine enough information answer sure certain decide tell solve sorry unfortunately ";
    struct slice sentence;
    while (sentence_next(&text, &sentence)) {
        struct tokens tokens = tokens_of(sentence);
        struct token token;
        bool refuses = false;
        while (!is_definite(sentence) && token_next(&tokens, &token))
            refuses = refuses || token_in(&token, WORDS);
        if (refuses)
            return true;
    }
    return false;
}

/* The last sentence with a digit, a formula or a letter that stands alone; else the last one. */
static struct slice last_sentence(struct slice text)
{
    struct slice sentence, last = {text.start, 0}, valued = last;
    struct number ignored;
    while (sentence_next(&text, &sentence)) {
        struct tokens tokens = tokens_of(sentence);
        struct token token;
        last = sentence;
        for (bool has = false; !has && token_next(&tokens, &token);) {
            char first = token.text.start[0];
            has = isdigit((unsigned char)first) || first == '$' || first == '\\' ||
                  (token.text.length == 1 && isupper((unsigned char)first) && first != 'I') ||
                  number_in_words(sentence, &ignored);
            valued = has ? sentence : valued;
        }
    }
    return valued.length ? valued : last;
}

static bool has_alternative(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    while (token_next(&tokens, &token))
        if (token_in(&token, " or but "))
            return true;
    return false;
}

static bool is_readable(struct slice sentence)
{
    return sentence.length && is_balanced(sentence) && !has_alternative(sentence) && language_of(sentence) == ENGLISH &&
           is_definite(sentence);
}

/* The clause after the last "so": "The square is never negative, so the minimum is -5." */
static struct slice conclusion(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, next;
    const char *start = sentence.start;
    while (token_next(&tokens, &token))
        if (token_in(&token, " therefore thus hence → ") ||
            (token_is(&token, "so") && token_next(&tokens, &next) && !token_in(&next, " on that far ")))
            start = token.text.start;
    return slice_between(start, slice_end(sentence));
}

/* The sentence; empty if it has a value in a subordinate clause, "4, attained when x = 2". */
static struct slice main_clause(struct slice sentence)
{
    static const char WORDS[] = " because since when where while whereas attained which who given as using "
                                "being ";
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    while (token_next(&tokens, &token))
        if (token_in(&token, WORDS) && token.text.start > sentence.start &&
            has_value(slice_between(token.text.start, slice_end(sentence))))
            return (struct slice){sentence.start, 0};
    return sentence;
}

/* What follows the last "=" or "is" of the last sentence, outside parentheses; not if several are assigned, "x = 2,
 * y = 3". */
static void find_result(struct slice text, struct spans *out)
{
    static const char LINKS[] = " = is are was equals gives yields get leaves : → ";
    struct slice sentence = main_clause(conclusion(last_sentence(text)));
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    const char *value = NULL;
    bool separated = false, equation = false;
    for (int depth = 0; token_next(&tokens, &token);) {
        depth += token_in(&token, " ( [ { ") - token_in(&token, " ) ] } ");
        bool clock =
            token_is(&token, ":") && tokens.at < tokens.end && !slice_is_space(*tokens.at);
        if (depth != 0 || clock)
            continue;
        if (token_is(&token, "=") && value && separated)
            return;
        separated = separated || (value && token_in(&token, " , ; and or "));
        equation = equation || token_in(&token, " = ≈ ");
        if (token_in(&token, LINKS) || (!value && token_is(&token, "≈")))
            value = tokens.at;
    }
    if (value && (is_readable(sentence) || (equation && is_definite(sentence))))
        add_span(out, slice_between(value, slice_end(sentence)));
}

/* The last formula of the last sentence, with those joined to it: "$x=1$ and $x=2$"; not "the root of $64$". */
static void find_formula(struct slice text, struct spans *out)
{
    struct slice sentence = main_clause(conclusion(last_sentence(text)));
    struct slice rest = sentence, formula, last = {0};
    bool aside = false;
    for (const char *end = sentence.start; formula_next(&rest, &formula); end = rest.start) {
        struct slice between = slice_between(end, formula.start);
        struct tokens tokens = tokens_of(between);
        struct token token = {0}, word = {0};
        bool joined = last.length != 0;
        while (token_next(&tokens, &token)) {
            joined = joined && token_in(&token, " and or , $ \\( \\[ ( [ \\ ");
            word = token.kind == TOKEN_WORD ? token : word;
        }
        last = joined ? slice_between(last.start, slice_end(formula)) : formula;
        aside = !joined && token_in(&word, " of by from for with in at than ");
    }
    if (last.length && !aside && is_definite(sentence) &&
        slice_end(sentence) - slice_end(last) < 8)
        add_span(out, last);
}

static void find_last_sentence(struct slice text, struct spans *out)
{
    struct slice sentence = main_clause(conclusion(last_sentence(text)));
    if (is_readable(sentence))
        add_span(out, sentence);
}

/* The whole text, if all of it is readable: its only value. */
static void find_only(struct slice text, struct spans *out)
{
    struct slice rest = text, sentence;
    while (sentence_next(&rest, &sentence))
        if (!is_definite(sentence) || has_alternative(sentence) ||
            main_clause(sentence).length < sentence.length)
            return;
    if (language_of(text) != UNCERTAIN)
        add_span(out, text);
}

/* ---- the rules ---- */

enum strength { MARKED, STATED, INFERRED };

static const struct rule {
    const char *name; /* in reasons */
    void (*find)(struct slice text, struct spans *out);
    enum span_kind kind;
    enum strength strength;
} RULES[] = {
    {"marker", find_marker, SPAN_LEADING, MARKED},
    {"statement", find_answer_is, SPAN_LEADING, STATED},
    {"last line", find_last_line, SPAN_ALONE, STATED},
    {"bold", find_bold, SPAN_ALONE, INFERRED},
    {"formula", find_formula, SPAN_ALONE, INFERRED},
    {"result", find_result, SPAN_RESULT, INFERRED},
    {"last sentence", find_last_sentence, SPAN_SENTENCE, INFERRED},
    {"beginning", find_first_line, SPAN_BEGINNING, INFERRED},
    {"only value", find_only, SPAN_SENTENCE, INFERRED},
};

enum { RULE_COUNT = sizeof RULES / sizeof *RULES };

/* The common reading of the places that a rule finds. */
static enum reading read_rule(const struct reader *reader, const struct rule *rule,
                              struct slice text, struct slice *value)
{
    struct spans spans = {.count = 0};
    enum reading common = READING_NONE;
    rule->find(text, &spans);
    for (unsigned i = 0; i < spans.count; i++) {
        struct slice read = {0};
        enum reading one = reader->read(reader->context, spans.at[i], rule->kind, &read);
        if (one == READING_NONE)
            continue;
        common = common == READING_NONE || common == one ? one : READING_UNCLEAR;
        *value = read;
    }
    return common;
}

static void grade_by(const struct reader *reader, const struct rule *rule, enum reading reading,
                     struct slice text, struct slice value, struct grade *out)
{
    grade_extracted(out, value);
    if (reading == READING_EXPECTED)
        grade_true(out);
    else if (reading == READING_UNCLEAR)
        grade_unread(out, "several values (%s)", rule->name);
    else if (rule->strength == INFERRED && reader->mentions(reader->context, text))
        grade_unread(out, "the %s has another value than the expected one, which is also mentioned",
                     rule->name);
    else
        grade_false(out, "differs from the expected answer (%s)", rule->name);
}

/* Whether what follows a marker or statement takes it back: a sentence that begins with "Wait", or a statement with
 * another value.  Which of the two holds is not known. */
static bool is_revised(const struct reader *reader, struct slice text, struct slice stated,
                       enum reading reading)
{
    struct slice after = slice_between(slice_end(stated), slice_end(text)), rest = after, value;
    struct tokens tokens = tokens_of(after);
    struct token token, before = {.kind = TOKEN_LINE};
    for (; token_next(&tokens, &token); before = token)
        if (before.kind != TOKEN_WORD && !token_is(&before, "(") &&
            token_in(&token, " wait no actually correction sorry edit hmm oops scratch revised but "))
            return true;
    enum reading later = read_rule(reader, &RULES[1], rest, &value);
    return later != READING_NONE && later != reading;
}

static bool concludes(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    while (token_next(&tokens, &token))
        if (token_in(&token, " so therefore thus hence wait "))
            return true;
    return false;
}

/* The text without a last part that only explains or checks the answer. */
static struct slice without_afterword(struct slice text)
{
    static const char FIRST[] = " check verification explanation note proof reasoning why hope let feel "
                                "substituting ";
    struct slice rest = text, sentence;
    while (sentence_next(&rest, &sentence)) {
        struct slice before = slice_between(text.start, sentence.start);
        struct tokens tokens = tokens_of(strip_marks(sentence));
        struct token token;
        bool first = true, after = false;
        for (; token_next(&tokens, &token); first = false)
            after = after || (first && token_in(&token, FIRST)) || token_in(&token, " check verify ");
        if (after && has_value(before))
            return concludes(slice_between(sentence.start, slice_end(text))) ? text : before;
    }
    return text;
}

/* Whether the marker has a value in its own line; after a heading "Answer:" there may be a whole solution. */
static bool has_marked_line(struct slice text)
{
    struct spans spans = {.count = 0};
    find_marker(text, &spans);
    if (!spans.count)
        return false;
    const char *at = spans.at[0].start;
    while (at > text.start && strchr(" \t*_:>\"`", at[-1]))
        at--;
    return at > text.start && at[-1] != '\n';
}

/* `weakest`: of the rules to apply. */
static void grade_text(const struct reader *reader, struct slice text, enum final_rule final,
                       enum strength weakest, struct grade *out)
{
    struct slice body = without_afterword(text);
    bool refuses = has_refusal(text) || is_cut(text);
    grade_unread(out, "no answer found in the text");
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        const struct rule *rule = &RULES[i];
        struct slice value = {0};
        if ((final == FINAL_MARKED && rule->strength != MARKED) ||
            rule->strength > weakest || (refuses && rule->strength == INFERRED))
            break;
        struct slice where = rule->strength == MARKED ? text : body;
        enum reading reading = read_rule(reader, rule, where, &value);
        if (reading == READING_NONE && rule->strength == MARKED && has_marked_line(text)) {
            grade_unread(out, "the value after the marker cannot be read");
            return;
        }
        if (reading == READING_NONE)
            continue;
        if (rule->strength <= STATED && is_revised(reader, text, value, reading))
            grade_unread(out, "what follows the %s takes it back", rule->name);
        else
            grade_by(reader, rule, reading, text, value, out);
        return;
    }
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

/* The text up to where a model that has answered asks itself the next question: under a heading, or in a paragraph
 * that has a question mark. */
static struct slice before_next_question(struct slice text, bool *paragraph)
{
    *paragraph = false;
    struct slice rest = text, line;
    while (line_next(&rest, &line)) {
        struct slice before = slice_between(text.start, line.start);
        if (is_question_heading(strip_marks(line)))
            return has_value(before) ? before : text; /* or a list of questions from the start */
        *paragraph = before.length > 1 && line.start[-1] == '\n' && line.start[-2] == '\n' &&
                     memchr(line.start, '?', line.length) && has_value(before);
        if (*paragraph)
            return before;
    }
    return text;
}

void reading_grade(const struct reader *reader, struct slice answer, enum final_rule final,
                   struct grade *out)
{
    static const struct rule LINE = {"last line", find_last_line, SPAN_LEADING, MARKED},
                             WHOLE = {"whole text", find_whole, SPAN_LEADING, MARKED};
    if (final == FINAL_LINE || final == FINAL_WHOLE) {
        const struct rule *rule = final == FINAL_LINE ? &LINE : &WHOLE;
        struct slice value = {0};
        enum reading reading = read_rule(reader, rule, answer, &value);
        if (reading == READING_NONE)
            grade_unread(out, "no answer found in the %s", rule->name);
        else
            grade_by(reader, rule, reading, answer, value, out);
        return;
    }
    bool paragraph;
    struct slice text = before_next_question(answer, &paragraph);
    grade_text(reader, text, final, paragraph ? STATED : INFERRED, out);
}

/* ---- for graders without a reader ---- */

/* The text from the line to the next blank line. */
static struct slice value_block(struct slice line, const char *end)
{
    const char *stop = slice_end(line);
    while (stop < end) {
        const char *next = memchr(stop + 1, '\n', (size_t)(end - stop - 1));
        next = next ? next : end;
        if (slice_trim(slice_between(stop + 1, next)).length == 0)
            break;
        stop = next;
    }
    return slice_trim(slice_between(line.start, stop));
}

bool marked_find(struct slice text, enum final_rule rule, struct marked *out)
{
    struct spans spans = {.count = 0};
    text = slice_trim(text);
    *out = (struct marked){.line = text, .block = text};
    if (rule == FINAL_LINE)
        out->line = out->block = last_line(text);
    if (rule == FINAL_LINE || rule == FINAL_WHOLE)
        return true;
    find_marker(text, &spans);
    if (!spans.count)
        find_answer_is(text, &spans);
    if (!spans.count)
        return rule == FINAL_AUTO;
    struct slice line = spans.at[spans.count - 1];
    bool new_line = line.start > text.start && line.start[-1] == '\n';
    out->found = true;
    out->line = line;
    out->block = new_line ? value_block(line, slice_end(text)) : line;
    return true;
}

struct slice expected_value(struct slice expected)
{
    struct spans spans = {.count = 0};
    expected = slice_trim(expected);
    find_boxed(expected, &spans);
    if (!spans.count)
        find_hashes(expected, &spans);
    return spans.count ? spans.at[spans.count - 1] : expected;
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
    end = end - start > REACH ? start + REACH : end;
    for (const char *c = start; c < end; c++)
        if (*c == '\\' && c + 1 < end && c[1] == '$')
            c++;
        else if (slice_starts(slice_between(c, end), with->close))
            return c;
    return NULL;
}

bool formula_next(struct slice *rest, struct slice *formula)
{
    const char *end = slice_end(*rest);
    for (const char *c = rest->start; c < end; c++) {
        if (*c == '\\' && c + 1 < end && c[1] == '$') {
            c++;
            continue;
        }
        for (size_t i = 0; i < sizeof DELIMITERS / sizeof *DELIMITERS; i++) {
            const struct delimiter *with = &DELIMITERS[i];
            if (!slice_starts(slice_between(c, end), with->open))
                continue;
            const char *start = c + strlen(with->open), *close = formula_close(with, start, end);
            if (!close || close == start || is_money(with, start, close, end))
                break;
            *formula = slice_trim(slice_between(start, close));
            *rest = slice_between(close + strlen(with->close), end);
            return true;
        }
    }
    return false;
}
