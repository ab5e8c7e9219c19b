/* The letter that an answer chooses.
 *
 * The last letter that is claimed most strongly (claims.c) wins; after "wait" or "hmm" what was stated before is only
 * as strong as what was chosen.  The answer is ambiguous if letters are joined ("A or C", "A, B and D are correct"),
 * presented as equal alternatives ("C is just as likely"), each correct under a condition ("if it is dry, B; if it is
 * wet, C"), or several are said to be true.  An answer that declines, "I can't settle on one", chooses nothing weaker
 * than what it states.
 *
 * When nothing is claimed, in this order: the one option that is repeated after all were discussed, verdicts ("A)
 * Incorrect ... B) Correct"), lines that begin with a letter in the format of options (of several, the first if only
 * that one has it: "D. All of them.  A, B and C ..."), the one letter that closes a sentence ("secure the airway
 * (C)."), the last sentence, and letters in brackets or bold or after "option"; these must agree on one letter.
 * Letters that each head a sentence, or label the words before them ("helicase (B) ...  Ligase (A) ..."), are only
 * discussed.  Remarks beside the answer count only when nothing else does. */
#include "graders/letters.h"

#include <ctype.h>

/* ---- rivals ---- */

/* Past the text of an option in brackets: "A (if it is dry)". */
static size_t skip_remark(const struct mentions *mentions, size_t i)
{
    size_t end = i;
    if (!mentions_mark(mentions, i, "("))
        return i;
    while (end < i + 12 && !mentions_mark(mentions, end, ")") && !mentions_letter(mentions, end))
        end++;
    return mentions_mark(mentions, end, ")") ? end + 1 : i;
}

/* The letter joined to this one, "A or B", "A, (B)", "A as well as option B"; `count` if there is none.  *firm if they
 * are joined by more than a comma. */
static size_t joined_to(const struct mentions *mentions, size_t i, bool *firm)
{
    static const char JOINTS[] = " ; + | also well along together plus ";
    static const char WRAPS[] = " \\text \\boxed \\textbf \\mathrm { ";
    size_t start = skip_remark(mentions, mentions_skip_closing(mentions, i + 1)), j = start;
    bool linked = false, either = false, apart = false;
    *firm = false;
    for (; j < i + MENTIONS_REACH; j++) {
        const struct token *token = mentions_token(mentions, j);
        bool joint =
            mention_is_link(token) || token_in(token, JOINTS) ||
            (token_is(token, "as") && (token_is(mentions_before(mentions, j), "well") ||
                                       token_is(mentions_token(mentions, j + 1), "well"))) ||
            (token_is(token, "with") && token_in(mentions_before(mentions, j), " along together "));
        if ((mentions_letter(mentions, j) && !mentions->at[j].bare_lower) || /* not Italian e */
            token_is(token, "both")) /* "(E) Both A and B" */
            break;
        if (!joint &&
            !(linked && (mention_is_noun(token) || mentions_mark(mentions, j, MENTION_OPENING))) &&
            !token_in(token, WRAPS) &&
            !(mentions_mark(mentions, j, "(") &&
              mention_is_link(mentions_token(mentions, j + 1))) &&
            !(linked && mentions_skip_closing(mentions, j) > j))
            return mentions->count;
        linked = linked || joint;
        either = either || token_is(token, "or");
        apart = apart || token_is(token, ";");
        *firm = *firm || (joint && !token_in(token, " , ; "));
    }
    if (!linked || !mentions_letter(mentions, j) ||
        mentions->at[j].letter == mentions->at[i].letter)
        return mentions->count;
    const struct token *next = mentions_token(mentions, mentions_skip_closing(mentions, j + 1));
    bool list =
        i > 1 && token_is(mentions_token(mentions, i - 1), ",") && mentions->at[i - 2].letter;
    bool plural = next->kind == TOKEN_WORD && (list || slice_end(next->text)[-1] != 's');
    bool ends =
        (next->kind != TOKEN_WORD && !(apart && mention_is_link(next))) ||
        (mention_is_link(next) && !apart) || token_is_cjk(next) ||
        token_in(next,
                 " are were seem look appear fit match work remain have both do hold apply ") ||
        (either && token_is(next, "is")) || (*firm && plural);
    *firm = *firm || token_in(next, " are were all both ");
    return ends ? j : mentions->count;
}

