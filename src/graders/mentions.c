/* Which letters of an answer name options, and the statements about them.
 *
 * A letter names an option unless it is part of something else: an article or pronoun ("A dog", "I think"), a formula
 * or compound ("B = 5", "C++", "B-cells"), a species ("E. coli"), or a name after a noun ("vitamin C", "driver D", "a
 * grade of B", "3 A").
 *
 * The sentence of an option may say that it is
 *   denied    by a word before it ("not B", "eliminating A and B", "rather than B") or after it ("B is wrong"), as a
 *             mistake that others make, as a first thought, as second best
 *   doubted   in a question, a concession ("although B"), a reason ("because A and B"), a condition ("if ... would") */
#include "graders/letters.h"

#include <ctype.h>
#include <stdlib.h>

#include "core/grow.h"

/* In tokens; farther words of a sentence do not affect a letter. */
enum { SENTENCE_REACH = 48 };

static const char OPENING[] = "([{*_\"'`$<", CLOSING[] = ")]}*_\"'`$";
static const char CROSSES[] = " ❌ ✗ ✘ ✖ ", CHECKS[] = " ✅ ✓ ✔ ☑ ";

/* ---- the tokens around a letter ---- */

const struct token *mentions_token(const struct mentions *mentions, size_t i)
{
    static const struct token NOTHING = {.kind = TOKEN_LINE};
    return i < mentions->count ? &mentions->at[i].token : &NOTHING;
}

static const struct token *at(const struct mentions *mentions, size_t i)
{
    return mentions_token(mentions, i);
}

static bool is_mark(const struct token *token, const char *set)
{
    return token->kind == TOKEN_MARK && token->text.length == 1 &&
           strchr(set, token->text.start[0]);
}

bool mentions_mark(const struct mentions *mentions, size_t i, const char *set)
{
    return is_mark(at(mentions, i), set);
}

bool mentions_opens(const struct mentions *mentions, size_t i)
{
    return is_mark(at(mentions, i), OPENING);
}

/* Whether there is no space before it. */
static bool attached(const struct token *token)
{
    return token->kind != TOKEN_LINE && !token->spaced;
}

size_t mentions_skip_closing(const struct mentions *mentions, size_t i)
{
    while (is_mark(at(mentions, i), CLOSING))
        i++;
    return i;
}

size_t mentions_skip_option(const struct mentions *mentions, size_t i)
{
    size_t text = mentions->at[i].text_end;
    return mentions_skip_closing(mentions, text ? text : i + 1);
}

size_t mentions_sentence_first(const struct mentions *mentions, size_t i)
{
    size_t first = mentions->at[i].sentence;
    return i - first > SENTENCE_REACH ? i - SENTENCE_REACH : first;
}

/* The token that ends its sentence, or `count`. */
static size_t sentence_last(const struct mentions *mentions, size_t i)
{
    size_t far = i + SENTENCE_REACH, sentence = mentions->at[i].sentence;
    while (i < mentions->count && i < far && mentions->at[i].sentence == sentence &&
           at(mentions, i)->kind != TOKEN_LINE && !mentions->at[i].ends)
        i++;
    return i;
}

bool mention_is_noun(const struct token *token)
{
    return token_in(token,
                    " option choice letter ending continuation response alternative "
                    "candidate opción opção alternativa letra lettre вариант pilihan možnost "
                    "opcja optie seçenek विकल्प ");
}

bool mentions_praise(const struct mentions *mentions, size_t i)
{
    if (token_is(at(mentions, i), "makes"))
        return token_in(at(mentions, i + 1), " sense the most more perfect ");
    return token_in(at(mentions, i),
                    " fits matches works wins holds remains satisfies explains captures "
                    "completes accounts agrees answers follows best conserves edges beats "
                    "reflects preserves stimmt zutrifft passt convient ");
}

bool mention_is_link(const struct token *token)
{
    static const char LINKS[] =
        " or and nor & , / both either versus vs y o und oder et ou e и 和 或 、 maybe perhaps "
        "possibly ";
    return token_in(token, LINKS);
}

/* ---- which tokens are letters ---- */

/* Whether the bare letter could be a word of the sentence, "A dog", "I think". */
static bool reads_as_word(const struct mentions *mentions, size_t i)
{
    static const char AFTER_A[] =
        " because since as is and or would for due not with but if to was are can does has "
        "seems says states must will gives cannot here instead describes should could might rather "
        "over i it in on along together plus ";
    char written = at(mentions, i)->text.start[0];
    int letter = toupper((unsigned char)written);
    const struct token *next = at(mentions, i + 1), *before = mentions_before(mentions, i);
    bool foreign = next->text.length && (unsigned char)next->text.start[0] >= 0xCE; /* not Latin */
    if ((letter != 'A' && letter != 'I') || next->kind != TOKEN_WORD || foreign ||
        mention_is_noun(before) || token_in(before, " statement sentence "))
        return false;
    if (letter == 'I')
        return !token_in(next, " is has isn't seems ") && !mentions_praise(mentions, i + 1);
    /* An article in the middle of a sentence is lower case. */
    if (written == 'A' && token_in(before, " , ; and or nor than that so only but between then "))
        return false;
    return !token_in(next, AFTER_A) && !mentions_praise(mentions, i + 1);
}

