/* The letter that an answer chooses.
 *
 * Each letter that names an option and is affirmed (letters.h) has evidence, by the words around it:
 *   stated   \boxed{B}; "answer: B", "the correct option is B"; "B is the best answer"; "final: B"; a first or last
 *            line that is only a letter
 *   chosen   "I'd go with B", "so B", "that leaves B", "which is B", "the best next step is B", "B fits best"; and,
 *            where several may be, "B is true"
 *   none     anything else
 * The last of the strongest evidence wins; after "wait" or "hmm" what was stated before is only as strong as what
 * was chosen.  Two under a condition each ("if it is dry, B; if it is wet, C") are undecided.  Without any, in this
 * order: verdicts ("A) Incorrect ... B) Correct"), lines that begin with a letter as options are written (of several,
 * the first when only that is written so: "D. All of them.  A, B and C ..."), the one letter that closes a sentence
 * ("secure the airway (C)."), the last sentence, and letters in
 * brackets or bold or after "option"; these must agree on one letter.  What is noted beside the answer counts only
 * when nothing else does. */
#include "graders/letters.h"

#include <ctype.h>

enum evidence { EVIDENCE_NONE, EVIDENCE_TRUE, EVIDENCE_CHOSEN, EVIDENCE_STATED };

static const struct token *at(const struct mentions *mentions, size_t i)
{
    return mentions_token(mentions, i);
}

/* ---- evidence ---- */

