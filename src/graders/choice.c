/* The choice grader: the letter of a multiple-choice answer.
 *
 * Each letter of the answer that may name an option has evidence, by the words around it:
 *   stated   \boxed{B}; "answer: B", "the correct option is B"; "B is correct"; a first or last line that is
 *            only a letter
 *   chosen   "I'd go with B", "so B", "that leaves B", "it must be B", "B fits best"
 *   none     anything else, and whatever is denied or doubted: "not B", "B is wrong", "it could be B"
 * The last letter that is stated wins, else the last that is chosen.  Without either, in this order: lines
 * of verdicts ("A) Incorrect ... B) Correct"), lines that begin with a letter as options are written, the
 * last sentence, and letters in brackets or bold or after "option"; these must agree on one letter.
 *
 * An "A" before another word is the article, and "I" the pronoun. */
#include <ctype.h>
#include <stdlib.h>

#include "core/grow.h"
#include "graders/answer.h"
#include "graders/final.h"
#include "graders/fold.h"
#include "graders/tokens.h"

/* A token, and the option that it may name. */
struct item {
    struct token token;
    char letter;   /* 'A'..'Z'; '\0' for anything else */
    bool enclosed; /* in brackets, bold or quotes */
    bool bare_lower;
};

struct items {
    struct item *at;
    size_t count, capacity;
    struct slice text;
};

enum evidence { EVIDENCE_NONE, EVIDENCE_CHOSEN, EVIDENCE_STATED };

struct letters {
    char first;  /* '\0' when none was found */
    char second; /* another one with equal evidence; '\0' when there is none */
};

/* How far the words around a letter are read, in tokens. */
enum { REACH = 24, OPTION_MAX = 2000 };

/* ---- tokens around a letter ---- */

static const struct token NOTHING = {.kind = TOKEN_LINE};

static const struct token *at(const struct items *items, size_t i)
{
    return i < items->count ? &items->at[i].token : &NOTHING;
}

static bool is_mark(const struct token *token, const char *set)
{
    return token->kind == TOKEN_MARK && token->text.length == 1 &&
           strchr(set, token->text.start[0]);
}

/* Directly attached to what is before it. */
static bool attached(const struct token *token)
{
    return token->kind != TOKEN_LINE && !token->spaced;
}

static bool ends_sentence(const struct items *items, size_t i)
{
    return token_ends_sentence(at(items, i), i ? at(items, i - 1) : NULL);
}

static const char OPENING[] = "([{*_\"'`$<", CLOSING[] = ")]}*_\"'`$";

static bool is_option_noun(const struct token *token)
{
    return token_in(token, " option choice letter opción opção вариант ");
}

/* After the marks that close a letter. */
static size_t skip_closing(const struct items *items, size_t i)
{
    while (is_mark(at(items, i), CLOSING))
        i++;
    return i;
}

/* ---- which tokens are letters ---- */

/* Could the bare letter be a word of the sentence, "A dog", "I think"? */
static bool reads_as_word(const struct items *items, size_t i)
{
    static const char AFTER_LETTER[] =
        " because since as is and or would for due not with but if to was are can does has "
        "makes fits matches seems says works states must will gives cannot here instead best "
        "describes should could might rather over ";
    int letter = toupper((unsigned char)at(items, i)->text.start[0]);
    const struct token *next = at(items, i + 1);
    if ((letter != 'A' && letter != 'I') || next->kind != TOKEN_WORD)
        return false;
    bool inside = i && token_in(at(items, i - 1), " , ; and or nor than that so only but then ");
    return letter == 'I' || !(inside || token_is_cjk(next) || token_in(next, AFTER_LETTER));
}

/* Part of a formula or a compound: B-cells, C++, A/B, 20 °C, x_A, B = 5. */
static bool is_part(const struct items *items, size_t i)
{
    const struct token *next = at(items, i + 1), *before = i ? at(items, i - 1) : &NOTHING;
    const struct token *beyond = at(items, i + 2);
    bool word_beyond = beyond->kind == TOKEN_WORD && attached(beyond);
    if (attached(next) && (is_mark(next, is_mark(before, "'") ? "+#/^" : "+#/^'") ||
                           (is_mark(next, "-_.") && word_beyond)))
        return true;
    if (is_mark(next, "=") && !is_mark(beyond, ">"))
        return true;
    if (!attached(at(items, i)))
        return false;
    bool compound =
        is_mark(before, "-_") && attached(before) && i > 1 && at(items, i - 2)->kind == TOKEN_WORD;
    return compound || is_mark(before, "/^") || token_is(before, "°");
}

