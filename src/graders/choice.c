/* The choice grader: the letter of a multiple-choice answer, or the text of the option if the question, or else the
 * answer, lists the options.  letters.h finds the letter; here are the options. */
#include <ctype.h>
#include <stdlib.h>

#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/final.h"
#include "graders/fold.h"
#include "graders/formula.h"
#include "graders/letters.h"
#include "graders/tokens.h"

/* ---- the options of the question ---- */

enum { OPTION_LENGTH = 200 };

/* Length of the label of an option at `at`: "B) ", "(B) ", "B. ", "B: "; 0 if there is none. */
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

/* "Which statement is false?", "which is NOT true", "all are correct EXCEPT" */
static bool asks_false(struct slice question)
{
    struct tokens tokens = tokens_of(text_last_sentence(question));
    struct token token;
    bool wrong = false, except = false, right = false;
    while (token_next(&tokens, &token)) {
        wrong = wrong || token_in(&token, " false untrue incorrect inaccurate ");
        except = except || token_is(&token, "except") || token_is_negation(&token);
        right = right || token_in(&token, " true correct accurate valid ");
    }
    return right ? except : wrong;
}

/* The last list of options from A in the question; a text ends with its line or at the next label. */
static void options_read(struct options *out, struct slice question)
{
    *out = (struct options){.stem = question};
    for (size_t at = 0; at < question.length; at++) {
        size_t first = label_at(question, at, 'A');
        size_t label = first ? first : label_at(question, at, (char)('A' + out->count));
        if (first) {
            out->count = 0;
            out->stem.length = at;
        }
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
            out->texts[i].length = 0; /* too long to be repeated as a whole */
    }
    out->stem = slice_trim(out->stem);
    out->asks_false = out->count && asks_false(out->stem);
}

/* ---- words ---- */

enum { WORDS_MAX = 160 };

/* The words of a sentence or option and the marks between them. */
struct words {
    struct token at[WORDS_MAX];
    unsigned count;
};

static void words_read(struct words *out, struct slice text)
{
    struct tokens tokens = tokens_of(text);
    out->count = 0;
    while (out->count < WORDS_MAX && token_next(&tokens, &out->at[out->count]))
        out->count++;
}

/* Whether the word can identify an option. */
static bool is_content(const struct token *token)
{
    static const char FUNCTION[] =
        " a an the of in on at to by for from with and or nor but as is are was were be been it "
        "its it's this that these those their they he she his her i we you which who what when "
        "than then so if no not none all both any each above following one has have had do does "
        "will would can could may might must into about over under because since during also "
        "there his very more most less ";
    return token->kind == TOKEN_WORD && !token_in(token, FUNCTION) && !token_is_negation(token);
}

static bool is_number(const struct token *token)
{
    return token->kind == TOKEN_WORD && token->text.start[0] >= '0' && token->text.start[0] <= '9';
}

/* Whether the rest of a word after `common` letters is an inflectional ending. */
static bool is_ending(const struct token *token, size_t common)
{
    struct token rest = *token;
    rest.text.start += common;
    rest.text.length -= common;
    return !rest.text.length || token_in(&rest, " s es ed d e ing ly 's ") ||
           (common > 5 && token_in(&rest, " a on um us i "));
}

/* The same word in any inflection, "becomes" and "become"; "hours" is "h". */
static bool is_same_word(const struct token *a, const struct token *b)
{
    static const char *const UNITS[] = {
        " h hr hrs hour hours ",
        " min mins minute minutes ",
        " s sec secs second seconds ",
        " m meter meters metre metres ",
        " km kilometer kilometers ",
        " cm centimeter centimeters centimetres ",
        " kg kilogram kilograms ",
        " g gram grams ",
        " j joule joules ",
        " n newton newtons ",
        " w watt watts ",
        " v volt volts ",
        " mph miles ",
        " l liter liters litre litres ",
    };
    size_t common = 0;
    if (token_same(a, b))
        return true;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (token_in(a, UNITS[i]) && token_in(b, UNITS[i]))
            return true;
    while (common < a->text.length && common < b->text.length &&
           (a->text.start[common] | 0x20) == (b->text.start[common] | 0x20))
        common++;
    size_t longer = a->text.length > b->text.length ? a->text.length : b->text.length;
    return common >= (longer == common + 1 ? 3 : 4) && is_ending(a, common) && is_ending(b, common);
}

