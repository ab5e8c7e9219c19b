/* The choice grader: the letter of a multiple-choice answer.
 *
 * 1. Definite statements: \boxed{B}; "answer: B", "answer is B" (also option, choice); "B is correct",
 *    "(B) is the right answer"; and a last line that is nothing but a letter.  The last of them wins.
 * 2. Without one, lines that begin with a letter as options are written, "B.", "(B)", "B) text":
 *    they must agree.
 * 3. Without those, letters in brackets or bold and "option B" anywhere: they must agree.
 *
 * An "A" before another word is the article, and "I" the pronoun. */
#include <ctype.h>

#include "graders/answer.h"

struct letters {
    char first;  /* 'A'..'Z'; '\0' when none was found */
    char second; /* another one with equal evidence; '\0' when there is none */
};

/* The text that is searched; beyond its end it reads as '\0'. */
struct scan {
    const char *start, *end;
    unsigned count; /* options: 4 means A to D */
};

static char at(const struct scan *scan, const char *c)
{
    if (c >= scan->end)
        return '\0';
    return *c;
}

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool starts(const struct scan *scan, const char *c, const char *literal)
{
    return c < scan->end && slice_starts(slice_between(c, scan->end), literal);
}

/* The lower-case `word` in any case, and no letter after it. */
static bool word_at(const struct scan *scan, const char *c, const char *word)
{
    for (; *word; word++, c++)
        if (tolower((unsigned char)at(scan, c)) != *word)
            return false;
    return !is_word_byte(at(scan, c));
}

static bool any_word_at(const struct scan *scan, const char *c, const char *const *words,
                        const char **after)
{
    for (; *words; words++)
        if (word_at(scan, c, *words)) {
            *after = c + strlen(*words);
            return true;
        }
    return false;
}

/* Limit of each skip: a letter might begin at any of a million brackets or blanks, and the search must
 * stay linear. */
enum { SKIP_MAX = 64 };

static const char *skip(const struct scan *scan, const char *c, const char *set)
{
    for (int i = 0; i < SKIP_MAX && at(scan, c) && strchr(set, *c); i++)
        c++;
    return c;
}

/* ---- one letter ---- */

struct letter {
    char name;     /* in upper case */
    bool enclosed; /* enclosed in brackets, bold, quotes or a LaTeX command */
    const char *after;
};

/* Skips what may precede a letter: ( [ * _ " ' ` $ { and \text{, \textbf{, \mathrm{, \boxed{ */
static const char *skip_opening(const struct scan *scan, const char *c)
{
    static const char *const COMMANDS[] = {"\\text{",   "\\textbf{", "\\mathrm{", "\\mathbf{",
                                           "\\mathit{", "\\boxed{",  "\\fbox{",   NULL};
    for (int i = 0; i < 4; i++) {
        const char *from = c;
        c = skip(scan, c, "([*_\"'`${");
        for (const char *const *command = COMMANDS; *command; command++)
            if (starts(scan, c, *command))
                c += strlen(*command);
        if (c == from)
            break;
    }
    return c;
}

/* Typographic signs that may follow a letter: dashes, quotes, full stops of other scripts. */
static bool sign_follows(const struct scan *scan, const char *c)
{
    return starts(scan, c, "\xE2\x80") || starts(scan, c, "\xC2\xA0") ||
           starts(scan, c, "\xE3\x80") || starts(scan, c, "\xEF\xBC");
}

/* Could the bare letter before `c` be a word of the sentence, "A dog", "I think"? */
static bool reads_as_word(const struct scan *scan, char letter, const char *c)
{
    static const char *const LINKS[] = {"because", "since", "as",  "is",  "and",  "or",
                                        "would",   "for",   "due", "not", "with", NULL};
    const char *after;
    if (letter != 'A' && letter != 'a' && letter != 'I' && letter != 'i')
        return false;
    const char *next = skip(scan, c, " \t");
    bool word_follows = next > c && is_word_byte(at(scan, next)) && !sign_follows(scan, next);
    return word_follows &&
           (toupper((unsigned char)letter) == 'I' || !any_word_at(scan, next, LINKS, &after));
}

/* The letter at `c`, perhaps enclosed.  False for anything else: words, B-cells, C++, article A. */
static bool read_letter(const struct scan *scan, const char *c, struct letter *out)
{
    const char *inside = skip_opening(scan, c);
    char letter = at(scan, inside);
    int index = toupper((unsigned char)letter) - 'A';
    if (!isalpha((unsigned char)letter) || index >= (int)scan->count)
        return false;
    const char *after = inside + 1;
    char next = at(scan, after);
    if (isalnum((unsigned char)next) || ((unsigned char)next >= 0x80 && !sign_follows(scan, after)))
        return false;
    if ((next == '-' || next == '\'') && is_word_byte(at(scan, after + 1)))
        return false;
    if (next == '+' || next == '#' || next == '=' || next == '/' || next == '^')
        return false;
    bool enclosed = inside > c;
    const char *closed = skip(scan, after, ")]*_\"'`}$");
    if (!enclosed && closed == after && reads_as_word(scan, letter, after))
        return false;
    *out = (struct letter){(char)('A' + index), enclosed && closed > after, closed};
    return true;
}

