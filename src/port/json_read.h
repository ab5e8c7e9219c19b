/* Reads a JSON file into a tree of values (core/jv.h), which the caller frees with jv_free. */
#ifndef IPW_PORT_JSON_READ_H
#define IPW_PORT_JSON_READ_H

#include "core/jv.h"

/* At most `max` bytes; the error names the file. */
enum err jv_read(const char *path, size_t max, struct jv **out, struct error *why) MUST_USE;

/* The same for an open file: takes ownership of the descriptor, also if it fails; the path is for messages. */
enum err jv_read_take(int fd, const char *path, size_t max, struct jv **out, struct error *why)
    MUST_USE;

#endif
