#include "attribute/component_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"
#include "stats/least_squares.h"

/* A power whose uncertainty exceeds this share of the mean power counts as unknown. */
#define IDENTIFIED 0.25

enum { NO_GROUP = -1, UNKNOWNS_MAX = FIT_COLUMNS_MAX + 1 };

/* The windows of a stratum combined: replays differ by chance alone. */
struct row {
    double joules, variance, seconds;
    double busy_s[FIT_COLUMNS_MAX];
    unsigned stratum;
};

struct problem {
    const struct fit_window *windows;
    size_t count;
    const struct fit_options *options;
    struct row *rows;
    size_t row_count;
    bool has_idle;
    double mean_watts;               /* above idle, while busy */
    int group_of[FIT_COLUMNS_MAX];   /* NO_GROUP: no time */
    unsigned phase[FIT_COLUMNS_MAX]; /* per group */
    size_t groups;
    double *a, *b; /* rows x unknowns, each row over its sigma; the last unknown is idle */
};

static size_t unknowns(const struct problem *p)
{
    return p->groups + p->has_idle;
}

/* ---- windows to rows ---- */

static void row_add(struct row *row, const struct fit_window *window, size_t columns, double noise)
{
    double sigma = is_known(window->sigma) ? window->sigma : 0;
    row->joules += window->joules + noise * sigma;
    row->variance += sigma * sigma;
    row->seconds += window->seconds;
    for (size_t j = 0; window->busy_s && j < columns; j++)
        row->busy_s[j] += window->busy_s[j];
}

static struct row *row_of(struct problem *p, unsigned stratum)
{
    for (size_t i = 0; i < p->row_count; i++)
        if (p->rows[i].stratum == stratum)
            return &p->rows[i];
    p->rows[p->row_count] = (struct row){.stratum = stratum};
    return &p->rows[p->row_count++];
}

static void build_rows(struct problem *p)
{
    p->row_count = 0;
    for (size_t i = 0; i < p->count; i++)
        row_add(row_of(p, p->windows[i].stratum), &p->windows[i], p->options->columns, 0);
}

static double row_busy(const struct problem *p, const struct row *row)
{
    double sum = 0;
    for (size_t j = 0; j < p->options->columns; j++)
        sum += row->busy_s[j];
    return sum;
}

/* The power above idle while any component is busy, the same for all columns. */
static void set_mean_power(struct problem *p)
{
    double idle_j = 0, idle_s = 0, joules = 0, seconds = 0, busy = 0;
    for (size_t i = 0; i < p->row_count; i++) {
        const struct row *row = &p->rows[i];
        double now = row_busy(p, row);
        bool is_idle = now <= 0;
        *(is_idle ? &idle_j : &joules) += row->joules;
        *(is_idle ? &idle_s : &seconds) += row->seconds;
        busy += now;
    }
    p->has_idle = idle_s > 0;
    double idle = p->has_idle ? idle_j / idle_s : 0;
    p->mean_watts = busy > 0 ? fmax((joules - idle * seconds) / busy, 0) : 0;
}

/* ---- rows to equations ---- */

static double row_sigma(const struct row *row)
{
    double model = FIT_MODEL_ERROR * fabs(row->joules);
    return fmax(sqrt(row->variance + model * model), 1e-12);
}

static void build(struct problem *p)
{
    size_t n = unknowns(p);
    memset(p->a, 0, p->row_count * n * sizeof *p->a);
    for (size_t i = 0; i < p->row_count; i++) {
        const struct row *row = &p->rows[i];
        double weight = 1 / row_sigma(row);
        for (size_t j = 0; j < p->options->columns; j++)
            if (p->group_of[j] != NO_GROUP)
                p->a[i * n + (size_t)p->group_of[j]] += row->busy_s[j] * weight;
        if (p->has_idle)
            p->a[i * n + p->groups] = row->seconds * weight;
        p->b[i] = row->joules * weight;
    }
}

/* Cosine similarity of two groups' busy times: 1 where they are always proportional. */
static double similarity(const struct problem *p, size_t g, size_t h)
{
    size_t n = unknowns(p);
    double gg = 0, hh = 0, gh = 0;
    for (size_t i = 0; i < p->row_count; i++) {
        double x = p->a[i * n + g], y = p->a[i * n + h];
        gg += x * x;
        hh += y * y;
        gh += x * y;
    }
    return gg > 0 && hh > 0 ? gh / sqrt(gg * hh) : 0;
}