/* After "A": "or B", "and (C)", ", D" with no word after it.  '\0' when nothing of the kind. */
static char rival_after(const struct scan *scan, const struct letter *first)
{
    static const char *const LINKS[] = {"or", "and", "&", NULL};
    const char *c = skip(scan, first->after, " \t,/");
    bool comma = c > first->after && memchr(first->after, ',', (size_t)(c - first->after));
    bool linked = any_word_at(scan, c, LINKS, &c);
    if (!comma && !linked)
        return '\0';
    c = skip(scan, c, " \t");
    struct letter second;
    static const char *const OPTION[] = {"option", "choice", NULL};
    if (any_word_at(scan, c, OPTION, &c))
        c = skip(scan, c, " \t");
    if (!read_letter(scan, c, &second) || second.name == first->name)
        return '\0';
    const char *next = skip(scan, second.after, " \t");
    bool ends = !is_word_byte(at(scan, next)) || any_word_at(scan, next, LINKS, &next);
    if (!ends)
        return '\0';
    return second.name;
}

static struct letters with_rival(const struct scan *scan, const struct letter *letter)
{
    return (struct letters){letter->name, rival_after(scan, letter)};
}

/* ---- definite statements ---- */

static const char *skip_filler(const struct scan *scan, const char *c)
{
    static const char *const FILLER[] = {"option",   "choice",    "letter", "answer",
                                         "clearly",  "therefore", "thus",   "most likely",
                                         "probably", NULL};
    for (int i = 0; i < 4; i++) {
        c = skip(scan, c, " \t\r\n:*_>");
        any_word_at(scan, c, FILLER, &c);
    }
    return c;
}

/* "answer is B", "correct option: B".  `c` is at "answer", "option" or "choice". */
static bool read_statement(const struct scan *scan, const char *c, struct letters *out)
{
    static const char *const NOUNS[] = {"answer", "option", "choice", NULL};
    static const char *const VERBS[] = {"is",      "was",     "would be", "should be",
                                        "must be", "will be", NULL};
    if (!any_word_at(scan, c, NOUNS, &c))
        return false;
    const char *verb = skip(scan, c, " \t*_");
    bool colon = at(scan, verb) == ':' || at(scan, verb) == '=';
    if (colon)
        c = verb + 1;
    else if (verb == c || !any_word_at(scan, verb, VERBS, &c))
        return false;
    struct letter letter;
    c = skip_filler(scan, at(scan, c) == ':' ? c + 1 : c);
    if (!read_letter(scan, c, &letter)) {
        c = skip(scan, c, "*_"); /* "**answer:** B" */
        if (!read_letter(scan, c, &letter))
            return false;
    }
    *out = with_rival(scan, &letter);
    return true;
}

static bool read_box(const struct scan *scan, const char *c, struct letters *out)
{
    struct letter letter;
    if ((!starts(scan, c, "\\boxed{") && !starts(scan, c, "\\fbox{")) ||
        !read_letter(scan, c, &letter))
        return false;
    *out = with_rival(scan, &letter);
    return true;
}

/* Does a sentence begin at `c`, or does a word before it lead to a letter? */
static bool is_opening(const struct scan *scan, const char *c)
{
    static const char *const LEADS[] = {"option", "choice", "answer", "so",
                                        "thus",   "hence",  "that",   "therefore"};
    const char *back = c;
    while (back > scan->start && c - back < SKIP_MAX && (back[-1] == ' ' || back[-1] == '\t'))
        back--;
    if (back == scan->start || !is_word_byte(back[-1]))
        return true;
    for (size_t i = 0; i < sizeof LEADS / sizeof *LEADS; i++) {
        size_t length = strlen(LEADS[i]);
        if ((size_t)(back - scan->start) >= length && word_at(scan, back - length, LEADS[i]))
            return true;
    }
    return false;
}

/* "B is correct", "(B) is the best answer". */
static bool read_praise(const struct scan *scan, const char *c, struct letters *out)
{
    static const char *const PRAISE[] = {"correct",    "right",       "true",
                                         "the answer", "the correct", "the right",
                                         "the best",   "the most",    NULL};
    struct letter letter;
    const char *after;
    if (!read_letter(scan, c, &letter) || !is_opening(scan, c))
        return false;
    const char *verb = skip(scan, letter.after, " \t");
    if (verb == letter.after || !word_at(scan, verb, "is"))
        return false;
    if (!any_word_at(scan, skip(scan, verb + 2, " \t"), PRAISE, &after))
        return false;
    *out = (struct letters){letter.name, '\0'};
    return true;
}

