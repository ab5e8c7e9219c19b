/* Simulations over loads, each with steps as estimated and one ± shorter and longer: queueing amplifies errors of a
 * step, so the ± of a latency is simulated, not propagated.  The largest load that meets an SLO is found by bisection,
 * up to the capacity. */
#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "estimate/serving.h"

#define RATE_TOLERANCE 0.01 /* relative width at which the search ends */
#define RATE_MIN       1e-4 /* share of the capacity below which no load meets the SLO */
#define OVERLOAD_MIN   0.5  /* share of the capacity; below, TTFT rises by chance */
enum { SEARCH_ABOUT = 8, DEFAULT_RATES = 8 };

struct search {
    struct serving_run run;
    const struct serving_slo *slo;
    double capacity; /* UNKNOWN: not needed */
    void (*progress)(unsigned done, unsigned all);
    unsigned done, all;
};

/* ---- one load ---- */

static double value_of(const struct serving_spread *spread, int quantile)
{
    return quantile < 0 ? spread->mean : spread->at[quantile];
}

/* A request without tokens after the first has no ITL. */
static bool is_in_time(const struct serving_slo *slo, const struct serving_result *result)
{
    bool is_late =
        is_known(slo->ttft_s) && !(value_of(&result->ttft_s, slo->quantile) <= slo->ttft_s);
    bool is_slow = is_known(slo->itl_s) && value_of(&result->itl_s, slo->quantile) > slo->itl_s;
    return !is_late && !is_slow;
}

static bool has_slo(const struct serving_slo *slo)
{
    return is_known(slo->ttft_s) || is_known(slo->itl_s);
}

/* A load above capacity meets no SLO: its latencies depend on the length of the simulation. */
static bool meets(const struct search *search, double rate, const struct serving_result *result)
{
    bool is_overloaded =
        rate > search->capacity || (result->grows && rate > OVERLOAD_MIN * search->capacity);
    return !has_slo(search->slo) || (is_in_time(search->slo, result) && !is_overloaded);
}

static void report(struct search *search)
{
    search->done++;
    search->all = search->done > search->all ? search->done : search->all;
    if (search->progress)
        search->progress(search->done, search->all);
}

static enum err simulate(struct search *search, double rate, double time_scale,
                         struct serving_result *out, struct error *why)
{
    search->run.rate = rate;
    search->run.time_scale = time_scale;
    enum err err = serving_simulate(&search->run, out, why);
    if (!err)
        report(search);
    return err;
}

/* Adds the results with steps one ± shorter and longer. */
static enum err add_error(struct search *search, struct serving_point *point, struct error *why)
{
    double error = fmin(search->run.model->relative_s, 0.9);
    point->fast = point->slow = point->mid;
    if (!is_known(search->run.model->relative_s))
        return ERR_OK;
    enum err err = simulate(search, point->rate, 1 - error, &point->fast, why);
    return err ? err : simulate(search, point->rate, 1 + error, &point->slow, why);
}

/* Simulates a rate without its ±. */
static enum err try_rate(struct search *search, double rate, struct serving_point *out,
                         struct error *why)
{
    *out = (struct serving_point){.rate = rate};
    enum err err = simulate(search, rate, 1, &out->mid, why);
    out->meets = !err && meets(search, rate, &out->mid);
    return err;
}

/* ---- the largest load ---- */

/* Throughput with all requests queued from the start.  Replicas share such a load evenly: a single one is simulated,
 * which needs fewer requests to be busy for long. */
static enum err find_capacity(struct search *search, struct error *why)
{
    const struct serving_policy *policy = search->run.policy;
    struct serving_policy one = *policy;
    struct serving_result result;
    one.replicas = 1;
    search->run.policy = &one;
    enum err err = simulate(search, INFINITY, 1, &result, why);
    search->run.policy = policy;
    search->capacity = result.requests_per_s * policy->replicas;
    return err;
}

/* Bisects between the adjacent loads of the curve, or the capacity.  If the smallest failing load meets the latency
 * limits, the capacity is the limit. */
static enum err find_largest(struct search *search, struct serving_curve *curve, struct error *why)
{
    struct serving_point low = {0}, point, high = {.rate = INFINITY};
    enum err err = ERR_OK;
    bool has_error = true;
    for (size_t i = 0; i < curve->count && high.rate == INFINITY; i++)
        *(curve->points[i].meets ? &low : &high) = curve->points[i];
    while (!err && high.rate > (1 + RATE_TOLERANCE) * low.rate && low.rate < search->capacity &&
           high.rate > RATE_MIN * search->capacity) {
        double rate = low.rate > 0 ? sqrt(low.rate * high.rate) : high.rate / 2;
        if (high.rate > search->capacity)
            rate = search->capacity;
        err = try_rate(search, rate, &point, why);
        *(point.meets ? &low : &high) = point;
        has_error = has_error && !point.meets;
    }
    if (!err && !has_error)
        err = add_error(search, &low, why);
    curve->largest = low;
    curve->is_limited_by_capacity =
        low.rate >= search->capacity || is_in_time(search->slo, &high.mid);
    return err;
}

/* ---- the curve ---- */

static enum err make_points(struct search *search, const double *rates, size_t count,
                            struct serving_curve *out, struct error *why)
{
    enum err err = ERR_OK;
    out->points = xcalloc(count, sizeof *out->points);
    for (; !err && out->count < count; out->count += !err) {
        struct serving_point *point = &out->points[out->count];
        err = try_rate(search, rates[out->count], point, why);
        if (!err)
            err = add_error(search, point, why);
    }
    return err;
}

enum err serving_curve_make(const struct serving_run *run, const double *rates, size_t rate_count,
                            const struct serving_slo *slo, void (*progress)(unsigned, unsigned),
                            struct serving_curve *out, struct error *why)
{
    static const double SHARES[DEFAULT_RATES] = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1};
    double own[DEFAULT_RATES];
    struct search search = {.run = *run, .slo = slo, .capacity = UNKNOWN, .progress = progress};
    enum err err = ERR_OK;
    *out = (struct serving_curve){.largest.rate = UNKNOWN};
    search.all = 1 + 3 * (unsigned)(rate_count ? rate_count : DEFAULT_RATES) +
                 (has_slo(slo) ? SEARCH_ABOUT : 0);
    if (!rate_count || has_slo(slo))
        err = find_capacity(&search, why);
    out->capacity = search.capacity;
    for (size_t i = 0; i < DEFAULT_RATES; i++)
        own[i] = SHARES[i] * search.capacity;
    if (!err)
        err = make_points(&search, rate_count ? rates : own,
                          rate_count ? rate_count : DEFAULT_RATES, out, why);
    if (!err && has_slo(slo))
        err = find_largest(&search, out, why);
    if (err)
        serving_curve_release(out);
    return err;
}

void serving_curve_release(struct serving_curve *curve)
{
    free(curve->points);
    *curve = (struct serving_curve){0};
}