/* Index of the word, or `count`. */
static unsigned words_find(const struct words *words, const struct token *word)
{
    unsigned i = 0;
    while (i < words->count && !is_same_word(&words->at[i], word))
        i++;
    return i;
}

static bool words_have(const struct words *words, const struct token *word)
{
    return words_find(words, word) < words->count;
}

/* ---- the options that a sentence names ---- */

/* How a sentence names an option. */
enum naming { NAMED_NOT, NAMED_PARTLY, NAMED_BY_WORDS, NAMED_IN_FULL };

/* The options, and which of them a sentence names. */
struct namer {
    const struct options *options;
    struct words words[OPTIONS_MAX], stem, sentence;
    bool denied[WORDS_MAX]; /* the words of the sentence */
    bool asks_not;          /* "which is not a noble gas" */
};

struct named {
    enum naming how;
    char letter; /* '\0': none or several */
    bool several;
    struct slice where;
};

/* "Which is not a noble gas", "all of these except"; not within quotes. */
static bool asks_not(const struct words *stem)
{
    bool quoted = false, asked = false;
    for (unsigned i = 0; i < stem->count; i++) {
        const struct token *token = &stem->at[i];
        quoted = token_in(token, " \" “ ” ") ? !quoted : quoted;
        asked = asked || token_in(token, " which what who following these ");
        if (asked && !quoted && (token_is_negation(token) || token_in(token, " except least ")))
            return true;
    }
    return false;
}

static void namer_read(struct namer *namer, const struct options *options)
{
    namer->options = options;
    for (unsigned i = 0; i < options->count; i++)
        words_read(&namer->words[i], options->texts[i]);
    words_read(&namer->stem, text_last_sentence(options->stem));
    namer->asks_not = options->asks_false || asks_not(&namer->stem);
}

static bool in_an_option(const struct namer *namer, const struct token *word)
{
    bool found = false;
    for (unsigned i = 0; i < namer->options->count && !found && is_content(word); i++)
        found = words_have(&namer->words[i], word);
    return found;
}

/* Whether it is the view of others, or only a possibility: "many people think", "it could be". */
static bool sets_aside(const struct namer *namer, unsigned i)
{
    static const char OTHERS[] = " people students many some others someone everyone often "
                                 "commonly sometimes one mistakenly ";
    static const char THINK[] = " think thinks thought assume assumes assumed believe believes "
                                "believed guess say says confuse confuses confused choose pick ";
    const struct token *token = &namer->sentence.at[i];
    if (token_in(token, " could might may possibly either whether tempting tempted mistakenly "
                        "initially mistake misconception consider considering let let's "))
        return true;
    for (unsigned back = 1; token_in(token, THINK) && back <= i && back < 4; back++)
        if (token_in(&namer->sentence.at[i - back], OTHERS))
            return true;
    return false;
}

/* Whether the word negates what follows: "not Bach", "rather than Perth", "rule out Rome", "anything but Rome". */
static bool denies(const struct namer *namer, unsigned i)
{
    static const char DENIALS[] = " nor neither than unlike without excluding eliminate "
                                  "eliminating eliminates exclude excludes reject ";
    static const char PAIRS[] = " instead rule rules ruled ruling anything everything all ";
    const struct words *words = &namer->sentence;
    const struct token *token = &words->at[i];
    if (token_in(token, " of out but "))
        return i && token_in(&words->at[i - 1], PAIRS);
    if (token_is(token, "no"))
        return i + 1 < words->count && words->at[i + 1].kind == TOKEN_WORD;
    if (namer->asks_not)
        return token_is(token, "than");
    return token_is_negation(token) || token_in(token, DENIALS);
}

