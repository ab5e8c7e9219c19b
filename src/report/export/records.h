/* The records of a run directory, one after the other: from its journal, or from the Arrow files of one
 * that has none.  records_open gives a source that records_close takes back. */
#ifndef IPW_REPORT_EXPORTS_RECORDS_H
#define IPW_REPORT_EXPORTS_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct jv;
struct journal_index;

struct records {
    const char *directory;
    struct journal_index *index; /* NULL: Arrow files */
    char **shards;
    size_t shard_count;
    uint64_t damaged; /* lines that the last pass left out */
};

enum err records_open(const char *directory, struct records *out, struct error *why) MUST_USE;
void records_close(struct records *records);

/* May be done several times.  Stops when take returns anything but ERR_OK, and returns that. */
enum err records_give(struct records *records,
                      enum err (*take)(void *context, const struct jv *record), void *context,
                      struct error *why) MUST_USE;

#endif
