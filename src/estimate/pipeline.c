/* A flow shop: every job passes the same machines in the same order, which here are the scheduler on the host and the
 * stages.  When a job can begin on a machine follows from when it left the one before, and when the job before it left
 * this one.  Of rounds that repeat, the length of one is taken after the pipeline has filled. */
#include "estimate/pipeline.h"

#include <math.h>

int pipeline_stage_of(int layer, int layers, int stages)
{
    int each = layers / stages, more = layers % stages, end = 0;
    for (int stage = 0; stage < stages - 1; stage++) {
        end += each + (stage >= stages - 1 - more);
        if (layer < end)
            return stage;
    }
    return stages - 1;
}

/* Runs a job; `free_s` has when the host and the stages are free, and is moved on.  Returns when the job ends. */
static double run_job(const struct pipeline_job *job, double ready_s, int stages, double *free_s)
{
    double at = fmax(ready_s, free_s[0]) + job->host_s;
    free_s[0] = at;
    for (int s = 0; s < stages; s++) {
        double end = fmax(at, free_s[s + 1]) + job->busy_s[s];
        free_s[s + 1] = end;
        at = s + 1 < stages ? end + job->send_s[s] : end;
    }
    return at;
}

double pipeline_once_s(const struct pipeline_job *jobs, size_t count, int stages)
{
    double free_s[PIPELINE_STAGES_MOST + 1] = {0}, end = 0;
    for (size_t i = 0; i < count; i++)
        end = run_job(&jobs[i], 0, stages, free_s);
    return end;
}

double pipeline_round_s(const struct pipeline_job *jobs, size_t count, int stages)
{
    enum { ROUNDS = 64 }; /* to fill the pipeline, and as many to measure */
    double free_s[PIPELINE_STAGES_MOST + 1] = {0}, ready_s[PIPELINE_STAGES_MOST] = {0};
    double filled_s = 0;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        if (round == ROUNDS)
            filled_s = ready_s[count - 1];
        for (size_t i = 0; i < count; i++)
            ready_s[i] = run_job(&jobs[i], ready_s[i], stages, free_s);
    }
    return (ready_s[count - 1] - filled_s) / ROUNDS;
}