/* Part of a formula or a compound: B-cells, C++, A/B, 20 °C, x_A, B = 5. */
static bool is_part(const struct mentions *mentions, size_t i)
{
    const struct token *next = at(mentions, i + 1), *before = mentions_before(mentions, i);
    const struct token *beyond = at(mentions, i + 2);
    bool word_beyond = beyond->kind == TOKEN_WORD && attached(beyond);
    bool quoted = is_mark(next, "'") && is_mark(before, "'");
    bool label = is_mark(next, ".") && word_beyond && beyond->text.length > 2 && /* "B.Helicase" */
                 isupper((unsigned char)beyond->text.start[0]) && before->kind == TOKEN_LINE;
    if (attached(next) && !quoted && !label &&
        (is_mark(next, "+#/^'") || (is_mark(next, "-_.") && word_beyond)))
        return true;
    if (is_mark(next, "=") && !is_mark(beyond, ">"))
        return true;
    bool compared =
        (is_mark(next, "<>") && beyond->text.length == 1) ||
        ((is_mark(before, "<>=") || (is_mark(before, "+") && attached(before))) && i > 1 &&
         at(mentions, i - 2)->text.length == 1 && at(mentions, i - 2)->kind == TOKEN_WORD);
    if (compared && beyond->kind != TOKEN_MARK) /* "A < B" */
        return true;
    if (token_is(before, "let") && token_in(next, " be denote represent "))
        return true;
    if (i > 1 && is_mark(before, "(") && attached(before) && /* P(A) */
        at(mentions, i - 2)->kind == TOKEN_WORD && at(mentions, i - 2)->text.length == 1)
        return true;
    if (!attached(at(mentions, i)))
        return false;
    bool compound = is_mark(before, "-_") && attached(before) && i > 1 &&
                    at(mentions, i - 2)->kind == TOKEN_WORD;
    return compound || is_mark(before, "/^") || token_is(before, "°");
}

/* "E. coli": the second word of a species is lower case, and nothing that an option would be. */
static bool is_species(const struct mentions *mentions, size_t i)
{
    static const char EPITHETS[] =
        " coli difficile jejuni pylori albicans botulinum perfringens tetani elegans burgdorferi "
        "pertussis anthracis cereus subtilis fragilis melanogaster influenzae sapiens faecalis "
        "faecium vaginalis lamblia fumigatus thaliana baumannii aegypti trachomatis diphtheriae "
        "neoformans histolytica lumbricoides cerevisiae erectus habilis neanderthalensis afarensis "
        "immitis henselae canis granulosus israelii tumefaciens rerio gallus carolinensis ";
    return is_mark(at(mentions, i + 1), ".") && token_in(at(mentions, i + 2), EPITHETS) &&
           islower((unsigned char)at(mentions, i + 2)->text.start[0]);
}

/* Whether the word may be followed by an option.  After any other, a noun or a number, a letter is its name or unit. */
static bool may_lead(const struct token *token)
{
    static const char FUNCTION[] =
        " the is are was were be been being it's that's it this that which what why how does "
        "and or nor but so thus hence therefore then than because since as if while whereas "
        "although though unless both either neither only just also even maybe perhaps possibly "
        "between versus vs plus with for to on by in under from at over toward towards against "
        "among "
        "except besides without like unlike upon about into now here again instead rather hmm ok "
        "okay yes yeah wait sure well still i i'd i'll we me us you however yet too no out indeed "
        "nevertheless nonetheless otherwise moreover reading reflection inspection balance "
        "analysis consideration review whole end elimination "
        "has have had would will must should could might may can "
        "es est ist sind la el le il die der das den e y o et ou und oder è é son sont soit l ";
    static const char VERBS[] =
        " choose chooses choosing chose chosen pick picks picked picking select selects selected "
        "selecting go goes going gone went guess guessing guessed say says said saying vote "
        "voting lean leaning settle settling settled opt opting conclude concluding think "
        "thinking thought believe mark marked marking answer answering answered take taking "
        "prefer preferred favor favour favors favours tick ticked circle circled keep keeping "
        "stick sticking submit submitting report call get got see seems considering consider "
        "compare comparing checking trying try tried evaluate evaluating call bet betting "
        "leave leaves leaving left makes make making means mean gives give giving yields yield "
        "indicates indicate suggests suggest supports support matches matching match matched "
        "corresponds correspond corresponding fits fit equals eliminate eliminates eliminating "
        "eliminated exclude excludes excluding excluded reject rejects rejecting rejected rule "
        "rules ruling ruled dismiss dismissing discard discarding avoid remains remaining points "
        "pointing becomes identifies identify reckon suspect figure feel nominate want meant "
        "confirms confirm justifies contradicts find deem elijo "
        "wähle "
        "scelgo choisis kies wybieram ";
    static const char NOUNS[] =
        " options choices letters endings correct right best better wrong incorrect true false "
        "final statement statements sentence its conclusion decision verdict selection solution "
        "result pick "
        "guess vote correction ";
    struct slice text = token->text;
    bool adverb = text.length > 4 && slice_is((struct slice){slice_end(text) - 2, 2}, "ly");
    bool foreign = memchr(text.start, '\'', text.length); /* "l'option" */
    for (size_t i = 0; i < text.length; i++)
        foreign = foreign || (unsigned char)text.start[i] >= 0x80;
    return token->kind != TOKEN_WORD || adverb || foreign || token_is_answer(token) ||
           token_is_link(token) || mention_is_noun(token) || token_is_negation(token) ||
           token_in(token, FUNCTION) || token_in(token, VERBS) || token_in(token, NOUNS);
}

