/* Grades JSON lines, for tests in Python: reads one object per line from standard input, {"grader",
 * "params": {}, "problem", "expected", "answer", "metadata": {}}, and writes one, {"verdict",
 * "score", "extracted", "reason"}, or {"error"}. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/text.h"
#include "graders/grader.h"
#include "port/json_read.h"

static const char *text_or(const struct jv *value, const char *otherwise)
{
    const char *text = jv_text(value);
    return text ? text : otherwise;
}

static enum err read_params(const struct jv *object, struct params *out)
{
    enum err err = ERR_OK;
    for (const struct jv *item = jv_first(object); item && !err; item = jv_next(item))
        err = params_set(out, jv_key(item), text_or(item, ""));
    return err;
}

static enum err grade_line(const struct jv *line, struct grade *grade, struct error *why)
{
    const struct grader_driver *driver =
        grader_driver_find(text_or(jv_get(line, "grader"), ""), why);
    struct params params = {0};
    struct grader grader = {0};
    enum err err = driver ? read_params(jv_get(line, "params"), &params) : ERR_USAGE;
    struct grader_config config = {.params = &params};
    if (!err)
        err = grader_open(driver, &config, &grader, why);
    struct grading what = {
        .problem = text_or(jv_get(line, "problem"), ""),
        .expected = text_or(jv_get(line, "expected"), ""),
        .answer = text_or(jv_get(line, "answer"), ""),
        .metadata = jv_get(line, "metadata"),
    };
    if (!err)
        err = grader_grade(&grader, &what, grade, why);
    grader_close(&grader);
    params_release(&params);
    return err;
}

static void write_grade(enum err err, const struct grade *grade, const struct error *why)
{
    struct text out = {0};
    struct json json;
    json_init(&json, &out, false);
    json_object(&json, NULL);
    if (err) {
        json_string(&json, "error", why->text);
    } else {
        if (grade->verdict == VERDICT_NULL)
            json_null(&json, "verdict");
        else if (grade->verdict == VERDICT_UNREAD)
            json_string(&json, "verdict", "unread");
        else
            json_bool(&json, "verdict", grade->verdict == VERDICT_TRUE);
        json_number(&json, "score", grade->score);
        json_string(&json, "extracted", grade->extracted);
        json_string(&json, "reason", grade->reason);
    }
    json_object_end(&json);
    puts(text_get(&out));
    text_release(&out);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    struct error why = {0};
    for (ssize_t length; (length = getline(&line, &size, stdin)) > 0;) {
        struct jv *value = NULL;
        struct grade grade = {0};
        enum err err = jv_parse(line, (size_t)length, &value, &why);
        if (!err)
            err = grade_line(value, &grade, &why);
        write_grade(err, &grade, &why);
        jv_free(value);
    }
    free(line);
    return 0;
}
