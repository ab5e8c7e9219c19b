/* How far the reading of a large file has come: whoever reads tells it, and the program may look on.
 * With no watcher it goes nowhere.  One thread sets the watcher and reads. */
#ifndef IPW_CORE_WATCH_H
#define IPW_CORE_WATCH_H

#include <stdint.h>

/* The file may be read again from its beginning: `done` then falls back. */
typedef void (*watcher)(const char *path, uint64_t done, uint64_t all);

void watch_by(watcher looking_on); /* NULL: nobody */
void watch_tell(const char *path, uint64_t done, uint64_t all);

#endif
