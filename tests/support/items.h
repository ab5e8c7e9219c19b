/* A dataset read to its end, for tests.  items_read fills, items_release frees. */
#ifndef TESTS_SUPPORT_ITEMS_H
#define TESTS_SUPPORT_ITEMS_H

#include "core/err.h"
#include "datasets/dataset.h"

enum { ITEMS_ERRORS_MAX = 16 };

struct items {
    struct item *all;
    size_t count, capacity;
    char errors[ITEMS_ERRORS_MAX][320]; /* of unusable rows, in their order */
    size_t error_count;
    char name[96], grader[48];
    int64_t reported; /* dataset.count */
    struct error why; /* why it did not open, or ended early */
};

/* Opens `name` with these parameters and reads all items. Returns the error of opening, or the one
 * that ended reading; an unusable row is not an error. */
enum err items_read(struct items *out, const char *name, const char *words, ...)
    __attribute__((format(printf, 3, 4)));
void items_release(struct items *items);

/* The metadata as JSON, valid until the next call. */
const char *item_metadata_text(const struct item *item);

#endif