static void read_letter(const struct items *items, size_t i, unsigned options)
{
    struct item *item = &items->at[i];
    int letter = (unsigned char)item->token.text.start[0];
    int index = toupper(letter) - 'A';
    if (item->token.text.length != 1 || !isalpha(letter) || index >= (int)options ||
        is_part(items, i))
        return;
    const struct token *next = at(items, i + 1);
    bool opened = i && attached(&item->token) && is_mark(at(items, i - 1), OPENING);
    bool closed = attached(next) && is_mark(next, CLOSING);
    item->enclosed = opened && closed;
    item->bare_lower = islower(letter) && !item->enclosed && !is_mark(next, ")") &&
                       !(i && is_option_noun(at(items, i - 1)));
    if (item->enclosed || closed || !reads_as_word(items, i))
        item->letter = (char)('A' + index);
}

static enum err read_items(struct items *items, struct slice text, unsigned options)
{
    struct tokens tokens = tokens_of(text);
    struct item item = {0};
    items->text = text;
    while (token_next(&tokens, &item.token)) {
        struct item *grown = grow(items->at, &items->capacity, items->count, sizeof item);
        if (!grown)
            return ERR_NO_MEMORY;
        items->at = grown;
        grown[items->count++] = item;
    }
    for (size_t i = 0; i < items->count; i++)
        read_letter(items, i, options);
    return ERR_OK;
}

/* ---- denial ---- */

static bool links_letters(const struct token *token)
{
    static const char LINKS[] =
        " or and nor & , / 、 both either y o und oder et ou maybe perhaps possibly ";
    return token_in(token, LINKS);
}

/* "not B", "eliminating A, C and D", "rather than B". */
static bool denied_before(const struct items *items, size_t i)
{
    static const char DENIALS[] =
        " eliminate eliminating eliminates eliminated exclude excluding excludes reject "
        "rejecting discard dismiss than unlike except besides without avoid although while "
        "though because tempted ";
    static const char FILLER[] =
        " be with in for by the likely to answers statement statements options choices choose "
        "pick ";
    for (size_t back = 1; back <= i && back < REACH; back++) {
        size_t j = i - back;
        const struct token *token = at(items, j);
        if (token_is_negation(token))
            return true;
        if (token_in(token, DENIALS))
            return true;
        if (token_in(token, " of out but ")) /* "instead of", "rule out", "anything but" */
            return j && token_in(at(items, j - 1),
                                 " instead rule ruling ruled rules cross crossing anything ");
        if (ends_sentence(items, j) || token->kind == TOKEN_LINE || token_in(token, " — – ; "))
            return false;
        if (token->kind == TOKEN_WORD && !items->at[j].letter && !links_letters(token) &&
            !is_option_noun(token) && !token_in(token, FILLER))
            return false;
    }
    return false;
}

/* "B is wrong", "B ignores ...", "C is tempting". */
static bool denied_after(const struct items *items, size_t i)
{
    static const char WRONG[] =
        " wrong incorrect false tempting ignores violates contradicts confuses eliminated "
        "unrelated irrelevant impossible too invalid misleading fails ruled out excluded might "
        "misconception mistake distractor less weaker lacks contradicted unlikely outside "
        "falsch ❌ ✗ ✘ ";
    size_t words = 0;
    for (size_t j = skip_closing(items, i + 1); j < i + REACH && words < 6; j++) {
        const struct token *token = at(items, j);
        bool list = !words && j > i + 1 && links_letters(at(items, j - 1));
        if (token->kind == TOKEN_LINE || (items->at[j].letter && !list) ||
            token_in(token, " because since as but while whereas ; "))
            return false;
        if (token_in(token, WRONG) || token_is_negation(token))
            return !token_in(at(items, j - 1), " , ， and ( stands "); /* "B, not C" */
        if (ends_sentence(items, j) && (words || j > i + 1))
            return false;
        words += token->kind == TOKEN_WORD && !items->at[j].letter && !links_letters(token);
    }
    return false;
}

