/* Hardware files: the JSON of data/hardware and of the user's own devices (docs/formats.md).  A struct hardware
 * that was read owns its strings; hardware_release frees them. */
#ifndef IPW_CATALOG_HARDWARE_JSON_H
#define IPW_CATALOG_HARDWARE_JSON_H

#include <stddef.h>

#include "catalog/hardware.h"

struct json;

/* From JSON text; `name` is for messages.  ERR_BAD_VALUE names the key and the rule that it breaks.
 * The whole need not be consistent: see hardware_check. */
enum err hardware_parse(const char *name, const char *bytes, size_t length, struct hardware *out,
                        struct error *why) MUST_USE;
/* A file of the user's: one that contradicts itself is used all the same, with a warning that also stays in
 * `doubt`. */
enum err hardware_read(const char *path, struct hardware *out, struct error *why) MUST_USE;

/* The next item of a JSON document, in the format that hardware_parse reads: figures in the units of their file. */
void hardware_write(const struct hardware *hardware, struct json *json);

/* Contradictions, with physics or within the entry: joules x peak + idle above the limit by more than the
 * allowed margin, a narrow precision slower than a wide one, idle above the limit, and so on. */
enum err hardware_check(const struct hardware *hardware, struct error *why) MUST_USE;

#endif
