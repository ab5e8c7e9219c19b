/* Hardware files: the JSON of data/hardware and of the user's own devices (docs/formats.md).  A struct hardware
 * that was read owns its strings; hardware_release frees them. */
#ifndef IPW_CATALOG_HARDWARE_JSON_H
#define IPW_CATALOG_HARDWARE_JSON_H

#include <stddef.h>

#include "catalog/hardware.h"

struct json;

/* Parses JSON text; `name` is for messages.  ERR_BAD_VALUE names the key and the violated rule.  Consistency is
 * checked by hardware_check. */
enum err hardware_parse(const char *name, const char *bytes, size_t length, struct hardware *out,
                        struct error *why) MUST_USE;
/* Reads a user's file: one that contradicts itself is used with a warning, which is also kept in `doubt`. */
enum err hardware_read(const char *path, struct hardware *out, struct error *why) MUST_USE;

/* Writes a value in the format that hardware_parse reads: figures in the units of their file. */
void hardware_write(const struct hardware *hardware, struct json *json);

/* Checks for contradictions, physical or within the entry: joules x peak + idle above the limit by more than the
 * margin, a narrow precision slower than a wide one, idle above the limit, and so on. */
enum err hardware_check(const struct hardware *hardware, struct error *why) MUST_USE;

#endif
