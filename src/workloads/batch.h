/* Dynamic batching: queries that several threads have prepared run together, as an inference server runs them.  A batch
 * starts when it is full, or `delay` after its first query came; one runs at a time.  Members with the same key share a
 * batcher, which the last one to leave frees. */
#ifndef IPW_WORKLOADS_BATCH_H
#define IPW_WORKLOADS_BATCH_H

#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

struct batcher;
struct workload;
struct workload_query;

enum { BATCH_MAX = 4096 };

struct batcher *batcher_join(const char *key, size_t size, nanos delay);
void batcher_leave(struct batcher *batcher); /* NULL is ignored */

/* Runs a prepared query with others, and says when its batch began and ended.  A batch that fails runs again query by
 * query, so that only those fail which are at fault. */
enum err batcher_run(struct batcher *batcher, struct workload *workload,
                     struct workload_query *query, nanos *began, nanos *ended, struct error *why)
    MUST_USE;

#endif
