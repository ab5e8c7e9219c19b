#include "attribute/span_cost.h"

#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "metrics/prices.h"
#include "trace/trace.h"

static bool is_request(const struct trace_span *span)
{
    return span->type == TRACE_INFERENCE || span->type == TRACE_SUBMODEL;
}

static bool is_container(const struct trace_span *span)
{
    return span->type == TRACE_TURN || span->type == TRACE_AGENT;
}

static bool is_in_usd(const struct prices *prices)
{
    return !prices || str_equal_nocase(prices_currency(prices), "USD");
}

/* ---- each amount once ---- */

static bool leave_out_reported(struct trace_tree *tree)
{
    bool any = false;
    for (size_t i = 0; i < tree->count; i++) {
        any = any || is_known(tree->spans[i].facts.cost_usd);
        tree->spans[i].facts.cost_usd = UNKNOWN;
    }
    return any;
}

/* Marks the spans whose cost is part of what a turn or a sub-agent around them reported.  Parents come first. */
static bool *find_covered(const struct trace_tree *tree)
{
    bool *covered = xcalloc(tree->count + 1, sizeof *covered);
    for (size_t i = 1; i < tree->count; i++) {
        int parent = tree->spans[i].parent;
        if (parent <= 0)
            continue;
        const struct trace_span *around = &tree->spans[parent];
        covered[i] = covered[parent] || (is_container(around) && is_known(around->facts.cost_usd));
    }
    return covered;
}

static void price_request(struct trace_span *span, const struct prices *prices, const char *model,
                          struct span_cost *out)
{
    const struct trace_facts *facts = &span->facts;
    struct token_cost cost =
        prices_tokens(prices, span->name[0] ? span->name : model, facts->input_tokens,
                      facts->cached_tokens, facts->output_tokens);
    double known = cost.input;
    add_known(&out->input, cost.input);
    add_known(&out->output, cost.output);
    add_known(&known, cost.output);
    span->facts.cost_usd = known;
}

static void take_span(struct trace_span *span, const struct prices *prices, const char *model,
                      struct span_cost *out)
{
    if (is_request(span) && !is_known(span->facts.cost_usd) && prices)
        price_request(span, prices, model, out);
    if (span->type == TRACE_TOOL)
        add_known(&out->tool, span->facts.cost_usd);
    add_known(&out->total, span->facts.cost_usd);
}

/* ---- turns ---- */

/* The turn of the query that a time belongs to: the one that began last, else the first; NULL without turns. */
static struct trace_span *turn_at(const struct trace_tree *tree, nanos t)
{
    struct trace_span *found = NULL;
    for (size_t i = 1; i < tree->count; i++) {
        struct trace_span *span = &tree->spans[i];
        if (span->type == TRACE_TURN && span->parent == 0 && (!found || span->from <= t))
            found = span;
    }
    return found;
}

static void move_to_turns(struct trace_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct trace_span *span = &tree->spans[i];
        struct trace_span *turn = span->turn < 0 ? turn_at(tree, span->from) : NULL;
        if (!turn)
            continue;
        add_known(&turn->facts.cost_usd, span->facts.cost_usd);
        span->facts.cost_usd = UNKNOWN;
    }
}

double span_cost_of_turn(const struct trace_tree *tree, int turn)
{
    double sum = UNKNOWN;
    for (size_t i = 0; i < tree->count; i++)
        if (tree->spans[i].turn == turn)
            add_known(&sum, tree->spans[i].facts.cost_usd);
    return sum;
}

void span_cost_take(struct trace_tree *tree, const struct prices *prices, const char *model,
                    struct span_cost *out)
{
    *out = (struct span_cost){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, false};
    if (!is_in_usd(prices))
        out->has_other_currency = leave_out_reported(tree);
    bool *covered = find_covered(tree);
    for (size_t i = 1; i < tree->count; i++) {
        if (covered[i])
            tree->spans[i].facts.cost_usd = UNKNOWN;
        else
            take_span(&tree->spans[i], prices, model, out);
    }
    free(covered);
    struct trace_facts *all = &tree->spans[0].facts;
    if (is_known(out->total))
        all->cost_usd = UNKNOWN;
    else
        out->total = all->cost_usd;
    move_to_turns(tree);
}
