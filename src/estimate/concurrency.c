#include "estimate/concurrency.h"

#include <stdlib.h>

/* The most FLOPs of a way that ends with each subgraph; each comes after those that it needs. */
static double longest_way(const struct partition *partition, double *until)
{
    double longest = 0;
    for (size_t i = 0; i < partition->count; i++) {
        const struct subgraph *subgraph = &partition->subgraphs[i];
        double before = 0;
        for (uint32_t k = 0; k < subgraph->before_count; k++) {
            double one = until[partition->before[subgraph->first_before + k]];
            before = one > before ? one : before;
        }
        until[i] = before + graph_flops(&subgraph->cost);
        longest = until[i] > longest ? until[i] : longest;
    }
    return longest;
}

enum err concurrency_of(const struct partition *partition, struct estimate_concurrency *out)
{
    size_t count = partition->count;
    double *until = malloc((count + 1) * sizeof *until);
    size_t *width = calloc(count + 1, sizeof *width);
    enum err err = until && width ? ERR_OK : ERR_NO_MEMORY;
    *out = (struct estimate_concurrency){0};
    for (size_t i = 0; !err && i < count; i++) {
        size_t level = partition->subgraphs[i].level;
        width[level]++;
        out->levels = level + 1 > out->levels ? level + 1 : out->levels;
        out->max_width = width[level] > out->max_width ? width[level] : out->max_width;
    }
    if (!err) {
        double all = graph_flops(&partition->total);
        out->critical_path_flops = longest_way(partition, until);
        out->parallelism = out->critical_path_flops > 0 ? all / out->critical_path_flops : 1;
    }
    free(until);
    free(width);
    return err;
}
