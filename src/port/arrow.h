/* Arrow IPC files, with nanoarrow: a stream written from rows of JSON values, files read row by row or by columns. */
#ifndef IPW_PORT_ARROW_H
#define IPW_PORT_ARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct arrow_reader;
struct arrow_writer;
struct jv;

/* ---- writing ---- */

/* Fields belong to their root; arrow_field_free frees the whole tree.  A writer borrows the tree and is freed by
 * arrow_writer_close. */

enum arrow_type { ARROW_TEXT, ARROW_DOUBLE, ARROW_INT64, ARROW_BOOL, ARROW_STRUCT };

struct arrow_field {
    char *name;
    const char *
        former; /* key of rows of earlier versions, read where `name` is absent; borrowed; or NULL */
    enum arrow_type type;
    bool may_be_null;                 /* a missing struct is null rather than a struct of nulls */
    struct arrow_field *first, *last; /* children of a struct, in order */
    struct arrow_field *next;
};

/* Appends a field to the parent; without a parent it is the root, a struct.  NULL: out of memory. */
struct arrow_field *arrow_field_add(struct arrow_field *parent, const char *name,
                                    enum arrow_type type);
void arrow_field_free(struct arrow_field *root);

/* Removes structs without fields below the root, also those that become so: Parquet cannot store them, and some readers
 * of Arrow reject the whole file. */
void arrow_field_drop_empty(struct arrow_field *root);

/* A file of a run directory (port/file.h).  key and value become metadata of the schema. */
enum err arrow_writer_open(const char *directory, const char *name, const struct arrow_field *root,
                           const char *key, const char *value, struct arrow_writer **out,
                           struct error *why) MUST_USE;

/* Adds one row, an object with the layout of the tree.  A value that is missing or of another type becomes null,
 * except that a text field accepts any value as JSON; invalid UTF-8 becomes U+FFFD.  Rows are written in batches,
 * so memory is bounded. */
enum err arrow_writer_add(struct arrow_writer *writer, const struct jv *row, struct error *why)
    MUST_USE;

/* Writes the last batch and the end marker, and renames the file to its final name.  *fingerprint is the hash of
 * its content.  An unfinished file is removed. */
enum err arrow_writer_finish(struct arrow_writer *writer, uint64_t *fingerprint, struct error *why)
    MUST_USE;
void arrow_writer_close(struct arrow_writer *writer);

/* ---- reading ---- */

/* A reader from arrow_reader_open is freed by arrow_reader_close.
 *
 * Memory is bounded by the file's largest record batch.  A file that is damaged, truncated or uses what is not
 * supported (dictionaries, compression, the other byte order) is rejected with the reason. */

enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why) MUST_USE;

/* The same for an open file: takes ownership of the descriptor, also if it fails; the path is for messages. */
enum err arrow_reader_take(int fd, const char *path, struct arrow_reader **out, struct error *why)
    MUST_USE;

/* The next row as a JSON object, to be freed with jv_free; NULL at the end.  struct -> object, list -> array, utf8 ->
 * string, null -> null, timestamps and dates as ISO 8601 strings (UTC when the column has a time zone), binary as
 * base64 strings, a map as an object (as [key, value] pairs when its keys are not strings).  Integers keep all digits;
 * a float that is not finite is null. */
enum err arrow_reader_next(struct arrow_reader *reader, struct jv **row, struct error *why)
    MUST_USE;
void arrow_reader_close(struct arrow_reader *reader);

/* ---- by columns: for a few columns of a million rows ----
 *
 * A file is read either this way or row by row. */
enum arrow_kind { ARROW_IS_OTHER, ARROW_IS_NUMBER, ARROW_IS_TEXT, ARROW_IS_STRUCT };
enum { ARROW_PATH_MAX = 12 };

/* A column within structs; plain data, valid as long as the reader. */
struct arrow_path {
    enum arrow_kind kind; /* integers, floats and bools are numbers */
    unsigned depth;
    uint32_t child[ARROW_PATH_MAX];
};

/* The column of these nested names; false when there is none.  No names: the row itself. */
bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_path *out);

/* The name of child `i` of a struct; NULL past the last. */
const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_path *path,
                               size_t i);

/* The next rows; *rows is 0 at the end. */
enum err arrow_reader_batch(struct arrow_reader *reader, size_t *rows, struct error *why) MUST_USE;

/* The values of those rows.  Null is UNKNOWN, and so is a value that is not finite, which *not_finite counts. */
void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_path *path,
                          double *out, uint64_t *not_finite);

/* The bytes are valid until the next batch and are not NUL-terminated.  Null, or not a text, is NULL. */
struct arrow_text {
    const char *bytes;
    size_t length;
};
void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_path *path,
                        struct arrow_text *out);

/* Whether each value is not null, for any type. */
void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_path *path,
                        bool *out);

#endif