/* "A. 1783 B. 1781": whether the label of the preceding option is on the same line. */
static bool continues_list(const struct mentions *mentions, size_t i)
{
    const struct token *mark = at(mentions, i + 1);
    char previous = (char)(at(mentions, i)->text.start[0] - 1);
    if (!isdigit((unsigned char)mentions_before(mentions, i)->text.start[0]))
        return false;
    for (size_t j = i; is_mark(mark, ".):") && j-- && i - j < MENTIONS_REACH;) {
        const struct token *token = at(mentions, j);
        if (token->kind == TOKEN_LINE)
            return false;
        if (token->text.length == 1 && token->text.start[0] == previous &&
            token_same(at(mentions, j + 1), mark))
            return true;
    }
    return false;
}

/* "vitamin C", "a grade of B", "3 A" */
static bool names_other(const struct mentions *mentions, size_t i)
{
    const struct token *before = mentions_before(mentions, i);
    if (token_is(before, "of") && i > 1) {
        before = at(mentions, i - 2);
        return before->kind == TOKEN_WORD &&
               !token_in(before, " instead out all some none any each either neither favor favour "
                                 "sure certain confident choice selection because thinking ") &&
               !token_is_answer(before);
    }
    if (token_is(before, "a")) /* "he got a C"; "a correta é a C" */
        return i < 2 || !token_is(at(mentions, i - 2), "é");
    if (i > 1 && mention_is_link(before)) { /* "angles B and C" */
        const struct mention *one = &mentions->at[i - 2];
        return one->token.kind == TOKEN_WORD && one->token.text.length == 1 && !one->letter &&
               isupper((unsigned char)one->token.text.start[0]);
    }
    return before->text.length && !mentions_letter(mentions, i - 1) && !may_lead(before) &&
           !continues_list(mentions, i);
}

static void read_letter(const struct mentions *mentions, size_t i, unsigned options)
{
    struct mention *mention = &mentions->at[i];
    int letter = (unsigned char)mention->token.text.start[0];
    int index = toupper(letter) - 'A';
    if (mention->token.text.length != 1 || !isalpha(letter) || index >= (int)options ||
        is_part(mentions, i) || is_species(mentions, i))
        return;
    const struct token *next = at(mentions, i + 1);
    if (index == 0 && is_mark(next, ":") &&
        (token_in(at(mentions, i + 2), " i i'm we let let's first ") ||
         (at(mentions, i + 2)->text.length == 1 && at(mentions, i + 2)->kind == TOKEN_WORD &&
          at(mentions, i + 3)->kind == TOKEN_LINE)))
        return; /* "A: I think", "A: B" is an answer to "Q:" */
    bool opened = i && attached(&mention->token) && is_mark(at(mentions, i - 1), OPENING);
    bool closed = attached(next) && is_mark(next, CLOSING);
    mention->enclosed = opened && closed;
    mention->bare_lower = islower(letter) && !mention->enclosed && !is_mark(next, ")") &&
                          !(i && mention_is_noun(at(mentions, i - 1)));
    if (mention->enclosed || (closed && is_mark(next, ")")) ||
        (!names_other(mentions, i) && (closed || !reads_as_word(mentions, i))))
        mention->letter = (char)('A' + index);
}

/* End of the option's text after its label at `i`, "(B) False", or of a part of it that ends the line; 0 if something
 * else follows. */
static size_t option_text_end(const struct mentions *mentions, size_t i, struct slice option)
{
    size_t first = i + 1, end;
    while (is_mark(at(mentions, first), ").:]*-") || token_in(at(mentions, first), " – — "))
        first++;
    struct tokens wanted = tokens_of(option);
    struct token want;
    bool whole = option.length > 0;
    for (end = first; whole && token_next(&wanted, &want); end += whole)
        whole = end < mentions->count && token_same(at(mentions, end), &want);
    bool cut = end > first && (end == mentions->count || at(mentions, end)->kind == TOKEN_LINE);
    return first > i + 1 && (whole || cut) ? end : 0;
}

/* If the question is unknown: an answer that begins with "B. False", "C. Not found" and labels no other letter. */
static size_t leading_text_end(const struct mentions *mentions)
{
    size_t i = mentions->first_word, end = i + 2;
    if (!mentions_letter(mentions, i) || !is_mark(at(mentions, i + 1), ".):") ||
        !token_in(at(mentions, i + 2), " false no none not never neither "))
        return 0;
    for (size_t j = i + 1; j < mentions->count; j++)
        if (mentions->at[j].letter && mentions->at[j].letter != mentions->at[i].letter)
            return 0;
    while (end < mentions->count && end < i + 8 && at(mentions, end)->kind == TOKEN_WORD)
        end++;
    return end == mentions->count || at(mentions, end)->kind == TOKEN_LINE || mentions->at[end].ends
               ? end
               : 0;
}

