/* The columns of an Arrow stream as a tree, and a row of them as JSON; for arrow_read.c alone.
 * arrow_column_new gives a tree that arrow_column_free takes back; it keeps nothing of the schema. */
#ifndef IPW_PORT_ARROW_COLUMN_H
#define IPW_PORT_ARROW_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct ArrowArrayView;
struct ArrowSchema;
struct arrow_column;
struct arrow_place;
struct json;

/* ERR_UNSUPPORTED names the column and its type when it is one that we do not read. */
enum err arrow_column_new(const struct ArrowSchema *schema, struct arrow_column **out,
                          struct error *why) MUST_USE;
void arrow_column_free(struct arrow_column *column);

/* As arrow_reader_find and arrow_reader_child, from the tree's root. */
bool arrow_column_find(const struct arrow_column *root, const char *const *names, size_t count,
                       struct arrow_place *out);
const char *arrow_column_child(const struct arrow_column *root, const struct arrow_place *place,
                               size_t i);

/* What the library's own validation takes for granted: sane lengths, and every buffer aligned and
 * inside the message's body of `size` bytes. */
enum err arrow_column_check(const struct ArrowArrayView *view, const uint8_t *body, int64_t size,
                            struct error *why) MUST_USE;

/* Value `at` of the column, under `key` (NULL at the top and in arrays). */
void arrow_column_print(const struct arrow_column *column, const struct ArrowArrayView *view,
                        int64_t at, const char *key, struct json *json);

#endif
