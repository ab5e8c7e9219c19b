/* How strongly the words around a letter say that it is the answer:
 *   stated   \boxed{B}; "answer: B", "the correct option is B"; "B is the best answer"; "final: B"; a first or last
 *            line that is only a letter
 *   chosen   "I'd go with B", "so B", "that leaves B", "which is B", "the best next step is B", "B fits best", "at a
 *            loss → B", "all are true except B"
 *   true     "B is true": several may be
 *   none     anything else, and letters that are denied or doubted */
#include "graders/letters.h"

#include <ctype.h>

/* The words before a letter, read backwards. */
struct lead {
    bool linked;  /* passed "is", ":" or the like */
    bool colon;   /* the link is punctuation */
    bool crossed; /* passed the end of a line */
    bool would;   /* passed "would" */
    unsigned far; /* words that are not filler */
};

static bool is_filler(const struct token *token)
{
    static const char FILLER[] =
        " the would should must will therefore thus clearly probably most likely definitely "
        "here then simply indeed has have to i we us number final correct right best la el le "
        "die also just only either both statement be actually with on for toward towards upon ";
    return mention_is_noun(token) || token_in(token, FILLER);
}

/* Whether the writer chooses, rather than "many students". */
static bool is_writer(const struct mentions *mentions, size_t verb)
{
    static const char SKIPPED[] =
        " would will should must can am are have has had 'd definitely probably therefore to going "
        "rather confidently also then thus hence so and myself still ";
    static const char WRITERS[] =
        " i i'd i'll i'm i've we we'd we'll we've let's us you me my yo ich je ";
    while (verb && token_in(mentions_token(mentions, verb - 1), SKIPPED))
        verb--;
    const struct token *before = mentions_before(mentions, verb);
    return before->kind != TOKEN_WORD || token_in(before, WRITERS);
}

/* "choose B", "so B", "go with B", "it is B". */
static bool is_choosing(const struct mentions *mentions, size_t j, const struct lead *lead)
{
    static const char VERBS[] =
        " choose chose choosing pick picked picking select selected selecting say guess vote "
        "lean leaning settle opt prefer conclude thinking answering go going went stick sticking "
        "mark "
        "meant reckon figure nominate elijo wähle ";
    static const char CUES[] =
        " leaves leaving left so thus therefore hence only it's its that's matches corresponds "
        "matching favors favours suggests indicates supports remaining remains correction revised "
        "edit updated ";
    const struct token *token = mentions_token(mentions, j);
    if (lead->far || lead->crossed)
        return false;
    if (token_is(token, "so") && token_in(mentions_token(mentions, j + 1), " is are was does "))
        return false;                       /* "so is B" */
    if (token_in(token, " no sorry wait ")) /* "A... no, B", "A - no wait, B" */
        return token_is(mentions_token(mentions, j + 1), ",") &&
               (mentions_sentence_first(mentions, j) == j ||
                token_in(mentions_before(mentions, j), " no oh - – — , "));
    return token_in(token, CUES) || token_has(token, "选") || token_has(token, "選") ||
           (token_in(token, VERBS) && is_writer(mentions, j)) ||
           (lead->linked && token_in(token, " it that this which "));
}

/* A noun that names the answer, before its link: "the correct option is", "final decision:", "best:". */
static bool is_head(const struct mentions *mentions, size_t j, const struct lead *lead)
{
    const struct token *token = mentions_token(mentions, j);
    if (!lead->linked || lead->crossed)
        return false;
    if (mention_is_noun(token))
        return !token_is(token, "alternative") ||
               token_in(mentions_before(mentions, j), " correct right best ");
    return token_in(token, " selection pick conclusion решение solution decision verdict ") ||
           (!lead->far && token_is(token, "one")) || /* not "one sharp is" */
           (token_is(token, "version") && token_is(mentions_before(mentions, j), "short")) ||
           (lead->colon && !lead->far &&
            token_in(token, " final best correct right choose select dr tldr short "));
}

/* "the wrong answer", "not the answer" */
static bool is_dismissed(const struct mentions *mentions, size_t noun)
{
    const struct token *before = mentions_before(mentions, noun);
    while (noun > 1 && token_in(before, " the a correct right best "))
        before = mentions_token(mentions, --noun - 1);
    return token_is_negation(before) ||
           token_in(before, " each every possible incorrect wrong worst weakest ");
}

