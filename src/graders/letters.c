/* The letter that an answer chooses.
 *
 * Each letter of the answer that may name an option has evidence, by the words around it:
 *   stated   \boxed{B}; "answer: B", "the correct option is B"; "B is the best answer"; a first or last line that is
 *            only a letter
 *   true     "B is correct": options that are said to be true must agree
 *   chosen   "I'd go with B", "so B", "that leaves B", "it must be B", "B fits best"
 *   none     anything else, and whatever is denied, doubted or conceded: "not B", "it could be B", "while B ..."
 * The last letter of the strongest evidence wins.  Without any, in this order: verdicts ("A) Incorrect ... B)
 * Correct"), lines that begin with a letter as options are written, the last sentence, and letters in brackets or
 * bold or after "option"; these must agree on one letter.
 *
 * An "A" before another word is the article, and "I" the pronoun. */
#include "graders/letters.h"

#include <ctype.h>
#include <stdlib.h>

#include "core/grow.h"
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
    size_t first_word,
        last_word; /* before and after them are only marks, such as those of a block of code */
    struct slice text;
};

enum evidence { EVIDENCE_NONE, EVIDENCE_CHOSEN, EVIDENCE_TRUE, EVIDENCE_STATED };

enum verdict { SAID_NOTHING, SAID_RIGHT, SAID_WRONG };

/* How far the words around a letter are read, in tokens. */
enum { REACH = 24, SENTENCE_REACH = 100 };

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
    char written = at(items, i)->text.start[0];
    int letter = toupper((unsigned char)written);
    const struct token *next = at(items, i + 1), *before = i ? at(items, i - 1) : &NOTHING;
    if ((letter != 'A' && letter != 'I') || next->kind != TOKEN_WORD || token_is_cjk(next))
        return false;
    /* An article in the middle of a sentence is lower case. */
    if (written == 'A' && token_in(before, " , ; and or nor than that so only but between then "))
        return false;
    return letter == 'I' || !token_in(next, AFTER_LETTER);
}

/* Part of a formula or a compound: B-cells, C++, A/B, 20 °C, x_A, B = 5. */
static bool is_part(const struct items *items, size_t i)
{
    const struct token *next = at(items, i + 1), *before = i ? at(items, i - 1) : &NOTHING;
    const struct token *beyond = at(items, i + 2);
    bool word_beyond = beyond->kind == TOKEN_WORD && attached(beyond);
    bool quoted = is_mark(next, "'") && is_mark(before, "'");
    if (attached(next) && !quoted &&
        (is_mark(next, "+#/^'") || (is_mark(next, "-_.") && word_beyond)))
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
    if (index == 0 && is_mark(next, ":") &&
        token_in(at(items, i + 2), " i i'm we let let's first "))
        return; /* "A: I think" is an answer to "Q:" */
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
    items->first_word = items->count;
    for (size_t i = 0; i < items->count; i++) {
        read_letter(items, i, options);
        if (at(items, i)->kind != TOKEN_WORD)
            continue;
        items->first_word = items->first_word < i ? items->first_word : i;
        items->last_word = i;
    }
    return ERR_OK;
}

/* ---- denial and doubt ---- */

static bool links_letters(const struct token *token)
{
    static const char LINKS[] =
        " or and nor & , / both either y o und oder et ou e и 和 或 、 maybe perhaps possibly ";
    return token_in(token, LINKS);
}

/* The first token of the sentence or line that `i` is in, no further away than SENTENCE_REACH. */
static size_t sentence_first(const struct items *items, size_t i)
{
    size_t far = i > SENTENCE_REACH ? i - SENTENCE_REACH : 0;
    while (i > far && at(items, i - 1)->kind != TOKEN_LINE && !ends_sentence(items, i - 1))
        i--;
    return i;
}

