/* Grades JSON lines, for tests in Python: reads one object per line from standard input, {"grader",
 * "params": {}, "problem", "expected", "answer", "metadata": {}}, and writes one, {"verdict",
 * "score", "extracted", "reason"}, or {"error"}.  With "corpus": [{"index", "problem", "expected", "answer"}] instead of
 * an answer, its metrics of all of these: {"qualities": [{"name", "value" ...}]}. */
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

static struct grading read_item(const struct jv *line)
{
    int64_t index = 0;
    (void)jv_integer(jv_get(line, "index"), &index);
    return (struct grading){
        .problem = text_or(jv_get(line, "problem"), ""),
        .expected = text_or(jv_get(line, "expected"), ""),
        .answer = text_or(jv_get(line, "answer"), ""),
        .metadata = jv_get(line, "metadata"),
        .index = index,
    };
}

/* What a line asks for: a grade, or the metrics of several answers. */
struct graded {
    bool is_corpus;
    struct grade grade;
    struct grader_quality qualities[GRADER_QUALITIES_MAX];
    size_t count;
};

static enum err grade_corpus(const struct grader *grader, const struct jv *list,
                             struct graded *graded, struct error *why)
{
    size_t count = 0;
    struct grading *items = calloc(jv_count(list) + 1, sizeof *items);
    if (!items)
        exit(1);
    for (const struct jv *item = jv_first(list); item; item = jv_next(item))
        items[count++] = read_item(item);
    graded->is_corpus = true;
    enum err err = grader_corpus(grader, items, count, graded->qualities, &graded->count, why);
    free(items);
    return err;
}

static enum err grade_line(const struct jv *line, struct graded *graded, struct error *why)
{
    const struct grader_driver *driver =
        grader_driver_find(text_or(jv_get(line, "grader"), ""), why);
    struct params params = {0};
    struct grader grader = {0};
    enum err err = driver ? read_params(jv_get(line, "params"), &params) : ERR_USAGE;
    struct grader_config config = {.params = &params};
    if (!err)
        err = grader_open(driver, &config, &grader, why);
    struct grading what = read_item(line);
    if (!err && jv_get(line, "corpus"))
        err = grade_corpus(&grader, jv_get(line, "corpus"), graded, why);
    else if (!err)
        err = grader_grade(&grader, &what, &graded->grade, why);
    grader_close(&grader);
    params_release(&params);
    return err;
}

static void write_qualities(const struct graded *graded, struct json *json)
{
    json_array(json, "qualities");
    for (size_t i = 0; i < graded->count; i++) {
        const struct grader_quality *quality = &graded->qualities[i];
        json_object(json, NULL);
        json_string(json, "name", quality->name);
        json_number(json, "value", quality->value);
        json_number(json, "plus_minus", quality->plus_minus);
        json_integer(json, "count", (int64_t)quality->count);
        json_bool(json, "lower_is_better", quality->lower_is_better);
        json_string(json, "reason", quality->reason);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_grade(enum err err, const struct graded *graded, const struct error *why)
{
    const struct grade *grade = &graded->grade;
    struct text out = {0};
    struct json json;
    json_init(&json, &out, false);
    json_object(&json, NULL);
    if (err) {
        json_string(&json, "error", why->text);
    } else if (graded->is_corpus) {
        write_qualities(graded, &json);
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
        struct graded graded = {0};
        enum err err = jv_parse(line, (size_t)length, &value, &why);
        if (!err)
            err = grade_line(value, &graded, &why);
        write_grade(err, &graded, &why);
        jv_free(value);
    }
    free(line);
    return 0;
}