/* The claim of one word before the letter; *done if no earlier word can change it. */
static enum claim lead_word(const struct mentions *mentions, size_t j, struct lead *lead,
                            bool *done)
{
    static const char DOUBTS[] =
        " could might may if whether each every possible options choices seems consider been "
        "unless between incorrect wrong ";
    const struct token *token = mentions_token(mentions, j);
    *done = true;
    if (mentions->at[j].letter || token_is_negation(token) || token_in(token, DOUBTS))
        return CLAIM_NONE;
    if (token_is_answer(token)) {
        bool near = lead->far <= (lead->crossed ? 2 : 8) && (lead->linked || !lead->far);
        return !near || is_dismissed(mentions, j) ? CLAIM_NONE
               : lead->would                      ? CLAIM_CHOSEN
                                                  : CLAIM_STATED;
    }
    if (is_head(mentions, j, lead))
        return is_dismissed(mentions, j) ? CLAIM_NONE : CLAIM_STATED;
    lead->would = lead->would || token_is(token, "would");
    bool chosen = is_choosing(mentions, j, lead);
    *done =
        chosen && !token_in(mentions_before(mentions, j), " is be must "); /* "is therefore B" */
    if (token_is_link(token))
        lead->linked = true;
    else if (lead->far || !is_filler(token))
        lead->far += !chosen;
    if (lead->linked && !lead->crossed && token_in(token, " best most correct right closest ") &&
        token_in(mentions_before(mentions, j), " the my our next "))
        chosen = true; /* "the best next step is B" */
    *done = *done || lead->far > 8 || (lead->far && !lead->linked);
    return chosen ? CLAIM_CHOSEN : CLAIM_NONE;
}

static enum claim claim_before(const struct mentions *mentions, size_t i)
{
    struct lead lead = {0};
    enum claim best = CLAIM_NONE;
    bool done = false;
    for (size_t back = 1; back <= i && back < MENTIONS_REACH && !done; back++) {
        size_t j = i - back;
        const struct token *token = mentions_token(mentions, j);
        if (token_is(token, "\\boxed") || token_is(token, "\\fbox"))
            return lead.far || lead.linked ? best : CLAIM_STATED;
        if (mentions->at[j].ends || token_is(token, ";"))
            return best;
        if (token->kind == TOKEN_LINE) {
            lead.crossed = true;
        } else if (token->kind == TOKEN_MARK) {
            lead.linked = lead.linked || token_is_link(token);
            lead.colon = lead.linked;
        } else {
            enum claim found = lead_word(mentions, j, &lead, &done);
            best = found > best ? found : best;
        }
    }
    return best;
}

/* Whether the letter begins a sentence or clause, or a word before it introduces it. */
static bool is_subject(const struct mentions *mentions, size_t i)
{
    static const char LEADS[] =
        " option choice answer statement so thus hence that therefore only but and then think "
        "believe ending response ";
    while (i && mentions_mark(mentions, i - 1, MENTION_OPENING))
        i--;
    const struct token *before = mentions_before(mentions, i);
    return before->kind != TOKEN_WORD || token_in(before, LEADS);
}

/* "B only.", "B best describes ...", "B correctly names ...", "B it is" */
static bool is_praised(const struct mentions *mentions, size_t i, size_t j)
{
    static const char ADVERBS[] = " accurately correctly properly clearly precisely exactly alone ";
    const struct token *next = mentions_token(mentions, j + 1);
    if (token_is(mentions_token(mentions, j), "it") && token_is(next, "is"))
        return true;
    if (!is_subject(mentions, i))
        return false;
    if (token_in(mentions_token(mentions, j), " only alone probably definitely certainly ") &&
        next->kind != TOKEN_WORD)
        return mentions_before(mentions, i)->kind != TOKEN_WORD;
    if (token_is(next, "the") &&
        token_in(mentions_token(mentions, j), " gives has contains shows lists ") &&
        token_in(mentions_token(mentions, j + 2), " correct right proper accurate best "))
        return true;
    for (size_t k = j + 1; k < j + 5 && mentions_token(mentions, k)->kind == TOKEN_WORD; k++)
        if (token_in(mentions_token(mentions, k), " correctly accurately properly "))
            return true;
    return (mentions_praise(mentions, j) && !token_in(next, " just only some ")) ||
           (token_in(mentions_token(mentions, j), ADVERBS) && next->kind == TOKEN_WORD);
}

/* The noun of "is the best answer"; one "to another question" is no claim. */
static bool claim_by_noun(const struct mentions *mentions, size_t j, enum claim *out)
{
    static const char OTHER[] =
        " first second last next other wrong incorrect worst weaker weakest least "
        "tempting possible plausible letter to in of for , . : ";
    for (size_t noun = j; noun < j + 4 && !token_in(mentions_token(mentions, noun), OTHER);
         noun++) {
        if (!token_is_answer(mentions_token(mentions, noun)) &&
            !mention_is_noun(mentions_token(mentions, noun)))
            continue;
        bool is_of_another = token_is(mentions_token(mentions, noun + 1), "to") &&
                             token_in(mentions_token(mentions, noun + 2), " a another ");
        *out = is_of_another ? CLAIM_NONE : CLAIM_STATED;
        return true;
    }
    return false;
}

