/* Equal subgraphs of a partition, and those that repeat subgraphs of an earlier pass: time and energy of equal ones are
 * computed once. */
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "estimate/partition.h"

enum { AMOUNTS = 7, FIGURES = 53 };

struct figures {
    double values[FIGURES];
};

static bool is_equal(const double *a, const double *b, size_t count)
{
    size_t i = 0;
    while (i < count && a[i] == b[i])
        i++;
    return i == count;
}

static size_t put_amount(const struct graph_amount *amount, double *to)
{
    const double all[] = {amount->weights,        amount->activations,  amount->cached,
                          amount->stored_weights, amount->stored_bytes, amount->fixed_bytes,
                          amount->quantized};
    _Static_assert(COUNT_OF(all) == AMOUNTS, "one entry per amount");
    memcpy(to, all, sizeof all);
    return AMOUNTS;
}

/* Everything that time and energy depend on. */
static void figures_of(const struct subgraph *subgraph, struct figures *out)
{
    const struct graph_cost *cost = &subgraph->cost;
    const struct subgraph_shape *shape = &subgraph->shape;
    const double own[] = {
        cost->macs,         cost->elementwise,     subgraph->outputs,      subgraph->rows,
        subgraph->steps,    subgraph->all_reduced, subgraph->all_gathered, shape->groups,
        shape->channels,    shape->taps,           shape->inner,           shape->heads,
        shape->repeats,     shape->tokens,         shape->sequences,       shape->has_bias,
        shape->is_copied,   shape->has_windows,    shape->is_causal,       shape->is_broadcast,
        shape->stored_type, shape->is_unfused,     shape->dilation,        shape->is_resized,
        shape->keys,        shape->experts,        shape->is_clamped,      shape->is_in_fp32,
        shape->reordered,   shape->window_rank,    shape->is_folded,       shape->positions};
    /* cppcheck-suppress ctuuninitvar ; the address of an array */
    double *to = out->values;
    to += put_amount(&cost->in, to);
    to += put_amount(&cost->out, to);
    to += put_amount(&cost->weights, to);
    _Static_assert(3 * AMOUNTS + COUNT_OF(own) == FIGURES, "one entry per figure");
    memcpy(to, own, sizeof own);
}

static uint64_t hash(const struct figures *figures)
{
    uint64_t sum = 0, bits;
    for (size_t i = 0; i < FIGURES; i++) {
        memcpy(&bits, &figures->values[i], sizeof bits);
        sum = (sum ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

static bool is_alike(const struct subgraph *a, const struct subgraph *b,
                     const struct figures *figures)
{
    struct figures others;
    if (a->op != b->op || a->has_precision != b->has_precision || a->precision != b->precision ||
        a->is_sharded != b->is_sharded || a->is_row_parallel != b->is_row_parallel ||
        a->is_by_head != b->is_by_head)
        return false;
    figures_of(b, &others);
    return is_equal(figures->values, others.values, FIGURES);
}

/* Layers of a decoder are equal, so their time and energy are computed once. */
void unique_table_add(struct unique_table *table, uint32_t index)
{
    struct partition *out = table->out;
    const struct subgraph *subgraph = &out->subgraphs[index];
    struct figures figures;
    figures_of(subgraph, &figures);
    uint32_t *slot = &table->slots[hash(&figures) % UNIQUE_SLOTS];
    if (!*slot || !is_alike(subgraph, &out->subgraphs[out->unique[*slot - 1]], &figures)) {
        out->unique[out->unique_count++] = index;
        *slot = (uint32_t)out->unique_count;
    }
    out->unique_of[index] = *slot - 1;
}

/* Whether a device has the same rates for both, and tensor parallelism applies to both or neither. */
static bool is_same_model(const struct partition *a, const struct partition *b)
{
    const struct graph_precision *file = &a->graph->file, *other = &b->graph->file;
    double own[AMOUNTS], others[AMOUNTS];
    put_amount(&a->model, own);
    put_amount(&b->model, others);
    return a->is_causal == b->is_causal && a->is_decoder == b->is_decoder &&
           a->layers == b->layers && a->heads == b->heads && a->heads_kv == b->heads_kv &&
           a->features == b->features && (a->sharded_macs > 0) == (b->sharded_macs > 0) &&
           file->is_known == other->is_known && file->products == other->products &&
           file->floats == other->floats && is_equal(own, others, AMOUNTS);
}

void partition_continue(struct partition *partition, const struct partition *before)
{
    if (!is_same_model(partition, before))
        return;
    partition->repeats = xcalloc(partition->unique_count + 1, sizeof *partition->repeats);
    for (size_t k = 0; k < partition->unique_count && k < before->unique_count; k++) {
        const struct subgraph *own = &partition->subgraphs[partition->unique[k]];
        const struct subgraph *other = &before->subgraphs[before->unique[k]];
        struct figures figures;
        figures_of(own, &figures);
        partition->repeats[k] =
            own->component == other->component && is_alike(own, other, &figures);
    }
}