/* The texts after labels: their words are not statements about the option. */
static void read_texts(struct mentions *mentions, const struct options *options)
{
    if (options && options->count)
        for (size_t i = 0; i < mentions->count; i++) {
            unsigned index = (unsigned)(mentions->at[i].letter - 'A');
            if (mentions->at[i].letter && index < options->count)
                mentions->at[i].text_end = option_text_end(mentions, i, options->texts[index]);
        }
    else if (mentions->first_word < mentions->count)
        mentions->at[mentions->first_word].text_end = leading_text_end(mentions);
}

enum err mentions_read(struct mentions *mentions, struct slice text, unsigned count,
                       const struct options *options)
{
    struct tokens tokens = tokens_of(text);
    struct mention mention = {0};
    const struct token *before = NULL;
    mentions->text = text;
    while (token_next(&tokens, &mention.token)) {
        struct mention *grown =
            grow(mentions->at, &mentions->capacity, mentions->count, sizeof mention);
        if (!grown)
            return ERR_NO_MEMORY;
        mentions->at = grown;
        before = mentions->count ? &grown[mentions->count - 1].token : NULL;
        mention.ends = token_ends_sentence(&mention.token, before);
        grown[mentions->count++] = mention;
        if (mention.ends || mention.token.kind == TOKEN_LINE)
            mention.sentence = mentions->count;
    }
    mentions->first_word = mentions->count;
    for (size_t i = 0; i < mentions->count; i++) {
        read_letter(mentions, i, count);
        if (at(mentions, i)->kind != TOKEN_WORD)
            continue;
        mentions->first_word = mentions->first_word < i ? mentions->first_word : i;
        mentions->last_word = i;
    }
    mentions->asks_false = options && options->asks_false;
    read_texts(mentions, options);
    return ERR_OK;
}

void mentions_release(struct mentions *mentions)
{
    free(mentions->at);
    *mentions = (struct mentions){0};
}

/* ---- verdicts ---- */

/* The verdict of a cross or check mark before the letter: "❌ B".  In "A ❌ B ✅" it belongs to the letter before it. */
static enum verdict marked_before(const struct mentions *mentions, size_t i)
{
    bool cross = i && token_in(at(mentions, i - 1), CROSSES);
    bool check = i && token_in(at(mentions, i - 1), CHECKS);
    size_t first = mentions_sentence_first(mentions, i);
    while ((cross || check) && first < i && !token_in(at(mentions, first), CROSSES) &&
           !token_in(at(mentions, first), CHECKS))
        if (mentions->at[first++].letter)
            return SAID_NOTHING;
    return cross ? SAID_WRONG : check ? SAID_RIGHT : SAID_NOTHING;
}

/* Whether the words after the letter are those of the option: "Answer: C) False", "I'd choose B) False rather than A)
 * True", "so B (no)".  A label that begins its sentence, "B) False", is judged by them. */
static bool has_text(const struct mentions *mentions, size_t i)
{
    size_t before = i, after = i + 1;
    while (before && (is_mark(at(mentions, before - 1), OPENING) ||
                      mention_is_noun(at(mentions, before - 1))))
        before--;
    before -= before && is_mark(at(mentions, before - 1), ",");
    while (is_mark(at(mentions, after), ").:*("))
        after++;
    const struct token *lead = mentions_before(mentions, before);
    bool led = token_is_link(lead) ||
               token_in(lead, " choose pick select go with for to so thus therefore hence than of "
                              "over against say not is prefer favor favour ");
    size_t first = mentions_sentence_first(mentions, i);
    bool bullet = before == first + 1 && is_mark(lead, "-*");
    return before > first && led && !bullet && after > i + 1 &&
           !token_is_link(at(mentions, after)) &&
           !(token_is_link(lead) && token_is_negation(at(mentions, after)));
}

/* The letter after `i`, skipping brackets and the words between; `count` if something else follows. */
static size_t letter_after(const struct mentions *mentions, size_t i)
{
    while (is_mark(at(mentions, i), OPENING) || mention_is_noun(at(mentions, i)) ||
           token_in(at(mentions, i), " the "))
        i++;
    return mentions_letter(mentions, i) ? i : mentions->count;
}

