/* The statements of an answer about an option that it names.  The sentence of the option may say that it is
 *   denied    by a word before it ("not B", "eliminating A and B", "rather than B") or after it ("B is wrong"), as a
 *             mistake that others make, as a first thought, as second best
 *   doubted   in a question, a concession ("although B"), a reason ("because A and B"), a condition ("if ... would") */
#include "graders/letters.h"

static const char CROSSES[] = " ❌ ✗ ✘ ✖ ", CHECKS[] = " ✅ ✓ ✔ ☑ ";

/* The token that ends its sentence, or `count`. */
static size_t sentence_last(const struct mentions *mentions, size_t i)
{
    size_t far = i + MENTIONS_SENTENCE, sentence = mentions->at[i].sentence;
    while (i < mentions->count && i < far && mentions->at[i].sentence == sentence &&
           mentions_token(mentions, i)->kind != TOKEN_LINE && !mentions->at[i].ends)
        i++;
    return i;
}

/* ---- verdicts ---- */

static enum verdict mark_verdict(const struct token *token)
{
    return token_in(token, CHECKS)    ? SAID_RIGHT
           : token_in(token, CROSSES) ? SAID_WRONG
                                      : SAID_NOTHING;
}

/* The verdict of a cross or check mark before the letter: "❌ B".  In "A ❌ B ✅" it belongs to the letter before it. */
static enum verdict marked_before(const struct mentions *mentions, size_t i)
{
    enum verdict mark = i ? mark_verdict(mentions_token(mentions, i - 1)) : SAID_NOTHING;
    size_t first = mentions_sentence_first(mentions, i);
    while (mark != SAID_NOTHING && first < i &&
           mark_verdict(mentions_token(mentions, first)) == SAID_NOTHING)
        if (mentions->at[first++].letter)
            return SAID_NOTHING;
    return mark;
}

/* Whether the words after the letter are those of the option: "Answer: C) False", "I'd choose B) False rather than A)
 * True", "so B (no)".  A label that begins its sentence, "B) False", is judged by them. */
static bool has_text(const struct mentions *mentions, size_t i)
{
    size_t before = i, after = i + 1;
    while (before && (token_is_mark(mentions_token(mentions, before - 1), MENTION_OPENING) ||
                      mention_is_noun(mentions_token(mentions, before - 1))))
        before--;
    before -= before && token_is_mark(mentions_token(mentions, before - 1), ",");
    while (token_is_mark(mentions_token(mentions, after), ").:*("))
        after++;
    const struct token *lead = mentions_before(mentions, before);
    bool led = token_is_link(lead) ||
               token_in(lead, " choose pick select go with for to so thus therefore hence than of "
                              "over against say not is prefer favor favour ");
    size_t first = mentions_sentence_first(mentions, i);
    bool bullet = before == first + 1 && token_is_mark(lead, "-*");
    return before > first && led && !bullet && after > i + 1 &&
           !token_is_link(mentions_token(mentions, after)) &&
           !(token_is_link(lead) && token_is_negation(mentions_token(mentions, after)));
}

/* The letter after `i`, skipping brackets and the words between; `count` if something else follows. */
static size_t letter_after(const struct mentions *mentions, size_t i)
{
    while (token_is_mark(mentions_token(mentions, i), MENTION_OPENING) ||
           mention_is_noun(mentions_token(mentions, i)) ||
           token_in(mentions_token(mentions, i), " the "))
        i++;
    return mentions_letter(mentions, i) ? i : mentions->count;
}

/* The verdict of a mark at or, for a letter that begins its line, after `j`: "(D) radial ✔". */
static enum verdict marked_after(const struct mentions *mentions, size_t i, size_t j)
{
    bool begins =
        !i || mentions_token(mentions, i - 1)->kind == TOKEN_LINE || mentions->at[i].enclosed;
    enum verdict found = mark_verdict(mentions_token(mentions, j));
    for (size_t k = j;
         begins && found == SAID_NOTHING && k < i + MENTIONS_REACH &&
         !mentions_letter(mentions, k) && mentions_token(mentions, k)->kind != TOKEN_LINE;
         k++)
        found = mark_verdict(mentions_token(mentions, k));
    return found;
}