static bool is_denied(const struct items *items, size_t i)
{
    return denied_before(items, i) || denied_after(items, i);
}

/* ---- evidence ---- */

/* One step back from the letter: the words that lead to it. */
struct lead {
    bool linked;  /* passed "is", ":" or the like */
    bool crossed; /* passed the end of a line */
    unsigned far; /* words that are not filler */
};

static bool is_filler(const struct token *token)
{
    static const char FILLER[] =
        " the would should must will therefore thus clearly probably most likely definitely "
        "here then simply indeed has have to i we number final correct right best la el le "
        "die also just only either both statement be actually toward towards on ";
    return is_option_noun(token) || token_in(token, FILLER);
}

/* "choose B", "so B", "go with B", "it is B". */
static bool is_choosing(const struct items *items, size_t j, const struct lead *lead)
{
    static const char CUES[] =
        " choose chose choosing pick picked picking select selected selecting say guess vote "
        "lean conclude leaves leaving so thus therefore hence it's matches corresponds "
        "matching favors favours suggests indicates supports that's thinking answering elijo "
        "wähle only remaining settle correction ";
    const struct token *token = at(items, j);
    if (lead->far || lead->crossed)
        return false;
    return token_in(token, CUES) || (lead->linked && token_in(token, " it that this ")) ||
           (token_is(token, "with") && j &&
            token_in(at(items, j - 1), " go going went left stick sticking "));
}

/* What one word before the letter says; *done when that decides. */
static enum evidence lead_word(const struct items *items, size_t j, struct lead *lead, bool *done)
{
    static const char DOUBTS[] =
        " could might may if whether each every possible options choices seems consider been "
        "unless ";
    const struct token *token = at(items, j);
    *done = true;
    if (items->at[j].letter || token_is_negation(token) || token_in(token, DOUBTS))
        return EVIDENCE_NONE;
    if (token_is_answer(token)) {
        bool near = lead->far <= (lead->crossed ? 2 : 8) && (lead->linked || !lead->far);
        return near && !(j && token_in(at(items, j - 1), " each every possible incorrect wrong "))
                   ? EVIDENCE_STATED
                   : EVIDENCE_NONE;
    }
    if (lead->linked && !lead->crossed &&
        (is_option_noun(token) || token_in(token, " selection pick conclusion решение one ")))
        return EVIDENCE_STATED;
    if (is_choosing(items, j, lead))
        return EVIDENCE_CHOSEN;
    *done = false;
    if (token_is_link(token))
        lead->linked = true;
    else if (lead->far || !is_filler(token))
        lead->far++;
    *done = lead->far > 8 || (lead->far && !lead->linked);
    return EVIDENCE_NONE;
}

static enum evidence evidence_before(const struct items *items, size_t i)
{
    struct lead lead = {0};
    for (size_t back = 1; back <= i && back < REACH; back++) {
        size_t j = i - back;
        const struct token *token = at(items, j);
        bool done = false;
        if (token_is(token, "\\boxed") || token_is(token, "\\fbox"))
            return lead.far || lead.linked ? EVIDENCE_NONE : EVIDENCE_STATED;
        if (ends_sentence(items, j))
            return EVIDENCE_NONE;
        if (token->kind == TOKEN_LINE) {
            lead.crossed = true;
        } else if (token->kind == TOKEN_MARK) {
            lead.linked = lead.linked || token_is_link(token);
        } else {
            enum evidence found = lead_word(items, j, &lead, &done);
            if (done)
                return found;
        }
    }
    return EVIDENCE_NONE;
}

/* Does a sentence or clause begin with the letter, or does a word before it lead to it? */
static bool is_subject(const struct items *items, size_t i)
{
    static const char LEADS[] =
        " option choice answer so thus hence that therefore only but and then think believe ";
    while (i && is_mark(at(items, i - 1), OPENING))
        i--;
    const struct token *before = i ? at(items, i - 1) : &NOTHING;
    return before->kind != TOKEN_WORD || token_in(before, LEADS);
}