enum verdict mention_verdict(const struct mentions *mentions, size_t i)
{
    size_t text = mentions->at[i].text_end, start = text ? text : i + 1, j = start;
    enum verdict marked = marked_before(mentions, i);
    if (marked != SAID_NOTHING)
        return marked;
    while (is_mark(at(mentions, j), ")]}*_.:-(|?") || token_in(at(mentions, j), " – — → "))
        j++;
    const struct token *word = at(mentions, j);
    if (token_in(word, CHECKS) || token_in(word, CROSSES))
        return token_in(word, CHECKS) ? SAID_RIGHT : SAID_WRONG;
    bool begins = !i || at(mentions, i - 1)->kind == TOKEN_LINE || mentions->at[i].enclosed;
    for (size_t k = j; begins && k < i + MENTIONS_REACH && !mentions_letter(mentions, k) &&
                       at(mentions, k)->kind != TOKEN_LINE;
         k++)
        if (token_in(at(mentions, k), CHECKS) || token_in(at(mentions, k), CROSSES))
            return token_in(at(mentions, k), CHECKS) ? SAID_RIGHT : SAID_WRONG; /* "(D) radial ✔" */
    if (token_in(word, " yes no ") && at(mentions, j + 1)->kind != TOKEN_WORD && j == i + 1)
        return token_is(word, "yes") ? SAID_RIGHT : SAID_WRONG;
    if (j == start || (!text && has_text(mentions, i)) ||
        (token_is(word, "not") && letter_after(mentions, j + 1) < mentions->count)) /* "B, not C" */
        return SAID_NOTHING;
    if (token_in(word, " yes no ") && is_mark(at(mentions, j + 1), ",") &&
        !is_mark(at(mentions, i + 1), "?") &&
        token_in(at(mentions, j + 2), " because since unless if as "))
        return SAID_NOTHING; /* "(A) No, because the gift was not delivered" */
    if (mentions->asks_false && token_in(word, " true false "))
        return token_is(word, "false") ? SAID_RIGHT : SAID_WRONG;
    return token_in(word, " correct right true yes ")              ? SAID_RIGHT
           : token_in(word, " incorrect wrong false no not nope ") ? SAID_WRONG
                                                                   : SAID_NOTHING;
}

/* ---- denial ---- */

static const char EXCEPTIONS[] = " except but save besides for from than ";

bool mention_is_exception(const struct mentions *mentions, size_t i)
{
    const struct token *word = mentions_before(mentions, i);
    if (!token_in(word, EXCEPTIONS))
        return false;
    const struct token *earlier = at(mentions, i > 1 ? i - 2 : mentions->count);
    bool none = (token_is(word, "for") && token_is(earlier, "except")) || /* "except for B, none" */
                (token_is(word, "from") && token_in(earlier, " apart aside ")) ||
                (token_is(word, "than") && token_is(earlier, "other")) ||
                token_in(word, " besides except ");
    if (!none && !token_in(word, " but save "))
        return false;
    bool all = false, said = false;
    size_t first = mentions_sentence_first(mentions, i), end = sentence_last(mentions, i);
    for (size_t j = first; j < end; j++) {
        const struct token *token = at(mentions, j);
        said = said || token_in(token, " is are was were can have has do does works fits makes ");
        all =
            all || (j + 2 == i && token_in(token, " all everything others rest nothing ")) ||
            (none && j < i && token_in(token, " all every everything each others rest nothing ")) ||
            (none && j > i && token_in(token, " all every none nothing no "));
    }
    return all && said;
}

/* Whether what is negated at `j` ends before the letter, "Unlike A, B is ...", or B is preferred, "A is weaker than
 * B". */
static bool ends_denial(const struct mentions *mentions, size_t j, size_t i)
{
    size_t first = mentions_sentence_first(mentions, i), lead = i;
    const struct token *after = at(mentions, mentions_skip_closing(mentions, i + 1));
    while (lead &&
           (is_mark(at(mentions, lead - 1), OPENING) || mention_is_noun(at(mentions, lead - 1)) ||
            token_in(at(mentions, lead - 1), " choose pick select ")))
        lead--;
    for (size_t k = j; token_is(at(mentions, j), "than") && k-- > first && k + 4 > j;)
        if (token_in(at(mentions, k), " less weaker worse poorer "))
            return true;
    return token_in(at(mentions, j), " of than unlike to against ") && j < first + 2 &&
           lead > j + 1 && is_mark(at(mentions, lead - 1), ",") && !mention_is_link(after);
}

/* "not B", "eliminating A, C and D", "rather than B", "not a base (B)", "A over B". */
static bool denied_before(const struct mentions *mentions, size_t i)
{
    static const char DENIALS[] =
        " eliminate eliminating eliminates eliminated exclude excluding excludes reject rejecting "
        "rejects rejected discard discarding dismiss dismissing avoid than unlike except besides "
        "without contrary incorrect wrong against unlikely hardly less ";
    static const char FILLER[] =
        " be with in for by the likely to answers statement statements options choices "
        "choice also first anything definitely certainly choose pick select ";
    size_t open = i - (i && mention_is_noun(at(mentions, i - 1)));
    bool appended =
        open > 1 && is_mark(at(mentions, open - 1), "(") && !token_is_link(at(mentions, open - 2));
    int named = appended ? 5 : 0; /* words of what it names */
    for (size_t back = 1; back <= i && back < MENTIONS_REACH; back++) {
        size_t j = i - back;
        const struct token *token = at(mentions, j);
        if (token_in(token, EXCEPTIONS) && mention_is_exception(mentions, j + 1))
            return false;
        if (ends_denial(mentions, j, i))
            return false;
        bool comma = is_mark(at(mentions, j + 1), ",");
        if (comma && (token_in(token, " incorrect wrong ") || /* "A and C are wrong, B is right" */
                      token_is(mentions_before(mentions, j), "if"))) /* "if not, B" */
            return false;
        if (token_is_negation(token) || token_in(token, DENIALS))
            return true;
        if (token_in(token, " of out ")) /* "instead of", "rule out" */
            return token_in(mentions_before(mentions, j),
                            " instead none rule ruling ruled rules cross crossing edges edging ");
        if (token_is(token, "but") &&
            token_in(mentions_before(mentions, j), " anything all nothing everything "))
            return true;
        if (token_in(token, " over beats versus to ") && back == 1) /* "prefer A to B" */
            return j && ((mentions_letter(mentions, j - 1) &&
                          (!token_is(token, "to") ||
                           (j > 1 && token_in(at(mentions, j - 2), " prefer preferred ")))) ||
                         token_in(at(mentions, j - 1), " opposed preference preferable superior "));
        if (mentions->at[j].ends || token->kind == TOKEN_LINE || token_in(token, " — – ; → ⇒ ") ||
            (back > 2 && is_mark(token, "\"")) || (named > 0 && named < 5 && is_mark(token, ",")) ||
            (named > 0 && token_in(token, " but is are yet so ")))
            return false;
        if (token->kind == TOKEN_WORD && !mentions->at[j].letter && !mention_is_link(token) &&
            !mention_is_noun(token) && !token_in(token, FILLER) && named-- <= 0)
            return false;
    }
    return false;
}