enum verdict mention_verdict(const struct mentions *mentions, size_t i)
{
    size_t text = mentions->at[i].text_end, start = text ? text : i + 1, j = start;
    enum verdict marked = marked_before(mentions, i);
    if (marked != SAID_NOTHING)
        return marked;
    while (token_is_mark(mentions_token(mentions, j), ")]}*_.:-(|?") ||
           token_in(mentions_token(mentions, j), " – — → "))
        j++;
    const struct token *word = mentions_token(mentions, j);
    marked = marked_after(mentions, i, j);
    if (marked != SAID_NOTHING)
        return marked;
    if (token_in(word, " yes no ") && mentions_token(mentions, j + 1)->kind != TOKEN_WORD &&
        j == i + 1)
        return token_is(word, "yes") ? SAID_RIGHT : SAID_WRONG;
    if (j == start || (!text && has_text(mentions, i)) ||
        (token_is(word, "not") && letter_after(mentions, j + 1) < mentions->count)) /* "B, not C" */
        return SAID_NOTHING;
    if (token_in(word, " yes no ") && token_is_mark(mentions_token(mentions, j + 1), ",") &&
        !token_is_mark(mentions_token(mentions, i + 1), "?") &&
        token_in(mentions_token(mentions, j + 2), " because since unless if as "))
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
    const struct token *earlier = mentions_token(mentions, i > 1 ? i - 2 : mentions->count);
    bool none = (token_is(word, "for") && token_is(earlier, "except")) || /* "except for B, none" */
                (token_is(word, "from") && token_in(earlier, " apart aside ")) ||
                (token_is(word, "than") && token_is(earlier, "other")) ||
                token_in(word, " besides except ");
    if (!none && !token_in(word, " but save "))
        return false;
    bool all = false, said = false;
    size_t first = mentions_sentence_first(mentions, i), end = sentence_last(mentions, i);
    for (size_t j = first; j < end; j++) {
        const struct token *token = mentions_token(mentions, j);
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
    bool comma = token_is_mark(mentions_token(mentions, j + 1), ",");
    if (comma && (token_in(mentions_token(mentions, j),
                           " incorrect wrong ") ||               /* "A is wrong, B is right" */
                  token_is(mentions_before(mentions, j), "if"))) /* "if not, B" */
        return true;
    const struct token *after = mentions_token(mentions, mentions_skip_closing(mentions, i + 1));
    while (lead && (token_is_mark(mentions_token(mentions, lead - 1), MENTION_OPENING) ||
                    mention_is_noun(mentions_token(mentions, lead - 1)) ||
                    token_in(mentions_token(mentions, lead - 1), " choose pick select ")))
        lead--;
    for (size_t k = 1; token_is(mentions_token(mentions, j), "than") && k < 4 && first + k <= j;
         k++)
        if (token_in(mentions_token(mentions, j - k), " less weaker worse poorer "))
            return true;
    return token_in(mentions_token(mentions, j), " of than unlike to against ") && j < first + 2 &&
           lead > j + 1 && token_is_mark(mentions_token(mentions, lead - 1), ",") &&
           !mention_is_link(after);
}

/* Whether the word at `j` prefers another to the letter after it: "A over B", "prefer A to B". */
static bool prefers_other(const struct mentions *mentions, size_t j)
{
    if (!j)
        return false;
    bool prefers = !token_is(mentions_token(mentions, j), "to") ||
                   (j > 1 && token_in(mentions_token(mentions, j - 2), " prefer preferred "));
    return (prefers && mentions_letter(mentions, j - 1)) ||
           token_in(mentions_token(mentions, j - 1), " opposed preference preferable superior ");
}

/* Whether a denial before `j` cannot extend to a letter `back` tokens later, with `named` words of what it names. */
static bool ends_clause(const struct mentions *mentions, size_t j, size_t back, int named)
{
    const struct token *token = mentions_token(mentions, j);
    return mentions->at[j].ends || token->kind == TOKEN_LINE || token_in(token, " — – ; → ⇒ ") ||
           (back > 2 && token_is_mark(token, "\"")) ||
           (named > 0 && named < 5 && token_is_mark(token, ",")) ||
           (named > 0 && token_in(token, " but is are yet so "));
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
    size_t open = i - (i && mention_is_noun(mentions_token(mentions, i - 1)));
    bool appended = open > 1 && token_is_mark(mentions_token(mentions, open - 1), "(") &&
                    !token_is_link(mentions_token(mentions, open - 2));
    int named = appended ? 5 : 0; /* words of what it names */
    for (size_t back = 1; back <= i && back < MENTIONS_REACH; back++) {
        size_t j = i - back;
        const struct token *token = mentions_token(mentions, j);
        if (mention_is_exception(mentions, j + 1) || ends_denial(mentions, j, i))
            return false;
        if (token_is_negation(token) || token_in(token, DENIALS))
            return true;
        if (token_in(token, " of out ")) /* "instead of", "rule out" */
            return token_in(mentions_before(mentions, j),
                            " instead none rule ruling ruled rules cross crossing edges edging ");
        if (token_is(token, "but") &&
            token_in(mentions_before(mentions, j), " anything all nothing everything "))
            return true;
        if (token_in(token, " over beats versus to ") && back == 1)
            return prefers_other(mentions, j);
        if (ends_clause(mentions, j, back, named))
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
    return token_in(mentions_token(mentions, i), " , and – — - ( ") &&
           token_in(mentions_token(mentions, i + 1),
                    " it the this they that so and others all none \" ");
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
    const struct token *before = mentions_before(mentions, j),
                       *next = mentions_token(mentions, j + 1);
    if (token_is(mentions_token(mentions, j), "second") && token_is(before, "the") &&
        !token_in(next, " best choice guess pick most likely closest "))
        return false; /* "B, in the second it is C" */
    if (token_is(mentions_token(mentions, j), "only"))
        return token_in(next, " if when for in under where holds applies works partially ");
    return token_in(mentions_token(mentions, j), WRONG) &&
           !token_in(before, " , stands turns wins comes works edges one ") &&
           !(token_is(before, "the") && token_in(next, " statement one claim sentence ")) &&
           !(token_is(mentions_token(mentions, j), "too") && next->kind != TOKEN_WORD);
}

/* What a word after the letter says about it: "B. Wrong"; not "B. Could you ...", "B, not C". */
static enum verdict said_by(const struct mentions *mentions, size_t j, size_t i)
{
    const struct token *token = mentions_token(mentions, j);
    if (mentions->asks_false && token_in(token, " true false untrue incorrect inaccurate "))
        return token_is(token, "true") ? SAID_WRONG : SAID_RIGHT;
    bool denies = !mentions->at[i + 1].ends || !token_in(token, " could might may ");
    if (token_is_negation(token))
        denies = !mentions->asks_false && letter_after(mentions, j + 1) == mentions->count &&
                 !token_is_mark(mentions_token(mentions, j - 1), ",");
    else if (!is_wrong(mentions, j))
        return SAID_NOTHING;
    return denies ? SAID_WRONG : SAID_RIGHT;
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
        const struct token *token = mentions_token(mentions, j);
        if (j >= mentions->count || token->kind == TOKEN_LINE ||
            (!linked && mentions->at[j].letter) || changes_subject(mentions, j) ||
            token_in(token, " because since as but while whereas though although however that "
                            "rules leaving if unless when "
                            "; ， 。 "))
            return false;
        if (token_is_mark(token, ":") && mention_verdict(mentions, i) != SAID_WRONG)
            return false;
        linked =
            !words && (mention_is_link(token) || (linked && token_is_mark(token, MENTION_OPENING)));
        if (linked || mentions->at[j].letter) /* "A, C and D are wrong" */
            continue;
        enum verdict said = said_by(mentions, j, i);
        if (said != SAID_NOTHING || (mentions->at[j].ends && (words || j > i + 1)))
            return said == SAID_WRONG;
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
        const struct token *token = mentions_token(mentions, j);
        if (mentions->at[j].letter && !was)
            return false;
        but = but || (token_in(token, " but however yet ") &&
                      !token_in(mentions_token(mentions, j + 1),
                                " i i'm i've don't ")); /* "but I'm not sure" */
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
        const struct token *token = mentions_token(mentions, j),
                           *next = mentions_token(mentions, j + 1);
        if (token_in(token, " , ; — – but so then because since ") ||
            (token_is_mark(token, ":") && j + 4 <= i))
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
    const struct token *token = mentions_token(mentions, j),
                       *next = mentions_token(mentions, j + 1);
    if (token_in(token, MISTAKES) || (chosen && token_in(token, OTHERS)))
        return true;
    if (token_in(token, " almost nearly used "))
        return token_in(next, " chose picked said selected went to ");
    if (token_is(token, "first"))
        return token_in(next, THOUGHTS) || token_is(mentions_before(mentions, j), "at");
    if (token_in(token, " thought believed considered "))
        return token_in(next, " it the that about of option whether ") ||
               mentions_letter(mentions, j + 1);
    if (token_is(token, "next") && token_in(mentions_token(mentions, j + 2), " step action test "))
        return false; /* "the next best step" */
    return token_in(token, " second 2nd third 3rd next runner ") &&
           (token_in(next, " best choice guess pick most likely answer ") ||
            (token_in(token, " second 2nd third ") && token_in(next, " is : ")) ||
            token_is_mark(next, "-_"));
}

static bool is_set_aside(const struct mentions *mentions, size_t i)
{
    static const char CHOOSING[] = " pick picks select selects choose chooses chose answers "
                                   "say says think list argue argues go goes prefer would ";
    bool chosen = false; /* a verb of choice came between */
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;) {
        const struct token *token = mentions_token(mentions, j);
        bool listed = mention_is_link(token) && mentions_letter(mentions, j + 1);
        bool heading = token_is_mark(token, ":") && j + 4 > i;
        if (sets_aside(mentions, j, chosen))
            return true;
        if ((token_in(token, " but so therefore thus hence ; : and ") && !listed && !heading) ||
            (token_is_mark(token, ",") && !listed && !sets_aside(mentions, j ? j - 1 : j, false)))
            return false;
        chosen = chosen || token_in(token, CHOOSING);
    }
    return false;
}

bool mention_is_redeemed(const struct mentions *mentions, size_t i)
{
    for (size_t j = i + 1, end = sentence_last(mentions, i); j < end; j++) {
        bool is = !token_is(mentions_token(mentions, j), "making") &&
                  token_is(mentions_token(mentions, j + 1), "it");
        size_t the = j + (is ? 3 : 2);
        if (token_in(mentions_token(mentions, j), " but making so ") &&
            token_in(mentions_token(mentions, j + 1), " it it's ") &&
            token_is(mentions_token(mentions, the), "the") &&
            token_in(mentions_token(mentions, the + 1),
                     " best closest only most nearest right correct answer "))
            return true;
    }
    return false;
}

static bool is_denied(const struct mentions *mentions, size_t i)
{
    size_t start = i;
    while (start && (token_is_mark(mentions_token(mentions, start - 1), MENTION_OPENING) ||
                     mention_is_noun(mentions_token(mentions, start - 1))))
        start--;
    bool denied = denied_before(mentions, i) || denied_after(mentions, i) ||
                  conceded_after(mentions, i) || is_disbelieved(mentions, i) ||
                  is_set_aside(mentions, i) || mention_verdict(mentions, i) == SAID_WRONG ||
                  (i && token_is_mark(mentions_token(mentions, i - 1), "~") &&
                   token_is_mark(mentions_token(mentions, i + 1), "~"));
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
    if (!token_in(mentions_token(mentions, last), " ? ？ "))
        return false;
    struct slice sentence = slice_between(mentions_token(mentions, first)->text.start,
                                          mentions_token(mentions, last)->text.start);
    return last + 1 < mentions->count || text_declines(sentence) ||
           token_in(mentions_token(mentions, first),
                    " is are was could would should can does do did why what which how might may ");
}

/* "..., because the duty was breached (A)." */
static bool closes_sentence(const struct mentions *mentions, size_t i)
{
    size_t end = mentions_skip_closing(mentions, i + 1);
    if (!token_is_mark(mentions_before(mentions, i), "(") ||
        !(mentions_token(mentions, end)->kind == TOKEN_LINE || mentions->at[end].ends))
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
        bool led = j > first && token_in(mentions_token(mentions, j - 1), " but and so that ");
        if (token_in(mentions_token(mentions, j), " ; → ⇒ ")) /* "since it is dry → B" */
            return false;
        bool forced = token_in(mentions_token(mentions, j + 1), " i ") &&
                      token_in(mentions_token(mentions, j + 2), " must have need had ");
        if (j > first && token_in(mentions_token(mentions, j), " because since ") &&
            (clause || !led) && !forced)
            return true;
        if (clause && token_in(mentions_token(mentions, j),
                               " although though while whereas despite unlike even aunque "))
            return true;
        clause = clause && (!token_is_mark(mentions_token(mentions, j), ",:") || list);
    }
    return false;
}