/* "B is correct", "(B) is the best answer"; weaker, "B fits best". */
static enum evidence evidence_after(const struct items *items, size_t i)
{
    static const char PRAISE[] = " correct right true best answer most only better accurate valid "
                                 "appropriate stronger preferable ";
    size_t j = skip_closing(items, i + 1);
    if (!is_subject(items, i))
        return EVIDENCE_NONE;
    j += is_mark(at(items, j), ",");
    if (token_in(at(items, j), " fits matches works makes wins holds remains "))
        return EVIDENCE_CHOSEN;
    size_t verb = j;
    while (j < verb + 2 && token_in(at(items, j), " is are was must be "))
        j++;
    if (j == verb)
        return EVIDENCE_NONE;
    while (j < verb + 6 &&
           token_in(at(items, j), " the clearly definitely indeed thus therefore a my "))
        j++;
    return token_in(at(items, j), PRAISE) ? EVIDENCE_STATED : EVIDENCE_NONE;
}

static const char CROSSES[] = " ❌ ✗ ✘ ";

/* The first or last line of the answer, and nothing but the letter in it; "1." may be before it. */
static bool is_lone(const struct items *items, size_t i)
{
    size_t first = i, end = i + 1;
    for (; first && at(items, first - 1)->kind != TOKEN_LINE; first--)
        if (token_in(at(items, first - 1), CROSSES) ||
            (at(items, first - 1)->kind == TOKEN_WORD &&
             !isdigit((unsigned char)at(items, first - 1)->text.start[0])))
            return false;
    if (first == 0 && is_mark(at(items, end), "!")) /* "A! D is about plants." */
        return true;
    for (; end < items->count && at(items, end)->kind != TOKEN_LINE; end++)
        if (at(items, end)->kind == TOKEN_WORD || end - i > REACH ||
            token_in(at(items, end), CROSSES))
            return false;
    return (first == 0 || end == items->count) && end - first < REACH;
}

static enum evidence evidence_of(const struct items *items, size_t i)
{
    if (is_lone(items, i))
        return EVIDENCE_STATED;
    if (is_denied(items, i))
        return EVIDENCE_NONE;
    enum evidence before = evidence_before(items, i), after = EVIDENCE_NONE;
    bool clause_ends = at(items, i + 1)->kind != TOKEN_WORD;
    if (items->at[i].bare_lower && !(before == EVIDENCE_STATED && clause_ends))
        return EVIDENCE_NONE;
    if (before != EVIDENCE_STATED)
        after = evidence_after(items, i);
    return before > after ? before : after;
}

/* ---- rivals ---- */

/* The letter that a link joins to this one: "A or B", "A, (B)"; '\0' when there is none. */
static char rival_after(const struct items *items, size_t i)
{
    size_t j = skip_closing(items, i + 1);
    if (!links_letters(at(items, j)))
        return '\0';
    while (j < i + REACH && (links_letters(at(items, j)) || is_option_noun(at(items, j)) ||
                             is_mark(at(items, j), OPENING)))
        j++;
    if (j >= items->count || !items->at[j].letter || items->at[j].letter == items->at[i].letter)
        return '\0';
    const struct token *next = at(items, skip_closing(items, j + 1));
    bool ends = next->kind != TOKEN_WORD || links_letters(next);
    return (char)(ends ? items->at[j].letter : '\0');
}

/* The letter with the one that is joined to it, in the order of the text. */
static struct letters with_rival(const struct items *items, size_t i)
{
    char letter = items->at[i].letter, rival = rival_after(items, i);
    while (i && is_mark(at(items, i - 1), OPENING))
        i--;
    if (rival || i < 2 || is_mark(at(items, i - 1), ",") || !links_letters(at(items, i - 1)))
        return (struct letters){letter, rival};
    for (i -= 2; i && is_mark(at(items, i), CLOSING);)
        i--;
    char earlier = items->at[i].letter;
    return earlier && earlier != letter ? (struct letters){earlier, letter}
                                        : (struct letters){letter, '\0'};
}

/* The last letter of the strongest evidence. */
static struct letters find_evident(const struct items *items)
{
    enum evidence best = EVIDENCE_CHOSEN;
    struct letters found = {0};
    for (size_t i = 0; i < items->count; i++) {
        enum evidence evidence = items->at[i].letter ? evidence_of(items, i) : EVIDENCE_NONE;
        if (evidence < best)
            continue;
        best = evidence;
        found = with_rival(items, i);
    }
    return found;
}

/* ---- weaker evidence, which must agree ---- */