/* The token that ends it, or `count`. */
static size_t sentence_last(const struct items *items, size_t i)
{
    size_t far = i + SENTENCE_REACH;
    while (i < items->count && i < far && at(items, i)->kind != TOKEN_LINE &&
           !ends_sentence(items, i))
        i++;
    return i;
}

/* "Is it B?", "B?  No."; "Hmm, B?" alone is an answer. */
static bool is_question(const struct items *items, size_t i)
{
    size_t first = sentence_first(items, i), last = sentence_last(items, i);
    if (!token_in(at(items, last), " ? ？ "))
        return false;
    struct slice sentence =
        slice_between(at(items, first)->text.start, at(items, last)->text.start);
    return last + 1 < items->count || text_declines(sentence) ||
           token_in(at(items, first),
                    " is are was could would should can does do did why what which how might may ");
}

/* "not B", "eliminating A, C and D", "rather than B". */
static bool denied_before(const struct items *items, size_t i)
{
    static const char DENIALS[] =
        " eliminate eliminating eliminates eliminated exclude excluding excludes reject rejecting "
        "rejected discard discarding dismiss dismissing avoid than unlike except besides without "
        "contrary incorrect wrong tempted ";
    static const char FILLER[] =
        " be with in for by the likely to answers statement statements options choices "
        "choice also first anything definitely certainly choose pick select ";
    for (size_t back = 1; back <= i && back < REACH; back++) {
        size_t j = i - back;
        const struct token *token = at(items, j);
        if (token_is_negation(token) || token_in(token, DENIALS))
            return true;
        if (token_in(token, " of out ")) /* "instead of", "rule out" */
            return j &&
                   token_in(at(items, j - 1), " instead rule ruling ruled rules cross crossing ");
        if (token_is(token, "but") && j && token_in(at(items, j - 1), " anything all nothing "))
            return true;
        if (ends_sentence(items, j) || token->kind == TOKEN_LINE || token_in(token, " — – ; "))
            return false;
        if (token->kind == TOKEN_WORD && !items->at[j].letter && !links_letters(token) &&
            !is_option_noun(token) && !token_in(token, FILLER))
            return false;
    }
    return false;
}

/* The letter after `i`, past brackets and the words between; `count` when something else follows. */
static size_t letter_after(const struct items *items, size_t i)
{
    while (is_mark(at(items, i), OPENING) || is_option_noun(at(items, i)) ||
           token_in(at(items, i), " the "))
        i++;
    return i < items->count && items->at[i].letter ? i : items->count;
}

/* "B is wrong", "B ignores ...", "C is tempting". */
static bool denied_after(const struct items *items, size_t i)
{
    static const char WRONG[] =
        " wrong incorrect false inaccurate untrue tempting ignores violates contradicts "
        "contradicted confuses eliminated excluded rejected ruled out unrelated irrelevant "
        "impossible implausible unlikely too invalid misleading mistake misconception error myth "
        "trap distractor fails "
        "lacks omits overlooks less least weaker worse might may could outside incorrecta falsch "
        "errada ❌ ✗ ✘ ";
    size_t words = 0;
    bool linked = false;
    for (size_t j = skip_closing(items, i + 1); j < i + REACH && words < 6; j++) {
        const struct token *token = at(items, j);
        if (j >= items->count || token->kind == TOKEN_LINE || (!linked && items->at[j].letter) ||
            token_in(token, " because since as but while whereas ; "))
            return false;
        if (is_mark(token, ",") && token_in(at(items, j + 1), " it the this they that so and "))
            return false;
        linked = !words && (links_letters(token) || (linked && is_mark(token, OPENING)));
        if (linked || items->at[j].letter) /* "A, C and D are wrong" */
            continue;
        if (token_is_negation(token)) /* "B, not C" */
            return letter_after(items, j + 1) == items->count && !is_mark(at(items, j - 1), ",");
        if (token_in(token, WRONG)) /* but "B stands out" */
            return !token_in(at(items, j - 1), " , stands turns ");
        if (ends_sentence(items, j) && (words || j > i + 1))
            return false;
        words += token->kind == TOKEN_WORD;
    }
    return false;
}

