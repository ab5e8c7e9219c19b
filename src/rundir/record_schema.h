/* The columns of a run's Arrow file: record_schema.def as a tree, which arrow_field_free takes back. */
#ifndef IPW_RUNDIR_RECORD_SCHEMA_H
#define IPW_RUNDIR_RECORD_SCHEMA_H

#include "core/err.h"

struct arrow_field;
struct json;
struct jv;

/* `metadata` is an object with an example value of each key that the dataset's items have; NULL for
 * none.  Strings become text, numbers doubles, the rest bools or text. */
enum err record_schema_new(const char *model, const struct jv *metadata, struct arrow_field **out,
                           struct error *why) MUST_USE;

/* The tree as Hugging Face's `features`. */
void record_schema_features(const struct arrow_field *root, const char *key, struct json *json);

#endif
