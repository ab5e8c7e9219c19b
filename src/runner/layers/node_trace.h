/* The times of nodes in a profile that ONNX Runtime wrote (chrome trace format), by run of the session.
 * A struct node_trace owns its nodes. */
#ifndef IPW_RUNNER_LAYERS_NODE_TRACE_H
#define IPW_RUNNER_LAYERS_NODE_TRACE_H

#include <stddef.h>

#include "core/err.h"

struct trace_node {
    char *name, *op;
    unsigned long calls;
    double *seconds; /* of each run, without nodes inside (branches, loops) */
};

struct node_trace {
    struct trace_node *nodes; /* in the order of their first call */
    size_t count, capacity;
    unsigned long runs;
};

/* Without the first `skip` runs.  ERR_BAD_VALUE if the file is no such profile. */
enum err node_trace_read(const char *path, unsigned long skip, struct node_trace *out,
                         struct error *why) MUST_USE;
void node_trace_release(struct node_trace *trace);

/* Seconds per run, the median over the runs, since other load only adds time; and its standard error. */
double trace_node_seconds(const struct node_trace *trace, const struct trace_node *node,
                          double *sigma);

#endif
