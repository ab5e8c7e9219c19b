/* Reads a JSON file into a tree of values (core/jv.h), which the caller frees with jv_free. */
#ifndef IPW_PORT_JSON_READ_H
#define IPW_PORT_JSON_READ_H

#include "core/jv.h"

struct text;

/* At most `max` bytes; the error names the file. */
enum err jv_read(const char *path, size_t max, struct jv **out, struct error *why) MUST_USE;

/* The same from the bytes of the file. */
enum err jv_parse_file(const char *path, const struct text *bytes, struct jv **out,
                       struct error *why) MUST_USE;

#endif