static void agree(struct letters *out, char letter)
{
    if (!out->first)
        out->first = letter;
    else if (letter != out->first && !out->second)
        out->second = letter;
}

/* The letter that a line begins with, as options are written: "B.", "(B)", "- B:"; its index, or `count`. */
static size_t option_of_line(const struct items *items, size_t line)
{
    size_t i = line;
    while (at(items, i)->kind == TOKEN_MARK || is_option_noun(at(items, i)))
        i++;
    if (i >= items->count || !items->at[i].letter)
        return items->count;
    const struct token *next = at(items, i + 1);
    bool closes = is_mark(next, ".:,-)]") || token_is(next, "–") || token_is(next, "—") ||
                  token_is(next, "：");
    return items->at[i].enclosed || closes ? i : items->count;
}

static size_t next_line(const struct items *items, size_t i)
{
    while (i < items->count && at(items, i)->kind != TOKEN_LINE)
        i++;
    return i + 1;
}

/* "A) Incorrect ... B) Correct": the one option that is right, when another is wrong. */
static struct letters find_verdicts(const struct items *items)
{
    struct letters right = {0};
    bool wrong = false;
    for (size_t i = 0; i < items->count; i++) {
        size_t j = i + 1;
        while (items->at[i].letter &&
               (is_mark(at(items, j), ")]}*_.:-(|?") || token_in(at(items, j), " – — → ")))
            j++;
        if (j == i + 1)
            continue;
        if (token_in(at(items, j), " correct right true yes ✅ ✓ ✔ ☑ "))
            agree(&right, items->at[i].letter);
        wrong = wrong || token_in(at(items, j), " incorrect wrong false no not ❌ ✗ ✘ ");
    }
    return wrong ? right : (struct letters){0};
}

static struct letters find_option_lines(const struct items *items)
{
    struct letters found = {0};
    for (size_t line = 0; line < items->count; line = next_line(items, line)) {
        size_t i = option_of_line(items, line);
        if (i < items->count && !is_denied(items, i)) {
            agree(&found, items->at[i].letter);
            if (rival_after(items, i))
                agree(&found, rival_after(items, i));
        }
    }
    return found;
}

/* Does the letter name something else, "vitamin C", or begin the line of an option? */
static bool names_other(const struct items *items, size_t i)
{
    static const char NAMED[] =
        " vitamin vitamins hepatitis type group point points figure plan class grade "
        "team appendix vector matrix step event line angle node section table player ";
    bool named = i && token_in(at(items, i - 1), NAMED);
    size_t line = i;
    while (line && is_mark(at(items, line - 1), OPENING))
        line--;
    bool begins =
        line && at(items, line - 1)->kind == TOKEN_LINE && option_of_line(items, line) == i;
    return named || begins || items->at[i].bare_lower;
}

/* The letters of the last sentence, or of all when they are marked: (B), **B**, "option B".  An answer that
 * was cut off was still discussing them. */
static struct letters find_mentioned(const struct items *items, struct slice within, bool marked)
{
    struct letters found = {0}, before = {0};
    size_t last = items->count - 1;
    bool cut = at(items, last)->kind == TOKEN_WORD && !items->at[last].letter;
    if (cut && (marked || text_is_cut(items->text)))
        return found;
    for (size_t i = 0; i < items->count; i++) {
        const char *start = at(items, i)->text.start;
        bool counts = start >= within.start && start < slice_end(within) && items->at[i].letter &&
                      !names_other(items, i);
        if (marked)
            counts = counts && (items->at[i].enclosed || (i && is_option_noun(at(items, i - 1))));
        if (!marked && start > within.start && found.first &&
            token_in(at(items, i), " but yet however nevertheless ")) { /* "A ..., but C" */
            before = found;
            found = (struct letters){0};
        }
        if (counts && !is_denied(items, i))
            agree(&found, items->at[i].letter);
    }
    return found.first ? found : before;
}

static struct letters find_letters(const struct items *items)
{
    struct letters found = find_evident(items);
    if (!found.first)
        found = find_verdicts(items);
    if (found.first)
        return found;
    if (!text_is_cut(items->text))
        found = find_option_lines(items);
    if (found.first && !found.second)
        return found;
    struct slice rest = text_without_asides(items->text), sentence = rest;
    while (sentence_next(&rest, &sentence))
        ;
    struct letters last = {0};
    if (!text_declines(sentence) && !slice_starts(sentence, "Is ")) /* "Is it B?" */
        last = find_mentioned(items, sentence, false);
    if (last.first)
        return last;
    return found.first ? found : find_mentioned(items, items->text, true);
}