/* The words that lead to a letter, read backwards. */
struct lead {
    bool linked;  /* passed "is", ":" or the like */
    bool colon;   /* that link is a mark */
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

/* Does the writer choose, and not "many students"? */
static bool is_writer(const struct mentions *mentions, size_t verb)
{
    static const char SKIPPED[] =
        " would will should must can am are have has had 'd definitely probably therefore to going "
        "rather confidently also then thus hence so and myself still ";
    static const char WRITERS[] =
        " i i'd i'll i'm i've we we'd we'll we've let's us you me my yo ich je ";
    while (verb && token_in(at(mentions, verb - 1), SKIPPED))
        verb--;
    const struct token *before = mentions_before(mentions, verb);
    return before->kind != TOKEN_WORD || token_in(before, WRITERS);
}

/* "choose B", "so B", "go with B", "it is B". */
static bool is_choosing(const struct mentions *mentions, size_t j, const struct lead *lead)
{
    static const char VERBS[] =
        " choose chose choosing pick picked picking select selected selecting say guess vote "
        "lean leaning settle opt conclude thinking answering go going went stick sticking mark "
        "meant reckon figure nominate elijo wähle ";
    static const char CUES[] =
        " leaves leaving left so thus therefore hence only it's its that's matches corresponds "
        "matching favors favours suggests indicates supports remaining remains correction revised ";
    const struct token *token = at(mentions, j);
    if (lead->far || lead->crossed)
        return false;
    if (token_is(token, "so") && token_is(mentions_before(mentions, j), "and") && lead->linked)
        return false;                  /* "and so is B" */
    if (token_in(token, " no sorry ")) /* "A... no, B" */
        return token_is(at(mentions, j + 1), ",") && mentions_sentence_first(mentions, j) == j;
    return token_in(token, CUES) || token_has(token, "选") || token_has(token, "選") ||
           (token_in(token, VERBS) && is_writer(mentions, j)) ||
           (lead->linked && token_in(token, " it that this which "));
}

/* A noun that names the answer, before its link: "the correct option is", "final decision:", "best:". */
static bool is_head(const struct mentions *mentions, size_t j, const struct lead *lead)
{
    const struct token *token = at(mentions, j);
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
        before = at(mentions, --noun - 1);
    return token_is_negation(before) ||
           token_in(before, " each every possible incorrect wrong worst weakest ");
}

/* What one word before the letter says; *done when nothing before it can say more. */
static enum evidence lead_word(const struct mentions *mentions, size_t j, struct lead *lead,
                               bool *done)
{
    static const char DOUBTS[] =
        " could might may if whether each every possible options choices seems consider been "
        "unless between incorrect wrong ";
    const struct token *token = at(mentions, j);
    *done = true;
    if (mentions->at[j].letter || token_is_negation(token) || token_in(token, DOUBTS))
        return EVIDENCE_NONE;
    if (token_is_answer(token)) {
        bool near = lead->far <= (lead->crossed ? 2 : 8) && (lead->linked || !lead->far);
        return !near || is_dismissed(mentions, j) ? EVIDENCE_NONE
               : lead->would                      ? EVIDENCE_CHOSEN
                                                  : EVIDENCE_STATED;
    }
    if (is_head(mentions, j, lead))
        return is_dismissed(mentions, j) ? EVIDENCE_NONE : EVIDENCE_STATED;
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
    return chosen ? EVIDENCE_CHOSEN : EVIDENCE_NONE;
}

static enum evidence evidence_before(const struct mentions *mentions, size_t i)
{
    struct lead lead = {0};
    enum evidence best = EVIDENCE_NONE;
    bool done = false;
    for (size_t back = 1; back <= i && back < MENTIONS_REACH && !done; back++) {
        size_t j = i - back;
        const struct token *token = at(mentions, j);
        if (token_is(token, "\\boxed") || token_is(token, "\\fbox"))
            return lead.far || lead.linked ? best : EVIDENCE_STATED;
        if (mentions->at[j].ends)
            return best;
        if (token->kind == TOKEN_LINE) {
            lead.crossed = true;
        } else if (token->kind == TOKEN_MARK) {
            lead.linked = lead.linked || token_is_link(token);
            lead.colon = lead.linked;
        } else {
            enum evidence found = lead_word(mentions, j, &lead, &done);
            best = found > best ? found : best;
        }
    }
    return best;
}

/* Does a sentence or clause begin with the letter, or does a word before it lead to it? */
static bool is_subject(const struct mentions *mentions, size_t i)
{
    static const char LEADS[] =
        " option choice answer statement so thus hence that therefore only but and then think "
        "believe ending response ";
    while (i && mentions_opens(mentions, i - 1))
        i--;
    const struct token *before = mentions_before(mentions, i);
    return before->kind != TOKEN_WORD || token_in(before, LEADS);
}

/* "(B) is the best answer"; weaker, "B fits", "B is true". */
static enum evidence evidence_after(const struct mentions *mentions, size_t i)
{
    static const char ADVERBS[] =
        " the clearly definitely indeed thus therefore a my probably obviously ";
    static const char OTHER[] = " first second last next other wrong incorrect worst weaker least "
                                "tempting possible plausible letter to in of for , . : ";
    size_t j = mentions_skip_closing(mentions, i + 1);
    if (!is_subject(mentions, i))
        return EVIDENCE_NONE;
    j += mentions_mark(mentions, j, ",");
    if ((mention_is_praise(at(mentions, j)) &&
         !token_in(at(mentions, j + 1), " just only some ")) ||
        (token_is(at(mentions, j), "it") && token_is(at(mentions, j + 1), "is")))
        return EVIDENCE_CHOSEN;
    size_t verb = j;
    while (j < verb + 3 && token_in(at(mentions, j), " is are was must be would should "))
        j++;
    if (j == verb)
        return EVIDENCE_NONE;
    while (j < verb + 6 && token_in(at(mentions, j), ADVERBS))
        j++;
    if (token_is(at(mentions, j), "what") && token_in(at(mentions, j + 1), " i i'd we we'd "))
        return EVIDENCE_CHOSEN; /* "B is what I'd answer", perhaps "but ..., so C" */
    for (size_t noun = j; noun < j + 4 && !token_in(at(mentions, noun), OTHER); noun++)
        if (token_is_answer(at(mentions, noun)) || mention_is_noun(at(mentions, noun)))
            return token_is(at(mentions, noun + 1), "to") && /* "... to another question" */
                           token_in(at(mentions, noun + 2), " a another ")
                       ? EVIDENCE_NONE
                       : EVIDENCE_STATED;
    if (token_in(at(mentions, j), " best most only better preferable superior appropriate chosen "))
        return EVIDENCE_STATED;
    bool noun = token_in(at(mentions, j - 1), " the a ") && /* "the right formula" */
                at(mentions, j + 1)->kind == TOKEN_WORD && !token_is(at(mentions, j + 1), "one");
    return !noun && token_in(at(mentions, j),
                             " correct right true accurate valid consistent supported ")
               ? EVIDENCE_TRUE
               : EVIDENCE_NONE;
}

/* The first or last line of the answer, and nothing but the letter in it; "1." may be before it. */
static bool is_lone(const struct mentions *mentions, size_t i)
{
    size_t first = i, end = i + 1;
    if (mention_verdict(mentions, i) != SAID_NOTHING)
        return false;
    for (; first && at(mentions, first - 1)->kind != TOKEN_LINE; first--)
        if (i - first > MENTIONS_REACH ||
            (at(mentions, first - 1)->kind == TOKEN_WORD &&
             !isdigit((unsigned char)at(mentions, first - 1)->text.start[0])))
            return false;
    if (first == 0 && mentions_mark(mentions, end, "!"))
        return true;
    for (; end < mentions->count && at(mentions, end)->kind != TOKEN_LINE; end++)
        if (at(mentions, end)->kind == TOKEN_WORD || end - i > MENTIONS_REACH ||
            mentions_mark(mentions, end, "?"))
            return false;
    return (first <= mentions->first_word || end > mentions->last_word) &&
           end - first < MENTIONS_REACH;
}

/* The last sentence, and nothing but the letter in brackets: "The first one matches. (A)" */
static bool closes_text(const struct mentions *mentions, size_t i)
{
    return i > 1 && i == mentions->last_word && mentions->at[i].enclosed &&
           mentions_sentence_first(mentions, i) + 1 == i && mentions->at[i - 2].ends;
}

static enum evidence evidence_of(const struct mentions *mentions, size_t i)
{
    if (is_lone(mentions, i))
        return EVIDENCE_STATED;
    if (closes_text(mentions, i))
        return EVIDENCE_CHOSEN;
    enum evidence before = evidence_before(mentions, i), after = EVIDENCE_NONE;
    bool clause_ends =
        at(mentions, i + 1)->kind != TOKEN_WORD || token_in(at(mentions, i + 1), " because since ");
    bool its = token_in(mentions_before(mentions, i), " it's its ");
    if (mentions->at[i].bare_lower && !((before == EVIDENCE_STATED || its) && clause_ends))
        return EVIDENCE_NONE;
    if (before != EVIDENCE_STATED)
        after = evidence_after(mentions, i);
    if (before < after)
        before = after;
    return before == EVIDENCE_NONE || !mention_is_affirmed(mentions, i) ? EVIDENCE_NONE : before;
}

/* ---- rivals ---- */

/* The letter that a link joins to this one: "A or B", "A, (B)"; '\0' when there is none. */
static char rival_after(const struct mentions *mentions, size_t i)
{
    size_t j = mentions_skip_closing(mentions, i + 1);
    if (!mention_is_link(at(mentions, j)))
        return '\0';
    bool or = token_is(at(mentions, j), "or");
    while (j < i + MENTIONS_REACH &&
           !(mentions_letter(mentions, j) && !mentions->at[j].bare_lower) && /* E, not Italian e */
           (mention_is_link(at(mentions, j)) || mention_is_noun(at(mentions, j)) ||
            mentions_opens(mentions, j)))
        if (token_is(at(mentions, j++), "both"))
            return '\0'; /* "(E) Both A and B" */
    if (j >= mentions->count || !mentions->at[j].letter ||
        mentions->at[j].letter == mentions->at[i].letter)
        return '\0';
    const struct token *next = at(mentions, mentions_skip_closing(mentions, j + 1));
    bool ends =
        next->kind != TOKEN_WORD || mention_is_link(next) || token_is_cjk(next) ||
        token_in(next,
                 " are were seem look appear fit match work remain have both do hold apply ") ||
        (or &&token_in(next, " would could might can is "));
    return (char)(ends ? mentions->at[j].letter : '\0');
}

/* The letter with the one that is joined to it, in the order of the text. */
static struct letters with_rival(const struct mentions *mentions, size_t i)
{
    char letter = mentions->at[i].letter, rival = rival_after(mentions, i);
    while (i && mentions_opens(mentions, i - 1))
        i--;
    if (rival || i < 2 || mentions_mark(mentions, i - 1, ",") ||
        !mention_is_link(at(mentions, i - 1)))
        return (struct letters){.first = letter, .second = rival};
    for (i -= 2; i && mentions_skip_closing(mentions, i) > i;)
        i--;
    char earlier = mentions->at[i].letter;
    return earlier && earlier != letter ? (struct letters){.first = earlier, .second = letter}
                                        : (struct letters){.first = letter};
}

static void agree(struct letters *out, char letter)
{
    if (!out->first)
        out->first = letter;
    else if (letter != out->first && !out->second)
        out->second = letter;
}

/* Does the writer think again: "Wait, ...", "Hmm"? */
static bool reconsiders(const struct mentions *mentions, size_t i)
{
    if (token_in(at(mentions, i), " revised retract "))
        return true;
    return token_in(at(mentions, i), " wait hmm oops actually correction scratch no sorry edit ") &&
           (i == 0 || at(mentions, i - 1)->kind == TOKEN_LINE || mentions->at[i - 1].ends);
}

/* The word that begins the condition of the letter, "if it is dry, B", "in the old edition it is B"; or `count`. */
static size_t condition_of(const struct mentions *mentions, size_t i)
{
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;) {
        bool begins = j == first || token_in(at(mentions, j - 1), " , ; and but while whereas ");
        bool in = token_in(at(mentions, j), " in under for ") &&
                  token_in(at(mentions, j + 1), " the a an ") &&
                  !token_in(at(mentions, j + 2), " end final last ");
        if (begins && (in || token_in(at(mentions, j), " if when assuming otherwise ")))
            return j;
    }
    return mentions->count;
}

