/* What one agent query costs: its tokens and its tools, each amount once.
 *
 * A request costs what the program reported for it, else its tokens at list prices; a tool, what it reported.  What a
 * turn or a sub-agent reports is for everything in it, and replaces the amounts of its spans; what the whole query
 * reports counts if nothing else is known.  The total is the sum of the known parts, as in the Python IPW.  Reported
 * costs are in USD: they are not added to prices in another currency. */
#ifndef IPW_ATTRIBUTE_SPAN_COST_H
#define IPW_ATTRIBUTE_SPAN_COST_H

#include <stdbool.h>

struct prices;
struct trace_tree;

struct span_cost {        /* UNKNOWN where nothing is known */
    double input, output; /* tokens, at list prices */
    double tool;
    double total;            /* of the query */
    bool has_other_currency; /* costs were reported, and left out: the prices are not in USD */
};

/* Sets the cost of each span to its own part of the total; what was spent outside of turns becomes a part of the turn
 * before it, else of the first.  prices: NULL without; model: of requests without a name. */
void span_cost_take(struct trace_tree *tree, const struct prices *prices, const char *model,
                    struct span_cost *out);

/* Of one turn of the query; UNKNOWN. */
double span_cost_of_turn(const struct trace_tree *tree, int turn);

#endif