/* The letter of an expected answer: "B", "(b)", "B. text"; '\0' when it is not one. */
static char expected_letter(const struct items *items)
{
    struct letters found = find_option_lines(items);
    if (!found.first)
        found = find_evident(items);
    return (char)(found.second ? '\0' : found.first);
}

/* ---- the options of the question ---- */

/* The length of the label of an option at `at`: "B) ", "(B) ", "B. ", "B: "; 0 when there is none. */
static size_t label_at(struct slice text, size_t at, char letter)
{
    const char *c = text.start + at;
    size_t open = *c == '(', length = open + 2;
    bool label = text.length - at > length && c[open] == letter &&
                 strchr(open ? ")" : ").:", c[open + 1]) && slice_is_space(c[length]);
    return label && (!at || slice_is_space(c[-1])) ? length : 0;
}

/* Does the sentence have the words of the option, whole and not denied? */
static bool names_option(struct slice sentence, struct slice option)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token, want;
    int denied = 0;
    do {
        struct tokens next = tokens, wanted = tokens_of(option);
        bool inside = tokens.at > sentence.start && strchr(".,/-", tokens.at[-1]);
        bool same = option.length && denied <= 0 && (!inside || isspace((unsigned char)*next.at));
        while (same && token_next(&wanted, &want))
            same = token_next(&next, &token) && token_equals(&token, want.text);
        bool goes_on = next.at + 1 < next.end && isalnum((unsigned char)next.at[1]) &&
                       !isspace((unsigned char)*next.at); /* 15 of 15.5 */
        if (same && !goes_on)
            return true;
        if (!token_next(&tokens, &token))
            return false;
        denied = token_is_negation(&token) ? 4 : denied - 1;
    } while (tokens.at < tokens.end);
    return false;
}

/* The letter of the option whose text the answer gives, in the marked line or else the last sentence, when the last
 * list of options in the question has exactly one such. */
static struct letters find_option_text(struct slice question, struct slice answer)
{
    struct letters found = {0};
    struct final_answer final;
    struct slice rest = text_without_asides(answer), sentence = rest;
    while (sentence_next(&rest, &sentence))
        ;
    if (final_find(answer, FINAL_MARKED, &final))
        sentence = final_sentence(final.line);
    sentence = fold_edges(sentence);
    char letter = 'A';
    for (size_t at = 0; at < question.length && sentence.length < OPTION_MAX; at++) {
        size_t first = label_at(question, at, 'A');
        size_t label = first ? first : label_at(question, at, letter);
        if (!label)
            continue;
        if (first) {
            found = (struct letters){0};
            letter = 'A';
        }
        const char *start = question.start + at + label, *end = slice_end(question);
        const char *line = memchr(start, '\n', (size_t)(end - start));
        struct slice option = slice_between(start, line ? line : end);
        option.length = option.length < OPTION_MAX ? option.length : OPTION_MAX;
        for (size_t i = 0; i < option.length; i++)
            if (label_at(option, i, (char)(letter + 1)))
                option.length = i;
        if (names_option(sentence, fold_edges(option)))
            agree(&found, letter);
        letter++;
    }
    return found.second ? (struct letters){0} : found;
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
    unsigned options = ((const struct choice *)state)->options;
    char last = (char)('A' + (int)options - 1);
    struct items expected = {0}, answer = {0};
    enum err err = read_items(&expected, slice_trim(slice_of(what->expected)), options);
    if (!err)
        err = read_items(&answer, slice_trim(slice_of(what->answer)), options);
    char wanted = (char)(err ? '\0' : expected_letter(&expected));
    if (err)
        grade_no_memory(why);
    else if (!wanted)
        grade_null(out, "the expected answer is not a letter from A to %c: %.80s", last,
                   what->expected);
    else {
        struct letters found = find_letters(&answer);
        if (!found.first && what->problem)
            found = find_option_text(slice_of(what->problem), answer.text);
        compare(wanted, found, last, out);
    }
    free(expected.at);
    free(answer.at);
    return err;
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
