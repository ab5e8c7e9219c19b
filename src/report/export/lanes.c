#include "report/export/lanes.h"

#include <stdlib.h>

#include "core/grow.h"

enum err lanes_take(struct lanes *lanes, int64_t from, int64_t to, size_t *lane)
{
    size_t best = lanes->count;
    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->ends[i] <= from && (best == lanes->count || lanes->ends[i] > lanes->ends[best]))
            best = i;
    if (best == lanes->count) {
        int64_t *ends = grow(lanes->ends, &lanes->capacity, lanes->count, sizeof *ends);
        if (!ends)
            return ERR_NO_MEMORY;
        lanes->ends = ends;
        lanes->count++;
    }
    lanes->ends[best] = to;
    *lane = best;
    return ERR_OK;
}

void lanes_release(struct lanes *lanes)
{
    free(lanes->ends);
    *lanes = (struct lanes){0};
}
