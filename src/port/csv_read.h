/* Reads a CSV file into a table (core/csv.h). */
#ifndef IPW_PORT_CSV_READ_H
#define IPW_PORT_CSV_READ_H

#include "core/csv.h"
#include "core/text.h"

/* At most `max` bytes; errors name the file.  The caller releases both, also after an error: the table points into the
 * bytes. */
enum err csv_read(const char *path, size_t max, struct text *bytes, struct csv_grid *out,
                  struct error *why) MUST_USE;

#endif