/* "(B) is the best answer"; weaker, "B fits", "B is true". */
static enum claim claim_after(const struct mentions *mentions, size_t i)
{
    static const char VERBS[] = " is are was must be would should has have to ought seems appears "
                                "looks sounds feels ";
    static const char ADVERBS[] =
        " the clearly definitely indeed thus therefore a my probably obviously also ";
    enum claim claim;
    size_t j = mentions_skip_option(mentions, i);
    bool made = i && token_in(mentions_token(mentions, i - 1),
                              " makes make making consider find deem "); /* "makes B the answer" */
    j += mentions_mark(mentions, j, ",");
    if (is_praised(mentions, i, j))
        return CLAIM_CHOSEN;
    if (!is_subject(mentions, i) && !made)
        return CLAIM_NONE;
    size_t verb = j;
    while (j < verb + 4 && token_in(mentions_token(mentions, j), VERBS))
        j++;
    if (j == verb && !(made && token_is(mentions_token(mentions, j), "the")))
        return CLAIM_NONE;
    while (j < verb + 6 && token_in(mentions_token(mentions, j), ADVERBS))
        j++;
    if (token_is(mentions_token(mentions, j), "one") &&
        !token_is(mentions_token(mentions, j - 1), "the"))
        return CLAIM_NONE; /* "B is one answer.  C is another." */
    if (token_is(mentions_token(mentions, j), "what") &&
        token_in(mentions_token(mentions, j + 1), " i i'd we we'd "))
        return CLAIM_CHOSEN; /* "B is what I'd answer", perhaps "but ..., so C" */
    if (claim_by_noun(mentions, j, &claim))
        return claim;
    if (token_in(
            mentions_token(mentions, j),
            " best most only better preferable superior appropriate chosen odd nearest closest "
            "exception "))
        return CLAIM_STATED;
    bool noun = token_in(mentions_token(mentions, j - 1), " the a ") && /* "the right formula" */
                mentions_token(mentions, j + 1)->kind == TOKEN_WORD &&
                !token_is(mentions_token(mentions, j + 1), "one");
    const char *said = mentions->asks_false
                           ? " correct false untrue incorrect inaccurate "
                           : " correct right true accurate valid consistent supported ";
    bool untrue = mentions->asks_false && token_is_negation(mentions_token(mentions, j)) &&
                  token_in(mentions_token(mentions, j + 1), " true correct accurate ");
    return !noun && (untrue || token_in(mentions_token(mentions, j), said)) ? CLAIM_TRUE
                                                                            : CLAIM_NONE;
}

/* The first or last line of the answer, consisting only of the letter; "1." may precede it. */
static bool is_lone(const struct mentions *mentions, size_t i)
{
    size_t first = i, end = i + 1;
    if (mention_verdict(mentions, i) != SAID_NOTHING)
        return false;
    for (; first && mentions_token(mentions, first - 1)->kind != TOKEN_LINE; first--)
        if (i - first > MENTIONS_REACH ||
            (mentions_token(mentions, first - 1)->kind == TOKEN_WORD &&
             !isdigit((unsigned char)mentions_token(mentions, first - 1)->text.start[0])))
            return false;
    if (first == 0 && mentions_mark(mentions, end, "!"))
        return true;
    for (; end < mentions->count && mentions_token(mentions, end)->kind != TOKEN_LINE; end++)
        if (mentions_token(mentions, end)->kind == TOKEN_WORD || end - i > MENTIONS_REACH ||
            mentions_mark(mentions, end, "?"))
            return false;
    return (first <= mentions->first_word || end > mentions->last_word) &&
           end - first < MENTIONS_REACH;
}

/* The last sentence, consisting only of the letter: "The first one matches. (A)", "A? No. C." */
static bool closes_text(const struct mentions *mentions, size_t i)
{
    size_t first = mentions_sentence_first(mentions, i);
    return i == mentions->last_word && first + mentions->at[i].enclosed == i && first > 1 &&
           mentions->at[first - 1].ends && !mentions->at[first - 2].letter &&
           !mentions->at[i].bare_lower;
}