/* The line is a letter with its enclosure, nothing else. */
static bool read_lone_line(const struct scan *scan, struct slice line, struct letters *out)
{
    line = slice_trim(line);
    struct scan inside = {line.start, slice_end(line), scan->count};
    struct letter letter;
    if (!line.length || !read_letter(&inside, skip(&inside, line.start, "#> \t"), &letter) ||
        skip(&inside, letter.after, ".:;, \t*_)") != inside.end)
        return false;
    *out = (struct letters){letter.name, '\0'};
    return true;
}

static struct slice last_line(const struct scan *scan)
{
    const char *c = scan->end;
    while (c > scan->start && c[-1] != '\n')
        c--;
    return slice_between(c, scan->end);
}

static bool find_definite(const struct scan *scan, struct letters *out)
{
    bool found = false;
    char before = '\0';
    for (const char *c = scan->start; c < scan->end; before = *c++) {
        if (is_word_byte(before))
            continue;
        if (read_box(scan, c, out) || read_statement(scan, c, out) || read_praise(scan, c, out))
            found = true;
    }
    return read_lone_line(scan, last_line(scan), out) || found;
}

/* ---- weaker evidence, which must agree ---- */

static void agree(struct letters *out, char letter)
{
    if (!out->first)
        out->first = letter;
    else if (letter != out->first && !out->second)
        out->second = letter;
}

/* A line that begins as options are written: B. text, (B) text, B) text, **B**: text, B, because */
static void read_option_line(const struct scan *scan, struct slice line, struct letters *out)
{
    struct scan inside = {line.start, slice_end(line), scan->count};
    const char *c = skip(&inside, line.start, " \t#>-");
    struct letter letter;
    struct letters lone;
    if (read_lone_line(scan, line, &lone)) {
        agree(out, lone.first);
        return;
    }
    if (!read_letter(&inside, c, &letter))
        return;
    char next = at(&inside, letter.after);
    bool bracket = letter.after > c + 1; /* something closes it */
    bool comma = next == ',' && letter.name != 'I';
    if (bracket || comma || next == '.' || next == ':')
        agree(out, letter.name);
}

static struct letters find_option_lines(const struct scan *scan)
{
    struct letters found = {0};
    for (const char *line = scan->start; line < scan->end;) {
        const char *end = memchr(line, '\n', (size_t)(scan->end - line));
        end = end ? end : scan->end;
        read_option_line(scan, slice_between(line, end), &found);
        line = end + 1;
    }
    return found;
}

/* (B), **B** and "option B" anywhere. */
static struct letters find_enclosed(const struct scan *scan)
{
    static const char *const NOUNS[] = {"option", "choice", NULL};
    struct letters found = {0};
    char before = '\0';
    for (const char *c = scan->start; c < scan->end; before = *c++) {
        const char *after = c;
        struct letter letter;
        if (is_word_byte(before))
            continue;
        bool named = any_word_at(scan, c, NOUNS, &after);
        const char *place = named ? skip(scan, after, " \t") : c;
        if (!read_letter(scan, place, &letter) || (named ? place == after : !letter.enclosed))
            continue;
        agree(&found, letter.name);
        c = letter.after - 1;
    }
    return found;
}

static struct letters find_letters(struct slice answer, unsigned count)
{
    struct scan scan = {answer.start, slice_end(answer), count};
    struct letters found = {0};
    if (find_definite(&scan, &found))
        return found;
    found = find_option_lines(&scan);
    return found.first ? found : find_enclosed(&scan);
}

/* The letter of an expected answer: "B", "(b)", "B. text"; '\0' when it is not one. */
static char expected_letter(struct slice expected, unsigned count)
{
    expected = slice_trim(expected);
    struct scan scan = {expected.start, slice_end(expected), count};
    struct letters found = {0};
    struct letter letter;
    if (read_lone_line(&scan, expected, &found))
        return found.first;
    if (read_letter(&scan, expected.start, &letter) && rival_after(&scan, &letter))
        return '\0';
    found = (struct letters){0};
    read_option_line(&scan, expected, &found);
    if (!found.first && !find_definite(&scan, &found))
        return '\0';
    if (found.second)
        return '\0';
    return found.first;
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

static enum err choice_grade(const void *state, const struct grading *what, struct grade *out,
                             struct error *why)
{
    (void)why;
    unsigned options = ((const struct choice *)state)->options;
    char last = (char)('A' + (int)options - 1);
    char wanted = expected_letter(slice_of(what->expected), options);
    if (!wanted) {
        grade_null(out, "the expected answer is not a letter from A to %c: %.80s", last,
                   what->expected);
        return ERR_OK;
    }
    struct letters found = find_letters(slice_of(what->answer), options);
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
