/* Small files read and written whole.  The caller owns the texts.  These are the user's files, so no
 * root prefix stands before them. */
#ifndef IPW_DATASETS_FILE_H
#define IPW_DATASETS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

enum { FILE_PATH_MAX = 1024 };

bool user_file_is_directory(const char *path);
bool user_file_is_regular(const char *path);
bool user_file_exists(const char *path);

/* Into *out, cleared first; longer than `most` is ERR_BAD_VALUE. */
enum err user_file_read(const char *path, size_t most, struct text *out, struct error *why)
    MUST_USE;

/* Makes the directories above it, writes beside it and renames: a reader sees all of it or nothing,
 * and a write that was cut off leaves the old file. */
enum err user_file_write(const char *path, const char *bytes, size_t length, struct error *why)
    MUST_USE;

#endif
