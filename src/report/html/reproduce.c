#include "report/html/reproduce.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"

/* As a shell takes it: in single quotes where it must be. */
static void add_word(struct text *out, const char *word)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:=+@%,";
    if (word[0] && strspn(word, PLAIN) == strlen(word)) {
        text_add(out, word);
        return;
    }
    text_add(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            text_add(out, "'\\''");
        else
            text_add_bytes(out, word, 1);
    text_add(out, "'");
}

static void add_option(struct text *out, const char *option, const char *value)
{
    text_addf(out, " %s ", option);
    add_word(out, value);
}

/* A value as an option takes it; false for null and what is no plain value. */
static bool value_text(const struct jv *value, struct text *out)
{
    double number = jv_number(value);
    text_clear(out);
    if (jv_text(value))
        text_add(out, jv_text(value));
    else if (is_known(number))
        text_addf(out, "%.15g", number);
    else if (jv_is_bool(value))
        text_add(out, jv_truth(value, false) ? "true" : "false");
    else
        return false;
    return true;
}

static void add_params(struct text *out, const char *option, const struct jv *params)
{
    struct text word = {0}, value = {0};
    for (const struct jv *child = jv_first(params); child; child = jv_next(child)) {
        if (!jv_key(child) || !value_text(child, &value))
            continue;
        text_clear(&word);
        text_addf(&word, "%s=%s", jv_key(child), text_get(&value));
        add_option(out, option, text_get(&word));
    }
    text_release(&word);
    text_release(&value);
}

/* Settings that have the default's value are left out. */
static void add_settings(struct text *out, const struct jv *config)
{
    static const struct {
        const char *key, *option, *otherwise;
    } ROWS[] = {
        {"client_id", "--client", ""},
        {"client_base_url", "--client-base-url", ""},
        {"model", "--model", ""},
        {"dataset_id", "--dataset", ""},
        {"max_queries", "--max-queries", ""},
        {"max_concurrency", "--concurrency", "1"},
        {"rate", "--rate", ""},
        {"seed", "--seed", "0"},
        {"repeat", "--repeat", "1"},
        {"warmup_queries", "--warmup-queries", "3"},
        {"idle_s", "--idle", "2"},
        {"timeout_s", "--timeout", "600"},
        {"retries", "--retries", "3"},
        {"system", "--system", ""},
        {"template", "--template", ""},
        {"grader", "--grader", ""},
        {"decode_weight", "--decode-weight", "64"},
        {"judge_client", "--eval-client", ""},
        {"judge_base_url", "--eval-base-url", ""},
        {"judge_model", "--eval-model", ""},
    };
    struct text value = {0};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (value_text(jv_get(config, ROWS[i].key), &value) &&
            strcmp(text_get(&value), ROWS[i].otherwise) != 0)
            add_option(out, ROWS[i].option, text_get(&value));
    text_release(&value);
}

void command_put(struct json *json, const struct jv *summary)
{
    const struct jv *config = jv_get(summary, "profiler_config");
    struct text command = {0};
    if (!jv_text(jv_get(config, "client_id")) || !jv_get(summary, "ipw")) {
        json_null(json, "command");
        return;
    }
    text_add(&command, "ipw profile");
    add_settings(&command, config);
    add_params(&command, "--dataset-param", jv_get(config, "dataset_params"));
    add_params(&command, "--client-param", jv_get(config, "client_params"));
    add_params(&command, "--param", jv_get(config, "additional_parameters"));
    json_string(json, "command", text_get(&command));
    text_release(&command);
}