/* "Sydney is wrong", "Paris isn't the capital" */
static void deny_subject(struct namer *namer, unsigned i)
{
    static const char WRONG[] = " wrong incorrect unlikely eliminated excluded ruled "
                                "implausible impossible mistaken ";
    const struct words *words = &namer->sentence;
    bool said = i && token_in(&words->at[i - 1], " is are was were be ");
    bool wrong = said && (token_in(&words->at[i], WRONG) || token_is_negation(&words->at[i]));
    if (namer->asks_not || (!wrong && !token_in(&words->at[i], " isn't aren't wasn't weren't ")))
        return;
    for (; i && !token_in(&words->at[i - 1], " , ; but : "); i--)
        namer->denied[i - 1] = true;
}

/* "not Bach, nor Handel", "many think it is Sydney, but", "if it were Paris," */
static void find_denied(struct namer *namer)
{
    enum { REACH = 3 }; /* in content words */
    const struct words *words = &namer->sentence;
    bool aside = false, condition = false;
    int left = 0;
    for (unsigned i = 0; i < words->count; i++) {
        const struct token *token = &words->at[i];
        bool negates = denies(namer, i);
        if (token_in(
                token,
                " ; : but however actually instead leaves leaving so thus therefore hence — → "))
            left = aside = 0;
        condition = (condition && !token_in(token, " , then ")) || token_in(token, " if suppose ");
        namer->denied[i] = left > 0 || aside || condition;
        aside = aside || sets_aside(namer, i);
        if (token_is(token, ",") && token_is(&words->at[0], "unlike"))
            left = 0; /* "Unlike Mars, Venus" */
        if (negates || (left > 0 && in_an_option(namer, token)))
            left = REACH;
        else
            left -= left > 0 && is_content(token);
        deny_subject(namer, i);
    }
}

/* Whether the sentence has the option word by word from `at`, including punctuation.  *end is after it. */
static bool begins_with(const struct words *sentence, unsigned at, const struct words *option,
                        unsigned *end)
{
    for (unsigned i = 0; i < option->count; i++)
        if (at + i >= sentence->count || !token_same(&sentence->at[at + i], &option->at[i]))
            return false;
    *end = at + option->count;
    const struct token *before = at ? &sentence->at[at - 1] : NULL;
    bool goes_on = *end + 1 < sentence->count && !sentence->at[*end].spaced &&
                   sentence->at[*end].kind != TOKEN_LINE && !sentence->at[*end + 1].spaced &&
                   sentence->at[*end + 1].kind == TOKEN_WORD; /* 11 of "11.5" */
    bool apart = !before || sentence->at[at].spaced || before->kind == TOKEN_LINE ||
                 token_is_opening(before);
    return option->count > 0 && apart && !goes_on;
}

/* "the first option", "the last choice" */
static bool is_ordinal(const struct namer *namer, unsigned at, unsigned option)
{
    static const char ORDINALS[] = " first second third fourth fifth sixth seventh eighth ";
    const struct words *sentence = &namer->sentence;
    if (at + 1 >= sentence->count || !token_in(&sentence->at[at + 1], " option choice statement "))
        return false;
    return token_index(&sentence->at[at], ORDINALS) == (int)option ||
           (token_is(&sentence->at[at], "last") && option + 1 == namer->options->count);
}

static bool named_in_full(const struct namer *namer, unsigned option, struct slice *where)
{
    const struct words *sentence = &namer->sentence;
    for (unsigned i = 0, end; i < sentence->count; i++)
        if (!namer->denied[i] &&
            (begins_with(sentence, i, &namer->words[option], &end) ||
             (is_ordinal(namer, i, option) && (end = i + 2))) &&
            !(token_in(&sentence->at[i], " no yes ") && end == i + 1 && end < sentence->count &&
              sentence->at[end].kind == TOKEN_WORD)) { /* "no change" is not "No" */
            *where =
                slice_between(sentence->at[i].text.start, slice_end(sentence->at[end - 1].text));
            return true;
        }
    return false;
}

/* A formula or decimal: its parts identify nothing. */
static bool is_formula(const struct words *words)
{
    bool number = false, sign = false;
    for (unsigned i = 0; i < words->count; i++) {
        number = number || is_number(&words->at[i]);
        sign = sign || token_in(&words->at[i], " + = / ^ √ < > % $ . : - − × * ");
        if (words->at[i].text.start[0] == '\\' || token_in(&words->at[i], " = ^ √ "))
            return true;
    }
    return number && sign;
}