static char rival_after(const struct mentions *mentions, size_t i)
{
    bool firm;
    size_t rival = joined_to(mentions, i, &firm);
    return (char)(rival < mentions->count ? mentions->at[rival].letter : '\0');
}

/* The letter and the one joined to it, in the order of the text. */
static struct letters with_rival(const struct mentions *mentions, size_t i)
{
    bool firm = false;
    char letter = mentions->at[i].letter, rival = rival_after(mentions, i);
    for (size_t j = i - 1; !rival && j < i && i - j < MENTIONS_REACH; j--)
        if (mentions->at[j].letter && !mentions->at[j].bare_lower)
            return joined_to(mentions, j, &firm) == i && firm
                       ? (struct letters){.first = mentions->at[j].letter, .second = letter}
                       : (struct letters){.first = letter};
    return (struct letters){.first = letter, .second = rival};
}

static void agree(struct letters *out, char letter)
{
    if (!out->first)
        out->first = letter;
    else if (letter != out->first && !out->second)
        out->second = letter;
}

/* Whether the writer reconsiders: "Wait, ...", "Hmm". */
static bool reconsiders(const struct mentions *mentions, size_t i)
{
    if (token_in(mentions_token(mentions, i), " revised retract "))
        return true;
    return token_in(mentions_token(mentions, i),
                    " wait hmm oops actually correction scratch no sorry edit ") &&
           (i == 0 || mentions_token(mentions, i - 1)->kind == TOKEN_LINE ||
            mentions->at[i - 1].ends ||
            (token_in(mentions_token(mentions, i - 1), " — – - ") &&
             token_is(mentions_token(mentions, i + 1), ",")));
}

/* Whether the writer reconsiders the choice at `i` without a new one: "Wait, is it?  Let me check." */
static bool is_withdrawn(const struct mentions *mentions, size_t i)
{
    static const char CONFIRMS[] =
        " yes correct indeed confirmed confirms right good stands holds so fine ok okay = ";
    bool withdrawn = false;
    for (i++; i < mentions->count; i++) {
        withdrawn = withdrawn || (reconsiders(mentions, i) &&
                                  token_in(mentions_token(mentions, i), " wait hmm "));
        if (mentions->at[i].letter || token_in(mentions_token(mentions, i), CONFIRMS))
            return false;
    }
    return withdrawn;
}

/* The word that begins the condition of the letter, "if it is dry, B", "in the old edition it is B"; or `count`. */
static size_t condition_of(const struct mentions *mentions, size_t i)
{
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;) {
        bool begins =
            j == first || token_in(mentions_token(mentions, j - 1), " , ; and but while whereas ");
        bool in = token_in(mentions_token(mentions, j), " in under for with ") &&
                  !token_in(mentions_token(mentions, j + 1),
                            " this these that my short sum conclusion fact ") &&
                  !token_in(mentions_token(mentions, j + 2), " end final last ");
        if (begins && (in || token_in(mentions_token(mentions, j), " if when assuming otherwise ")))
            return j;
    }
    return mentions->count;
}

/* Whether two letters are each correct under a condition: "if it is dry, B; if it is wet, C". */
static bool are_alternatives(const struct mentions *mentions, size_t a, size_t b)
{
    if (a >= mentions->count || mentions->at[a].letter == mentions->at[b].letter)
        return false;
    size_t one = condition_of(mentions, a), other = condition_of(mentions, b);
    return one < other && other < mentions->count &&
           (token_same(mentions_token(mentions, one), mentions_token(mentions, other)) ||
            token_is(mentions_token(mentions, other), "otherwise"));
}

/* Whether the sentence with two letters leaves open which is right: "it depends: A ..., B ...", "A if it is dry,
 * otherwise B", "A in plants and B in animals". */
