/* Another program as a filter: it reads what we give it and writes into a file of ours.  No shell stands
 * between, so no byte of what is handed over can become a command.  Nothing is kept; descriptors stay
 * the caller's. */
#ifndef IPW_PORT_FILTER_H
#define IPW_PORT_FILTER_H

#include <stddef.h>

#include "core/err.h"

struct text;

/* The file that PATH has for this name; ERR_NOT_FOUND when it has none that may be run. */
enum err program_find(const char *name, char *to, size_t size) MUST_USE;

/* Runs argv[0] (a path), with `input` to read and `output` to write to, and waits for its end.
 * A program that fails, or that a signal ends, is ERR_IO, with the first line that it wrote on stderr. */
enum err filter_run(const char *const argv[], const struct text *input, int output,
                    struct error *why) MUST_USE;

#endif
