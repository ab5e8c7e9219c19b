#include "rundir/run_table.h"
#include "report/html/comparison.h"

#include <stdlib.h>

#include "analysis/compare.h"
#include "core/json.h"
#include "core/text.h"
#include "report/text/compare_report.h"

/* More make a table of verdicts that nobody reads. */
enum { RUNS_COMPARED = 8 };

static enum err load(const char *directory, const char *model, struct run_table *out,
                     struct error *why)
{
    enum err err = run_table_load(directory, model, COMPARE_NEEDS, out, why);
    if (!err && out->failed == out->rows) {
        err = err_set(why, ERR_NO_DATA, "all %zu queries of %s failed", out->rows, directory);
        run_table_release(out);
    }
    return err;
}

static enum err compare_all(const struct run_table *baseline, const char *const *directories,
                            size_t count, const char *model, struct comparison *out,
                            struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        struct run_table table;
        err = load(directories[i], model, &table, why);
        if (!err) {
            err = compare_runs(baseline, &table, 0, &out[i], why);
            run_table_release(&table);
        }
    }
    return err ? err : compare_judge(out, count, why);
}

static enum err write(const char *const *directories, size_t count, const char *model,
                      struct text *out, struct error *why)
{
    struct run_table baseline;
    struct comparison *found = calloc(count, sizeof *found);
    enum err err = found ? load(directories[0], model, &baseline, why) : ERR_NO_MEMORY;
    if (!err) {
        err = compare_all(&baseline, directories + 1, count - 1, model, found, why);
        struct compare_report report = {.baseline = baseline.directory,
                                        .model = baseline.model,
                                        .hardware = run_fact_text(&baseline, "hardware_label"),
                                        .queries = baseline.rows,
                                        .comparisons = found,
                                        .count = count - 1};
        if (!err)
            compare_json(&report, out);
        run_table_release(&baseline);
    }
    free(found);
    return err;
}

enum err comparison_put(struct json *json, const char *const *directories, size_t count,
                        const char *model)
{
    struct text text = {0};
    struct error why = {0};
    enum err err = count > RUNS_COMPARED
                       ? err_set(&why, ERR_NO_DATA,
                                 "of more than %d runs none is compared with the others here: `ipw "
                                 "compare BASELINE RUN` does it",
                                 RUNS_COMPARED)
                       : write(directories, count, model, &text, &why);
    if (!err) {
        json_raw(json, "comparison", text_get(&text));
    } else if (err != ERR_NO_MEMORY) {
        json_object(json, "comparison");
        json_string(json, "missing", why.text);
        json_object_end(json);
        err = ERR_OK;
    }
    text_release(&text);
    return err;
}
