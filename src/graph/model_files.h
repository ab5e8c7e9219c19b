/* Files that a model consists of: small ones are read whole, JSON with a bound on what it may take in
 * memory, and others are found beside them.  What is read is the caller's. */
#ifndef IPW_GRAPH_MODEL_FILES_H
#define IPW_GRAPH_MODEL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct jv;
struct text;

enum { MODEL_PATH_MAX = 1024 };

bool model_path_is_directory(const char *path);
bool model_path_is_file(const char *path);
bool model_path_ends(const char *path, const char *end);

/* The file `name` in the same directory as `path`, or in `path` where that is a directory; false when it
 * does not fit. */
bool model_path_beside(const char *path, const char *name, char *to, size_t size);

/* What people call it: the last part of the path that is no file of many models ("config.json"). */
void model_path_name(const char *path, char *to, size_t size);

/* As much of a text of a file as fits into a line of a message: what is no character becomes "?". */
struct model_plain {
    char text[80];
};
struct model_plain model_plain(const char *text);

/* The first `most` bytes of a file, or all; *length is that of the whole file. */
enum err model_file_begin(const char *path, size_t most, struct text *out, uint64_t *length,
                          struct error *why) MUST_USE;

/* One JSON object.  `name` is for messages; more values than any model has are refused before they take
 * memory. */
enum err model_json_parse(const char *name, const char *bytes, size_t length, struct jv **out,
                          struct error *why) MUST_USE;
enum err model_json_read(const char *path, struct jv **out, struct error *why) MUST_USE;

#endif