/* Are two letters right under a condition each: "if it is dry, B; if it is wet, C"? */
static bool are_alternatives(const struct mentions *mentions, size_t a, size_t b)
{
    if (a >= mentions->count || mentions->at[a].letter == mentions->at[b].letter)
        return false;
    size_t one = condition_of(mentions, a), other = condition_of(mentions, b);
    return one < other && other < mentions->count &&
           (token_same(at(mentions, one), at(mentions, other)) ||
            token_is(at(mentions, other), "otherwise"));
}

/* The last letter of the strongest evidence.  Options that are said to be true must agree: several may be. */
static struct letters find_evident(const struct mentions *mentions, bool asides)
{
    enum evidence best = EVIDENCE_NONE;
    struct letters found = {0}, true_ones = {0};
    struct slice end = text_last_sentence(mentions->text);
    bool gave_up = text_declines(end);
    for (size_t i = 0, last = mentions->count; i < mentions->count; i++) {
        if (best == EVIDENCE_STATED && reconsiders(mentions, i))
            best = EVIDENCE_CHOSEN;
        enum evidence evidence = mentions->at[i].letter ? evidence_of(mentions, i) : EVIDENCE_NONE;
        if (evidence == EVIDENCE_NONE || (!asides && mention_is_aside(mentions, i)))
            continue;
        if (evidence == EVIDENCE_TRUE)
            agree(&true_ones, mentions->at[i].letter);
        evidence = evidence == EVIDENCE_TRUE ? EVIDENCE_CHOSEN : evidence;
        bool alternative = are_alternatives(mentions, last, i);
        if (alternative)
            found = (struct letters){.first = mentions->at[last].letter,
                                     .second = mentions->at[i].letter};
        if (evidence < best || alternative)
            continue;
        last = i;
        found = with_rival(mentions, i);
        best = evidence;
        gave_up = gave_up && evidence < EVIDENCE_STATED && at(mentions, i)->text.start < end.start;
    }
    if (gave_up)
        return (struct letters){0};
    return best < EVIDENCE_STATED && true_ones.second ? true_ones : found;
}

