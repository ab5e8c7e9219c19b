/* The lexer of mathematical expressions: LaTeX commands, Unicode signs and plain notation become the same
 * tokens, and what only changes the appearance disappears. */
#include "graders/formula.h"

#include <ctype.h>
#include <stdlib.h>

#include "core/grow.h"
#include "core/text.h"
#include "core/utf8.h"

struct lexer {
    const char *at, *end;
    int depth; /* of round and square brackets, in which a comma separates */
    struct formula *out;
};

static char peek(const struct lexer *lexer, size_t ahead)
{
    if ((size_t)(lexer->end - lexer->at) <= ahead)
        return '\0';
    return lexer->at[ahead];
}

static bool take(struct lexer *lexer, const char *literal)
{
    if (!slice_starts(slice_between(lexer->at, lexer->end), literal))
        return false;
    lexer->at += strlen(literal);
    return true;
}

static enum err add(struct lexer *lexer, struct math_token token)
{
    struct formula *out = lexer->out;
    if (out->count >= FORMULA_MAX)
        return ERR_BAD_VALUE;
    struct math_token *items = grow(out->items, &out->capacity, out->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    out->items = items;
    items[out->count++] = token;
    return ERR_OK;
}

static enum err add_sign(struct lexer *lexer, enum math_kind kind, char sign)
{
    if (kind == MATH_OPEN && sign != '{')
        lexer->depth++;
    if (kind == MATH_CLOSE && sign != '{' && lexer->depth > 0)
        lexer->depth--;
    return add(lexer, (struct math_token){.kind = kind, .sign = sign});
}

static enum err add_name(struct lexer *lexer, struct slice text)
{
    return add(lexer, (struct math_token){.kind = MATH_NAME, .text = text});
}

/* ---- numbers ---- */

/* The length of a thousands separator followed by exactly three digits; else 0. */
static size_t grouping(const struct lexer *lexer)
{
    static const char *const SEPARATORS[] = {",\\!", "{,}", "\\,", ","};
    for (size_t i = 0; i < sizeof SEPARATORS / sizeof *SEPARATORS; i++) {
        size_t length = strlen(SEPARATORS[i]), digits = 0;
        if (!slice_starts(slice_between(lexer->at, lexer->end), SEPARATORS[i]) ||
            (length == 1 && lexer->depth > 0))
            continue;
        while (digits < 4 && isdigit((unsigned char)peek(lexer, length + digits)))
            digits++;
        if (digits == 3)
            return length;
    }
    return 0;
}

static enum err read_number(struct lexer *lexer)
{
    char digits[400];
    size_t count = 0, whole = 0;
    const char *start = lexer->at;
    bool point = false;
    for (;;) {
        size_t step = point || whole > 3 ? 0 : grouping(lexer);
        char c = peek(lexer, 0);
        if (isdigit((unsigned char)c)) {
            whole += !point;
        } else if (c == '.' && !point && isdigit((unsigned char)peek(lexer, 1))) {
            point = true;
        } else if (step && whole) {
            lexer->at += step;
            whole = 0;
            continue;
        } else {
            break;
        }
        if (count == sizeof digits - 1)
            return ERR_BAD_VALUE;
        digits[count++] = c;
        lexer->at++;
    }
    digits[count] = '\0';
    return add(lexer, (struct math_token){.kind = MATH_NUMBER,
                                          .value = strtod(digits, NULL),
                                          .text = slice_between(start, lexer->at)});
}

/* \frac12 and \frac1{2}: each digit by itself. */
static enum err read_bare_digits(struct lexer *lexer)
{
    enum err err = ERR_OK;
    for (int i = 0; i < 2 && !err && isdigit((unsigned char)peek(lexer, 0)); i++, lexer->at++)
        err =
            add(lexer, (struct math_token){
                           .kind = MATH_NUMBER, .value = *lexer->at - '0', .text = {lexer->at, 1}});
    return err;
}

/* ---- names and words ---- */

static const char *const KNOWN[] = {
    "sqrt",   "sin",  "cos",  "tan",  "cot",  "sec",   "csc",  "arcsin",   "arccos",
    "arctan", "asin", "acos", "atan", "sinh", "cosh",  "tanh", "ln",       "log",
    "exp",    "lg",   "pi",   "inf",  "frac", "binom", "abs",  "infinity", "oo",
};

static bool is_known(struct slice run)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (slice_equal(run, slice_of(KNOWN[i])))
            return true;
    return false;
}

