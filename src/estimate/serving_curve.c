/* Simulations over loads, each with steps as estimated and one ± shorter and longer: waiting amplifies an error of a
 * step, so that the ± of a latency is simulated, not propagated.  The largest load that meets an SLO is bisected. */
#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "estimate/serving.h"

#define RATE_ENOUGH 0.01 /* relative width at which the search ends */
enum { SEARCH_MOST = 60, SEARCH_ABOUT = 16, DEFAULT_RATES = 8 };

struct search {
    struct serving_run run;
    const struct serving_slo *slo;
    void (*progress)(unsigned done, unsigned all);
    unsigned done, all;
};

/* ---- one load ---- */

static double value_of(const struct serving_spread *spread, int quantile)
{
    return quantile < 0 ? spread->mean : spread->at[quantile];
}

/* Without tokens that follow another there is no ITL to exceed. */
static bool meets(const struct serving_slo *slo, const struct serving_result *result)
{
    bool is_late =
        is_known(slo->ttft_s) && !(value_of(&result->ttft_s, slo->quantile) <= slo->ttft_s);
    bool is_slow = is_known(slo->itl_s) && value_of(&result->itl_s, slo->quantile) > slo->itl_s;
    return !is_late && !is_slow;
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

static enum err make_point(struct search *search, double rate, struct serving_point *out,
                           struct error *why)
{
    double relative = search->run.model->relative_s;
    double error = is_known(relative) ? fmin(relative, 0.9) : 0;
    *out = (struct serving_point){.rate = rate};
    enum err err = simulate(search, rate, 1, &out->mid, why);
    if (!err)
        err = simulate(search, rate, 1 - error, &out->fast, why);
    if (!err)
        err = simulate(search, rate, 1 + error, &out->slow, why);
    out->meets = meets(search->slo, &out->mid);
    return err;
}

/* ---- the largest load ---- */

static enum err try_rate(struct search *search, double rate, bool *is_met, struct error *why)
{
    struct serving_result result;
    enum err err = simulate(search, rate, 1, &result, why);
    *is_met = !err && meets(search->slo, &result);
    return err;
}

/* Of what is served when all requests wait from the start. */
static enum err find_capacity(struct search *search, double *out, struct error *why)
{
    struct serving_result result;
    enum err err = simulate(search, INFINITY, 1, &result, why);
    *out = result.requests_per_s;
    return err;
}

/* Met at *low, if above 0, and not at *high. */
static enum err bracket(struct search *search, double capacity, double *low, double *high,
                        struct error *why)
{
    bool is_met = false;
    enum err err = ERR_OK;
    *low = 0;
    *high = capacity / 2;
    for (unsigned i = 0; !err && i < SEARCH_MOST; i++) {
        err = try_rate(search, *high, &is_met, why);
        if (!is_met)
            break;
        *low = *high;
        *high *= 2;
        if (*high > 1e3 * capacity) /* any load meets it */
            break;
    }
    double rate = *high / 2;
    while (!err && *low == 0 && rate > 1e-4 * capacity) {
        err = try_rate(search, rate, &is_met, why);
        if (is_met)
            *low = rate;
        else
            *high = rate;
        rate /= 2;
    }
    return err;
}

static enum err find_largest(struct search *search, double capacity, struct serving_point *out,
                             struct error *why)
{
    double low, high;
    enum err err = bracket(search, capacity, &low, &high, why);
    while (!err && low > 0 && high > (1 + RATE_ENOUGH) * low) {
        bool is_met;
        double middle = sqrt(low * high);
        err = try_rate(search, middle, &is_met, why);
        *(is_met ? &low : &high) = middle;
    }
    if (!err && low > 0)
        return make_point(search, low, out, why);
    out->rate = 0;
    return err;
}

/* ---- the curve ---- */

static enum err make_points(struct search *search, const double *rates, size_t count,
                            struct serving_curve *out, struct error *why)
{
    enum err err = ERR_OK;
    out->points = calloc(count, sizeof *out->points);
    if (!out->points)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (; !err && out->count < count; out->count += !err)
        err = make_point(search, rates[out->count], &out->points[out->count], why);
    return err;
}

enum err serving_curve_make(const struct serving_run *run, const double *rates, size_t rate_count,
                            const struct serving_slo *slo, void (*progress)(unsigned, unsigned),
                            struct serving_curve *out, struct error *why)
{
    static const double SHARES[DEFAULT_RATES] = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1};
    double own[DEFAULT_RATES], capacity = 0;
    bool has_slo = is_known(slo->ttft_s) || is_known(slo->itl_s);
    struct search search = {.run = *run, .slo = slo, .progress = progress};
    enum err err = ERR_OK;
    *out = (struct serving_curve){.largest.rate = UNKNOWN};
    search.all =
        1 + 3 * (unsigned)(rate_count ? rate_count : DEFAULT_RATES) + (has_slo ? SEARCH_ABOUT : 0);
    if (!rate_count || has_slo)
        err = find_capacity(&search, &capacity, why);
    for (size_t i = 0; i < DEFAULT_RATES; i++)
        own[i] = SHARES[i] * capacity;
    if (!err)
        err = make_points(&search, rate_count ? rates : own,
                          rate_count ? rate_count : DEFAULT_RATES, out, why);
    if (!err && has_slo)
        err = find_largest(&search, capacity, &out->largest, why);
    if (err)
        serving_curve_release(out);
    return err;
}

void serving_curve_release(struct serving_curve *curve)
{
    free(curve->points);
    *curve = (struct serving_curve){0};
}
