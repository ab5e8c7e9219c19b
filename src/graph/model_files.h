/* The files of a model: paths in the same directory, mapped files, JSON with bounded memory, and printable names.  The
 * caller owns what is returned. */
#ifndef IPW_GRAPH_MODEL_FILES_H
#define IPW_GRAPH_MODEL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"

struct jv;

bool model_path_ends(const char *path, const char *end); /* ignoring case */

/* The path of the file `name` in the same directory as `path`, or in `path` if that is a directory. */
char *model_path_sibling(const char *path, const char *name);
/* The same; NULL: no such regular file. */
char *model_find_sibling(const char *path, const char *name);

/* The display name of the model: the last path component that is not a generic name ("config.json"). */
void model_path_name(const char *path, char *to, size_t size);

/* A string of a file, printable and truncated to fit. */
void model_copy_plain(struct slice from, char *to, size_t size);
/* The same for a message. */
struct model_label {
    char text[64];
};
struct model_label model_label(struct slice name);

/* An unsigned number of up to eight bytes. */
static inline uint64_t model_little_endian(const void *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)((const unsigned char *)bytes)[i] << (8 * i);
    return value;
}

/* Maps a regular, non-empty file; the caller unmaps it (munmap). */
enum err model_file_map(const char *path, struct slice *out, struct error *why) MUST_USE;

/* One JSON object.  `name` is for messages; more values than any model has are rejected before they are parsed. */
enum err model_json_parse(const char *name, const char *bytes, size_t length, struct jv **out,
                          struct error *why) MUST_USE;
enum err model_json_read(const char *path, struct jv **out, struct error *why) MUST_USE;

#endif