static bool is_left_open(const struct mentions *mentions, size_t a, size_t b)
{
    size_t first = mentions_sentence_first(mentions, b), end = b;
    while (end < mentions->count && end < b + MENTIONS_REACH &&
           mentions->at[end].sentence == mentions->at[b].sentence)
        end++;
    if (mentions_have(mentions, first, b, " depends depend depending "))
        return true;
    if (a < first || a >= b)
        return false;
    bool parallel = token_in(mentions_token(mentions, a + 1), " in for under with at on among ") &&
                    token_same(mentions_token(mentions, a + 1), mentions_token(mentions, b + 1)) &&
                    token_in(mentions_before(mentions, b), " and or , ; while ");
    return (parallel || mentions_have(mentions, a, end, " if unless otherwise when ")) &&
           mention_is_affirmed(mentions, b);
}

/* Whether there are only punctuation, numbers and "answer" between two letters, as in a list of answers. */
static bool are_adjacent(const struct mentions *mentions, size_t a, size_t b)
{
    bool near = b - a <= MENTIONS_REACH;
    for (a++; a < b && near; a++)
        if (mentions_token(mentions, a)->kind == TOKEN_WORD &&
            !token_is_answer(mentions_token(mentions, a)) && !mentions->at[a].letter &&
            !isdigit((unsigned char)mentions_token(mentions, a)->text.start[0]))
            return false;
    return near;
}

/* A truncated answer was still discussing the options: it ends with a word, while its other sentences were complete. */
static bool is_truncated(const struct mentions *mentions)
{
    size_t last = mentions->count - 1;
    if (mentions_token(mentions, last)->kind != TOKEN_WORD || mentions->at[last].letter)
        return false;
    size_t first = mentions_sentence_first(mentions, last);
    return text_is_truncated(mentions->text) || (first && mentions->at[first - 1].ends);
}

/* Whether it is the option that declines: "C. Not enough information". */
static bool option_declines(const struct mentions *mentions)
{
    for (size_t i = 0; i < mentions->count; i++) {
        size_t end = mentions->at[i].text_end;
        if (end && text_declines(slice_between(mentions_token(mentions, i)->text.start,
                                               slice_end(mentions_token(mentions, end - 1)->text))))
            return true;
    }
    return false;
}

/* Whether the letter is as good as the one found, or left open with it. */
static bool is_also_named(const struct mentions *mentions, struct letters found, size_t last,
                          size_t i)
{
    char letter = mentions->at[i].letter;
    return letter && found.first && letter != found.first &&
           (mention_is_equal(mentions, i) || is_left_open(mentions, last, i)) &&
           !mention_is_denied(mentions, i);
}

static enum claim claim_of(const struct mentions *mentions, size_t i, bool asides)
{
    bool counts = mentions->at[i].letter && (asides || !mention_is_aside(mentions, i));
    return counts ? mention_claim(mentions, i) : CLAIM_NONE;
}

/* Whether the letter is in the truncated end, followed by a word. */
static bool is_unfinished(const struct mentions *mentions, size_t i, struct slice end)
{
    return mentions_token(mentions, i)->text.start >= end.start &&
           mentions_token(mentions, i + 1)->kind == TOKEN_WORD;
}

static bool is_one_of_two(struct letters found, char letter)
{
    return found.second && (letter == found.first || letter == found.second);
}

static bool is_alternative(const struct mentions *mentions, size_t last, size_t i)
{
    return are_alternatives(mentions, last, i) ||
           (last < i && mentions->at[last].letter != mentions->at[i].letter &&
            are_adjacent(mentions, last, i));
}

/* The last letter that is claimed most strongly.  Options that are said to be true must agree: several may be. */
static struct letters find_claimed(const struct mentions *mentions, bool asides)
{
    enum claim best = CLAIM_NONE;
    struct letters found = {0}, true_ones = {0};
    bool only_true = false; /* no other evidence */
    struct slice end = text_last_sentence(mentions->text);
    bool gave_up = text_declines(end) && !option_declines(mentions), cut = is_truncated(mentions);
    size_t last = mentions->count;
    for (size_t i = 0; i < mentions->count; i++) {
        if (best == CLAIM_STATED && reconsiders(mentions, i))
            best = CLAIM_CHOSEN;
        char letter = mentions->at[i].letter;
        enum claim claim = claim_of(mentions, i, asides);
        if (is_also_named(mentions, found, last, i)) {
            agree(&found, letter);
            continue;
        }
        if (claim == CLAIM_NONE || (cut && is_unfinished(mentions, i, end)))
            continue;
        bool is_true = claim == CLAIM_TRUE;
        if (is_true) {
            agree(&true_ones, letter);
            claim = CLAIM_CHOSEN;
        }
        if (is_alternative(mentions, last, i)) {
            found = (struct letters){.first = mentions->at[last].letter, .second = letter};
            continue;
        }
        if (claim < best) {
            if (is_one_of_two(found, letter))
                found = with_rival(mentions, i); /* "B or C.  As it is dry, it's C." */
            continue;
        }
        last = i;
        found = with_rival(mentions, i);
        best = claim;
        only_true = is_true;
        gave_up =
            gave_up && claim < CLAIM_STATED && mentions_token(mentions, i)->text.start < end.start;
    }
    if (gave_up || is_withdrawn(mentions, last))
        return (struct letters){0};
    return only_true && true_ones.second ? true_ones : found;
}