static void merge_groups(struct problem *p, size_t keep, size_t gone)
{
    if (keep > gone) {
        size_t other = keep;
        keep = gone;
        gone = other;
    }
    for (size_t j = 0; j < p->options->columns; j++) {
        if (p->group_of[j] == (int)gone)
            p->group_of[j] = (int)keep;
        else if (p->group_of[j] > (int)gone)
            p->group_of[j]--;
    }
    memmove(&p->phase[gone], &p->phase[gone + 1], (p->groups - gone - 1) * sizeof *p->phase);
    p->groups--;
}

/* Merges g with the most similar group of its phase; false when it is the only one. */
static bool merge_nearest(struct problem *p, size_t g)
{
    long best = -1;
    double max = -1;
    for (size_t h = 0; h < p->groups; h++) {
        double now = h != g && p->phase[h] == p->phase[g] ? similarity(p, g, h) : -2;
        if (now > max) {
            max = now;
            best = (long)h;
        }
    }
    if (best < 0)
        return false;
    merge_groups(p, g, (size_t)best);
    return true;
}

/* Merges the two most similar groups of one phase; false when every phase has one group. */
static bool merge_most_similar(struct problem *p)
{
    size_t best = p->groups;
    double max = -1;
    for (size_t g = 0; g < p->groups; g++)
        for (size_t h = g + 1; h < p->groups; h++)
            if (p->phase[g] == p->phase[h] && similarity(p, g, h) > max) {
                max = similarity(p, g, h);
                best = g;
            }
    return best < p->groups && merge_nearest(p, best);
}

static void init_groups(struct problem *p)
{
    for (size_t j = 0; j < p->options->columns; j++) {
        double busy = 0;
        for (size_t i = 0; i < p->row_count; i++)
            busy += p->rows[i].busy_s[j];
        p->group_of[j] = NO_GROUP;
        if (busy > 0) {
            p->phase[p->groups] = p->options->phases[j];
            p->group_of[j] = (int)p->groups++;
        }
    }
}

/* The group with the largest uncertainty among those that are too uncertain; -1 when none is. */
static long most_uncertain(const struct problem *p, const double *sigmas)
{
    long worst = -1;
    for (size_t g = 0; g < p->groups; g++) {
        bool has_others = false;
        for (size_t h = 0; h < p->groups; h++)
            has_others = has_others || (h != g && p->phase[h] == p->phase[g]);
        if (has_others && sigmas[g] > IDENTIFIED * p->mean_watts &&
            (worst < 0 || sigmas[g] > sigmas[worst]))
            worst = (long)g;
    }
    return worst;
}

/* A power at the bound of 0 although its component was busy was not identified either. */
static bool merge_at_bound(struct problem *p, const double *x)
{
    for (size_t g = 0; g < p->groups; g++)
        if (x[g] <= 0 && merge_nearest(p, g))
            return true;
    return false;
}

/* Merges groups until the windows separate the remaining ones; fills x and their sigmas. */
static enum err solve(struct problem *p, double *x, double *sigmas, struct error *why)
{
    for (;;) {
        build(p);
        enum err err = least_squares_sigmas(p->a, p->row_count, unknowns(p), sigmas);
        if (err == ERR_BAD_VALUE && merge_most_similar(p))
            continue;
        if (err == ERR_BAD_VALUE)
            return err_set(
                why, ERR_NO_DATA,
                "the windows cannot separate idle power from work: measure idle power as well");
        long worst = most_uncertain(p, sigmas);
        if (worst >= 0 && merge_nearest(p, (size_t)worst))
            continue;
        err = least_squares_nonnegative(p->a, p->b, p->row_count, unknowns(p), x);
        if (err)
            return err_set(why, err, "cannot solve for the powers: %s", err_text(err));
        if (!merge_at_bound(p, x))
            return ERR_OK;
    }
}

/* ---- the bootstrap ---- */

/* Replays are resampled; a window without replays is perturbed by its own error. */
static void draw_rows(struct problem *p, struct random *draws, const unsigned *strata,
                      size_t *picked, const bool *has_replays)
{
    bootstrap_pick(draws, strata, p->count, picked);
    p->row_count = 0;
    for (size_t i = 0; i < p->count; i++) {
        double noise = has_replays[i] ? 0 : random_normal(draws);
        row_add(row_of(p, strata[i]), &p->windows[picked[i]], p->options->columns, noise);
    }
}