/* In a clause that does not choose: one that concedes, "although B ...", up to its comma, or the reason at the end
 * of a sentence, "C, because A and B ...". */
static bool is_subordinate(const struct items *items, size_t i)
{
    bool clause = true; /* that of the letter, not one before it */
    for (size_t j = i, first = sentence_first(items, i); j-- > first;) {
        bool list = j && items->at[j - 1].letter && items->at[j + 1].letter;
        bool led = j > first && token_in(at(items, j - 1), " but and so that ");
        if (j > first && token_in(at(items, j), " because since ") && (clause || !led))
            return true;
        if (clause &&
            token_in(at(items, j), " although though while whereas despite unlike even aunque "))
            return true;
        clause = clause && (!is_mark(at(items, j), ",;") || list);
    }
    return false;
}

/* "If x were negative, the answer would be C": its clause has a condition, and says would. */
static bool is_hypothetical(const struct items *items, size_t i)
{
    bool would = false, condition = false;
    size_t first = i, start = sentence_first(items, i), end = sentence_last(items, i);
    while (first > start && !token_in(at(items, first - 1), " ; but "))
        first--;
    for (size_t j = first; j < end && !(j > i && token_in(at(items, j), " ; but ")); j++) {
        would = would || token_is(at(items, j), "would");
        condition = condition || (j == first && token_is(at(items, j), "were")) ||
                    (token_in(at(items, j), " if unless ") &&
                     !token_is(at(items, j + 1), "i")); /* "if I had to guess" */
    }
    return would && condition;
}

static const char CROSSES[] = " ❌ ✗ ✘ ✖ ", CHECKS[] = " ✅ ✓ ✔ ☑ ";

/* What a cross or check before the letter says: "❌ B".  In "A ❌ B ✅" it is about the letter before it. */
static enum verdict marked_before(const struct items *items, size_t i)
{
    bool cross = i && token_in(at(items, i - 1), CROSSES);
    bool check = i && token_in(at(items, i - 1), CHECKS);
    size_t first = sentence_first(items, i);
    while ((cross || check) && first < i && !token_in(at(items, first), CROSSES) &&
           !token_in(at(items, first), CHECKS))
        if (items->at[first++].letter)
            return SAID_NOTHING;
    return cross ? SAID_WRONG : check ? SAID_RIGHT : SAID_NOTHING;
}

static bool is_denied(const struct items *items, size_t i)
{
    return denied_before(items, i) || denied_after(items, i) ||
           marked_before(items, i) == SAID_WRONG;
}

/* Neither denied nor doubted. */
static bool is_affirmed(const struct items *items, size_t i)
{
    return !is_denied(items, i) && !is_question(items, i) && !is_subordinate(items, i) &&
           !is_hypothetical(items, i);
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
        "here then simply indeed has have to i we us number final correct right best la el le "
        "die also just only either both statement be actually with on for toward towards upon ";
    return is_option_noun(token) || token_in(token, FILLER);
}

/* Does the writer choose, and not "many students"? */
static bool is_writer(const struct items *items, size_t verb)
{
    static const char SKIPPED[] =
        " would will should must can am are have has had 'd definitely probably therefore to going "
        "rather confidently also then thus hence so and myself still ";
    static const char WRITERS[] =
        " i i'd i'll i'm i've we we'd we'll we've let's us you me my yo ich je ";
    while (verb && token_in(at(items, verb - 1), SKIPPED))
        verb--;
    const struct token *before = verb ? at(items, verb - 1) : &NOTHING;
    return before->kind != TOKEN_WORD || token_in(before, WRITERS);
}

