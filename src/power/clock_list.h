/* The supported clocks of GPUs, as their drivers list them: read from a file (gpu, mem_mhz, graphics_mhz), or added by
 * the caller.  Nothing is assumed of a GPU whose list is not given.
 *
 * Ownership: a zeroed struct clock_list is empty; clock_list_release frees it. */
#ifndef IPW_POWER_CLOCK_LIST_H
#define IPW_POWER_CLOCK_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct clock_entry {
    char gpu[40];
    double mem_mhz, mhz;
};

struct clock_list {
    struct clock_entry *items;
    size_t count, capacity;
};

void clock_list_add(struct clock_list *list, const char *gpu, double mem_mhz, double mhz);
enum err clock_list_read(struct clock_list *list, const char *path, struct error *why) MUST_USE;
void clock_list_release(struct clock_list *list);

/* Whether the list has clocks of a GPU. */
bool clock_list_has(const struct clock_list *list, const char *gpu);
/* Whether one of a GPU's clocks is within half a MHz: drivers round 7.5 MHz steps. */
bool clock_list_is_legal(const struct clock_list *list, const char *gpu, double mhz);
/* The distinct clocks of a GPU of at least `min` MHz, ascending, into out[limit]; returns their number.  They are
 * those at the highest memory clock. */
size_t clock_list_usable(const struct clock_list *list, const char *gpu, double min, double *out,
                         size_t limit);

#endif