/* Whether neither another option nor the question has the word. */
static bool is_distinctive(const struct namer *namer, unsigned option, const struct token *word)
{
    for (unsigned i = 0; i < namer->options->count; i++)
        if (i != option && words_have(&namer->words[i], word))
            return false;
    return !words_have(&namer->stem, word);
}

/* The last word of a name, "Kant" of "Immanuel Kant"; NULL for anything else. */
static const struct token *surname(const struct words *words)
{
    for (unsigned i = 0; i < words->count; i++)
        if (words->at[i].kind != TOKEN_WORD || !isupper((unsigned char)words->at[i].text.start[0]))
            return NULL;
    return words->count > 1 ? &words->at[words->count - 1] : NULL;
}

/* Whether the sentence has all words of the option in any order, or at least half of those that distinguish it. */
static enum naming named_by_words(const struct namer *namer, unsigned option, struct slice *where)
{
    const struct words *words = &namer->words[option];
    unsigned content = 0, present = 0, keys = 0, keys_found = 0;
    bool numbers = true, name = false;
    for (unsigned i = 0; i < words->count && !is_formula(words); i++) {
        const struct token *word = &words->at[i];
        if (!is_content(word))
            continue;
        unsigned place = words_find(&namer->sentence, word);
        bool found = place < namer->sentence.count && !namer->denied[place];
        bool is_key = is_distinctive(namer, option, word);
        content++;
        present += found;
        keys += is_key;
        keys_found += is_key && found;
        numbers = numbers && (found || !is_number(word));
        name = name || (is_key && found && word == surname(words));
        if (found && (is_key || !where->start))
            *where = namer->sentence.at[place].text;
    }
    if (name || (content && present == content))
        return keys_found ? NAMED_BY_WORDS : NAMED_PARTLY;
    return keys_found && 2 * keys_found >= keys && numbers ? NAMED_PARTLY : NAMED_NOT;
}

/* Whether all words of option `a` are among those of `b`, and more, or as many in another order. */
static bool is_within(const struct namer *namer, unsigned a, unsigned b, bool reordered)
{
    const struct words *one = &namer->words[a], *other = &namer->words[b];
    for (unsigned i = 0; i < one->count; i++)
        if (one->at[i].kind == TOKEN_WORD && !words_have(other, &one->at[i]))
            return false;
    return one->count < other->count || reordered;
}

/* The one option that the sentence names and does not negate.  An option contained in a longer one is not named. */
static struct named named_in(struct namer *namer, struct slice sentence)
{
    struct named best = {0};
    unsigned chosen = OPTIONS_MAX;
    words_read(&namer->sentence, sentence);
    find_denied(namer);
    for (unsigned i = 0; i < namer->options->count; i++) {
        struct slice where = {0};
        enum naming how =
            named_in_full(namer, i, &where) ? NAMED_IN_FULL : named_by_words(namer, i, &where);
        bool strong = how >= NAMED_BY_WORDS, rival = strong == (best.how >= NAMED_BY_WORDS);
        if (!how || (best.how && rival && is_within(namer, i, chosen, how < best.how)))
            continue;
        bool within = best.how && rival && is_within(namer, chosen, i, how > best.how);
        if (!best.how || (strong && !rival) || within) {
            best = (struct named){.how = how,
                                  .where = where,
                                  .several = best.several && within && how < NAMED_IN_FULL};
            chosen = i;
        } else if (rival) {
            best.several = true;
        }
    }
    best.letter = (char)(best.how && !best.several ? 'A' + (int)chosen : '\0');
    return best;
}

/* If two options are named, the subject of the sentence: "The trophy is too big for the suitcase." */
static struct named subject_of(const struct namer *namer, struct named named)
{
    for (unsigned i = 0, end; i < 2 && namer->options->count == 2 && named.several; i++)
        if (begins_with(&namer->sentence, 0, &namer->words[i], &end) && !namer->denied[0] &&
            end < namer->sentence.count && token_in(&namer->sentence.at[end], " is was are were "))
            return (struct named){.how = NAMED_IN_FULL,
                                  .letter = (char)('A' + (int)i),
                                  .where = namer->options->texts[i]};
    return named;
}

