/* The books of a decoder: each tensor is entered once, under its component, into the sums of its layer
 * and of the whole.  Nothing is kept but in the caller's decoder. */
#ifndef IPW_GRAPH_DECODER_WEIGH_H
#define IPW_GRAPH_DECODER_WEIGH_H

#include "graph/decoder.h"

/* What a tensor does, see decoder_tensors.def. */
enum decoder_role { ROLE_MATRIX, ROLE_EXPERTS, ROLE_NORM, ROLE_NORM_AFTER, ROLE_TABLE };

struct decoder_added {
    enum decoder_tensor tensor;
    bool is_bias;                     /* of that tensor: `columns` numbers */
    uint64_t columns, rows, matrices; /* 1 where there is no such dimension */
    uint64_t bytes;
    const struct tensor_type *type; /* NULL: of none that files have */
    bool is_stored;
};

/* `layer` may be DECODER_OUTSIDE, -1.  The layer's heads are known already. */
void decoder_weigh(struct decoder *decoder, int layer, const struct decoder_added *added);

const char *decoder_tensor_name(enum decoder_tensor tensor); /* "attn_q" */
enum decoder_component decoder_tensor_component(enum decoder_tensor tensor);

#endif
