/* A model on several devices (docs/estimate.md, "Several devices"): times of collectives, and the schedule of
 * micro-batches in a pipeline.  Pure functions; nothing is owned. */
#ifndef IPW_ESTIMATE_PARALLEL_H
#define IPW_ESTIMATE_PARALLEL_H

#include <stddef.h>

/* ---- tensor parallelism: collectives ---- */

/* Small messages are latency-bound, large ones bandwidth-bound; a library chooses the fastest algorithm. */

/* The links of one device, in one direction. */
struct collective_link {
    double bytes_per_s; /* bandwidth per link */
    double latency_s;   /* small message to another device; UNKNOWN: not stated, counts as 0 */
    double peers;       /* directly connected devices; UNKNOWN: two neighbors in a ring */
    double
        links; /* a mesh: number of links, each to another device; UNKNOWN: one to all through a switch */
};

/* Sends `bytes`, replicated on a group of devices, to all devices of another group: each sends its part, and the
 * receivers all-gather the parts, as vLLM does between pipeline stages. */
double collective_send_s(const struct collective_link *link, double bytes, int devices);
/* All-reduce of `bytes` per device. */
double collective_all_reduce_s(const struct collective_link *link, double bytes, int devices);
/* All-gather of `bytes` in total, of which each device has an equal part. */
double collective_all_gather_s(const struct collective_link *link, double bytes, int devices);

/* ---- pipeline parallelism: layers divided into stages, which process micro-batches in sequence ---- */

enum { PIPELINE_STAGES_MAX = 64, PIPELINE_JOBS_MAX = 4096 };

/* The stage of a layer, with vLLM's distribution: if the layers do not divide evenly, the stages before the last get
 * one more, from the end to the front; the last one has the head. */
int pipeline_stage_of(int layer, int layers, int stages);

/* A micro-batch.  The scheduler on the host prepares one at a time, before its first stage. */
struct pipeline_job {
    double host_s;
    const double *busy_s; /* by stage */
    const double *send_s; /* by stage: transfer of its message to the next one */
};

/* Time from the start of the first job to the end of the last: each stage processes jobs in order. */
double pipeline_once_s(const struct pipeline_job *jobs, size_t count, int stages);

/* Time of a round if each job is repeated once its last stage has ended: the next token of a sequence depends on this
 * one. */
double pipeline_round_s(const struct pipeline_job *jobs, size_t count, int stages);

#endif
