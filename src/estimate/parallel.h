/* A model on several devices (docs/estimate.md, "Several devices"): how long they take to exchange data, and how
 * micro-batches pass the stages of a pipeline.  Pure functions; nothing is owned. */
#ifndef IPW_ESTIMATE_PARALLEL_H
#define IPW_ESTIMATE_PARALLEL_H

#include <stddef.h>

/* ---- tensor parallelism: collectives, by the size of the message ---- */

/* Small messages take the latency of the algorithm, large ones the bandwidth of the links; a library picks the fastest. */

/* The links of one device, in one direction. */
struct collective_link {
    double bytes_per_s; /* of one link */
    double
        latency_s; /* of a small message to another device; UNKNOWN: not stated, and counts as 0 */
    double peers;  /* devices that it reaches directly; UNKNOWN: neighbors in a ring only */
    double links; /* a mesh: as many links, each to another device; UNKNOWN: one to all, a switch */
};

/* `bytes` of a group of devices, which all of them have, on all devices of another group: each sends its part, and the
 * receivers gather the parts, as vLLM does between stages of a pipeline. */
double collective_send_s(const struct collective_link *link, double bytes, int devices);
/* The sum of `bytes` of each device, on every device. */
double collective_all_reduce_s(const struct collective_link *link, double bytes, int devices);
/* `bytes` of which each device has an equal part, on every device. */
double collective_all_gather_s(const struct collective_link *link, double bytes, int devices);

/* ---- pipeline parallelism: layers divided over stages, and micro-batches that pass them one after the other ---- */

enum { PIPELINE_STAGES_MOST = 64, PIPELINE_JOBS_MOST = 4096 };

/* The stage of a layer, if the stages get as many layers each as in vLLM: where they do not divide, the stages before the
 * last get one more, from the end to the front; the last one has the head. */
int pipeline_stage_of(int layer, int layers, int stages);

/* A micro-batch.  The scheduler on the host prepares one at a time, before its first stage. */
struct pipeline_job {
    double host_s;
    const double *busy_s; /* by stage */
    const double *send_s; /* by stage: until the next one has its message */
};

/* From the start of the first job to the end of the last: each stage takes jobs in their order. */
double pipeline_once_s(const struct pipeline_job *jobs, size_t count, int stages);

/* Of a round, where each job begins again once its last stage has ended: the next token of its sequences needs this one. */
double pipeline_round_s(const struct pipeline_job *jobs, size_t count, int stages);

#endif
