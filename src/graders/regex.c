/* The regex grader: the answer matches a POSIX extended regular expression, which is a parameter or
 * the expected answer.  Back references are rejected: matching them may take exponential time. */
#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "graders/answer.h"

struct regex_grader {
    int flags;
    bool whole; /* the match must be the whole answer */
    bool fixed; /* `pattern` is a parameter; else it is the expected answer */
    regex_t pattern;
};

static bool has_back_reference(const char *pattern)
{
    for (; *pattern; pattern++)
        if (*pattern == '\\') {
            if (isdigit((unsigned char)pattern[1]))
                return true;
            if (pattern[1])
                pattern++;
        }
    return false;
}

/* The end of a bracket expression, "[^]a-z]". */
static const char *after_bracket(const char *at)
{
    at += at[1] == '^' ? 2 : 1;
    at += *at == ']';
    while (*at && *at != ']')
        at++;
    return at;
}

/* How many copies of its operand the C library makes of a quantifier; *at: its last character. */
static double copies_of(const char **at)
{
    if (**at == '+')
        return 2;
    if (**at != '{')
        return 1;
    char *end;
    double most = strtod(*at + 1, &end);
    if (*end == ',')
        most = fmax(most + 1, strtod(end + 1, &end));
    *at = *end == '}' ? end : end - 1;
    return fmax(most, 1);
}

/* Whether it has so many parts that compiling it would take all memory, as "a++++++++" and "((a{99}){99}){99}" do:
 * quantifiers multiply what they repeat. */
static bool is_too_large(const char *pattern)
{
    enum { DEPTH_MAX = 64 };
    const double parts_max = 1e5;
    double total[DEPTH_MAX] = {0}, atom = 0; /* of each open group, without its last atom */
    unsigned depth = 0;
    for (const char *at = pattern; *at; at++) {
        if (strchr("*+?{", *at)) {
            atom *= copies_of(&at);
        } else if (*at == ')' && depth) {
            atom += total[depth--];
        } else {
            total[depth] += atom;
            atom = 1;
            if (*at == '(' && ++depth == DEPTH_MAX)
                return true;
            if (*at == '(')
                total[depth] = atom = 0;
            at = *at == '[' ? after_bracket(at) : at + (*at == '\\');
        }
        if (!*at)
            break;
        if (total[depth] + atom > parts_max)
            return true;
    }
    for (; depth; depth--)
        atom += total[depth];
    return atom + total[0] > parts_max;
}

/* ERR_BAD_VALUE with the reason if the pattern is invalid. */
static enum err compile(const struct regex_grader *grader, const char *expression, regex_t *out,
                        struct error *why)
{
    if (has_back_reference(expression))
        return err_set(why, ERR_BAD_VALUE,
                       "invalid pattern '%.80s': back references are not supported", expression);
    if (is_too_large(expression))
        return err_set(why, ERR_BAD_VALUE,
                       "invalid pattern '%.80s': its repetitions would take too much memory",
                       expression);
    struct text pattern = {0};
    text_addf(&pattern, grader->whole ? "^(%s)$" : "%s", expression);
    int failed = regcomp(out, text_get(&pattern), REG_EXTENDED | grader->flags);
    text_release(&pattern);
    if (!failed)
        return ERR_OK;
    char reason[100];
    regerror(failed, out, reason, sizeof reason);
    return err_set(why, ERR_BAD_VALUE, "invalid pattern '%.80s': %s", expression, reason);
}

static enum err read_flags(const struct params *params, struct regex_grader *out, struct error *why)
{
    const char *flags = params_get(params, "flags");
    for (const char *f = flags ? flags : ""; *f; f++)
        if (*f == 'i')
            out->flags |= REG_ICASE;
        else if (*f == 'm')
            out->flags |= REG_NEWLINE;
        else if (*f == 'w')
            out->whole = true;
        else
            return err_set(why, ERR_USAGE, "flags=%s: expected letters of i, m and w", flags);
    return ERR_OK;
}

static enum err regex_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct regex_grader *regex = state;
    const char *pattern = params_get(config->params, "pattern");
    enum err err = read_flags(config->params, regex, why);
    if (err || !pattern)
        return err;
    regex->fixed = true;
    err = compile(regex, pattern, &regex->pattern, why);
    return err == ERR_BAD_VALUE ? ERR_USAGE : err;
}

static void match(const regex_t *pattern, const char *answer, struct grade *out)
{
    regmatch_t where;
    int failed = regexec(pattern, answer, 1, &where, 0);
    if (!failed) {
        grade_extracted(out, slice_between(answer + where.rm_so, answer + where.rm_eo));
        grade_true(out);
    } else if (failed == REG_NOMATCH) {
        grade_false(out, "no match");
    } else {
        char reason[100];
        regerror(failed, pattern, reason, sizeof reason);
        grade_null(out, "cannot match the pattern: %s", reason);
    }
}

static void match_expected(const struct regex_grader *regex, const struct grading *what,
                           struct grade *out)
{
    regex_t pattern;
    struct error bad = {0};
    if (compile(regex, what->expected, &pattern, &bad)) {
        grade_null(out, "%s", bad.text);
        return;
    }
    match(&pattern, what->answer, out);
    regfree(&pattern);
}

static enum err regex_grade(const void *state, const struct grading *what, struct grade *out,
                            struct error *why)
{
    const struct regex_grader *regex = state;
    (void)why;
    if (regex->fixed)
        match(&regex->pattern, what->answer, out);
    else
        match_expected(regex, what, out);
    return ERR_OK;
}

static void regex_release(void *state)
{
    struct regex_grader *regex = state;
    if (regex->fixed)
        regfree(&regex->pattern);
}

static const struct param_spec PARAMS[] = {
    {"pattern", "REGEX", "a POSIX extended expression (the expected answer)"},
    {"flags", "LETTERS", "i: ignore case; m: ^ and $ match at lines; w: match the whole answer"},
    {NULL, NULL, NULL},
};

const struct grader_driver grader_regex = {
    .name = "regex",
    .summary = "the answer matches a POSIX extended regular expression",
    .params = PARAMS,
    .state_size = sizeof(struct regex_grader),
    .configure = regex_configure,
    .grade = regex_grade,
    .release = regex_release,
};
