#include "report/html/excerpts.h"

#include "rundir/run_table.h"
#include "core/json.h"
#include "report/html/queries.h"

void excerpts_put(struct json *json, const struct run_table *table, size_t most_listed)
{
    const struct run_excerpts *excerpts = &table->excerpts;
    size_t stride = queries_stride(table, most_listed);
    json_array(json, "excerpts");
    for (size_t i = 0; i < excerpts->count; i++) {
        const struct run_excerpt *excerpt = &excerpts->items[i];
        size_t row = i * excerpts->stride;
        if (row % stride || (!excerpt->problem && !excerpt->answer))
            continue;
        json_object(json, NULL);
        json_integer(json, "at", (int64_t)(row / stride));
        json_string(json, "problem", excerpt->problem);
        json_string(json, "expected", excerpt->expected);
        json_string(json, "answer", excerpt->answer);
        json_object_end(json);
    }
    json_array_end(json);
}
