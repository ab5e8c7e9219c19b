/* Writing an Arrow IPC stream from rows of JSON, with nanoarrow.  In a build without it arrow_write_available says so;
 * the tree of fields needs no library.
 *
 * Fields belong to their root; arrow_field_free frees the whole tree.  A writer borrows the tree and is freed by
 * arrow_writer_close. */
#ifndef IPW_PORT_ARROW_WRITE_H
#define IPW_PORT_ARROW_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

struct jv;

enum arrow_type { ARROW_TEXT, ARROW_DOUBLE, ARROW_INT64, ARROW_BOOL, ARROW_STRUCT };

struct arrow_field {
    char *name;
    enum arrow_type type;
    bool may_be_null;                 /* a missing struct is null rather than a struct of nulls */
    struct arrow_field *first, *last; /* children of a struct, in order */
    struct arrow_field *next;
};

/* Appends a field to the parent; without a parent it is the root, a struct.  NULL: out of memory. */
struct arrow_field *arrow_field_add(struct arrow_field *parent, const char *name,
                                    enum arrow_type type);
void arrow_field_free(struct arrow_field *root);

struct arrow_writer;

/* ERR_UNSUPPORTED, with how to install it, when this build cannot write Arrow. */
enum err arrow_write_available(struct error *why) MUST_USE;

/* A file of a run directory (port/file.h).  key and value become metadata of the schema. */
enum err arrow_writer_open(const char *directory, const char *name, const struct arrow_field *root,
                           const char *key, const char *value, struct arrow_writer **out,
                           struct error *why) MUST_USE;

/* Adds one row, an object with the layout of the tree.  A value that is missing or of another type is null, but a text
 * field takes any value as JSON; invalid UTF-8 becomes U+FFFD.  Rows are written in batches, so that memory is bounded. */
enum err arrow_writer_add(struct arrow_writer *writer, const struct jv *row, struct error *why)
    MUST_USE;

/* Writes the last batch and the end marker, after which the file has its name.  *fingerprint is the hash of all of it.
 * A file that was not finished leaves nothing behind. */
enum err arrow_writer_finish(struct arrow_writer *writer, uint64_t *fingerprint, struct error *why)
    MUST_USE;
void arrow_writer_close(struct arrow_writer *writer);

#endif