/* ---- the option that an answer names ---- */

static bool text_asks(struct slice text)
{
    return text.length && slice_end(text)[-1] == '?';
}

/* A few words, all of them of one option: "Kant", "the isosceles triangle". */
static struct named named_briefly(struct namer *namer, struct slice answer)
{
    enum { BRIEF = 8 };
    struct named found = {0};
    words_read(&namer->sentence, answer);
    find_denied(namer);
    bool brief =
        namer->sentence.count <= BRIEF && !is_formula(&namer->sentence) && !text_asks(answer);
    for (unsigned i = 0; i < namer->options->count && brief; i++) {
        unsigned content = 0, shared = 0;
        for (unsigned j = 0; j < namer->sentence.count; j++) {
            const struct token *word = &namer->sentence.at[j];
            content += is_content(word);
            shared += is_content(word) && words_have(&namer->words[i], word);
            if (namer->denied[j] || token_is_negation(word) || token_is(word, "no"))
                return (struct named){0};
        }
        if (!content || shared < content || is_formula(&namer->words[i]))
            continue;
        found.several = found.letter != '\0';
        found.letter = (char)('A' + (int)i);
        found.how = NAMED_BY_WORDS;
        found.where = answer;
    }
    if (found.several)
        return (struct named){0};
    return found;
}

/* Similarity of a sentence to the question: its words in common, minus words in neither the question nor an option. */
static int similarity(const struct namer *namer, struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    int shared = 0, foreign = 0;
    while (token_next(&tokens, &token) && foreign < 50) {
        bool asked = is_content(&token) && words_have(&namer->stem, &token);
        shared += asked;
        foreign += is_content(&token) && !asked && !in_an_option(namer, &token);
    }
    return 64 * shared - foreign;
}

/* "So ...", "But ...", "Wait, no ..." */
static bool concludes(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    return sentence_concludes(sentence) ||
           (token_next(&tokens, &token) &&
            token_in(&token, " wait no actually but however correction sorry hmm oops rather yet "
                             ": → — "));
}

/* Prefers the last of two sentences or clauses, unless it names several options or is less similar to the question. */
static struct named prefer(struct namer *namer, struct slice first, struct named begin,
                           struct slice last, struct named end)
{
    if (!begin.letter || !end.letter || begin.letter == end.letter || concludes(last))
        return end.letter || (end.several && concludes(last)) ? end : begin;
    int nearer = similarity(namer, first) - similarity(namer, last);
    if (named_briefly(namer, first).letter || (nearer > 0 && !namer->asks_not))
        return begin;
    return nearer < 0 && !namer->asks_not ? end : (struct named){.several = true};
}

/* Splits a sentence at its first ";", "while" or "," before "which", or at its last "but" or ":". */
static const char *clause_start(struct slice sentence)
{
    struct tokens tokens = tokens_of(sentence);
    struct token token;
    const char *start = NULL, *contrast = NULL;
    bool comma = false;
    while (token_next(&tokens, &token)) {
        bool inside = token.text.start > sentence.start && tokens.at < tokens.end;
        if (inside && token_in(&token, " but however : → — so "))
            contrast = token.text.start;
        else if (inside && !start &&
                 (token_in(&token, " ; while whereas ") || (comma && token_is(&token, "which"))))
            start = token.text.start;
        comma = token_is(&token, ",");
    }
    return contrast ? contrast : start;
}

/* The option that a sentence names; of several, the one in a clause. */
static struct named concluded_in(struct namer *namer, struct slice sentence)
{
    if (!sentence.length || text_asks(sentence))
        return (struct named){0};
    struct named named = named_in(namer, sentence);
    const char *split = named.several ? clause_start(sentence) : NULL;
    if (!split)
        return subject_of(namer, named);
    struct slice first = slice_between(sentence.start, split);
    struct slice last = slice_between(split, slice_end(sentence));
    struct named begin = named_in(namer, first), end = named_in(namer, last);
    return prefer(namer, first, begin, last, end);
}