/* ---- weaker evidence, which must agree ---- */

/* Whether the letter at `i` labels an option: "B.", "(B)", "B:". */
static bool is_label(const struct mentions *mentions, size_t i)
{
    const struct token *next = mentions_token(mentions, i + 1);
    if (!mentions->at[i].letter)
        return false;
    bool closes = mentions_mark(mentions, i + 1, ".:,-)](") || token_in(next, " – — ： ");
    return mentions->at[i].enclosed || closes;
}

/* The letter that a line begins with, as options are written; its index, or `count`. */
static size_t option_of_line(const struct mentions *mentions, size_t line)
{
    size_t i = line;
    while (mentions_token(mentions, i)->kind == TOKEN_MARK ||
           mention_is_noun(mentions_token(mentions, i)))
        i++;
    return i < mentions->count && is_label(mentions, i) ? i : mentions->count;
}

static size_t next_line(const struct mentions *mentions, size_t i)
{
    while (i < mentions->count && mentions_token(mentions, i)->kind != TOKEN_LINE)
        i++;
    return i + 1;
}

/* The one option said to be right, if another is said to be wrong. */
static struct letters find_verdicts(const struct mentions *mentions)
{
    struct letters right = {0};
    bool wrong = false; /* or not said to be right */
    for (size_t i = 0; i < mentions->count; i++) {
        enum verdict verdict = mentions->at[i].letter ? mention_verdict(mentions, i) : SAID_NOTHING;
        if (verdict == SAID_RIGHT)
            agree(&right, mentions->at[i].letter);
        wrong =
            wrong || verdict == SAID_WRONG || (verdict == SAID_NOTHING && mentions->at[i].enclosed);
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
            char letter = mentions->at[i].letter;
            if (!letter || (i > first && !is_label(mentions, i)))
                continue;
            char rival = rival_after(mentions, i);
            if ((letter == found.first && !rival) || mention_is_denied(mentions, i))
                continue;
            agree(&found, letter);
            if (rival)
                agree(&found, rival);
        }
    }
    return found;
}

/* The one option repeated on the last line after all were discussed: "A. ...  B. ...  C. ...  So: B. ..."; '\0' if
 * there is none. */
static char repeated_option(const struct mentions *mentions)
{
    size_t last = mentions->count;
    unsigned seen = 0, again = 0;
    for (size_t line = 0; line < mentions->count; line = next_line(mentions, line)) {
        size_t i = option_of_line(mentions, line);
        if (i >= mentions->count)
            continue;
        unsigned bit = 1u << (mentions->at[i].letter - 'A');
        if (again && !(again & bit))
            return '\0';
        again = seen & bit ? bit : again;
        seen |= bit;
        last = i;
    }
    return (char)(again && (seen & (seen - 1)) && mention_is_affirmed(mentions, last)
                      ? mentions->at[last].letter
                      : '\0');
}

/* Whether the letter begins a line, as a label of an option. */
static bool begins_line(const struct mentions *mentions, size_t i)
{
    size_t line = i;
    while (line && mentions_mark(mentions, line - 1, MENTION_OPENING))
        line--;
    return line && mentions_token(mentions, line - 1)->kind == TOKEN_LINE &&
           option_of_line(mentions, line) == i;
}

