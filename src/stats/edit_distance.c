/* Myers' bit-parallel algorithm: a column of the matrix of distances is kept as the differences between its rows, +1, 0
 * or -1, in two bits each, and 64 rows are advanced by one element of b with a few operations on words. */
#include "stats/edit_distance.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/xalloc.h"

enum { BITS = 64 };

/* The places of each element of the pattern, sorted by element. */
struct place {
    uint32_t element;
    size_t at;
};

/* A block of 64 rows: those in which the distance increases by 1 from the row above, and those in which it decreases. */
struct block {
    uint64_t up, down;
};

struct column {
    struct place *places;
    size_t count; /* rows: elements of the pattern */
    struct block *blocks;
    uint64_t *equal; /* rows whose element is the current one of b; zero between elements */
    size_t block_count;
};

static int by_element(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->element != b->element)
        return a->element < b->element ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static void column_init(struct column *column, const uint32_t *pattern, size_t count)
{
    *column = (struct column){.count = count, .block_count = (count + BITS - 1) / BITS};
    column->places = xreallocarray(NULL, count, sizeof *column->places);
    column->blocks = xreallocarray(NULL, column->block_count, sizeof *column->blocks);
    column->equal = xcalloc(column->block_count, sizeof *column->equal);
    for (size_t i = 0; i < count; i++)
        column->places[i] = (struct place){pattern[i], i};
    qsort(column->places, count, sizeof *column->places, by_element);
    for (size_t i = 0; i < column->block_count; i++)
        column->blocks[i] = (struct block){.up = UINT64_MAX}; /* row i has distance i */
}

static void column_release(struct column *column)
{
    free(column->places);
    free(column->blocks);
    free(column->equal);
}

/* The first place of an element; the end if it does not occur. */
static size_t first_place(const struct column *column, uint32_t element)
{
    size_t low = 0, high = column->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (column->places[middle].element < element)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Advances a block.  `carry` is how the row above the block changed, and returned how its last row did: the row of bit
 * `last`. */
static int advance_block(struct block *block, uint64_t equal, int carry, unsigned last)
{
    uint64_t vertical = equal | block->down;
    uint64_t above = carry < 0 ? equal | 1 : equal;
    uint64_t horizontal = (((above & block->up) + block->up) ^ block->up) | above;
    uint64_t up = block->down | ~(horizontal | block->up);
    uint64_t down = block->up & horizontal;
    int change = (int)(up >> last & 1) - (int)(down >> last & 1);
    up = up << 1 | (carry > 0);
    down = down << 1 | (carry < 0);
    block->up = down | ~(vertical | up);
    block->down = up & vertical;
    return change;
}

/* How the distance in the last row changes with the next element of b. */
static int advance(struct column *column, uint32_t element)
{
    int carry = 1; /* row 0: the number of elements of b */
    size_t from = first_place(column, element), end = from;
    for (; end < column->count && column->places[end].element == element; end++)
        column->equal[column->places[end].at / BITS] |= UINT64_C(1)
                                                        << column->places[end].at % BITS;
    for (size_t i = 0; i < column->block_count; i++) {
        bool is_last = i + 1 == column->block_count;
        unsigned last = is_last ? (unsigned)((column->count - 1) % BITS) : BITS - 1;
        carry = advance_block(&column->blocks[i], column->equal[i], carry, last);
    }
    for (size_t i = from; i < end; i++)
        column->equal[column->places[i].at / BITS] = 0;
    return carry;
}

size_t edit_distance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    struct column column;
    while (a_count && b_count && a[0] == b[0])
        a++, b++, a_count--, b_count--;
    while (a_count && b_count && a[a_count - 1] == b[b_count - 1])
        a_count--, b_count--;
    if (!a_count || !b_count)
        return a_count + b_count;
    column_init(&column, a, a_count);
    size_t distance = a_count;
    for (size_t i = 0; i < b_count; i++)
        distance += (size_t)advance(&column, b[i]);
    column_release(&column);
    return distance;
}
