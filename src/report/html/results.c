#include "report/html/results.h"

#include <string.h>

#include "analysis/analysis.h"
#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"

struct run_wanted results_need(void)
{
    struct run_wanted wanted = {0};
    for (size_t i = 0; ANALYSIS_DRIVERS[i]; i++) {
        wanted.numbers |= ANALYSIS_DRIVERS[i]->needs.numbers;
        wanted.words |= ANALYSIS_DRIVERS[i]->needs.words;
    }
    return wanted;
}

enum err results_of(const struct run_table *table, struct results *out, struct error *why)
{
    const struct params none = {0};
    struct run_table without_texts = *table; /* which the page has elsewhere */
    enum err err = ERR_OK;
    without_texts.excerpts = (struct run_excerpts){0};
    *out = (struct results){0};
    for (size_t i = 0; !err && ANALYSIS_DRIVERS[i] && out->count < RESULTS_MOST; i++) {
        struct text text = {0};
        if (ANALYSIS_DRIVERS[i]->of_layers)
            continue; /* the page draws those itself */
        err = analysis_run(ANALYSIS_DRIVERS[i], &(struct analysis_input){&without_texts, NULL},
                           &none, &text, why);
        if (err == ERR_NO_DATA)
            err = ERR_OK; /* the result says what is missing */
        if (!err)
            err = jv_parse(text_get(&text), text.length, &out->values[out->count], why);
        if (!err)
            out->names[out->count++] = ANALYSIS_DRIVERS[i]->name;
        text_release(&text);
    }
    if (err)
        results_release(out);
    return err;
}

void results_release(struct results *results)
{
    for (size_t i = 0; i < results->count; i++)
        jv_free(results->values[i]);
    *results = (struct results){0};
}

const struct jv *result_at(const struct results *results, const char *analysis, const char *path)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->names[i], analysis) == 0)
            return jv_path(results->values[i], path);
    return NULL;
}

enum err results_put(struct json *json, const struct results *results)
{
    enum err err = ERR_OK;
    json_object(json, "analyses");
    for (size_t i = 0; !err && i < results->count; i++) {
        struct text text = {0};
        err = jv_print(results->values[i], &text);
        if (!err)
            json_raw(json, results->names[i], text_get(&text));
        text_release(&text);
    }
    json_object_end(json);
    return err;
}
