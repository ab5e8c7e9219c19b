/* Pipeline parallelism: layers divided over stages, and micro-batches that pass them one after the other
 * (docs/estimate.md, "Several devices").  Pure functions; nothing is owned. */
#ifndef IPW_ESTIMATE_PIPELINE_H
#define IPW_ESTIMATE_PIPELINE_H

#include <stddef.h>

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
