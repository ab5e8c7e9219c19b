/* Where libllama may be, and what else was installed with this program.  The caller owns the buffers. */
#ifndef IPW_ENGINE_LLAMA_FIND_H
#define IPW_ENGINE_LLAMA_FIND_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the file that a user means by a path: itself, or the libllama in that folder.  False when there
 * is none. */
bool llama_find_at(const char *path, char *to, size_t size);

/* Writes the file that set-up brought, in the source tree or beside the installed program; false when
 * there is none. */
bool llama_find_brought(char *to, size_t size);

/* A path from the folder that this program lies in; false when it does not fit. */
bool beside_program(const char *path, char *to, size_t size);

#endif
