/* The cost of a pass over all components: tests compare it with graphs and with files. */
#ifndef IPW_SUPPORT_DECODER_TOTAL_H
#define IPW_SUPPORT_DECODER_TOTAL_H

#include "graph/decoder_cost.h"

static inline struct decoder_cost decoder_cost_total(const struct decoder *decoder,
                                                     const struct decoder_step *step)
{
    struct decoder_cost sum = {0};
    for (int i = 0; i < DECODER_COMPONENT_COUNT; i++) {
        struct decoder_cost one = decoder_cost_component(decoder, step, (enum decoder_component)i);
        sum.matrix_flops += one.matrix_flops;
        sum.elementwise_flops += one.elementwise_flops;
        sum.weight_bytes += one.weight_bytes;
        sum.activation_read_bytes += one.activation_read_bytes;
        sum.activation_write_bytes += one.activation_write_bytes;
        sum.cache_read_bytes += one.cache_read_bytes;
        sum.cache_write_bytes += one.cache_write_bytes;
    }
    return sum;
}

#endif
