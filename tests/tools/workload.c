/* Answers of a workload: `workload NAME MODEL [batch:COUNT] [client:PARAM=VALUE] [PARAM=VALUE ...]`. Each input line is an
 * input; the first output line describes the workload, each other one is a JSON object with the answer to an input or the
 * error. With a batch, as many inputs are prepared and run together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "wire/completion.h"
#include "workloads/workload.h"

enum { BATCH_MAX = 64, LINE_MAX_BYTES = 65536 };

struct setting {
    struct params client, query;
    size_t batch;
};

static void read_setting(int count, char **words, struct setting *out)
{
    out->batch = 1;
    for (int i = 0; i < count; i++) {
        if (str_starts(words[i], "batch:"))
            out->batch = strtoul(words[i] + strlen("batch:"), NULL, 10);
        else if (str_starts(words[i], "client:"))
            (void)params_add(&out->client, words[i] + strlen("client:"));
        else
            (void)params_add(&out->query, words[i]);
    }
    if (out->batch < 1 || out->batch > BATCH_MAX)
        out->batch = 1;
}

static void print_text(struct text *line)
{
    puts(text_get(line));
    text_release(line);
}

static void print_answer(enum err err, const struct error *why, const struct completion *answer)
{
    struct text line = {0};
    struct json json;
    json_init(&json, &line, false);
    json_object(&json, NULL);
    if (err) {
        json_string(&json, "error", why->text);
        json_string(&json, "code", err_text(err));
    } else {
        json_string(&json, "content", text_get(&answer->content));
        json_number(&json, "images", answer->images);
        json_number(&json, "audio_s", answer->audio_s);
        json_number(&json, "denoise_steps", answer->denoise_steps);
        json_integer(&json, "input_tokens", answer->prompt_tokens);
        json_integer(&json, "output_tokens", answer->output_tokens);
    }
    json_object_end(&json);
    print_text(&line);
}

static void print_description(const struct workload *workload)
{
    struct text line = {0};
    struct json json;
    json_init(&json, &line, false);
    json_object(&json, NULL);
    json_string(&json, "workload", workload->driver->name);
    workload->driver->describe(workload, &json);
    json_object_end(&json);
    print_text(&line);
}

static void answer_one(struct workload *workload, const char *input, const struct setting *setting)
{
    struct workload_query query = {.input = input, .params = &setting->query};
    struct completion answer;
    struct error why = {0};
    completion_init(&answer);
    enum err err = workload_answer(workload, &query, &answer, &why);
    print_answer(err, &why, &answer);
    completion_release(&answer);
}

/* One batch, all of which fails together. */
static void answer_batch(struct workload *workload, char **inputs, size_t count,
                         const struct setting *setting)
{
    struct workload_query queries[BATCH_MAX] = {0}, *list[BATCH_MAX];
    const struct workload_driver *driver = workload->driver;
    struct error why = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; i < count; i++) {
        queries[i] = (struct workload_query){.input = inputs[i], .params = &setting->query};
        workload_query_begin(&queries[i]);
        list[i] = &queries[i];
        if (!err)
            err = driver->prepare(workload, &queries[i], &why);
    }
    if (!err)
        err = driver->run_batch(workload, list, count, &why);
    for (size_t i = 0; i < count; i++) {
        struct completion answer;
        enum err own = err;
        completion_init(&answer);
        if (!own)
            own = workload_query_end(workload, &queries[i], &answer, &why);
        print_answer(own, &why, &answer);
        completion_release(&answer);
        driver->discard(workload, &queries[i]);
    }
}

static void answer_all(struct workload *workload, const struct setting *setting)
{
    static char line[LINE_MAX_BYTES];
    char *inputs[BATCH_MAX];
    size_t count = 0;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (setting->batch == 1) {
            answer_one(workload, line, setting);
            continue;
        }
        inputs[count++] = strdup(line);
        if (count < setting->batch)
            continue;
        answer_batch(workload, inputs, count, setting);
        while (count > 0)
            free(inputs[--count]);
    }
    if (count > 0)
        answer_batch(workload, inputs, count, setting);
    while (count > 0)
        free(inputs[--count]);
}

int main(int argc, char **argv)
{
    struct setting setting = {0};
    struct workload workload = {0};
    struct error why = {0};
    if (argc < 3) {
        fprintf(
            stderr,
            "usage: workload NAME MODEL [batch:COUNT] [client:PARAM=VALUE] [PARAM=VALUE ...]\n");
        return 2;
    }
    read_setting(argc - 3, argv + 3, &setting);
    const struct workload_driver *driver = workload_driver_find(argv[1], &why);
    const struct workload_config config = {argv[2], &setting.client};
    enum err err = driver ? workload_open(driver, &config, &workload, &why) : why.code;
    if (err) {
        fprintf(stderr, "%s\n", why.text);
    } else {
        print_description(&workload);
        answer_all(&workload, &setting);
        workload_close(&workload);
    }
    params_release(&setting.client);
    params_release(&setting.query);
    return err ? 1 : 0;
}