/* Is it a word or unit rather than a product of two variables? */
static bool is_short_word(struct slice run)
{
    static const char WORDS[] = " no on is or of to in at by if up cm mm km kg mg ft lb oz hr ";
    char padded[] = {' ', (char)tolower((unsigned char)run.start[0]),
                     (char)tolower((unsigned char)run.start[1]), ' ', '\0'};
    return strstr(WORDS, padded) != NULL;
}

/* Letters: a known name, a product of variables, or a word. */
static enum err read_letters(struct lexer *lexer)
{
    const char *start = lexer->at;
    bool only_xyz = true;
    for (; isalpha((unsigned char)peek(lexer, 0)); lexer->at++)
        only_xyz = only_xyz && strchr("xyz", *lexer->at);
    struct slice run = slice_between(start, lexer->at);
    if (is_known(run))
        return add_name(lexer, run);
    if (run.length > 1 && !only_xyz && (run.length > 2 || is_short_word(run)))
        return add(lexer, (struct math_token){.kind = MATH_TEXT, .text = run});
    enum err err = ERR_OK;
    for (size_t i = 0; i < run.length && !err; i++)
        err = add_name(lexer, (struct slice){run.start + i, 1});
    return err;
}

/* The braces after \text: words, except for a single letter or the name of a function. */
static enum err read_text(struct lexer *lexer)
{
    while (peek(lexer, 0) == ' ')
        lexer->at++;
    if (peek(lexer, 0) != '{')
        return ERR_OK;
    const char *start = ++lexer->at;
    for (int depth = 1; lexer->at < lexer->end; lexer->at++) {
        depth += (*lexer->at == '{') - (*lexer->at == '}');
        if (depth == 0)
            break;
    }
    struct slice inside = slice_trim(slice_between(start, lexer->at));
    if (lexer->at < lexer->end)
        lexer->at++;
    if (inside.length == 0)
        return ERR_OK;
    if (is_known(inside) ||
        (inside.length == 1 && islower((unsigned char)inside.start[0]) && lexer->out->count == 0))
        return add_name(lexer, inside);
    return add(lexer, (struct math_token){.kind = MATH_TEXT, .text = inside});
}

/* ---- LaTeX ---- */

/* LaTeX commands.  A meaning of NULL is the name itself; MATH_TEXT takes the braces after it as words; what
 * only changes the appearance is skipped. */
