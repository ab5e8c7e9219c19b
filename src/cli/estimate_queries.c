#include "cli/estimate_queries.h"

#include <string.h>

#include "rundir/run_table.h"
#include "core/text.h"
#include "core/units.h"

static bool read_query(const struct run_table *table, size_t row, struct estimate_query *out)
{
    double prompt = run_number(table, RUN_INPUT_TOKENS, row);
    double answer = run_number(table, RUN_OUTPUT_TOKENS, row);
    double joules = run_number(table, RUN_JOULES, row);
    char key[RUN_KEY_MAX];
    if (!run_completed(table, row) || !(prompt >= 1) || !(answer >= 1))
        return false;
    *out = (struct estimate_query){
        .question = {.model = table->model,
                     .setting = {.batch = 1, .tokens = (int64_t)prompt},
                     .output_tokens = (int64_t)answer},
        .latency_s = run_number(table, RUN_LATENCY, row),
        /* One of the Python IPW counts the GPUs or the chip. */
        .joules = is_known(joules) ? joules : run_number(table, RUN_BASIS_JOULES, row),
        .is_estimated = !strcmp(run_word(table, RUN_METHOD, row), "estimated"),
        .is_short = run_flag(table, RUN_LOW_CONFIDENCE, row) == 1,
        .is_alone = !(run_number(table, RUN_COMPANY, row) > 1),
    };
    str_format(out->label, sizeof out->label, "%s: %.0f + %.0f tokens", run_key(table, row, key),
               prompt, answer);
    return true;
}

enum err estimate_queries(const char *directory,
                          enum err (*take)(void *context, const struct estimate_query *query,
                                           struct error *why),
                          void *context, struct error *why)
{
    const struct run_wanted wanted = {RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT) |
                                          RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                                          RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_JOULES) |
                                          RUN_WANT(RUN_GPU_JOULES) | RUN_WANT(RUN_SOC_JOULES) |
                                          RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_COMPANY),
                                      RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_BASIS)};
    struct run_table table;
    enum err err = run_table_load(directory, NULL, wanted, &table, why);
    if (err)
        return err;
    for (size_t row = 0; !err && row < table.rows; row++) {
        struct estimate_query query;
        struct error inner = {0};
        if (!read_query(&table, row, &query))
            continue;
        err = take(context, &query, &inner);
        if (err)
            err_set(why, err, "%s: %s (--model names the model)", directory, inner.text);
    }
    run_table_release(&table);
    return err;
}
