/* Tensor parallelism: the algorithms of NCCL and of the kernels that serving frameworks use instead for small messages.
 * In a ring, data passes from neighbor to neighbor.  If each device can read the memory of all others, one kernel sums
 * all of the data (one-shot), or one part of it and then gathers the other parts (two-shot): few steps, independent of
 * the number of devices.  Pipeline parallelism: a flow shop. */
#include "estimate/parallel.h"

#include <math.h>
#include <stdbool.h>

#include "core/units.h"

/* Measured all-reduces (docs/measurements.md, "Communication"). */
#define RING_SHARE                                                                                 \
    0.8 /* share of the links used by a ring, including protocol overhead: 370 of 450 GB/s of an H100 */
#define DIRECT_SHARE                                                                               \
    0.5 /* attained by kernels that read other devices' memory: 0.35 of an H100, 0.76 of an A100 */
#define DIRECT_STEPS 2.0 /* latencies per shot: a barrier and the read */

/* Latencies, plus the bytes that each device sends at that share of its links. */
static double steps_s(const struct collective_link *link, double steps, double bytes, double share,
                      double links)
{
    double latency = is_known(link->latency_s) ? link->latency_s : 0;
    return steps * latency + bytes / (share * links * link->bytes_per_s);
}

/* Links used concurrently: in a mesh one to each of the other devices. */
static double links_used(const struct collective_link *link, int devices)
{
    return link->links > 1 ? fmin(link->links, devices - 1) : 1;
}

static bool is_direct(const struct collective_link *link, int devices)
{
    return link->peers >= devices - 1;
}

double collective_all_reduce_s(const struct collective_link *link, double bytes, int devices)
{
    double others = devices - 1, part = bytes / devices, links = links_used(link, devices);
    if (devices < 2 || !(bytes > 0))
        return 0;
    /* A reduce-scatter and an all-gather. */
    double ring = steps_s(link, 2 * others, 2 * others * part, RING_SHARE, links);
    if (!is_direct(link, devices))
        return ring;
    double one = steps_s(link, DIRECT_STEPS, others * bytes, DIRECT_SHARE, links);
    double two = steps_s(link, 2 * DIRECT_STEPS, 2 * others * part, DIRECT_SHARE, links);
    return fmin(ring, fmin(one, two));
}

double collective_all_gather_s(const struct collective_link *link, double bytes, int devices)
{
    double others = devices - 1, part = bytes / devices, links = links_used(link, devices);
    if (devices < 2 || !(bytes > 0))
        return 0;
    double ring = steps_s(link, others, others * part, RING_SHARE, links);
    double one = steps_s(link, DIRECT_STEPS, others * part, DIRECT_SHARE, links);
    return is_direct(link, devices) ? fmin(ring, one) : ring;
}

double collective_send_s(const struct collective_link *link, double bytes, int devices)
{
    if (!(bytes > 0))
        return 0;
    return steps_s(link, 1, bytes / devices, RING_SHARE, 1) +
           collective_all_gather_s(link, bytes, devices);
}

/* ---- pipeline parallelism ---- */

/* Flow shop: every job passes the same machines in the same order, here the scheduler on the host and the stages.  A
 * job begins on a machine when it has left the previous one and the previous job has left this one.  For repeated
 * rounds, the length of one is measured after the pipeline has filled. */

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

/* Runs a job; `free_s`, when the host and the stages become free, is updated.  Returns the end of the job. */
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
    double free_s[PIPELINE_STAGES_MAX + 1] = {0}, end = 0;
    for (size_t i = 0; i < count; i++)
        end = run_job(&jobs[i], 0, stages, free_s);
    return end;
}

double pipeline_round_s(const struct pipeline_job *jobs, size_t count, int stages)
{
    enum { ROUNDS = 64 }; /* to fill the pipeline, and as many to measure */
    double free_s[PIPELINE_STAGES_MAX + 1] = {0}, ready_s[PIPELINE_STAGES_MAX] = {0};
    double filled_s = 0;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        if (round == ROUNDS)
            filled_s = ready_s[count - 1];
        for (size_t i = 0; i < count; i++)
            ready_s[i] = run_job(&jobs[i], ready_s[i], stages, free_s);
    }
    return (ready_s[count - 1] - filled_s) / ROUNDS;
}
