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

struct level {
    size_t width;
    double largest; /* FLOPs of one subgraph */
};

static void sum_levels(const struct partition *partition, struct level *levels,
                       struct estimate_concurrency *out)
{
    double largest = 0, all = graph_flops(&partition->total);
    for (size_t i = 0; i < partition->count; i++) {
        const struct subgraph *subgraph = &partition->subgraphs[i];
        struct level *level = &levels[subgraph->level];
        double flops = graph_flops(&subgraph->cost);
        level->width++;
        level->largest = flops > level->largest ? flops : level->largest;
        out->levels = subgraph->level + 1 > out->levels ? subgraph->level + 1 : out->levels;
        out->max_width = level->width > out->max_width ? level->width : out->max_width;
    }
    for (size_t i = 0; i < out->levels; i++) {
        largest += levels[i].largest;
        out->wide_levels += levels[i].width > 1;
    }
    out->stage_parallelism = largest > 0 ? all / largest : 1;
}

/* Samples of a batch need nothing of each other, so its way is as long as one sample's. */
enum err concurrency_of(const struct partition *partition, double batch,
                        struct estimate_concurrency *out)
{
    double *until = malloc((partition->count + 1) * sizeof *until);
    struct level *levels = calloc(partition->count + 1, sizeof *levels);
    enum err err = until && levels ? ERR_OK : ERR_NO_MEMORY;
    *out = (struct estimate_concurrency){0};
    if (!err) {
        double all = graph_flops(&partition->total);
        sum_levels(partition, levels, out);
        out->critical_path_flops = longest_way(partition, until);
        out->parallelism = out->critical_path_flops > 0 ? all / out->critical_path_flops : 1;
        out->batch_parallelism = out->parallelism * batch;
    }
    free(until);
    free(levels);
    return err;
}