/* ---- weaker evidence, which must agree ---- */

/* Does the letter at `i` label an option: "B.", "(B)", "B:"? */
static bool is_label(const struct mentions *mentions, size_t i)
{
    const struct token *next = at(mentions, i + 1);
    if (!mentions->at[i].letter)
        return false;
    bool closes = mentions_mark(mentions, i + 1, ".:,-)]") || token_in(next, " – — ： ");
    return mentions->at[i].enclosed || closes;
}

/* The letter that a line begins with, as options are written; its index, or `count`. */
static size_t option_of_line(const struct mentions *mentions, size_t line)
{
    size_t i = line;
    while (at(mentions, i)->kind == TOKEN_MARK || mention_is_noun(at(mentions, i)))
        i++;
    return i < mentions->count && is_label(mentions, i) ? i : mentions->count;
}

static size_t next_line(const struct mentions *mentions, size_t i)
{
    while (i < mentions->count && at(mentions, i)->kind != TOKEN_LINE)
        i++;
    return i + 1;
}

/* The one option that is said to be right, when another is said to be wrong. */
static struct letters find_verdicts(const struct mentions *mentions)
{
    struct letters right = {0};
    bool wrong = false;
    for (size_t i = 0; i < mentions->count; i++) {
        enum verdict verdict = mentions->at[i].letter ? mention_verdict(mentions, i) : SAID_NOTHING;
        if (verdict == SAID_RIGHT)
            agree(&right, mentions->at[i].letter);
        wrong = wrong || verdict == SAID_WRONG;
    }
    return wrong ? right : (struct letters){0};
}