/* "choose B", "so B", "go with B", "it is B". */
static bool is_choosing(const struct items *items, size_t j, const struct lead *lead)
{
    static const char VERBS[] =
        " choose chose choosing pick picked picking select selected selecting say guess vote "
        "lean leaning settle opt conclude thinking answering go going went stick sticking mark "
        "elijo wähle ";
    static const char CUES[] =
        " leaves leaving left so thus therefore hence only it's that's matches corresponds "
        "matching favors favours suggests indicates supports remaining remains correction ";
    const struct token *token = at(items, j);
    if (lead->far || lead->crossed)
        return false;
    return token_in(token, CUES) || token_has(token, "选") || token_has(token, "選") ||
           (token_in(token, VERBS) && is_writer(items, j)) ||
           (lead->linked && token_in(token, " it that this "));
}

/* What one word before the letter says; *done when that decides. */
static enum evidence lead_word(const struct items *items, size_t j, struct lead *lead, bool *done)
{
    static const char DOUBTS[] =
        " could might may if whether each every possible options choices seems consider been "
        "unless between ";
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
        (is_option_noun(token) ||
         token_in(token, " selection pick conclusion решение one solution ") ||
         (token_is(token, "alternative") && j &&
          token_in(at(items, j - 1), " correct right best "))))
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
        " option choice answer statement so thus hence that therefore only but and then think "
        "believe ";
    while (i && is_mark(at(items, i - 1), OPENING))
        i--;
    const struct token *before = i ? at(items, i - 1) : &NOTHING;
    return before->kind != TOKEN_WORD || token_in(before, LEADS);
}

/* "(B) is the best answer"; weaker, "B is true"; weaker still, "B fits". */
static enum evidence evidence_after(const struct items *items, size_t i)
{
    size_t j = skip_closing(items, i + 1);
    if (!is_subject(items, i))
        return EVIDENCE_NONE;
    j += is_mark(at(items, j), ",");
    if (token_in(at(items, j), " fits matches works makes wins holds remains ") ||
        (token_is(at(items, j), "it") && token_is(at(items, j + 1), "is")))
        return EVIDENCE_CHOSEN;
    size_t verb = j;
    while (j < verb + 3 && token_in(at(items, j), " is are was must be would should "))
        j++;
    if (j == verb)
        return EVIDENCE_NONE;
    while (j < verb + 6 &&
           token_in(at(items, j),
                    " the clearly definitely indeed thus therefore a my probably obviously "))
        j++;
    for (size_t noun = j; noun < j + 3 && at(items, noun)->kind == TOKEN_WORD; noun++)
        if (token_is_answer(at(items, noun)) || is_option_noun(at(items, noun)))
            return EVIDENCE_STATED;
    return token_in(at(items, j), " correct right true accurate valid ") ? EVIDENCE_TRUE
           : token_in(at(items, j),
                      " best most only better preferable superior appropriate chosen ")
               ? EVIDENCE_STATED
               : EVIDENCE_NONE;
}

/* The first or last line of the answer, and nothing but the letter in it; "1." may be before it. */
static bool is_lone(const struct items *items, size_t i)
{
    size_t first = i, end = i + 1;
    for (; first && at(items, first - 1)->kind != TOKEN_LINE; first--)
        if (i - first > REACH || token_in(at(items, first - 1), CROSSES) ||
            (at(items, first - 1)->kind == TOKEN_WORD &&
             !isdigit((unsigned char)at(items, first - 1)->text.start[0])))
            return false;
    if (first == 0 && is_mark(at(items, end), "!"))
        return true;
    for (; end < items->count && at(items, end)->kind != TOKEN_LINE; end++)
        if (at(items, end)->kind == TOKEN_WORD || end - i > REACH ||
            token_in(at(items, end), CROSSES) || is_mark(at(items, end), "?"))
            return false;
    return (first <= items->first_word || end > items->last_word) && end - first < REACH;
}

