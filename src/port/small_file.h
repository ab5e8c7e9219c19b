/* A small file that a user names, whole: a list of prices, the description of a device. */
#ifndef IPW_PORT_SMALL_FILE_H
#define IPW_PORT_SMALL_FILE_H

#include "core/err.h"

struct text;

/* Adds its bytes to *out, which the caller owns.  More than a MiB is another file: "PATH: too long for
 * WHAT", as "a price file". */
enum err small_file_read(const char *path, const char *what, struct text *out, struct error *why)
    MUST_USE;

#endif
