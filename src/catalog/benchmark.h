/* Benchmarks (benchmarks.def), and tables of published accuracies in data/models. */
#ifndef IPW_CATALOG_BENCHMARK_H
#define IPW_CATALOG_BENCHMARK_H

#include <stddef.h>

#include "core/json_bind.h"

struct benchmark {
    const char *name, *title;
    int sign; /* 1: higher is better, -1: lower */
};
extern const struct benchmark BENCHMARKS[];
extern const size_t BENCHMARK_COUNT;
/* NULL: none of this name. */
const struct benchmark *benchmark_find(const char *name);

/* Figures of one benchmark and source, by model. */
struct accuracy_table {
    const char *benchmark, *source, *note; /* note: NULL, none */
    struct json_any percent;               /* {"owner/model": percent} */
};
extern const struct json_field ACCURACY_TABLE_FIELDS[];
enum err accuracy_table_check(const struct accuracy_table *table, struct error *why) MUST_USE;

#endif
