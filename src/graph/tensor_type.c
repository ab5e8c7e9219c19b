#include "graph/tensor_type.h"

#include <stddef.h>

static const struct tensor_type TYPES[] = {
#define TENSOR_TYPE(number, name, numbers, bytes) {number, name, numbers, bytes},
#include "graph/tensor_types.def"
#undef TENSOR_TYPE
};

const struct tensor_type *tensor_type_numbered(uint32_t number)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (TYPES[i].number == number)
            return &TYPES[i];
    return NULL;
}