bool mention_is_equal(const struct mentions *mentions, size_t i)
{
    static const char BETWEEN[] = " is it maybe perhaps possibly even … . ";
    size_t j = i, next = mentions_skip_closing(mentions, i + 1);
    while (j && (mentions_mark(mentions, j - 1, MENTION_OPENING) ||
                 mention_is_noun(mentions_token(mentions, j - 1))))
        j--;
    const struct token *before = mentions_before(mentions, j);
    const struct token *earlier = mentions_token(mentions, j > 1 ? j - 2 : mentions->count);
    if ((token_in(before, " is does could might may would be ") &&
         token_in(earlier, " so also as ")) ||
        (token_is(before, "be") && token_in(earlier, " could might may ")) ||
        (token_is(before, "also") && (token_is_link(earlier) || token_in(earlier, " but and "))))
        return true;
    if (token_is(before, "again") && token_is(earlier, "then"))
        return true;
    if (token_in(before, " possibly perhaps maybe ") &&
        j < mentions_sentence_first(mentions, i) + 3)
        return true;
    for (; j && token_in(mentions_token(mentions, j - 1), BETWEEN); j--)
        ;
    if (j > 1 && token_is(mentions_token(mentions, j - 1), "or") &&
        mentions_token(mentions, j - 2)->kind == TOKEN_MARK)
        return true;
    if (token_is(mentions_token(mentions, next), "too") &&
        mentions_token(mentions, next + 1)->kind != TOKEN_WORD)
        return true;
    while (next < i + 6 && token_in(mentions_token(mentions, next),
                                    " is are seems looks would could might be also "))
        next++;
    return token_in(mentions_token(mentions, next), " equally another ") ||
           (token_in(mentions_token(mentions, next), " just almost ") &&
            token_is(mentions_token(mentions, next + 1), "as") &&
            !token_is(mentions_token(mentions, next + 2), "a"));
}

bool mentions_have(const struct mentions *mentions, size_t from, size_t to, const char *words)
{
    for (; from < to; from++)
        if (token_in(mentions_token(mentions, from), words))
            return true;
    return false;
}

/* Whether the words before the letter single it out: "at a loss → B", "all are true except B", "from A to B". */
static bool is_singled_out(const struct mentions *mentions, size_t i)
{
    static const char CHANGES[] =
        " change changed changing switch switched switching revise revised ";
    size_t j = i, first = mentions_sentence_first(mentions, i);
    while (j && (mentions_mark(mentions, j - 1, MENTION_OPENING) ||
                 mention_is_noun(mentions_token(mentions, j - 1))))
        j--;
    const struct token *before = mentions_before(mentions, j);
    if (j > first && token_in(before, " → ⇒ ⟹ ➜ "))
        return !(j > first + 1 && mentions->at[j - 2].letter) &&
               mentions_token(mentions, i + 1)->kind != TOKEN_WORD;
    if (j < first + 2)
        return false;
    if (token_is(before, ">") && token_in(mentions_token(mentions, j - 2), " - = "))
        return mentions_token(mentions, i + 1)->kind != TOKEN_WORD;
    if (token_is(before, "to") && mentions->at[j - 2].letter)
        return mentions_have(mentions, first, j, CHANGES);
    size_t end = mentions_skip_closing(mentions, i + 1);
    bool ends = end >= mentions->count || mentions->at[end].ends ||
                token_is(mentions_token(mentions, end), ";");
    if (token_is(before, ",") && ends && !mentions->at[j - 2].letter) /* "since it is open, B." */
        return mentions_have(mentions, first, j, " since because but if given ");
    if (token_in(before, " : ( ") && ends &&
        token_in(mentions_token(mentions, first), " so thus hence therefore "))
        return true;                                            /* "So a metaphor: B." */
    for (size_t k = j; token_is(before, "but") && k-- > first;) /* "B is true, but C is closer" */
        if (mentions->at[k].letter && mentions->at[k].letter != mentions->at[i].letter)
            return !mention_is_equal(mentions, i);
    return mention_is_exception(mentions, j);
}

enum claim mention_claim(const struct mentions *mentions, size_t i)
{
    if (is_lone(mentions, i))
        return CLAIM_STATED;
    if (closes_text(mentions, i))
        return CLAIM_CHOSEN;
    enum claim before = claim_before(mentions, i), after = CLAIM_NONE;
    if (before < CLAIM_CHOSEN && (is_singled_out(mentions, i) || mention_is_redeemed(mentions, i)))
        before = CLAIM_CHOSEN;
    bool clause_ends = mentions_token(mentions, i + 1)->kind != TOKEN_WORD ||
                       token_in(mentions_token(mentions, i + 1), " because since ");
    bool its = token_in(mentions_before(mentions, i), " it's its ");
    if (mentions->at[i].bare_lower && !((before == CLAIM_STATED || its) && clause_ends))
        return CLAIM_NONE;
    if (before != CLAIM_STATED)
        after = claim_after(mentions, i);
    if (before < after)
        before = after;
    return before == CLAIM_NONE || !mention_is_affirmed(mentions, i) ? CLAIM_NONE : before;
}