static const struct command {
    const char *name;
    enum math_kind kind;
    char sign;
    const char *meaning;
    bool skip;
} COMMANDS[] = {
    {"frac", MATH_NAME, 0, "frac", false},
    {"dfrac", MATH_NAME, 0, "frac", false},
    {"tfrac", MATH_NAME, 0, "frac", false},
    {"cfrac", MATH_NAME, 0, "frac", false},
    {"binom", MATH_NAME, 0, "binom", false},
    {"dbinom", MATH_NAME, 0, "binom", false},
    {"tbinom", MATH_NAME, 0, "binom", false},
    {"infty", MATH_NAME, 0, "inf", false},
    {"cdot", MATH_SIGN, '*', NULL, false},
    {"times", MATH_SIGN, '*', NULL, false},
    {"ast", MATH_SIGN, '*', NULL, false},
    {"div", MATH_SIGN, '/', NULL, false},
    {"pm", MATH_SIGN, SIGN_PLUS_MINUS, NULL, false},
    {"mp", MATH_SIGN, SIGN_MINUS_PLUS, NULL, false},
    {"le", MATH_SIGN, SIGN_LESS_EQUAL, NULL, false},
    {"leq", MATH_SIGN, SIGN_LESS_EQUAL, NULL, false},
    {"leqslant", MATH_SIGN, SIGN_LESS_EQUAL, NULL, false},
    {"ge", MATH_SIGN, SIGN_GREATER_EQUAL, NULL, false},
    {"geq", MATH_SIGN, SIGN_GREATER_EQUAL, NULL, false},
    {"geqslant", MATH_SIGN, SIGN_GREATER_EQUAL, NULL, false},
    {"lt", MATH_SIGN, '<', NULL, false},
    {"gt", MATH_SIGN, '>', NULL, false},
    {"ne", MATH_SIGN, SIGN_NOT_EQUAL, NULL, false},
    {"neq", MATH_SIGN, SIGN_NOT_EQUAL, NULL, false},
    {"in", MATH_SIGN, '=', NULL, false}, /* x \in S is compared as S, as x = 5 is compared as 5 */
    {"cup", MATH_SIGN, SIGN_UNION, NULL, false},
    {"cap", MATH_SIGN, SIGN_INTERSECTION, NULL, false},
    {"circ", MATH_SIGN, SIGN_DEGREE, NULL, false},
    {"degree", MATH_SIGN, SIGN_DEGREE, NULL, false},
    {"ldots", MATH_SIGN, '.', NULL, false},
    {"cdots", MATH_SIGN, '.', NULL, false},
    {"dots", MATH_SIGN, '.', NULL, false},
    {"lbrace", MATH_OPEN, 'S', NULL, false},
    {"rbrace", MATH_CLOSE, 'S', NULL, false},
    {"langle", MATH_OPEN, '(', NULL, false},
    {"rangle", MATH_CLOSE, '(', NULL, false},
    {"lfloor", MATH_OPEN, 'F', NULL, false},
    {"rfloor", MATH_CLOSE, 'F', NULL, false},
    {"lceil", MATH_OPEN, 'C', NULL, false},
    {"rceil", MATH_CLOSE, 'C', NULL, false},
    {"vert", MATH_SIGN, '|', NULL, false},
    {"lvert", MATH_SIGN, '|', NULL, false},
    {"rvert", MATH_SIGN, '|', NULL, false},
    {"text", MATH_TEXT, 0, NULL, false},
    {"textbf", MATH_TEXT, 0, NULL, false},
    {"textit", MATH_TEXT, 0, NULL, false},
    {"textrm", MATH_TEXT, 0, NULL, false},
    {"mbox", MATH_TEXT, 0, NULL, false},
    {"hbox", MATH_TEXT, 0, NULL, false},
    {"mathrm", MATH_TEXT, 0, NULL, false},
    {"mathbf", MATH_TEXT, 0, NULL, false},
    {"mathit", MATH_TEXT, 0, NULL, false},
    {"mathsf", MATH_TEXT, 0, NULL, false},
    {"mathbb", MATH_TEXT, 0, NULL, false},
    {"boldsymbol", MATH_TEXT, 0, NULL, false},
    {"operatorname", MATH_TEXT, 0, NULL, false},
    {"left", MATH_SIGN, 0, NULL, true},
    {"right", MATH_SIGN, 0, NULL, true},
    {"big", MATH_SIGN, 0, NULL, true},
    {"Big", MATH_SIGN, 0, NULL, true},
    {"bigg", MATH_SIGN, 0, NULL, true},
    {"Bigg", MATH_SIGN, 0, NULL, true},
    {"bigl", MATH_SIGN, 0, NULL, true},
    {"bigr", MATH_SIGN, 0, NULL, true},
    {"displaystyle", MATH_SIGN, 0, NULL, true},
    {"textstyle", MATH_SIGN, 0, NULL, true},
    {"limits", MATH_SIGN, 0, NULL, true},
    {"quad", MATH_SIGN, 0, NULL, true},
    {"qquad", MATH_SIGN, 0, NULL, true},
};

/* Skips up to and including a closing brace. */
static void skip_group(struct lexer *lexer)
{
    while (lexer->at < lexer->end && *lexer->at != '}')
        lexer->at++;
    if (lexer->at < lexer->end)
        lexer->at++;
}