static struct letters find_option_lines(const struct mentions *mentions)
{
    struct letters found = {0};
    for (size_t line = 0; line < mentions->count && !found.second;
         line = next_line(mentions, line)) {
        size_t first = option_of_line(mentions, line), end = next_line(mentions, line);
        for (size_t i = first; i < end && i < mentions->count && !found.second; i++) {
            if ((i > first && !is_label(mentions, i)) || !mentions->at[i].letter ||
                mention_is_denied(mentions, i))
                continue;
            agree(&found, mentions->at[i].letter);
            if (rival_after(mentions, i))
                agree(&found, rival_after(mentions, i));
        }
    }
    return found;
}

/* Does the letter begin a line, as options are written? */
static bool begins_line(const struct mentions *mentions, size_t i)
{
    size_t line = i;
    while (line && mentions_opens(mentions, line - 1))
        line--;
    return line && at(mentions, line - 1)->kind == TOKEN_LINE &&
           option_of_line(mentions, line) == i;
}

/* The option that the answer begins with, "D. All of the above", when it lists no others: lines such as "A, B and C
 * are ..." then speak of them.  '\0' when there is none. */
static char leading_option(const struct mentions *mentions)
{
    size_t first = option_of_line(mentions, 0), end = next_line(mentions, first);
    if (first == mentions->count || !mention_is_affirmed(mentions, first) ||
        !(mentions->at[first].enclosed || mentions_mark(mentions, first + 1, ".:)]")))
        return '\0';
    for (size_t i = first + 1; i < mentions->count; i++) {
        bool label = mentions->at[i].letter &&
                     (mentions->at[i].enclosed || mentions_mark(mentions, i + 1, ":)]"));
        bool ends = mentions->at[i].letter && mentions_mark(mentions, i + 1, ".");
        if ((label && i < end) || ((label || ends) && begins_line(mentions, i)))
            return '\0';
    }
    return mentions->at[first].letter;
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

/* "B is the diameter", "C is a language": what a letter stands for, not that it is right. */
static bool is_defined(const struct mentions *mentions, size_t verb)
{
    if (!token_in(at(mentions, verb), " is was stands ") ||
        !token_in(at(mentions, verb + 1), " a an the for what "))
        return false;
    for (size_t j = verb + 2; j < verb + 5; j++)
        if (token_in(at(mentions, j), " one match way fit best only better closest winner "
                                      "statement question they is we "))
            return false;
    return true;
}

/* Is the letter only spoken of: "let's start with B", "B says that", "it could be B", "written in B"? */
static bool is_topic(const struct mentions *mentions, size_t i)
{
    static const char SUBJECTS[] =
        " symbol grade element note key unit variable notation abbreviation could might may no "
        "nothing consider considering start starting next now check checking test look looking at "
        "evaluate compare compared comparing analyze try regarding worst typical if suppose assume "
        "see ";
    static const char CLOSERS[] =
        " because since as for with which here and but though although given due based in by on "
        "from where while whereas so then thus instead rather not over to or it i seems looks "
        "appears gets stands comes is was does better ist es est wählen ";
    size_t verb = mentions_skip_closing(mentions, i + 1), lead = i;
    while (lead && (mentions_opens(mentions, lead - 1) || mention_is_noun(at(mentions, lead - 1))))
        lead--;
    const struct token *before = mentions_before(mentions, lead), *after = at(mentions, verb);
    bool enclosed = mentions->at[i].enclosed || mentions_mark(mentions, i + 1, ")");
    bool ends = after->kind != TOKEN_WORD || token_is_cjk(after) || token_in(after, CLOSERS) ||
                mention_is_praise(after) || token_in(before, " what as makes make ");
    if (!(ends || enclosed) || token_in(before, " says said ") ||
        (is_defined(mentions, verb) && !enclosed) || token_in(after, " would could might "))
        return true;
    if ((token_is(before, "for") && token_is(after, "to")) || /* "from A to B" */
        (token_is(before, "to") && lead > 1 && mentions->at[lead - 2].letter))
        return true;
    if (token_in(before, " in into from under ") &&
        !(lead > 1 && token_in(at(mentions, lead - 2),
                               " is confident lies stated find found listed given falls ")))
        return true;
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;) {
        const struct token *token = at(mentions, j);
        if (token_in(token, " , ; : — – but so then because ") &&
            !token_in(mentions_before(mentions, j), " next now "))
            return false;
        if (token_in(token, SUBJECTS) || (token_is_negation(token) && !token_is_link(before)))
            return true;
    }
    return false;
}

