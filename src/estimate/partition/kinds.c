#include "estimate/partition/kinds.h"

#include <stdlib.h>
#include <string.h>

/* Of subgraphs with the same place in the table the last kind is remembered: one that comes again after another
 * took its place is a kind once more, which costs time and changes nothing. */
enum { PLACES = 1024, FIGURES = 25 };

struct figures {
    double values[FIGURES];
};

static size_t put_amount(const struct graph_amount *amount, double *to)
{
    const double all[] = {amount->weights,        amount->activations,  amount->cached,
                          amount->stored_weights, amount->stored_bytes, amount->fixed_bytes};
    memcpy(to, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* All that time and joules depend on. */
static void figures_of(const struct subgraph *subgraph, struct figures *out)
{
    const struct graph_cost *cost = &subgraph->cost;
    const double own[] = {
        cost->macs,      cost->elementwise,     subgraph->outputs,      subgraph->rows,
        subgraph->steps, subgraph->link_summed, subgraph->link_gathered};
    double *to = out->values;
    to += put_amount(&cost->in, to);
    to += put_amount(&cost->out, to);
    to += put_amount(&cost->weights, to);
    memcpy(to, own, sizeof own);
}

static uint64_t mix(const struct figures *figures)
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
    bool same = true;
    if (a->op != b->op || a->is_shared != b->is_shared || a->is_summed != b->is_summed)
        return false;
    figures_of(b, &others);
    for (size_t i = 0; i < FIGURES && same; i++)
        same = figures->values[i] == others.values[i];
    return same;
}

enum err find_kinds(struct partition *out)
{
    uint32_t last[PLACES] = {0}; /* the kind + 1; 0: none yet */
    out->kinds = malloc((out->count + 1) * sizeof *out->kinds);
    out->kind_of = malloc((out->count + 1) * sizeof *out->kind_of);
    if (!out->kinds || !out->kind_of)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < out->count; i++) {
        const struct subgraph *subgraph = &out->subgraphs[i];
        struct figures figures;
        figures_of(subgraph, &figures);
        uint32_t *place = &last[mix(&figures) % PLACES];
        if (!*place || !is_alike(subgraph, &out->subgraphs[out->kinds[*place - 1]], &figures)) {
            out->kinds[out->kind_count++] = (uint32_t)i;
            *place = (uint32_t)out->kind_count;
        }
        out->kind_of[i] = *place - 1;
    }
    return ERR_OK;
}
