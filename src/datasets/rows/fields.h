/* Finding a row's fields.  Everything points into the row or is the caller's.
 *
 * A field is named by its key, or by a path with dots ("meta.topic", "turns.0.text").  Several names
 * with "|" between them stand for the first that the row has with a value. */
#ifndef IPW_DATASETS_ROWS_FIELDS_H
#define IPW_DATASETS_ROWS_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

struct jv;
struct text;

/* NULL when the row has none of them; a null only when none has a value. */
const struct jv *field_find(const struct jv *row, const char *names);

/* The next of several names: copies it to *name and returns the rest, NULL after the last.  A name
 * that does not fit is cut, and then found nowhere. */
const char *field_name_next(const char *names, char *name, size_t size);

/* Missing, null, "", [] or {}. */
bool field_is_empty(const struct jv *value);

/* A value as it is shown to a model: a string as it is, an array's elements one a line, all else as
 * JSON. */
void field_add_text(const struct jv *value, struct text *out);

/* "question, options, answer": for the message about a field that is not there. */
void field_list(const struct jv *row, struct text *out);

#endif