/* The letter before this one with only marks between, "A. B. C."; '\0' when there is none. */
static char neighbor_before(const struct mentions *mentions, size_t i)
{
    size_t j = i;
    while (j && at(mentions, j - 1)->kind == TOKEN_MARK)
        j--;
    bool letter = j && mentions->at[j - 1].letter && !mentions->at[j - 1].bare_lower &&
                  mention_is_affirmed(mentions, j - 1);
    return (char)(letter ? mentions->at[j - 1].letter : '\0');
}

/* The letters of a part of the text that are affirmed; if `marked`, only (B), **B** and "option B". */
static struct letters find_mentioned(const struct mentions *mentions, struct slice within,
                                     bool marked)
{
    struct letters found = {0};
    for (size_t i = 0; i < mentions->count && !found.second; i++) {
        const char *start = at(mentions, i)->text.start;
        bool counts = start >= within.start && start < slice_end(within) &&
                      mentions->at[i].letter && !begins_line(mentions, i) &&
                      !mentions->at[i].bare_lower && !is_topic(mentions, i);
        if (marked)
            counts = counts &&
                     (mentions->at[i].enclosed || mention_is_noun(mentions_before(mentions, i)));
        if (!counts || mentions->at[i].letter == found.first || !mention_is_affirmed(mentions, i))
            continue;
        if (neighbor_before(mentions, i))
            agree(&found, neighbor_before(mentions, i));
        agree(&found, mentions->at[i].letter);
        if (rival_after(mentions, i))
            agree(&found, rival_after(mentions, i));
    }
    return found;
}

