/* The regex grader: the answer matches a POSIX extended regular expression, which is a parameter or
 * the expected answer.  Back references are refused: with them a match may take for ever. */
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "graders/grader.h"
#include "graders/words/reply.h"

struct regex_grader {
    int flags;
    bool whole; /* the match must be the whole answer */
    bool fixed; /* `pattern` is there; else it is the expected answer */
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

/* ERR_BAD_VALUE with the reason when it is no pattern. */
static enum err compile(const struct regex_grader *grader, const char *words, regex_t *out,
                        struct error *why)
{
    if (has_back_reference(words))
        return err_set(why, ERR_BAD_VALUE, "bad pattern '%.80s': back references are refused",
                       words);
    struct text pattern = {0};
    text_addf(&pattern, grader->whole ? "^(%s)$" : "%s", words);
    if (pattern.failed) {
        text_release(&pattern);
        return out_of_memory(why);
    }
    int failed = regcomp(out, text_get(&pattern), REG_EXTENDED | grader->flags);
    text_release(&pattern);
    if (!failed)
        return ERR_OK;
    if (failed == REG_ESPACE)
        return out_of_memory(why);
    char reason[100];
    regerror(failed, out, reason, sizeof reason);
    return err_set(why, ERR_BAD_VALUE, "bad pattern '%.80s': %s", words, reason);
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

static enum err regex_open(const struct grader_config *config, struct grader *out,
                           struct error *why)
{
    struct regex_grader *regex = calloc(1, sizeof *regex);
    const char *pattern = params_get(config->params, "pattern");
    if (!regex)
        return out_of_memory(why);
    enum err err = read_flags(config->params, regex, why);
    if (!err && pattern) {
        err = compile(regex, pattern, &regex->pattern, why);
        regex->fixed = true;
    }
    if (err) {
        free(regex);
        return err == ERR_BAD_VALUE ? ERR_USAGE : err;
    }
    out->state = regex;
    return ERR_OK;
}

static enum err match(const regex_t *pattern, struct slice reply, struct grade *out,
                      struct error *why)
{
    regmatch_t where;
    int failed = regexec(pattern, reply.start, 1, &where, 0);
    if (failed && failed != REG_NOMATCH)
        return out_of_memory(why);
    if (failed) {
        grade_say(out, VERDICT_FALSE, "no match");
        return ERR_OK;
    }
    grade_extracted(out, slice_between(reply.start + where.rm_so, reply.start + where.rm_eo));
    grade_say(out, VERDICT_TRUE, "%s", "");
    return ERR_OK;
}

static enum err match_expected(const struct regex_grader *regex, const char *expected,
                               struct slice reply, struct grade *out, struct error *why)
{
    regex_t pattern;
    struct error bad = {0};
    enum err err = compile(regex, expected, &pattern, &bad);
    if (err == ERR_BAD_VALUE) {
        grade_say(out, VERDICT_NULL, "%s", bad.text);
        return ERR_OK;
    }
    if (err)
        return out_of_memory(why);
    err = match(&pattern, reply, out, why);
    regfree(&pattern);
    return err;
}

static enum err regex_grade(struct grader *grader, const struct grading *what, struct grade *out,
                            struct error *why)
{
    const struct regex_grader *regex = grader->state;
    struct reply reply;
    bool empty;
    enum err err = reply_open(&reply, what->answer, &empty, out, why);
    if (err)
        return err;
    if (!empty) {
        /* Trimmed in place: the matcher wants an ending NUL. */
        struct slice text = slice_of(str_trim(reply.text.bytes));
        err = regex->fixed ? match(&regex->pattern, text, out, why)
                           : match_expected(regex, what->expected, text, out, why);
    }
    reply_release(&reply);
    return err;
}

static void regex_close(struct grader *grader)
{
    struct regex_grader *regex = grader->state;
    if (regex->fixed)
        regfree(&regex->pattern);
    free(regex);
}

static const struct param_spec PARAMS[] = {
    {"pattern", "REGEX", "a POSIX extended expression (the expected answer)"},
    {"flags", "LETTERS", "i ignores case, m lets ^ and $ match at lines, w wants the whole answer"},
    {NULL, NULL, NULL},
};

const struct grader_driver grader_regex = {
    .name = "regex",
    .summary = "the answer matches a POSIX extended regular expression",
    .params = PARAMS,
    .open = regex_open,
    .grade = regex_grade,
    .close = regex_close,
};