/* \begin{pmatrix} and \end{pmatrix}; the names of other environments are dropped. */
static enum err read_environment(struct lexer *lexer, bool begins)
{
    if (peek(lexer, 0) != '{')
        return ERR_OK;
    const char *close = memchr(lexer->at, '}', (size_t)(lexer->end - lexer->at));
    if (!close)
        return ERR_BAD_VALUE;
    struct slice name = slice_between(lexer->at + 1, close);
    lexer->at = close + 1;
    bool array = slice_starts(name, "array");
    bool matrix = array || (name.length >= 6 &&
                            slice_starts((struct slice){slice_end(name) - 6, 6}, "matrix"));
    if (array && begins && peek(lexer, 0) == '{') /* column specification: {cc} */
        skip_group(lexer);
    return matrix ? add_sign(lexer, begins ? MATH_OPEN : MATH_CLOSE, 'X') : ERR_OK;
}

static enum err run_command(struct lexer *lexer, const struct command *command, struct slice name)
{
    if (command->skip) {
        if (peek(lexer, 0) == '.') /* \left. has no bracket */
            lexer->at++;
        return ERR_OK;
    }
    switch (command->kind) {
    case MATH_TEXT:
        return read_text(lexer);
    case MATH_NAME: {
        enum err err = add_name(lexer, command->meaning ? slice_of(command->meaning) : name);
        return err ? err : read_bare_digits(lexer);
    }
    default:
        return add_sign(lexer, command->kind, command->sign);
    }
}

/* A backslash and the command after it. */
static enum err read_command(struct lexer *lexer)
{
    lexer->at++;
    char c = peek(lexer, 0);
    if (!isalpha((unsigned char)c)) {
        lexer->at += c != '\0';
        if (c == '\\')
            return add_sign(lexer, MATH_SIGN, SIGN_ROW);
        if (c == '{' || c == '}')
            return add_sign(lexer, c == '{' ? MATH_OPEN : MATH_CLOSE, 'S');
        if (c == '%' || c == '|')
            return add_sign(lexer, MATH_SIGN, c);
        return ERR_OK; /* spacing, \$, \( */
    }
    const char *start = lexer->at;
    while (isalpha((unsigned char)peek(lexer, 0)))
        lexer->at++;
    struct slice name = slice_between(start, lexer->at);
    while (peek(lexer, 0) == ' ')
        lexer->at++;
    if (slice_equal(name, slice_of("begin")) || slice_equal(name, slice_of("end")))
        return read_environment(lexer, name.length == 5);
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (slice_equal(name, slice_of(COMMANDS[i].name)))
            return run_command(lexer, &COMMANDS[i], name);
    return add_name(lexer, name);
}

/* ---- other characters ---- */

/* Unicode signs, and those that ASCII writes with two characters. */
static const struct spelling {
    const char *bytes;
    enum math_kind kind;
    char sign;
    const char *name;
} SPELLINGS[] = {
    {"**", MATH_SIGN, '^', NULL},
    {"<=", MATH_SIGN, SIGN_LESS_EQUAL, NULL},
    {">=", MATH_SIGN, SIGN_GREATER_EQUAL, NULL},
    {"!=", MATH_SIGN, SIGN_NOT_EQUAL, NULL},
    {"\xE2\x88\x92", MATH_SIGN, '-', NULL},
    {"\xE2\x80\x93", MATH_SIGN, '-', NULL},
    {"\xC3\x97", MATH_SIGN, '*', NULL},
    {"\xC2\xB7", MATH_SIGN, '*', NULL},
    {"\xE2\x8B\x85", MATH_SIGN, '*', NULL},
    {"\xC3\xB7", MATH_SIGN, '/', NULL},
    {"\xC2\xB1", MATH_SIGN, SIGN_PLUS_MINUS, NULL},
    {"\xE2\x89\xA4", MATH_SIGN, SIGN_LESS_EQUAL, NULL},
    {"\xE2\x89\xA5", MATH_SIGN, SIGN_GREATER_EQUAL, NULL},
    {"\xE2\x89\xA0", MATH_SIGN, SIGN_NOT_EQUAL, NULL},
    {"\xE2\x88\x88", MATH_SIGN, '=', NULL},
    {"\xE2\x88\xAA", MATH_SIGN, SIGN_UNION, NULL},
    {"\xE2\x88\xA9", MATH_SIGN, SIGN_INTERSECTION, NULL},
    {"\xC2\xB0", MATH_SIGN, SIGN_DEGREE, NULL},
    {"\xCF\x80", MATH_NAME, 0, "pi"},
    {"\xE2\x88\x9E", MATH_NAME, 0, "inf"},
    {"\xE2\x88\x9A", MATH_NAME, 0, "sqrt"},
};