/* Whether the letter heads a line, sentence or quotation, as in a discussion of each option. */
static bool heads(const struct mentions *mentions, size_t i)
{
    size_t start = i;
    if (!mentions_letter(mentions, i))
        return false;
    while (start && (mentions_mark(mentions, start - 1, MENTION_OPENING) ||
                     mention_is_noun(mentions_token(mentions, start - 1))))
        start--;
    const struct token *next = mentions_token(mentions, mentions_skip_closing(mentions, i + 1));
    bool quoted = i && mentions_mark(mentions, i - 1, "\"") && token_in(next, " : . ) ");
    bool cut = i + 1 == mentions->count && start && mentions->at[start - 1].ends;
    return (is_label(mentions, i) || cut ||
            token_in(next, " is was says states claims means refers ")) &&
           (quoted || begins_line(mentions, i) || start == mentions_sentence_first(mentions, i));
}

/* The first two options that head a line or sentence and are not negated: several choose none. */
static struct letters head_letters(const struct mentions *mentions)
{
    struct letters found = {0};
    for (size_t i = 0; i < mentions->count && !found.second; i++)
        if (mentions->at[i].letter != found.first && heads(mentions, i) &&
            mention_is_affirmed(mentions, i))
            agree(&found, mentions->at[i].letter);
    return found;
}

/* The option that the answer begins with, "D. All of the above", if it lists no others: lines such as "A, B and C are
 * ..." then refer to them.  '\0' if there is none. */
static char leading_option(const struct mentions *mentions)
{
    size_t first = option_of_line(mentions, 0), end = next_line(mentions, first);
    const struct token *verb = mentions_token(mentions, mentions_skip_closing(mentions, first + 1));
    if (first == mentions->count || !mention_is_affirmed(mentions, first) ||
        rival_after(mentions, first) ||
        token_in(verb, " is was has would could does can gives says states ") ||
        !(mentions->at[first].enclosed || mentions_mark(mentions, first + 1, ".:)](")))
        return '\0';
    bool out_of_order = false; /* "B. ...  A. ...  C. ...": the others follow it */
    for (size_t i = first + 1; i < mentions->count; i++) {
        size_t text = mentions->at[i].text_end;
        bool compared =
            text && mentions_token(mentions, text)->kind == TOKEN_WORD; /* "B. Topaz is softer" */
        bool label = mentions->at[i].letter && !compared &&
                     mentions->at[i].letter != mentions->at[first].letter &&
                     (mentions->at[i].enclosed || mentions_mark(mentions, i + 1, ".:)]"));
        bool next = i < end && mentions->at[i].letter == mentions->at[first].letter + 1 &&
                    mentions->at[i].enclosed == mentions->at[first].enclosed;
        if (label && heads(mentions, i) && mentions->at[i].letter == 'A')
            out_of_order = true;
        if (label && (next || heads(mentions, i)) && !out_of_order)
            return '\0';
    }
    return mentions->at[first].letter;
}

/* Start of the last contrasting clause: "..., but C"; the start of the sentence if there is none. */
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
    if (!token_in(mentions_token(mentions, verb), " is was stands ") ||
        !token_in(mentions_token(mentions, verb + 1), " a an the for what "))
        return false;
    for (size_t j = verb + 2; j < verb + 5; j++)
        if (token_in(mentions_token(mentions, j),
                     " one match way fit best only better closest winner "
                     "statement question they is we "))
            return false;
    return true;
}

/* Whether the letter names what its sentence ends with: "secure the airway (C).", "a diary, A." */
static bool closes_statement(const struct mentions *mentions, size_t i)
{
    size_t name = i - (i && mention_is_noun(mentions_token(mentions, i - 1)));
    bool named = token_in(mentions_before(mentions, name), " ( , ");
    if (!named || !mentions->at[i].letter || mentions->at[i].bare_lower)
        return false;
    size_t end = mentions_skip_closing(mentions, i + 1);
    return end < mentions->count && mentions->at[end].ends &&
           mentions_sentence_first(mentions, i) + 2 < name;
}