static enum evidence evidence_of(const struct items *items, size_t i)
{
    if (is_lone(items, i))
        return EVIDENCE_STATED;
    enum evidence before = evidence_before(items, i), after = EVIDENCE_NONE;
    bool clause_ends = at(items, i + 1)->kind != TOKEN_WORD;
    if (items->at[i].bare_lower && !(before == EVIDENCE_STATED && clause_ends))
        return EVIDENCE_NONE;
    if (before != EVIDENCE_STATED)
        after = evidence_after(items, i);
    if (before < after)
        before = after;
    return before == EVIDENCE_NONE || !is_affirmed(items, i) ? EVIDENCE_NONE : before;
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

static void agree(struct letters *out, char letter)
{
    if (!out->first)
        out->first = letter;
    else if (letter != out->first && !out->second)
        out->second = letter;
}

/* The last letter of the strongest evidence.  Options that are said to be true must agree: several may be. */
static struct letters find_evident(const struct items *items)
{
    enum evidence best = EVIDENCE_CHOSEN;
    struct letters found = {0}, true_ones = {0};
    struct slice end = text_last_sentence(items->text);
    bool gave_up = text_declines(end);
    for (size_t i = 0; i < items->count; i++) {
        enum evidence evidence = items->at[i].letter ? evidence_of(items, i) : EVIDENCE_NONE;
        if (evidence == EVIDENCE_TRUE)
            agree(&true_ones, items->at[i].letter);
        if (evidence < best)
            continue;
        best = evidence;
        found = with_rival(items, i);
        gave_up = gave_up && evidence < EVIDENCE_STATED && at(items, i)->text.start < end.start;
    }
    return gave_up                                     ? (struct letters){0}
           : best == EVIDENCE_TRUE && true_ones.second ? true_ones
                                                       : found;
}

/* ---- weaker evidence, which must agree ---- */

/* Does the letter at `i` label an option: "B.", "(B)", "B:"? */
static bool is_label(const struct items *items, size_t i)
{
    const struct token *next = at(items, i + 1);
    if (!items->at[i].letter)
        return false;
    bool closes = is_mark(next, ".:,-)]") || token_in(next, " – — ： ");
    return items->at[i].enclosed || closes;
}

/* The letter that a line begins with, as options are written; its index, or `count`. */
static size_t option_of_line(const struct items *items, size_t line)
{
    size_t i = line;
    while (at(items, i)->kind == TOKEN_MARK || is_option_noun(at(items, i)))
        i++;
    return i < items->count && is_label(items, i) ? i : items->count;
}

static size_t next_line(const struct items *items, size_t i)
{
    while (i < items->count && at(items, i)->kind != TOKEN_LINE)
        i++;
    return i + 1;
}

/* What is said of one option: "A) Incorrect", "B: yes", "| C | right |", "✅ C", "Is it D? No." */
static enum verdict verdict_of(const struct items *items, size_t i)
{
    size_t j = i + 1;
    enum verdict marked = marked_before(items, i);
    if (marked != SAID_NOTHING)
        return marked;
    while (is_mark(at(items, j), ")]}*_.:-(|?") || token_in(at(items, j), " – — → "))
        j++;
    const struct token *word = at(items, j);
    if (token_in(word, CHECKS) || token_in(word, CROSSES))
        return token_in(word, CHECKS) ? SAID_RIGHT : SAID_WRONG;
    if (j == i + 1)
        return SAID_NOTHING;
    return token_in(word, " correct right true yes ")              ? SAID_RIGHT
           : token_in(word, " incorrect wrong false no not nope ") ? SAID_WRONG
                                                                   : SAID_NOTHING;
}

/* The one option that is said to be right, when another is said to be wrong. */
static struct letters find_verdicts(const struct items *items)
{
    struct letters right = {0};
    bool wrong = false;
    for (size_t i = 0; i < items->count; i++) {
        enum verdict verdict = items->at[i].letter ? verdict_of(items, i) : SAID_NOTHING;
        if (verdict == SAID_RIGHT)
            agree(&right, items->at[i].letter);
        wrong = wrong || verdict == SAID_WRONG;
    }
    return wrong ? right : (struct letters){0};
}

static struct letters find_option_lines(const struct items *items)
{
    struct letters found = {0};
    for (size_t line = 0; line < items->count && !found.second; line = next_line(items, line)) {
        size_t first = option_of_line(items, line), end = next_line(items, line);
        for (size_t i = first; i < end && i < items->count && !found.second; i++) {
            if ((i > first && !is_label(items, i)) || !items->at[i].letter || is_denied(items, i))
                continue;
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
        " vitamin vitamins hepatitis hemophilia type group groups point points figure plan class "
        "grade team appendix vector matrix step event line angle node section part table column "
        "row set player person box bag company ";
    bool named = i && token_in(at(items, i - 1), NAMED);
    size_t line = i;
    while (line && is_mark(at(items, line - 1), OPENING))
        line--;
    bool begins =
        line && at(items, line - 1)->kind == TOKEN_LINE && option_of_line(items, line) == i;
    return named || begins || items->at[i].bare_lower;
}

/* Where the last clause of contrast begins: "..., but C"; the start of the sentence when there is none. */
static const char *contrast_start(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    const char *start = sentence.start;
    while (token_next(&tokens, &token))
        if (token.text.start > sentence.start &&
            token_in(&token, " but yet however nevertheless nonetheless whereas pero sondern "))
            start = token.text.start;
    return start;
}

/* The letters of a part of the text that are not denied; if `marked`, only (B), **B** and "option B". */
static struct letters find_mentioned(const struct items *items, struct slice within, bool marked)
{
    struct letters found = {0};
    for (size_t i = 0; i < items->count && !found.second; i++) {
        const char *start = at(items, i)->text.start;
        bool counts = start >= within.start && start < slice_end(within) && items->at[i].letter &&
                      !names_other(items, i);
        if (marked)
            counts = counts && (items->at[i].enclosed || (i && is_option_noun(at(items, i - 1))));
        if (counts && items->at[i].letter != found.first && is_affirmed(items, i))
            agree(&found, items->at[i].letter);
    }
    return found;
}

/* The letter of the last sentence; of several, one that contrasts with those before it. */
static struct letters find_in_conclusion(const struct items *items)
{
    struct slice sentence = text_last_sentence(items->text);
    if (text_declines(sentence))
        return (struct letters){0};
    const char *contrast = contrast_start(sentence);
    struct letters last =
        find_mentioned(items, slice_between(contrast, slice_end(sentence)), false);
    return last.first && !last.second ? last : find_mentioned(items, sentence, false);
}

/* An answer that was cut off was still discussing the options. */
static struct letters find_letters(const struct items *items)
{
    size_t last = items->count - 1;
    bool open = at(items, last)->kind == TOKEN_WORD && !items->at[last].letter;
    struct letters found = find_evident(items);
    if (!found.first)
        found = find_verdicts(items);
    if (found.first)
        return found;
    found = find_option_lines(items);
    if (found.first && !found.second)
        return found;
    struct letters concluded = {0};
    if (!open || !text_is_cut(items->text))
        concluded = find_in_conclusion(items);
    if (concluded.first || found.first)
        return concluded.first ? concluded : found;
    return open ? found : find_mentioned(items, items->text, true);
}

enum err letters_find(struct slice answer, unsigned options, struct letters *out)
{
    struct items items = {0};
    enum err err = read_items(&items, slice_trim(answer), options);
    *out = err || !items.count ? (struct letters){0} : find_letters(&items);
    free(items.at);
    return err;
}

enum err letters_expected(struct slice expected, unsigned options, char *out)
{
    struct items items = {0};
    enum err err = read_items(&items, slice_trim(expected), options);
    struct letters found = err ? (struct letters){0} : find_option_lines(&items);
    if (!err && !found.first)
        found = find_evident(&items);
    *out = '\0';
    if (!found.second)
        *out = found.first;
    free(items.at);
    return err;
}
