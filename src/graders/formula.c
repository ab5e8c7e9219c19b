/* The lexer of mathematical expressions: LaTeX commands, Unicode signs and plain notation become the same tokens, and
 * presentation markup is dropped. */
#include "graders/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "core/xalloc.h"
#include "graders/fold.h"

struct lexer {
    const char *at, *end;
    int depth;  /* nesting of round and square brackets, in which a comma separates */
    int braces; /* open braces */
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
    XGROW(out->items, out->count, out->capacity);
    out->items[out->count++] = token;
    return ERR_OK;
}

static enum err add_sign(struct lexer *lexer, enum math_kind kind, char sign)
{
    if (sign == '{' && kind == MATH_CLOSE && lexer->braces == 0)
        return ERR_OK; /* the brace of a box around the expression */
    if (sign == '{')
        lexer->braces += kind == MATH_OPEN ? 1 : -1;
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

/* Length of a thousands separator followed by exactly three digits; else 0. */
static size_t grouping(const struct lexer *lexer)
{
    static const char *const SEPARATORS[] = {",\\!", "{,}", "\\,", ","};
    for (size_t i = 0; i < COUNT_OF(SEPARATORS); i++) {
        size_t length = strlen(SEPARATORS[i]), digits = 0;
        if (!slice_starts(slice_between(lexer->at, lexer->end), SEPARATORS[i]) ||
            (length == 1 && lexer->depth > 0))
            continue;
        while (peek(lexer, length) == ' ' && length > 1)
            length++;
        while (digits < 4 && isdigit((unsigned char)peek(lexer, length + digits)))
            digits++;
        if (digits == 3)
            return length;
    }
    return 0;
}

/* The "\overline{3}" of 0.\overline{3}, in units of the last decimal before it; 0 if there is none. */
static double read_repetend(struct lexer *lexer, size_t decimals)
{
    double digits = 0, nines = 0;
    const char *start = lexer->at;
    if (take(lexer, "...") || take(lexer, "…") || take(lexer, "\\ldots") || take(lexer, "\\dots"))
        return decimals >= 3 && start[-1] == start[-2] && start[-1] == start[-3]
                   ? (start[-1] - '0') / 9.0
                   : 0; /* 0.333... */
    if (!take(lexer, "\\overline{") && !take(lexer, "\\bar{"))
        return 0;
    for (; isdigit((unsigned char)peek(lexer, 0)) && nines < 1e15; lexer->at++) {
        digits = 10 * digits + (*lexer->at - '0');
        nines = 10 * nines + 9;
    }
    if (nines > 0 && take(lexer, "}"))
        return digits / nines;
    lexer->at = start;
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
        } else if (c == '.' && !point &&
                   (isdigit((unsigned char)peek(lexer, 1)) || peek(lexer, 1) == '\\')) {
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
    const char *decimal = strchr(digits, '.');
    size_t decimals = decimal ? strlen(decimal + 1) : 0;
    double repeated = decimal ? pow(10, -(double)decimals) * read_repetend(lexer, decimals) : 0;
    return add(lexer, (struct math_token){.kind = MATH_NUMBER,
                                          .value = strtod(digits, NULL) + repeated,
                                          .text = slice_between(start, lexer->at)});
}

static enum err add_digit(struct lexer *lexer, struct slice digit)
{
    return add(lexer, (struct math_token){
                          .kind = MATH_NUMBER, .value = digit.start[0] - '0', .text = digit});
}

/* \frac12 and \frac1{2}: each digit by itself. */
static enum err read_bare_digits(struct lexer *lexer)
{
    enum err err = ERR_OK;
    for (int i = 0; i < 2 && !err && isdigit((unsigned char)peek(lexer, 0)); i++, lexer->at++)
        err = add_digit(lexer, (struct slice){lexer->at, 1});
    return err;
}

/* ---- names and words ---- */

/* Whether it is one of the names, each between two spaces. */
static bool is_among(struct slice name, const char *names)
{
    for (const char *at = names + 1, *end; *at; at = end + 1) {
        end = strchr(at, ' ');
        if (slice_equal(name, slice_between(at, end)))
            return true;
    }
    return false;
}

static const char KNOWN[] = " sqrt sin cos tan cot sec csc arcsin arccos arctan asin acos atan "
                            "sinh cosh tanh ln log exp lg pi inf "
                            "frac binom abs infinity oo ";

/* Whether it is a word or unit rather than a product of two variables. */
static bool is_short_word(struct slice run)
{
    static const char WORDS[] =
        " no on is or of to in at by if up cm mm km kg mg ft lb oz hr mi yd ml ";
    char padded[] = {' ', (char)tolower((unsigned char)run.start[0]),
                     (char)tolower((unsigned char)run.start[1]), ' ', '\0'};
    return strstr(WORDS, padded) != NULL;
}

/* "22 over 7", "7 out of 10", "1 in 4", "3 to 2" */
static bool joins_numbers(struct lexer *lexer, struct slice run)
{
    const struct formula *out = lexer->out;
    const char *start = lexer->at;
    bool joins = slice_is(run, "over") || slice_is(run, "to") || slice_is(run, "in") ||
                 (slice_is(run, "out") && take(lexer, " of"));
    if (joins && out->count && out->items[out->count - 1].kind == MATH_NUMBER &&
        peek(lexer, 0) == ' ' && isdigit((unsigned char)peek(lexer, 1)))
        return true;
    lexer->at = start;
    return false;
}

/* "square root of 2", "root 2" */
static bool names_root(struct lexer *lexer, struct slice run)
{
    const char *start = lexer->at;
    bool root = slice_is(run, "root") || (slice_is(run, "square") && take(lexer, " root of"));
    if (root && peek(lexer, 0) == ' ' && isdigit((unsigned char)peek(lexer, 1)))
        return true;
    lexer->at = start;
    return false;
}

/* Letters: a known name, a product of variables, or a word. */
static enum err read_letters(struct lexer *lexer)
{
    const char *start = lexer->at;
    bool only_xyz = true;
    for (; isalpha((unsigned char)peek(lexer, 0)); lexer->at++)
        only_xyz = only_xyz && strchr("xyz", *lexer->at);
    struct slice run = slice_between(start, lexer->at);
    if (is_among(run, KNOWN))
        return add_name(lexer, run);
    if (names_root(lexer, run))
        return add_name(lexer, slice_of("sqrt"));
    if (joins_numbers(lexer, run))
        return add_sign(lexer, MATH_SIGN, slice_is(run, "to") ? ':' : '/');
    if (run.length > 1 && !only_xyz && (run.length > 2 || is_short_word(run)))
        return add(lexer, (struct math_token){.kind = MATH_TEXT, .text = run});
    const struct math_token *last =
        lexer->out->count ? &lexer->out->items[lexer->out->count - 1] : NULL;
    bool differential = run.length == 2 && run.start[0] == 'd' && last && last->kind == MATH_SIGN &&
                        last->sign == '/'; /* dy/dx, and not (dy/d) x */
    enum err err = differential ? add_sign(lexer, MATH_OPEN, '(') : ERR_OK;
    for (size_t i = 0; i < run.length && !err; i++)
        err = add_name(lexer, (struct slice){run.start + i, 1});
    return err || !differential ? err : add_sign(lexer, MATH_CLOSE, '(');
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
    if (is_among(inside, KNOWN) ||
        (inside.length == 1 && islower((unsigned char)inside.start[0]) && lexer->out->count == 0))
        return add_name(lexer, inside);
    return add(lexer, (struct math_token){.kind = MATH_TEXT, .text = inside});
}

/* ---- LaTeX ---- */

/* LaTeX commands and other spellings, several per row.  MATH_TEXT takes the following braces as words; a MATH_SIGN
 * without a sign is presentation only. */
static const struct command {
    const char *names;
    enum math_kind kind;
    char sign;
    const char *meaning;
} COMMANDS[] = {
    {" frac dfrac tfrac cfrac ", MATH_NAME, 0, "frac"},
    {" binom dbinom tbinom ", MATH_NAME, 0, "binom"},
    {" infty ∞ ", MATH_NAME, 0, "inf"},
    {" emptyset varnothing ∅ ", MATH_NAME, 0, "emptyset"},
    {" π ", MATH_NAME, 0, "pi"},
    {" α ", MATH_NAME, 0, "alpha"},
    {" β ", MATH_NAME, 0, "beta"},
    {" γ ", MATH_NAME, 0, "gamma"},
    {" δ ", MATH_NAME, 0, "delta"},
    {" θ ", MATH_NAME, 0, "theta"},
    {" λ ", MATH_NAME, 0, "lambda"},
    {" μ ", MATH_NAME, 0, "mu"},
    {" ρ ", MATH_NAME, 0, "rho"},
    {" σ ", MATH_NAME, 0, "sigma"},
    {" φ ", MATH_NAME, 0, "phi"},
    {" ω ", MATH_NAME, 0, "omega"},
    {" √ ", MATH_NAME, 0, "sqrt"},
    {" ** ", MATH_SIGN, '^', NULL},
    {" − – ", MATH_SIGN, '-', NULL},
    {" cdot times ast × · ⋅ ", MATH_SIGN, '*', NULL},
    {" div ÷ ⁄ ", MATH_SIGN, '/', NULL},
    {" pm ± ", MATH_SIGN, SIGN_PLUS_MINUS, NULL},
    {" mp ∓ ", MATH_SIGN, SIGN_MINUS_PLUS, NULL},
    {" le leq leqslant <= ≤ ", MATH_SIGN, SIGN_LESS_EQUAL, NULL},
    {" ge geq geqslant >= ≥ ", MATH_SIGN, SIGN_GREATER_EQUAL, NULL},
    {" lt ", MATH_SIGN, '<', NULL},
    {" gt ", MATH_SIGN, '>', NULL},
    {" ne neq != ≠ ", MATH_SIGN, SIGN_NOT_EQUAL, NULL},
    {" approx simeq ≈ ", MATH_SIGN, SIGN_APPROXIMATE, NULL},
    {" equiv ≡ ", MATH_SIGN, '=', NULL},
    {" in ∈ ", MATH_SIGN, SIGN_ELEMENT, NULL},
    {" cup ∪ ", MATH_SIGN, SIGN_UNION, NULL},
    {" cap ∩ ", MATH_SIGN, SIGN_INTERSECTION, NULL},
    {" circ degree ^{\\circ} ^\\circ ^{\\degree} ^\\degree ^{°} ^° ° ", MATH_SIGN, SIGN_DEGREE,
     NULL},
    {" ldots cdots dots ", MATH_SIGN, '.', NULL},
    {" setminus ∖ ", MATH_SIGN, SIGN_DIFFERENCE, NULL},
    {" pmod ", MATH_NAME, 0, "mod"},
    {" 。 ", MATH_SIGN, '.', NULL},
    {" ， 、 ", MATH_SIGN, ',', NULL},
    {" （ ", MATH_OPEN, '(', NULL},
    {" ） ", MATH_CLOSE, '(', NULL},
    {" lbrace ", MATH_OPEN, 'S', NULL},
    {" rbrace ", MATH_CLOSE, 'S', NULL},
    {" langle ⟨ ", MATH_OPEN, '(', NULL},
    {" rangle ⟩ ", MATH_CLOSE, '(', NULL},
    {" lfloor ⌊ ", MATH_OPEN, 'F', NULL},
    {" rfloor ⌋ ", MATH_CLOSE, 'F', NULL},
    {" lceil ⌈ ", MATH_OPEN, 'C', NULL},
    {" rceil ⌉ ", MATH_CLOSE, 'C', NULL},
    {" vert lvert rvert mid ", MATH_SIGN, '|', NULL},
    {" text textbf textit textrm textnormal mbox hbox mathrm mathbf mathit mathsf mathbb "
     "boldsymbol "
     "operatorname ",
     MATH_TEXT, 0, NULL},
    {" boxed fbox left right big Big bigg Bigg bigl bigr displaystyle textstyle limits quad qquad ",
     MATH_SIGN, 0, NULL},
};

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
    close = memchr(lexer->at, '}', (size_t)(lexer->end - lexer->at));
    if (array && begins && close && peek(lexer, 0) == '{') /* column specification: {cc} */
        lexer->at = close + 1;
    return matrix ? add_sign(lexer, begins ? MATH_OPEN : MATH_CLOSE, 'X') : ERR_OK;
}