/* The letter of the last sentence; of several, one that contrasts with those before it. */
static struct letters find_in_conclusion(const struct mentions *mentions)
{
    struct slice sentence = text_last_sentence(mentions->text);
    if (text_declines(sentence))
        return (struct letters){0};
    const char *contrast = contrast_start(sentence);
    struct letters last =
        find_mentioned(mentions, slice_between(contrast, slice_end(sentence)), false);
    return last.first && !last.second ? last : find_mentioned(mentions, sentence, false);
}

/* Does the letter name what its sentence ends with: "secure the airway (C).", "a diary, A."? */
static bool closes_statement(const struct mentions *mentions, size_t i)
{
    bool named = token_in(mentions_before(mentions, i), " ( , ");
    if (!named || !mentions->at[i].letter || mentions->at[i].bare_lower)
        return false;
    size_t end = mentions_skip_closing(mentions, i + 1);
    return end < mentions->count && mentions->at[end].ends &&
           mentions_sentence_first(mentions, i) + 2 < i;
}

/* The one letter that closes a sentence; sentences after it, "Circulation, which B is about, comes later", only speak
 * of others.  '\0' when there is none, or are several. */
static char closing_letter(const struct mentions *mentions)
{
    struct letters found = {0};
    for (size_t i = 0; i < mentions->count; i++)
        if (closes_statement(mentions, i) && mention_is_affirmed(mentions, i))
            agree(&found, mentions->at[i].letter);
    return (char)(found.second ? '\0' : found.first);
}

/* An answer that breaks off was still discussing the options: it ends with a word, and its sentences did not. */
static bool breaks_off(const struct mentions *mentions)
{
    size_t last = mentions->count - 1;
    if (at(mentions, last)->kind != TOKEN_WORD || mentions->at[last].letter)
        return false;
    size_t first = mentions_sentence_first(mentions, last);
    return text_is_cut(mentions->text) || (first && mentions->at[first - 1].ends);
}

static struct letters find_letters(const struct mentions *mentions)
{
    struct letters found = find_evident(mentions, false);
    if (!found.first)
        found = find_verdicts(mentions);
    if (found.first)
        return found;
    found = find_option_lines(mentions);
    char leading = leading_option(mentions);
    if (found.second && leading)
        return (struct letters){.first = leading};
    if (found.first && !found.second)
        return found;
    struct letters concluded = {0};
    bool open = breaks_off(mentions);
    char closing = closing_letter(mentions);
    if (!open)
        concluded = find_in_conclusion(mentions);
    if (!open && closing && !mentions->at[mentions->last_word].letter)
        concluded = (struct letters){.first = closing};
    if (!concluded.first && !found.first && !open)
        concluded = find_mentioned(mentions, mentions->text, true);
    if (!concluded.first && !found.first)
        concluded = find_evident(mentions, true);
    found.listed = found.second;
    return concluded.first ? concluded : found;
}

enum err letters_find(struct slice answer, unsigned options, struct letters *out)
{
    struct mentions mentions = {0};
    enum err err = mentions_read(&mentions, slice_trim(answer), options);
    *out = err || !mentions.count ? (struct letters){0} : find_letters(&mentions);
    mentions_release(&mentions);
    return err;
}

enum err letters_expected(struct slice expected, unsigned options, char *out)
{
    struct mentions mentions = {0};
    enum err err = mentions_read(&mentions, slice_trim(expected), options);
    struct letters found = err ? (struct letters){0} : find_option_lines(&mentions);
    if (!err && !found.first)
        found = find_evident(&mentions, true);
    *out = '\0';
    if (!found.second)
        *out = found.first;
    mentions_release(&mentions);
    return err;
}