/* Whether another subject begins: ", it is not", "and the others don't". */
static bool changes_subject(const struct mentions *mentions, size_t i)
{
    return token_in(at(mentions, i), " , and – — - ( ") &&
           token_in(at(mentions, i + 1), " it the this they that so and others all none \" ");
}

/* Whether a word after the letter negates it: "wrong", "(true) only if".  Not "stands out". */
static bool is_wrong(const struct mentions *mentions, size_t j)
{
    static const char WRONG[] =
        " wrong incorrect false inaccurate untrue tempting ignores violates contradicts "
        "contradicted confuses eliminated excluded rejected ruled out unrelated irrelevant "
        "impossible implausible unlikely too invalid misleading mistake misconception error myth "
        "trap distractor fails second runner initial original earlier partially partly incomplete "
        "arguable debatable opposite breaks mistaken absurd nonsensical illogical nonsense "
        "ridiculous "
        "lacks omits overlooks less least weaker worse might may could outside incorrecta falsch "
        "errada salah fout yanlış yanlıştır sai गलत ❌ ✗ ✘ ";
    const struct token *before = mentions_before(mentions, j), *next = at(mentions, j + 1);
    if (token_is(at(mentions, j), "second") && token_is(before, "the") &&
        !token_in(next, " best choice guess pick most likely closest "))
        return false; /* "B, in the second it is C" */
    if (token_is(at(mentions, j), "only"))
        return token_in(next, " if when for in under where holds applies works partially ");
    return token_in(at(mentions, j), WRONG) &&
           !token_in(before, " , stands turns wins comes works edges one ") &&
           !(token_is(before, "the") && token_in(next, " statement one claim sentence ")) &&
           !(token_is(at(mentions, j), "too") && next->kind != TOKEN_WORD);
}

/* "B is wrong", "B ignores ...", "C is tempting". */
static bool denied_after(const struct mentions *mentions, size_t i)
{
    size_t words = 0;
    bool linked = false;
    size_t start = mentions_skip_option(mentions, i);
    if (!mentions->at[i].text_end && has_text(mentions, i))
        return false;
    for (size_t j = start; j < start + MENTIONS_REACH && words < 6; j++) {
        const struct token *token = at(mentions, j);
        if (j >= mentions->count || token->kind == TOKEN_LINE ||
            (!linked && mentions->at[j].letter) || changes_subject(mentions, j) ||
            token_in(token, " because since as but while whereas though although however that "
                            "rules leaving if unless when "
                            "; ， 。 "))
            return false;
        if (is_mark(token, ":") && mention_verdict(mentions, i) != SAID_WRONG)
            return false;
        linked = !words && (mention_is_link(token) || (linked && is_mark(token, OPENING)));
        if (linked || mentions->at[j].letter) /* "A, C and D are wrong" */
            continue;
        if (mentions->asks_false && token_in(token, " true false untrue incorrect inaccurate "))
            return token_is(token, "true");
        if (mentions->asks_false && token_is_negation(token))
            return false;             /* "D is not true" */
        if (token_is_negation(token)) /* "B, not C" */
            return letter_after(mentions, j + 1) == mentions->count &&
                   !is_mark(at(mentions, j - 1), ",");
        if (is_wrong(mentions, j)) /* "B. Wrong", but not "B. Could you ..." */
            return !mentions->at[i + 1].ends || !token_in(token, " could might may ");
        if (mentions->at[j].ends && (words || j > i + 1))
            return false;
        words += token->kind == TOKEN_WORD;
    }
    return false;
}