static enum err bootstrap(struct problem *p, struct online *spread)
{
    size_t count = p->count;
    struct random draws = random_seeded(p->options->seed);
    unsigned *strata = xcalloc(count, sizeof *strata);
    size_t *picked = xcalloc(count, sizeof *picked);
    bool *has_replays = xcalloc(count, sizeof *has_replays);
    double x[UNKNOWNS_MAX];
    enum err err = ERR_OK;
    for (size_t i = 0; i < count; i++) {
        strata[i] = p->windows[i].stratum;
        for (size_t j = 0; j < count; j++)
            has_replays[i] = has_replays[i] || (j != i && p->windows[j].stratum == strata[i]);
    }
    for (unsigned round = 0; !err && round < p->options->resamples; round++) {
        draw_rows(p, &draws, strata, picked, has_replays);
        build(p);
        err = least_squares_nonnegative(p->a, p->b, p->row_count, unknowns(p), x);
        for (size_t g = 0; !err && g < unknowns(p); g++)
            online_add(&spread[g], x[g]);
    }
    free(strata);
    free(picked);
    free(has_replays);
    return err;
}

/* ---- the fit ---- */

static double larger_sigma(double sigma, const struct online *spread)
{
    double scatter = online_stddev(spread);
    return is_known(scatter) ? fmax(sigma, scatter) : sigma;
}

static void fill(const struct problem *p, const double *x, const double *sigmas,
                 const struct online *spread, struct component_fit *out)
{
    out->groups = (unsigned)p->groups;
    out->has_idle = p->has_idle;
    out->idle_watts = p->has_idle ? x[p->groups] : UNKNOWN;
    out->idle_sigma = p->has_idle ? larger_sigma(sigmas[p->groups], &spread[p->groups]) : UNKNOWN;
    for (size_t j = 0; j < p->options->columns; j++) {
        struct fit_power *power = &out->columns[j];
        *power = (struct fit_power){.watts = UNKNOWN, .sigma = UNKNOWN, .is_alone = true};
        if (p->group_of[j] == NO_GROUP)
            continue;
        power->group = (unsigned)p->group_of[j];
        power->watts = x[power->group];
        power->sigma = larger_sigma(sigmas[power->group], &spread[power->group]);
        for (size_t k = 0; k < p->options->columns; k++)
            if (k != j && p->group_of[k] == p->group_of[j])
                power->is_alone = false;
    }
}

static enum err fit(struct problem *p, struct component_fit *out, struct error *why)
{
    double x[UNKNOWNS_MAX], sigmas[UNKNOWNS_MAX];
    struct online spread[UNKNOWNS_MAX] = {{0}};
    build_rows(p);
    set_mean_power(p);
    init_groups(p);
    if (p->groups == 0)
        return err_set(why, ERR_NO_DATA, "no window in which a component was busy");
    enum err err = solve(p, x, sigmas, why);
    if (err)
        return err;
    err = bootstrap(p, spread);
    if (err)
        return err_set(why, err, "cannot resample the windows: %s", err_text(err));
    fill(p, x, sigmas, spread, out);
    return ERR_OK;
}

enum err component_fit(const struct fit_window *windows, size_t count,
                       const struct fit_options *options, struct component_fit *out,
                       struct error *why)
{
    *out = (struct component_fit){.idle_watts = UNKNOWN, .idle_sigma = UNKNOWN};
    if (options->columns > FIT_COLUMNS_MAX)
        return err_set(why, ERR_BAD_VALUE, "more than %d components", FIT_COLUMNS_MAX);
    if (count == 0)
        return err_set(why, ERR_NO_DATA, "no window was measured");
    struct problem problem = {
        .windows = windows,
        .count = count,
        .options = options,
        .rows = xcalloc(count, sizeof *problem.rows),
        .a = xcalloc(count * UNKNOWNS_MAX, sizeof *problem.a),
        .b = xcalloc(count, sizeof *problem.b),
    };
    enum err err = fit(&problem, out, why);
    free(problem.rows);
    free(problem.a);
    free(problem.b);
    return err;
}
