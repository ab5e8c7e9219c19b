/* Writing an Arrow IPC stream from rows of JSON, by nanoarrow.  A build without it says so in
 * arrow_write_available; the tree of fields needs no library.
 *
 * arrow_field_add gives fields that belong to their root, which arrow_field_free takes back whole.
 * arrow_writer_open gives a writer that arrow_writer_close takes back; it borrows the tree. */
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
    bool may_be_null; /* of a struct: null when a row lacks it, else a struct of nulls */
    struct arrow_field *first, *last; /* children of a struct, in order */
    struct arrow_field *next;
};

/* A field after the parent's others; without a parent the root, a struct.  NULL: out of memory. */
struct arrow_field *arrow_field_add(struct arrow_field *parent, const char *name,
                                    enum arrow_type type);
void arrow_field_free(struct arrow_field *root);

struct arrow_writer;

/* ERR_UNSUPPORTED, with what brings it, when this build cannot write Arrow. */
enum err arrow_write_available(struct error *why) MUST_USE;

/* Makes the file, or empties it.  key and value go into the schema's metadata. */
enum err arrow_writer_open(const char *path, const struct arrow_field *root, const char *key,
                           const char *value, struct arrow_writer **out, struct error *why)
    MUST_USE;

/* One row, an object with the tree's layout.  What is missing or of another type is null, but text
 * takes any value as JSON; bytes that are not UTF-8 become U+FFFD.  Rows are written in batches, so
 * memory stays the same however many there are. */
enum err arrow_writer_add(struct arrow_writer *writer, const struct jv *row, struct error *why)
    MUST_USE;

/* The rest and the end mark, synced to disk.  *fingerprint is made of all that was written. */
enum err arrow_writer_finish(struct arrow_writer *writer, uint64_t *fingerprint, struct error *why)
    MUST_USE;
void arrow_writer_close(struct arrow_writer *writer);

#endif