/* The superscript digits 2 and 3. */
static bool read_superscript(struct lexer *lexer, enum err *err)
{
    double value = take(lexer, "\xC2\xB2") ? 2 : take(lexer, "\xC2\xB3") ? 3 : 0;
    if (value == 0)
        return false;
    *err = add_sign(lexer, MATH_SIGN, '^');
    if (!*err)
        *err = add(lexer, (struct math_token){.kind = MATH_NUMBER,
                                              .value = value,
                                              .text = slice_of(value == 2 ? "2" : "3")});
    return true;
}

static bool read_spelling(struct lexer *lexer, enum err *err)
{
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof *SPELLINGS; i++) {
        const struct spelling *spelling = &SPELLINGS[i];
        if (!take(lexer, spelling->bytes))
            continue;
        *err = spelling->name ? add_name(lexer, slice_of(spelling->name))
                              : add_sign(lexer, spelling->kind, spelling->sign);
        return true;
    }
    return read_superscript(lexer, err);
}

/* ^\circ and ^{\circ} are degree signs. */
static bool take_degree(struct lexer *lexer)
{
    static const char *const DEGREES[] = {"^{\\circ}", "^\\circ",     "^{\\degree}",
                                          "^\\degree", "^{\xC2\xB0}", "^\xC2\xB0"};
    for (size_t i = 0; i < sizeof DEGREES / sizeof *DEGREES; i++)
        if (take(lexer, DEGREES[i]))
            return true;
    return false;
}

static enum err read_one(struct lexer *lexer)
{
    enum err err = ERR_OK;
    char c = peek(lexer, 0);
    if (slice_is_space(c) || c == '$' || c == '~' || take(lexer, "\xC2\xA0")) {
        lexer->at += c != '\xC2';
        return ERR_OK;
    }
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(lexer, 1))))
        return read_number(lexer);
    if (isalpha((unsigned char)c))
        return read_letters(lexer);
    if (c == '\\')
        return read_command(lexer);
    if (take_degree(lexer))
        return add_sign(lexer, MATH_SIGN, SIGN_DEGREE);
    if (read_spelling(lexer, &err))
        return err;
    const char *start = lexer->at++;
    if ((unsigned char)c >= 0x80) { /* a letter of another script is a variable */
        while (utf8_is_continuation(peek(lexer, 0)))
            lexer->at++;
        return add_name(lexer, slice_between(start, lexer->at));
    }
    static const char OPENING[] = "([{", CLOSING[] = ")]}";
    const char *close = strchr(CLOSING, c);
    if (strchr(OPENING, c))
        return add_sign(lexer, MATH_OPEN, c);
    if (close)
        return add_sign(lexer, MATH_CLOSE, OPENING[close - CLOSING]);
    return add_sign(lexer, MATH_SIGN, c);
}

enum err formula_read(struct formula *formula, struct slice source)
{
    struct lexer lexer = {source.start, slice_end(source), 0, formula};
    enum err err = ERR_OK;
    while (lexer.at < lexer.end && !err)
        err = read_one(&lexer);
    return err;
}

void formula_release(struct formula *formula)
{
    free(formula->items);
    *formula = (struct formula){0};
}