static enum err run_command(struct lexer *lexer, const struct command *command)
{
    if (command->kind == MATH_SIGN && !command->sign) {
        if (peek(lexer, 0) == '.') /* \left. has no bracket */
            lexer->at++;
        return ERR_OK;
    }
    switch (command->kind) {
    case MATH_TEXT:
        return read_text(lexer);
    case MATH_NAME: {
        enum err err = add_name(lexer, slice_of(command->meaning));
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
    for (size_t i = 0; i < COUNT_OF(COMMANDS); i++)
        if (is_among(name, COMMANDS[i].names))
            return run_command(lexer, &COMMANDS[i]);
    return add_name(lexer, name);
}

/* ---- other characters ---- */

static bool read_superscript(struct lexer *lexer, enum err *err)
{
    double value;
    struct slice rest = slice_between(lexer->at, lexer->end);
    rest.length = char_superscript(rest, &value);
    const char *letter = take(lexer, "ˣ") ? "x" : take(lexer, "ⁿ") ? "n" : NULL;
    if (letter) {
        *err = add_sign(lexer, MATH_SIGN, '^');
        *err = *err ? *err : add_name(lexer, slice_of(letter));
        return true;
    }
    if (!rest.length)
        return false;
    lexer->at += rest.length;
    *err = add_sign(lexer, MATH_SIGN, '^');
    if (!*err)
        *err = add(lexer, (struct math_token){.kind = MATH_NUMBER, .value = value, .text = rest});
    return true;
}

/* The index of a₁₀ and aₙ. */
static bool read_subscript(struct lexer *lexer, enum err *err)
{
    const char *start = lexer->at;
    size_t length;
    while (lexer->at < lexer->end &&
           char_subscript(char_at(slice_between(lexer->at, lexer->end), &length)))
        lexer->at += length;
    struct slice index = slice_between(start, lexer->at);
    if (!index.length)
        return false;
    double value = 0;
    const char *name = NULL;
    for (struct slice rest = index; rest.length;
         rest = (struct slice){rest.start + length, rest.length - length}) {
        name = char_subscript(char_at(rest, &length));
        value = 10 * value + (name[0] - '0');
    }
    *err = add_sign(lexer, MATH_SIGN, '_');
    if (!*err && isdigit((unsigned char)name[0]))
        *err = add(lexer, (struct math_token){.kind = MATH_NUMBER, .value = value, .text = index});
    else if (!*err)
        *err = add_name(lexer, slice_of(name));
    return true;
}

/* ½: a fraction of two numbers */
static bool read_vulgar_fraction(struct lexer *lexer, enum err *err)
{
    static const struct {
        const char *character, *over, *under;
    } FRACTIONS[] = {
        {"½", "1", "2"}, {"⅓", "1", "3"}, {"⅔", "2", "3"}, {"¼", "1", "4"}, {"¾", "3", "4"},
        {"⅕", "1", "5"}, {"⅖", "2", "5"}, {"⅗", "3", "5"}, {"⅘", "4", "5"}, {"⅙", "1", "6"},
        {"⅚", "5", "6"}, {"⅛", "1", "8"}, {"⅜", "3", "8"}, {"⅝", "5", "8"}, {"⅞", "7", "8"},
    };
    for (size_t i = 0; i < COUNT_OF(FRACTIONS); i++) {
        if (!take(lexer, FRACTIONS[i].character))
            continue;
        struct slice over = slice_of(FRACTIONS[i].over), under = slice_of(FRACTIONS[i].under);
        *err = add_name(lexer, slice_of("frac"));
        if (!*err)
            *err = add_digit(lexer, over);
        if (!*err)
            *err = add_digit(lexer, under);
        return true;
    }
    return false;
}

/* ∛ */
static bool read_cube_root(struct lexer *lexer, enum err *err)
{
    if (!take(lexer, "∛") && !take(lexer, "cbrt"))
        return false;
    *err = add_name(lexer, slice_of("sqrt"));
    if (!*err)
        *err = add_sign(lexer, MATH_OPEN, '[');
    if (!*err)
        *err = add_digit(lexer, slice_of("3"));
    if (!*err)
        *err = add_sign(lexer, MATH_CLOSE, '[');
    return true;
}

/* Unicode signs, and those that ASCII writes with two characters. */
static bool read_spelling(struct lexer *lexer, enum err *err)
{
    for (size_t i = 0; i < COUNT_OF(COMMANDS); i++)
        for (const char *name = COMMANDS[i].names + 1, *end; *name; name = end + 1) {
            end = strchr(name, ' ');
            struct slice rest = slice_between(lexer->at, lexer->end);
            size_t length = (size_t)(end - name);
            if (*name != *lexer->at || rest.length < length ||
                memcmp(name, rest.start, length) != 0)
                continue;
            lexer->at += length;
            *err = COMMANDS[i].kind == MATH_NAME ? add_name(lexer, slice_of(COMMANDS[i].meaning))
                                                 : run_command(lexer, &COMMANDS[i]);
            return true;
        }
    return read_superscript(lexer, err) || read_subscript(lexer, err) ||
           read_cube_root(lexer, err) || read_vulgar_fraction(lexer, err);
}

/* "ln 5 ~ 1.61"; the tie of LaTeX has no spaces around it. */
static bool is_about(const struct lexer *lexer)
{
    return peek(lexer, 0) == '~' && lexer->out->count && slice_is_space(lexer->at[-1]) &&
           (slice_is_space(peek(lexer, 1)) || isdigit((unsigned char)peek(lexer, 1)));
}

/* A letter of another script is a variable; Chinese, Japanese and Korean characters are a word. */
static enum err read_other_script(struct lexer *lexer)
{
    const char *start = lexer->at;
    size_t length;
    bool cjk = char_is_cjk(char_at(slice_between(lexer->at, lexer->end), &length));
    do
        lexer->at += length;
    while (cjk && lexer->at < lexer->end &&
           char_is_cjk(char_at(slice_between(lexer->at, lexer->end), &length)));
    struct slice text = slice_between(start, lexer->at);
    return cjk ? add(lexer, (struct math_token){.kind = MATH_TEXT, .text = text})
               : add_name(lexer, text);
}

static enum err read_one(struct lexer *lexer)
{
    enum err err = ERR_OK;
    char c = peek(lexer, 0);
    if (is_about(lexer)) {
        lexer->at++;
        return add_sign(lexer, MATH_SIGN, SIGN_APPROXIMATE);
    }
    if (slice_is_space(c) || c == '$' || c == '~' || take(lexer, "\xC2\xA0")) {
        lexer->at += c != '\xC2';
        return ERR_OK;
    }
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(lexer, 1))))
        return read_number(lexer);
    if (isalpha((unsigned char)c) && !slice_starts(slice_between(lexer->at, lexer->end), "cbrt("))
        return read_letters(lexer);
    if (c == '\\')
        return read_command(lexer);
    if (read_spelling(lexer, &err))
        return err;
    if ((unsigned char)c >= 0x80)
        return read_other_script(lexer);
    lexer->at++;
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
    struct lexer lexer = {source.start, slice_end(source), 0, 0, formula};
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