/* "If x were negative, the answer would be C": its clause has a condition, and says would. */
static bool is_hypothetical(const struct mentions *mentions, size_t i)
{
    bool would = false, condition = false, quoted = false;
    size_t first = i, start = mentions_sentence_first(mentions, i),
           end = sentence_last(mentions, i);
    if (start < i && token_in(mentions_token(mentions, start), " had were "))
        return true;
    while (first > start && !token_in(mentions_token(mentions, first - 1), " ; but "))
        first--;
    for (size_t j = first; j < end && !(j > i && token_in(mentions_token(mentions, j), " ; but "));
         j++) {
        quoted = token_in(mentions_token(mentions, j), " “ ” ") ||
                         token_is_mark(mentions_token(mentions, j), "\"")
                     ? !quoted
                     : quoted;
        would = would || token_is(mentions_token(mentions, j), "would");
        condition =
            condition ||
            (token_in(mentions_token(mentions, j), " if unless had ") && !quoted &&
             !token_in(mentions_token(mentions, j + 1), " i to ")); /* "if I had to guess" */
    }
    return would && condition;
}

/* "between B and C, ...", "of the two remaining, B and C, ..." */
static bool is_candidate(const struct mentions *mentions, size_t i)
{
    size_t j = i, next = mentions_skip_closing(mentions, i + 1);
    bool several = mention_is_link(mentions_token(mentions, next)) &&
                   (mentions_letter(mentions, next + 1) ||
                    token_is_mark(mentions_token(mentions, next + 1), MENTION_OPENING));
    for (; j && i - j < MENTIONS_REACH; j--) {
        const struct mention *before = &mentions->at[j - 1];
        if (before->letter == mentions->at[i].letter)
            return false; /* "between B and C, B" */
        if (!before->letter && !mention_is_link(&before->token) &&
            !mention_is_noun(&before->token) && !token_is_mark(&before->token, MENTION_OPENING) &&
            !token_is_mark(&before->token, MENTION_CLOSING))
            break;
        several = several || before->letter;
    }
    const struct token *earlier = mentions_token(mentions, j > 1 ? j - 2 : mentions->count);
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
    while (first < i && mentions_token(mentions, first)->kind != TOKEN_WORD)
        first++;
    return first < i && token_in(mentions_token(mentions, first),
                                 " note notes remark incidentally interestingly ps p.s aside ");
}
