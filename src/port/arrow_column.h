/* The columns of an Arrow stream as a tree: rows of them as JSON, and their values by column.  For arrow_read.c
 * alone.  A tree from arrow_column_new is freed by arrow_column_free; it keeps nothing of the schema. */
#ifndef IPW_PORT_ARROW_COLUMN_H
#define IPW_PORT_ARROW_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct ArrowArrayView;
struct ArrowSchema;
struct arrow_column;
struct arrow_path;
struct arrow_text;
struct json;

/* ERR_UNSUPPORTED names the column and its type when the type is not supported. */
enum err arrow_column_new(const struct ArrowSchema *schema, struct arrow_column **out,
                          struct error *why) MUST_USE;
void arrow_column_free(struct arrow_column *column);

/* As arrow_reader_find and arrow_reader_child, from the root of the tree. */
bool arrow_column_find(const struct arrow_column *root, const char *const *names, size_t count,
                       struct arrow_path *out);
const char *arrow_column_child(const struct arrow_column *root, const struct arrow_path *path,
                               size_t i);

/* Checks that the library's own validation omits: plausible lengths, and every buffer aligned and inside the message
 * body of `size` bytes. */
enum err arrow_column_check(const struct ArrowArrayView *view, const uint8_t *body, int64_t size,
                            struct error *why) MUST_USE;

/* Value `at` of the column, under `key` (NULL at the top and in arrays). */
void arrow_column_print(const struct arrow_column *column, const struct ArrowArrayView *view,
                        int64_t at, const char *key, struct json *json);

/* As arrow_reader_numbers, _texts and _known, of a batch that was checked. */
void arrow_column_numbers(const struct ArrowArrayView *batch, const struct arrow_path *path,
                          double *out, uint64_t *not_finite);
void arrow_column_texts(const struct ArrowArrayView *batch, const struct arrow_path *path,
                        struct arrow_text *out);
void arrow_column_known(const struct ArrowArrayView *batch, const struct arrow_path *path,
                        bool *out);

#endif
