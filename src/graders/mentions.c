/* Which letters of an answer name options: all but those that are part of something else, an article or pronoun ("A
 * dog", "I think"), a formula or compound ("B = 5", "C++", "B-cells"), a species ("E. coli"), or a name after a noun
 * ("vitamin C", "driver D", "a grade of B", "3 A"). */
#include "graders/letters.h"

#include <ctype.h>
#include <stdlib.h>

#include "core/xalloc.h"

/* ---- the tokens around a letter ---- */

const struct token *mentions_token(const struct mentions *mentions, size_t i)
{
    static const struct token NOTHING = {.kind = TOKEN_LINE, .text = {"", 0}};
    return i < mentions->count ? &mentions->at[i].token : &NOTHING;
}

bool mentions_mark(const struct mentions *mentions, size_t i, const char *set)
{
    return token_is_mark(mentions_token(mentions, i), set);
}

/* Whether there is no space before it. */
static bool attached(const struct token *token)
{
    return token->kind != TOKEN_LINE && !token->spaced;
}

size_t mentions_skip_closing(const struct mentions *mentions, size_t i)
{
    while (token_is_mark(mentions_token(mentions, i), MENTION_CLOSING))
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
    return i - first > MENTIONS_SENTENCE ? i - MENTIONS_SENTENCE : first;
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
    if (token_is(mentions_token(mentions, i), "makes"))
        return token_in(mentions_token(mentions, i + 1), " sense the most more perfect ");
    return token_in(mentions_token(mentions, i),
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
    char written = mentions_token(mentions, i)->text.start[0];
    int letter = toupper((unsigned char)written);
    const struct token *next = mentions_token(mentions, i + 1),
                       *before = mentions_before(mentions, i);
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
    const struct token *next = mentions_token(mentions, i + 1),
                       *before = mentions_before(mentions, i);
    const struct token *beyond = mentions_token(mentions, i + 2);
    bool word_beyond = beyond->kind == TOKEN_WORD && attached(beyond);
    bool quoted = token_is_mark(next, "'") && token_is_mark(before, "'");
    bool label = token_is_mark(next, ".") && word_beyond &&
                 beyond->text.length > 2 && /* "B.Helicase" */
                 isupper((unsigned char)beyond->text.start[0]) && before->kind == TOKEN_LINE;
    if (attached(next) && !quoted && !label &&
        (token_is_mark(next, "+#/^'") || (token_is_mark(next, "-_.") && word_beyond)))
        return true;
    if (token_is_mark(next, "=") && !token_is_mark(beyond, ">"))
        return true;
    bool compared =
        (token_is_mark(next, "<>") && beyond->text.length == 1) ||
        ((token_is_mark(before, "<>=") || (token_is_mark(before, "+") && attached(before))) &&
         i > 1 && mentions_token(mentions, i - 2)->text.length == 1 &&
         mentions_token(mentions, i - 2)->kind == TOKEN_WORD);
    if (compared && beyond->kind != TOKEN_MARK) /* "A < B" */
        return true;
    if (token_is(before, "let") && token_in(next, " be denote represent "))
        return true;
    if (i > 1 && token_is_mark(before, "(") && attached(before) && /* P(A) */
        mentions_token(mentions, i - 2)->kind == TOKEN_WORD &&
        mentions_token(mentions, i - 2)->text.length == 1)
        return true;
    if (!attached(mentions_token(mentions, i)))
        return false;
    bool compound = token_is_mark(before, "-_") && attached(before) && i > 1 &&
                    mentions_token(mentions, i - 2)->kind == TOKEN_WORD;
    return compound || token_is_mark(before, "/^") || token_is(before, "°");
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
    return token_is_mark(mentions_token(mentions, i + 1), ".") &&
           token_in(mentions_token(mentions, i + 2), EPITHETS) &&
           islower((unsigned char)mentions_token(mentions, i + 2)->text.start[0]);
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
    const struct token *mark = mentions_token(mentions, i + 1);
    char previous = (char)(mentions_token(mentions, i)->text.start[0] - 1);
    if (!isdigit((unsigned char)mentions_before(mentions, i)->text.start[0]))
        return false;
    for (size_t j = i - 1; token_is_mark(mark, ".):") && j < i && i - j < MENTIONS_REACH; j--) {
        const struct token *token = mentions_token(mentions, j);
        if (token->kind == TOKEN_LINE)
            return false;
        if (token->text.length == 1 && token->text.start[0] == previous &&
            token_same(mentions_token(mentions, j + 1), mark))
            return true;
    }
    return false;
}

/* "vitamin C", "a grade of B", "3 A" */
static bool names_other(const struct mentions *mentions, size_t i)
{
    const struct token *before = mentions_before(mentions, i);
    if (token_is(before, "of") && i > 1) {
        before = mentions_token(mentions, i - 2);
        return before->kind == TOKEN_WORD &&
               !token_in(before, " instead out all some none any each either neither favor favour "
                                 "sure certain confident choice selection because thinking ") &&
               !token_is_answer(before);
    }
    if (token_is(before, "a")) /* "he got a C"; "a correta é a C" */
        return i < 2 || !token_is(mentions_token(mentions, i - 2), "é");
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
    const struct token *next = mentions_token(mentions, i + 1);
    if (index == 0 && token_is_mark(next, ":") &&
        (token_in(mentions_token(mentions, i + 2), " i i'm we let let's first ") ||
         (mentions_token(mentions, i + 2)->text.length == 1 &&
          mentions_token(mentions, i + 2)->kind == TOKEN_WORD &&
          mentions_token(mentions, i + 3)->kind == TOKEN_LINE)))
        return; /* "A: I think", "A: B" is an answer to "Q:" */
    bool opened = i && attached(&mention->token) &&
                  token_is_mark(mentions_token(mentions, i - 1), MENTION_OPENING);
    bool closed = attached(next) && token_is_mark(next, MENTION_CLOSING);
    mention->enclosed = opened && closed;
    mention->bare_lower = islower(letter) && !mention->enclosed && !token_is_mark(next, ")") &&
                          !(i && mention_is_noun(mentions_token(mentions, i - 1)));
    if (mention->enclosed || (closed && token_is_mark(next, ")")) ||
        (!names_other(mentions, i) && (closed || !reads_as_word(mentions, i))))
        mention->letter = (char)('A' + index);
}

/* End of the option's text after its label at `i`, "(B) False", or of a part of it that ends the line; 0 if something
 * else follows. */
static size_t option_text_end(const struct mentions *mentions, size_t i, struct slice option)
{
    size_t first = i + 1, end;
    while (token_is_mark(mentions_token(mentions, first), ").:]*-") ||
           token_in(mentions_token(mentions, first), " – — "))
        first++;
    struct tokens wanted = tokens_of(option);
    struct token want;
    bool whole = option.length > 0;
    for (end = first; whole && token_next(&wanted, &want); end += whole)
        whole = end < mentions->count && token_same(mentions_token(mentions, end), &want);
    bool cut = end > first &&
               (end == mentions->count || mentions_token(mentions, end)->kind == TOKEN_LINE);
    return first > i + 1 && (whole || cut) ? end : 0;
}

/* If the question is unknown: an answer that begins with "B. False", "C. Not found" and labels no other letter. */
static size_t leading_text_end(const struct mentions *mentions)
{
    size_t i = mentions->first_word, end = i + 2;
    if (!mentions_letter(mentions, i) || !token_is_mark(mentions_token(mentions, i + 1), ".):") ||
        !token_in(mentions_token(mentions, i + 2), " false no none not never neither "))
        return 0;
    for (size_t j = i + 1; j < mentions->count; j++)
        if (mentions->at[j].letter && mentions->at[j].letter != mentions->at[i].letter)
            return 0;
    while (end < mentions->count && end < i + 8 &&
           mentions_token(mentions, end)->kind == TOKEN_WORD)
        end++;
    return end == mentions->count || mentions_token(mentions, end)->kind == TOKEN_LINE ||
                   mentions->at[end].ends
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

void mentions_read(struct mentions *mentions, struct slice text, unsigned count,
                   const struct options *options)
{
    struct tokens tokens = tokens_of(text);
    struct mention mention = {0};
    const struct token *before = NULL;
    mentions->text = text;
    while (token_next(&tokens, &mention.token)) {
        mentions->at = xgrow(mentions->at, &mentions->capacity, mentions->count, sizeof mention);
        before = mentions->count ? &mentions->at[mentions->count - 1].token : NULL;
        mention.ends = token_ends_sentence(&mention.token, before);
        mentions->at[mentions->count++] = mention;
        if (mention.ends || mention.token.kind == TOKEN_LINE)
            mention.sentence = mentions->count;
    }
    mentions->first_word = mentions->count;
    for (size_t i = 0; i < mentions->count; i++) {
        read_letter(mentions, i, count);
        if (mentions_token(mentions, i)->kind != TOKEN_WORD)
            continue;
        mentions->first_word = mentions->first_word < i ? mentions->first_word : i;
        mentions->last_word = i;
    }
    mentions->asks_false = options && options->asks_false;
    read_texts(mentions, options);
}

void mentions_release(struct mentions *mentions)
{
    free(mentions->at);
    *mentions = (struct mentions){0};
}