/* "D is true, but it does not answer the question", "my answer was D but ..." */
static bool conceded_after(const struct mentions *mentions, size_t i)
{
    bool but = false, was = token_is(mentions_before(mentions, i), "was");
    size_t start = mentions_skip_option(mentions, i);
    for (size_t j = start, end = sentence_last(mentions, i); j < end; j++) {
        const struct token *token = at(mentions, j);
        if (mentions->at[j].letter && !was)
            return false;
        but =
            but || (token_in(token, " but however yet ") &&
                    !token_in(at(mentions, j + 1), " i i'm i've don't ")); /* "but I'm not sure" */
        if (but && (was || token_is_negation(token) || is_wrong(mentions, j)))
            return true;
    }
    return false;
}

/* Whether the statement about the letter is negated: "I don't think it is B", "there is no evidence for B". */
static bool is_disbelieved(const struct mentions *mentions, size_t i)
{
    static const char BELIEFS[] = " think believe say agree expect convinced see sure certain "
                                  "evidence reason support supports suggests points indicates the ";
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;) {
        const struct token *token = at(mentions, j), *next = at(mentions, j + 1);
        if (token_in(token, " , ; — – but so then because since ") ||
            (is_mark(token, ":") && j + 4 <= i))
            return false;
        if (token_in(token, " false untrue ") && token_is(next, "that"))
            return true;
        if (token_in(token, " doubt disagree deny "))
            return !token_is(mentions_before(mentions, j), "no");
        if ((token_is_negation(token) || token_in(token, " no nothing nobody ")) &&
            token_in(next, BELIEFS))
            return true;
        if (token_in(token, " might may could ") && /* "one might think" */
            token_in(next,
                     " think say believe argue assume expect guess choose pick select answer "))
            return true;
    }
    return false;
}

/* Whether a word of the clause before the letter indicates a mistake, an earlier thought or the second best. */
static bool sets_aside(const struct mentions *mentions, size_t j, bool chosen)
{
    static const char MISTAKES[] =
        " mistake mistakenly trap pitfall tempted tempting tempts misconception distractor error "
        "naive naively initially originally previously initial original preliminary tentative "
        "draft earlier before suspected assumed ";
    static const char OTHERS[] = " students textbooks beginners people readers others someone "
                                 "some many everyone examinees ";
    static const char THOUGHTS[] =
        " answer guess thought instinct impression reaction inclination attempt idea ";
    const struct token *token = at(mentions, j), *next = at(mentions, j + 1);
    if (token_in(token, MISTAKES) || (chosen && token_in(token, OTHERS)))
        return true;
    if (token_in(token, " almost nearly used "))
        return token_in(next, " chose picked said selected went to ");
    if (token_is(token, "first"))
        return token_in(next, THOUGHTS) || token_is(mentions_before(mentions, j), "at");
    if (token_in(token, " thought believed considered "))
        return token_in(next, " it the that about of option whether ") ||
               mentions_letter(mentions, j + 1);
    if (token_is(token, "next") && token_in(at(mentions, j + 2), " step action test "))
        return false; /* "the next best step" */
    return token_in(token, " second 2nd third 3rd next runner ") &&
           (token_in(next, " best choice guess pick most likely answer ") ||
            (token_in(token, " second 2nd third ") && token_in(next, " is : ")) ||
            is_mark(next, "-_"));
}

static bool is_set_aside(const struct mentions *mentions, size_t i)
{
    static const char CHOOSING[] = " pick picks select selects choose chooses chose answers "
                                   "say says think list argue argues go goes prefer would ";
    bool chosen = false; /* a verb of choice came between */
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;) {
        const struct token *token = at(mentions, j);
        bool listed = mention_is_link(token) && mentions_letter(mentions, j + 1);
        bool heading = is_mark(token, ":") && j + 4 > i;
        if (sets_aside(mentions, j, chosen))
            return true;
        if ((token_in(token, " but so therefore thus hence ; : and ") && !listed && !heading) ||
            (is_mark(token, ",") && !listed && !sets_aside(mentions, j ? j - 1 : j, false)))
            return false;
        chosen = chosen || token_in(token, CHOOSING);
    }
    return false;
}

bool mention_is_redeemed(const struct mentions *mentions, size_t i)
{
    for (size_t j = i + 1, end = sentence_last(mentions, i); j < end; j++) {
        bool is = !token_is(at(mentions, j), "making") && token_is(at(mentions, j + 1), "it");
        size_t the = j + (is ? 3 : 2);
        if (token_in(at(mentions, j), " but making so ") &&
            token_in(at(mentions, j + 1), " it it's ") && token_is(at(mentions, the), "the") &&
            token_in(at(mentions, the + 1),
                     " best closest only most nearest right correct answer "))
            return true;
    }
    return false;
}

static bool is_denied(const struct mentions *mentions, size_t i)
{
    size_t start = i;
    while (start &&
           (is_mark(at(mentions, start - 1), OPENING) || mention_is_noun(at(mentions, start - 1))))
        start--;
    bool denied = denied_before(mentions, i) || denied_after(mentions, i) ||
                  conceded_after(mentions, i) || is_disbelieved(mentions, i) ||
                  is_set_aside(mentions, i) || mention_verdict(mentions, i) == SAID_WRONG ||
                  (i && is_mark(at(mentions, i - 1), "~") && is_mark(at(mentions, i + 1), "~"));
    return denied && !mention_is_exception(mentions, start) && !mention_is_redeemed(mentions, i);
}