/* Whether the letter is only mentioned: "let's start with B", "B says that", "it could be B", "written in B". */
static bool is_topic(const struct mentions *mentions, size_t i)
{
    static const char DOUBTS[] = " could might may no nothing worst if suppose assume ";
    static const char SUBJECTS[] =
        " symbol grade element note key unit variable notation abbreviation consider considering "
        "start starting next now check checking test look looking at evaluate compare compared "
        "comparing analyze try regarding typical see ";
    static const char CLOSERS[] =
        " because since as for with which here and but though although given due based in by on "
        "from where while whereas so then thus instead rather not over to or it i seems looks "
        "appears gets stands comes is was does better ist es est wählen ";
    size_t verb = mentions_skip_closing(mentions, i + 1), lead = i;
    while (lead && (mentions_mark(mentions, lead - 1, MENTION_OPENING) ||
                    mention_is_noun(mentions_token(mentions, lead - 1))))
        lead--;
    const struct token *before = mentions_before(mentions, lead),
                       *after = mentions_token(mentions, verb);
    bool enclosed = mentions->at[i].enclosed || mentions_mark(mentions, i + 1, ")");
    bool ends = after->kind != TOKEN_WORD || token_is_cjk(after) || token_in(after, CLOSERS) ||
                mentions_praise(mentions, verb) || token_in(before, " what as makes make ");
    if (!(ends || enclosed) || token_in(before, " says said ") ||
        (is_defined(mentions, verb) && !enclosed) || token_in(after, " would could might "))
        return true;
    if ((token_is(before, "for") && token_is(after, "to")) || /* "from A to B" */
        (token_is(before, "to") && lead > 1 && mentions->at[lead - 2].letter))
        return true;
    if (token_in(before, " in into from under ") &&
        !(lead > 1 && token_in(mentions_token(mentions, lead - 2),
                               " is confident lies stated find found listed given falls ")))
        return true;
    for (size_t j = i, first = mentions_sentence_first(mentions, i); j-- > first;) {
        const struct token *token = mentions_token(mentions, j);
        if (token_in(token, " , ; : — – but so then because ") &&
            !token_in(mentions_before(mentions, j), " next now "))
            return false;
        if ((token_in(token, SUBJECTS) && !closes_statement(mentions, i)) ||
            token_in(token, DOUBTS) || (token_is_negation(token) && !token_is_link(before)))
            return true;
    }
    return false;
}

/* The letter before this one with only punctuation between, "A. B. C.", or of which this is an equal alternative, "B
 * seems right, but so does C"; '\0' if there is none. */
static char neighbor_before(const struct mentions *mentions, size_t i)
{
    size_t j = i;
    bool equal = mention_is_equal(mentions, i);
    while (j && i - j < 4 * MENTIONS_REACH &&
           (mentions_token(mentions, j - 1)->kind == TOKEN_MARK ||
            (equal && (!mentions->at[j - 1].letter ||
                       mentions->at[j - 1].letter == mentions->at[i].letter))))
        j--;
    bool letter = j && mentions->at[j - 1].letter && !mentions->at[j - 1].bare_lower &&
                  mention_is_affirmed(mentions, j - 1);
    return (char)(letter ? mentions->at[j - 1].letter : '\0');
}

