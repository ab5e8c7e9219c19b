/* The list of benchmarks, and the rules for tables of accuracies. */
#include "catalog/benchmark.h"

#include "core/jv.h"
#include "core/text.h"

#define BENCHMARK(name, title, sign) {name, title, sign},
const struct benchmark BENCHMARKS[] = {
#include "catalog/benchmarks.def"
};
#undef BENCHMARK
const size_t BENCHMARK_COUNT = COUNT_OF(BENCHMARKS);

const struct benchmark *benchmark_find(const char *name)
{
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        if (str_equal(BENCHMARKS[i].name, name))
            return &BENCHMARKS[i];
    return NULL;
}

/* ---- tables ---- */

const struct json_field ACCURACY_TABLE_FIELDS[] = {
    BIND_TEXT(accuracy_table, benchmark, "benchmark", .flags = FIELD_REQUIRED),
    BIND_TEXT(accuracy_table, source, "source", .flags = FIELD_REQUIRED),
    BIND_TEXT(accuracy_table, note, "note"),
    BIND_JSON(accuracy_table, percent, "percent", .flags = FIELD_REQUIRED),
    {0},
};

enum err accuracy_table_check(const struct accuracy_table *table, struct error *why)
{
    if (!benchmark_find(table->benchmark))
        return err_set(why, ERR_BAD_VALUE,
                       "benchmark: '%.60s' is not listed (src/catalog/benchmarks.def)",
                       table->benchmark);
    if (!jv_first_member(table->percent.value))
        return err_set(why, ERR_BAD_VALUE, "percent: has no models");
    JV_EACH (member, jv_first_member(table->percent.value)) {
        double percent = jv_number(member);
        if (!(percent > 0 && percent < 100))
            return err_set(why, ERR_BAD_VALUE, "percent.%.80s: is not between 0 and 100",
                           jv_key(member));
    }
    return ERR_OK;
}