/* The option of the last sentence; of the first if that is more similar to the question; else the only one named. */
static struct named named_in_text(struct namer *namer, struct slice answer)
{
    struct slice rest = text_without_asides(answer), sentence, first = {0};
    struct slice last = text_last_sentence(answer);
    struct named only = {0};
    unsigned seen = 0;
    for (; sentence_next(&rest, &sentence) && seen < 40; seen++) {
        struct named named = concluded_in(namer, sentence);
        if (text_declines(sentence) && !text_declines(named.where))
            return (struct named){0};
        first = seen ? first : sentence;
        if (named.several || (only.letter && named.letter && named.letter != only.letter))
            only.several = true;
        if (named.letter && !only.letter)
            only = named;
    }
    struct named begin = concluded_in(namer, first), end = concluded_in(namer, last);
    struct named found = prefer(namer, first, begin, last, end);
    if (found.letter)
        return found;
    if (only.several)
        only = (struct named){0};
    return only;
}

/* Whether the answer repeats the options before the sentence, and names none before that. */
static bool repeats_options(const struct options *options, struct slice answer,
                            struct slice sentence)
{
    const char *first = options->texts[0].start;
    unsigned labels = 0; /* the first of the list is one of them */
    for (size_t at = 0; answer.start + at < first; at++)
        for (int letter = 'A'; letter <= 'Z'; letter++)
            labels += label_at(answer, at, (char)letter) > 0;
    return labels == 1 && sentence.start >= slice_end(options->texts[options->count - 1]);
}

/* The option of the marked answer, else of the text.  `repeated`: the options are those listed in the answer itself. */
static struct named option_answered(struct namer *namer, struct slice answer, bool repeated)
{
    const struct options *options = namer->options;
    struct final_answer final;
    struct slice sentence = text_last_sentence(answer);
    struct named found = {0};
    if (!final_find(answer, FINAL_AUTO, &final))
        final.marker = FINAL_NONE;
    if (final.marker != FINAL_NONE)
        sentence = final_sentence(final.line);
    if (options->count < 2 || (repeated && !repeats_options(options, answer, sentence)))
        return found;
    if (repeated || final.marker != FINAL_NONE)
        found = concluded_in(namer, sentence);
    if (!repeated && !found.letter)
        found = named_briefly(namer, final.marker == FINAL_NONE ? answer : final.line);
    if (!repeated && !found.letter) {
        int value = formula_stated(options->texts, options->count, answer, &final);
        if (value >= 0)
            found = (struct named){.letter = (char)('A' + value), .where = options->texts[value]};
    }
    if (!repeated && !found.letter && final.marker == FINAL_NONE)
        found = named_in_text(namer, answer);
    return found;
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

/* The option whose text the answer names; `listed`: among the options that the answer lists. */
static struct named name_option(struct options *options, struct slice answer, bool listed)
{
    if (listed)
        options_read(options, answer);
    if (options->count < 2)
        return (struct named){0};
    struct namer *namer = xmalloc(sizeof *namer);
    namer_read(namer, options);
    struct named found = option_answered(namer, answer, listed);
    free(namer);
    return found;
}

static enum err choice_grade(const void *state, const struct grading *what, struct grade *out,
                             struct error *why)
{
    unsigned count = ((const struct choice *)state)->options;
    char last = (char)('A' + (int)count - 1);
    char wanted = letters_expected(slice_of(what->expected), count);
    (void)why;
    if (!wanted) {
        grade_null(out, "the expected answer is not a letter from A to %c: %.80s", last,
                   what->expected);
        return ERR_OK;
    }
    struct options options = {0};
    struct named named = {0};
    struct slice answer = slice_of(what->answer), first = text_before_question(answer);
    if (what->problem)
        options_read(&options, slice_of(what->problem));
    if (options.count > 1 && wanted < 'A' + (int)options.count)
        count = options.count < count ? options.count : count;
    struct letters found = letters_find(first, count, &options);
    if (!found.first && first.length < answer.length)
        found = letters_find(first = answer, count, &options);
    if (found.listed || !found.first)
        named = name_option(&options, first, found.listed);
    if (named.letter)
        found = (struct letters){.first = named.letter};
    compare(wanted, found, last, out);
    if (named.letter)
        grade_extracted(out, named.where);
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
