/* How the numbers of a tensor are stored, and how many bytes they take.  The table is constant and
 * lasts as long as the program. */
#ifndef IPW_GRAPH_TENSOR_TYPE_H
#define IPW_GRAPH_TENSOR_TYPE_H

#include <stdint.h>

struct tensor_type {
    uint32_t number;        /* as GGUF files have it */
    const char *name;       /* "Q4_K" */
    uint32_t block_numbers; /* stored together; a row has whole blocks */
    uint32_t block_bytes;
};

/* NULL when no type has this number. */
const struct tensor_type *tensor_type_numbered(uint32_t number);

#endif
