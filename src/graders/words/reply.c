#include "graders/words/reply.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "graders/words/utf8.h"

static const struct tag {
    const char *open, *close;
} TAGS[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"<reasoning>", "</reasoning>"},
    {"[think]", "[/think]"},
};

enum { TAG_COUNT = sizeof TAGS / sizeof *TAGS };

static bool starts_nocase(const char *text, const char *prefix)
{
    for (; *prefix; text++, prefix++)
        if (tolower((unsigned char)*text) != *prefix)
            return false;
    return true;
}

/* The tag that stands at `at`: its length, 0 when there is none. */
static size_t tag_at(const char *at, bool *closes)
{
    if (*at != '<' && *at != '[')
        return 0;
    for (size_t i = 0; i < TAG_COUNT; i++)
        for (int close = 0; close < 2; close++) {
            const char *tag = close ? TAGS[i].close : TAGS[i].open;
            if (starts_nocase(at, tag)) {
                *closes = close;
                return strlen(tag);
            }
        }
    return 0;
}

static void strip_reasoning(struct text *out, const char *answer)
{
    bool inside = false;
    const char *kept = answer; /* where the text that is not yet copied begins */
    for (const char *c = answer; *c;) {
        bool closes = false;
        size_t length = tag_at(c, &closes);
        if (!length) {
            c++;
            continue;
        }
        if (closes && !inside)
            text_clear(out); /* it began in the prompt */
        else if (!closes && !inside)
            text_add_bytes(out, kept, (size_t)(c - kept));
        inside = !closes;
        c += length;
        kept = c;
    }
    if (!inside)
        text_add(out, kept);
}

enum err reply_open(struct reply *reply, const char *answer, bool *empty, struct grade *out,
                    struct error *why)
{
    *reply = (struct reply){0};
    *empty = false;
    strip_reasoning(&reply->text, answer);
    if (reply->text.failed) {
        reply_release(reply);
        return out_of_memory(why);
    }
    if (reply_slice(reply).length == 0) {
        *empty = true;
        bool reasoned = slice_trim(slice_of(answer)).length > 0;
        grade_say(out, VERDICT_FALSE, "%s",
                  reasoned ? "empty answer: there is nothing but reasoning" : "empty answer");
    }
    return ERR_OK;
}

void reply_release(struct reply *reply)
{
    text_release(&reply->text);
}

struct slice reply_slice(const struct reply *reply)
{
    return slice_trim((struct slice){text_get(&reply->text), reply->text.length});
}

void grade_say(struct grade *grade, enum verdict verdict, const char *reason, ...)
{
    char whole[2 * sizeof grade->reason];
    va_list args;
    va_start(args, reason);
    vsnprintf(whole, sizeof whole, reason, args);
    va_end(args);
    grade->verdict = verdict;
    utf8_show(grade->reason, sizeof grade->reason, slice_of(whole));
}

void grade_extracted(struct grade *grade, struct slice what)
{
    utf8_show(grade->extracted, sizeof grade->extracted, what);
}

void grade_by_score(struct grade *grade, double score, double threshold)
{
    grade->score = score;
    if (score >= threshold)
        grade_say(grade, VERDICT_TRUE, "%s", "");
    else
        grade_say(grade, VERDICT_FALSE, "score %.4g is below the threshold %.4g", score, threshold);
}

enum err threshold_read(const struct params *params, double otherwise, double *out,
                        struct error *why)
{
    enum err err = params_number(params, "threshold", otherwise, out, why);
    if (!err && (*out < 0 || *out > 1))
        return err_set(why, ERR_USAGE, "threshold=%g: expected a number from 0 to 1", *out);
    return err;
}

enum err out_of_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "grading: %s", err_text(ERR_NO_MEMORY));
}
