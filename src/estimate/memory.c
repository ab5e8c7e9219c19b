#include "estimate/memory.h"

#include <math.h>
#include <stdlib.h>

/* Bytes alive while each subgraph runs: what a tensor adds where it is made, it takes away after its last
 * use; the sums in between are the timeline. */
static void write_timeline(const struct partition *partition, const struct graph_widths *widths,
                           double *timeline)
{
    for (size_t i = 0; i < partition->tensor_count; i++) {
        const struct partition_tensor *tensor = &partition->tensors[i];
        double bytes = graph_bytes(&tensor->amount, widths);
        timeline[tensor->from] += bytes;
        timeline[tensor->to + 1] -= bytes;
    }
    for (size_t i = 1; i < partition->count; i++)
        timeline[i] += timeline[i - 1];
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

enum err memory_of(const struct partition *partition, const struct rates *rates, int devices,
                   double batch, struct estimate_memory *out)
{
    const struct graph_widths *widths = &rates->widths;
    double shared = graph_bytes(&partition->model_shared, widths);
    double heads = partition->heads_kv > 0 ? (double)partition->heads_kv : devices;
    *out = (struct estimate_memory){
        .weights = graph_bytes(&partition->model, widths) - shared + shared / devices,
        .kv_cache = graph_bytes(&partition->cache, widths) / fmin(devices, heads),
        .capacity = rates->capacity,
        .timeline = calloc(partition->count + 2, sizeof *out->timeline),
    };
    if (!out->timeline)
        return ERR_NO_MEMORY;
    write_timeline(partition, widths, out->timeline);
    for (size_t i = 0; i < partition->count; i++)
        if (out->timeline[i] > out->activations_peak) {
            out->activations_peak = out->timeline[i];
            out->peak_subgraph = i;
        }
    out->total_peak = out->weights + out->activations_peak + out->workspace_peak + out->kv_cache;
    out->fits = !(out->total_peak > out->capacity);
    out->largest_batch = largest_batch(out, batch > 0 ? batch : 1);
    return ERR_OK;
}