/* The affirmed letters of a part of the text; if `marked`, only (B), **B** and "option B". */
static struct letters find_mentioned(const struct mentions *mentions, struct slice within,
                                     bool marked)
{
    struct letters found = {0}, listed = head_letters(mentions);
    for (size_t i = 0; i < mentions->count && !found.second; i++) {
        const char *start = mentions_token(mentions, i)->text.start;
        bool other = listed.second || (listed.first && listed.first != mentions->at[i].letter);
        bool counts = start >= within.start && start < slice_end(within) &&
                      mentions->at[i].letter && !begins_line(mentions, i) &&
                      !(other && heads(mentions, i)) && !mentions->at[i].bare_lower &&
                      !is_topic(mentions, i);
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

/* Whether the letter of the conclusion is one of several that are only named in brackets: "Helicase (B) unwinds. Ligase
 * (A) seals." */
static bool is_one_of_names(const struct mentions *mentions, struct slice sentence, char letter)
{
    bool named = false, other = false;
    for (size_t i = 2; i < mentions->count; i++) {
        const char *start = mentions_token(mentions, i)->text.start;
        const struct token *noun =
            mentions_token(mentions, i - 2 - mentions_mark(mentions, i - 2, ","));
        bool name = mentions->at[i].letter && mentions_mark(mentions, i - 1, "(") &&
                    noun->kind == TOKEN_WORD && noun->text.length > 1 && !token_is_link(noun) &&
                    !mention_is_noun(noun) && mentions_mark(mentions, i + 1, ")") &&
                    mention_is_affirmed(mentions, i);
        if (!name)
            continue;
        if (mentions->at[i].letter == letter)
            named = named || start >= sentence.start;
        else
            other = other || start < sentence.start;
    }
    return named && other && !sentence_concludes(sentence);
}

/* The letter of the last sentence; of several, one that contrasts with those before it. */
static struct letters find_in_conclusion(const struct mentions *mentions)
{
    struct slice sentence = text_last_sentence(mentions->text);
    const char *contrast = contrast_start(sentence);
    struct letters last =
        find_mentioned(mentions, slice_between(contrast, slice_end(sentence)), false);
    if (!last.first || last.second)
        last = find_mentioned(mentions, sentence, false);
    if (last.first && !last.second && is_one_of_names(mentions, sentence, last.first))
        return (struct letters){0};
    return last;
}

/* The letters that close a sentence; sentences after them, "Circulation, which B is about, comes later", refer to
 * others. */
static struct letters closing_letters(const struct mentions *mentions)
{
    struct letters found = {0};
    for (size_t i = 0; i < mentions->count; i++)
        if (mentions->at[i].letter != found.first && closes_statement(mentions, i) &&
            mention_is_affirmed(mentions, i))
            agree(&found, mentions->at[i].letter);
    return found;
}

/* Weaker evidence, in the order of its strength. */
static struct letters find_weaker(const struct mentions *mentions)
{
    struct letters found = find_verdicts(mentions);
    if (found.first)
        return found;
    found = find_option_lines(mentions);
    char leading = leading_option(mentions);
    if (found.second && leading)
        return (struct letters){.first = leading};
    if (found.first && !found.second)
        return found;
    struct letters concluded = {0};
    bool open = is_truncated(mentions);
    struct letters closing = closing_letters(mentions);
    bool last_closes = mentions->at[mentions->last_word].letter != '\0';
    if (!open)
        concluded = find_in_conclusion(mentions);
    if (!open && closing.first && !closing.second && !last_closes)
        concluded = closing;
    if (closing.second && closes_statement(mentions, mentions->last_word))
        return closing; /* "the treaty (A).  The battle (B)." */
    if (!concluded.first && !found.first && !open)
        concluded = find_mentioned(mentions, mentions->text, true);
    if (!concluded.first && !found.first)
        concluded = find_claimed(mentions, true);
    found.listed = found.second;
    return concluded.first ? concluded : found;
}

/* Whether a sentence of the text declines to answer. */
static bool declines(struct slice text)
{
    struct slice sentence;
    while (sentence_next(&text, &sentence))
        if (text_declines(sentence))
            return true;
    return false;
}

static struct letters find_letters(const struct mentions *mentions)
{
    struct letters found = find_claimed(mentions, false);
    char repeated = repeated_option(mentions);
    if (!found.first && declines(mentions->text) && !option_declines(mentions))
        return found;
    if (repeated && (!found.first || found.second))
        return (struct letters){.first = repeated};
    if (found.first)
        return found;
    found = find_weaker(mentions);
    for (size_t i = 0, chosen = mentions->count; i < mentions->count && found.first; i++) {
        char letter = mentions->at[i].letter;
        if (letter == found.first)
            chosen = i;
        else if (letter && (mention_is_equal(mentions, i) || is_left_open(mentions, chosen, i)) &&
                 !mention_is_denied(mentions, i))
            agree(&found, letter);
    }
    return found;
}

struct letters letters_find(struct slice answer, unsigned count, const struct options *options)
{
    struct mentions mentions = {0};
    struct letters found = {0};
    mentions_read(&mentions, slice_trim(answer), count, options);
    if (mentions.count)
        found = find_letters(&mentions);
    mentions_release(&mentions);
    return found;
}

char letters_expected(struct slice expected, unsigned options)
{
    struct mentions mentions = {0};
    mentions_read(&mentions, slice_trim(expected), options, NULL);
    struct letters found = find_option_lines(&mentions);
    if (!found.first)
        found = find_claimed(&mentions, true);
    mentions_release(&mentions);
    return (char)(found.second ? '\0' : found.first);
}
