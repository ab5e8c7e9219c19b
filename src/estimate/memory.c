#include "estimate/memory.h"

#include <math.h>
#include <stdlib.h>

/* By how many devices keys and values can be divided: by no more than they have heads. */
static double heads_divide(const struct partition *partition, int devices)
{
    double heads = partition->heads_kv > 0 ? (double)partition->heads_kv : devices;
    return fmin(devices, heads);
}

/* On each of the devices, while a subgraph runs. */
static double alive_bytes(const struct partition *partition, size_t subgraph,
                          const struct precision_widths *widths, int devices)
{
    const struct partition_alive *alive = &partition->alive[subgraph];
    double numbers = alive->activations + alive->columns / devices +
                     alive->heads_kv / heads_divide(partition, devices);
    return numbers * widths->activation + alive->fixed_bytes;
}

/* Batch does not change what the model weighs; everything else grows with it. */
static double largest_batch(const struct estimate_memory *memory, double batch)
{
    double one = (memory->activations_peak + memory->workspace_peak + memory->kv_cache) / batch;
    double room = memory->capacity - memory->weights;
    if (!is_known(memory->capacity) || !is_known(one) || one <= 0)
        return UNKNOWN;
    return room > 0 ? floor(room / one) : 0;
}

void memory_sums(const struct partition *partition, const struct rates *rates, int devices,
                 double batch, struct estimate_memory *out)
{
    const struct precision_widths *widths = &rates->widths;
    double shared = graph_bytes(&partition->model_sharded, widths);
    *out = (struct estimate_memory){
        .weights = graph_bytes(&partition->model, widths) - shared + shared / devices,
        .kv_cache = graph_bytes(&partition->cache, widths) / heads_divide(partition, devices),
        .capacity = rates->capacity,
    };
    for (size_t i = 0; i < partition->count; i++) {
        double bytes = alive_bytes(partition, i, widths, devices);
        if (bytes > out->activations_peak) {
            out->activations_peak = bytes;
            out->peak_subgraph = i;
        }
    }
    out->total_peak = out->weights + out->activations_peak + out->workspace_peak + out->kv_cache;
    out->fits = !(out->total_peak > out->capacity);
    out->largest_batch = largest_batch(out, batch > 0 ? batch : 1);
}

enum err memory_of(const struct partition *partition, const struct rates *rates, int devices,
                   double batch, struct estimate_memory *out)
{
    memory_sums(partition, rates, devices, batch, out);
    out->timeline = malloc((partition->count + 1) * sizeof *out->timeline);
    if (!out->timeline)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < partition->count; i++)
        out->timeline[i] = alive_bytes(partition, i, &rates->widths, devices);
    return ERR_OK;
}