bool mention_is_denied(const struct mentions *mentions, size_t i)
{
    struct mention *mention = &mentions->at[i];
    if (!mention->judged)
        mention->denied = is_denied(mentions, i);
    mention->judged = true;
    return mention->denied;
}

/* ---- doubt ---- */

/* "Is it B?", "B?  No."; "Hmm, B?" alone is an answer. */
static bool is_question(const struct mentions *mentions, size_t i)
{
    size_t first = mentions_sentence_first(mentions, i), last = sentence_last(mentions, i);
    if (!token_in(at(mentions, last), " ? ？ "))
        return false;
    struct slice sentence =
        slice_between(at(mentions, first)->text.start, at(mentions, last)->text.start);
    return last + 1 < mentions->count || text_declines(sentence) ||
           token_in(at(mentions, first),
                    " is are was could would should can does do did why what which how might may ");
}

/* "..., because the duty was breached (A)." */
static bool closes_sentence(const struct mentions *mentions, size_t i)
{
    size_t end = mentions_skip_closing(mentions, i + 1);
    if (!is_mark(mentions_before(mentions, i), "(") ||
        !(at(mentions, end)->kind == TOKEN_LINE || mentions->at[end].ends))
        return false;
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;)
        if (mentions->at[j].letter)
            return false;
    return true;
}

/* Whether the letter is in a clause that does not choose: a concession, "although B ...", up to its comma, or the
 * reason at the end of a sentence, "C, because A and B ...". */
static bool is_subordinate(const struct mentions *mentions, size_t i)
{
    bool clause = true; /* in the clause of the letter, not one before it */
    bool named = closes_sentence(mentions, i);
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first && !named;) {
        bool list = j && mentions->at[j - 1].letter && mentions->at[j + 1].letter;
        bool led = j > first && token_in(at(mentions, j - 1), " but and so that ");
        if (token_in(at(mentions, j), " ; → ⇒ ")) /* "since it is dry → B" */
            return false;
        bool forced = token_in(at(mentions, j + 1), " i ") &&
                      token_in(at(mentions, j + 2), " must have need had ");
        if (j > first && token_in(at(mentions, j), " because since ") && (clause || !led) &&
            !forced)
            return true;
        if (clause &&
            token_in(at(mentions, j), " although though while whereas despite unlike even aunque "))
            return true;
        clause = clause && (!is_mark(at(mentions, j), ",:") || list);
    }
    return false;
}

/* "If x were negative, the answer would be C": its clause has a condition, and says would. */
static bool is_hypothetical(const struct mentions *mentions, size_t i)
{
    bool would = false, condition = false, quoted = false;
    size_t first = i, start = mentions_sentence_first(mentions, i),
           end = sentence_last(mentions, i);
    if (start < i && token_in(at(mentions, start), " had were "))
        return true;
    while (first > start && !token_in(at(mentions, first - 1), " ; but "))
        first--;
    for (size_t j = first; j < end && !(j > i && token_in(at(mentions, j), " ; but ")); j++) {
        quoted =
            token_in(at(mentions, j), " “ ” ") || is_mark(at(mentions, j), "\"") ? !quoted : quoted;
        would = would || token_is(at(mentions, j), "would");
        condition =
            condition || (token_in(at(mentions, j), " if unless had ") && !quoted &&
                          !token_in(at(mentions, j + 1), " i to ")); /* "if I had to guess" */
    }
    return would && condition;
}

/* "between B and C, ...", "of the two remaining, B and C, ..." */
static bool is_candidate(const struct mentions *mentions, size_t i)
{
    size_t j = i, next = mentions_skip_closing(mentions, i + 1);
    bool several =
        mention_is_link(at(mentions, next)) &&
        (mentions_letter(mentions, next + 1) || is_mark(at(mentions, next + 1), OPENING));
    for (; j && i - j < MENTIONS_REACH; j--) {
        const struct mention *before = &mentions->at[j - 1];
        if (before->letter == mentions->at[i].letter)
            return false; /* "between B and C, B" */
        if (!before->letter && !mention_is_link(&before->token) &&
            !mention_is_noun(&before->token) && !is_mark(&before->token, OPENING) &&
            !is_mark(&before->token, CLOSING))
            break;
        several = several || before->letter;
    }
    const struct token *earlier = at(mentions, j > 1 ? j - 2 : mentions->count);
    return several &&
           (token_in(mentions_before(mentions, j), " between among remaining ") ||
            (token_is(mentions_before(mentions, j), "of") && token_is(earlier, "which")));
}

bool mention_is_affirmed(const struct mentions *mentions, size_t i)
{
    return !is_candidate(mentions, i) && !mention_is_denied(mentions, i) &&
           !is_question(mentions, i) && !is_subordinate(mentions, i) &&
           !is_hypothetical(mentions, i);
}

bool mention_is_aside(const struct mentions *mentions, size_t i)
{
    size_t first = mentions_sentence_first(mentions, i);
    while (first < i && at(mentions, first)->kind != TOKEN_WORD)
        first++;
    return first < i && token_in(at(mentions, first),
                                 " note notes remark incidentally interestingly ps p.s aside ");
}
