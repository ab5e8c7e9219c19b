/* Nodes gathered into pieces, each of which will be a subgraph.  pieces_init fills a struct that
 * pieces_release takes back; it points into the flow.
 *
 * Why nothing ever runs in a circle: a piece is one of two forms.  Of the first, only its last node is
 * read from outside, so that it may run where that node stands.  The second, siblings, reads one tensor
 * alone, so that it may run where its first node stands.  `place` is that node, and the order of places
 * is an order in which every piece comes after those that it needs. */
#ifndef IPW_ESTIMATE_PARTITION_PIECES_H
#define IPW_ESTIMATE_PARTITION_PIECES_H

#include "estimate/partition/flow.h"

enum piece_kind {
    PIECE_CLOSED,    /* takes nothing more */
    PIECE_PRODUCT,   /* a convolution, linear or matmul and what follows number by number */
    PIECE_POINTWISE, /* number by number from the start */
    PIECE_NORM,      /* a norm and its activation */
};

struct piece {
    enum piece_kind kind;
    node_id head;  /* the node that it began with */
    node_id tail;  /* the one that others read; GRAPH_NONE: several, as of siblings */
    node_id place; /* see above */
    node_id last;  /* of its list in pieces.next, which begins with `head` */
    tensor_id
        source;    /* all that it reads beside the model; GRAPH_NONE: more than one, or no linear */
    uint32_t size; /* nodes; 0: taken into another piece */
    uint32_t products; /* of them, linears that stand side by side */
    bool has_norm;
};

struct pieces {
    const struct flow *flow;
    struct piece *items;
    size_t count;
    int32_t *of;   /* of each node: its piece; GRAPH_NONE of views */
    node_id *next; /* of each node: the next of its piece; not in order */
};

enum err pieces_init(const struct flow *flow, struct pieces *out) MUST_USE; /* none yet */
void pieces_release(struct pieces *pieces);

/* ---- what the rules of fusion build with ---- */

enum { PIECE_MOST_NODES = 16 };

/* A new piece of one node. */
struct piece *pieces_begin(struct pieces *pieces, node_id node);
/* A node that reads the tail of a piece becomes its tail. */
void pieces_append(struct pieces *pieces, struct piece *piece, node_id node);
/* All nodes of one go into the other. */
void pieces_merge(struct pieces *pieces, struct piece *into, struct piece *from);

/* The piece whose tail makes this tensor for `reader` alone; NULL when another reads it too, when it goes
 * out of the model, or when the piece is full. */
struct piece *pieces_before(const struct pieces *pieces, tensor_id root, node_id reader);

/* Numbers of a node's first output. */
double pieces_outputs(const struct pieces *pieces, node_id node);

#endif
