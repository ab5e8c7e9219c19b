/* One function per kind of change: each estimates its alternatives, and proposes the best of them. */
#include "estimate/recommend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/text.h"
#include "metrics/uncertainty.h"

/* Limit of doubling the batch, and the accepted distance from the best one: the curve is flat there, and a smaller
 * batch has less latency. */
enum { DOUBLINGS_MAX = 10, BATCH_MAX = 65536, DEVICES_MAX = 64 };
#define NEAR_BEST 1.05
#define TIE       1e-9 /* savings that differ by no more are equal */

/* Relative error of an estimate that is not shared with another batch of the same model on the same device: spread of
 * the errors of such settings among the rows of docs/measurements.md (standard deviation). */
#define BATCH_ERROR         0.04
#define BATCH_ERROR_KERNELS 0.09 /* with the kernels of a runtime */

struct search {
    const struct recommend_question *question;
    const struct workload_estimate *now;
    double joules_now; /* per unit */
    bool is_violated;  /* a limit, according to the estimate */
    struct recommendations *out;
};

/* An estimated change. */
struct trial {
    struct recommendation row;
    bool is_good;   /* fits, and meets limits that are currently violated or saves enough */
    bool is_unsure; /* would save enough, but not more than the ± of the saving */
    enum precision used;
};

/* Power modes of one device share its figures. */
static uint64_t device_of(const struct workload_estimate *estimate)
{
    const char *id = estimate->hardware->id;
    return hash_bytes(HASH_START, id, strcspn(id, "@"));
}

/* Relative standard uncertainty that an estimate has on its own, and does not share with another of the same search. */
static double own_error(const struct workload_estimate *estimate, enum recommend_kind kind)
{
    enum runtime_id runtime = estimate->config.runtime;
    if (kind == RECOMMEND_BATCH)
        return runtime == RUNTIME_IDEAL ? BATCH_ERROR : BATCH_ERROR_KERNELS;
    if (kind == RECOMMEND_RUNTIME)
        return runtime_at(runtime)->error;
    return pass_uncertainty_model_error(estimate->hardware);
}

/* Relative standard uncertainty of the joules of `tried` over those of `now`.  The overhead of measured models is
 * common to both, and so is an assumed host, but the two may not wait for it equally. */
static double ratio_error(const struct search *search, enum recommend_kind kind,
                          const struct workload_estimate *tried)
{
    const struct workload_estimate *both[] = {search->now, tried};
    struct uncertainty each[2], all = {UNKNOWN, UNKNOWN, 0};
    double host[2];
    for (size_t i = 0; i < 2; i++) {
        const struct estimate_totals *total = &both[i]->total;
        double own = own_error(both[i], kind);
        each[i] = (struct uncertainty){total->joules_plus_minus / total->joules.total, own,
                                       device_of(both[i])};
        host[i] = total->host_joules_plus_minus / total->joules.total;
        uncertainty_join(&all, &each[i]);
    }
    double own = hypot(uncertainty_among(1, each[0].independent, &each[0], &all),
                       uncertainty_among(1, each[1].independent, &each[1], &all));
    return all.sensors == UNCERTAINTY_MIXED ? own : hypot(own, host[0] - host[1]);
}

static struct trial judge(struct search *search, enum recommend_kind kind,
                          const struct workload_estimate *tried)
{
    double joules = workload_estimate_joules_per_unit(tried);
    double ratio = joules / search->joules_now;
    struct trial trial = {.row = {.kind = kind,
                                  .joules_each = joules,
                                  .joules_saved_each = search->joules_now - joules,
                                  .saving = 1 - ratio,
                                  .saving_plus_minus = ratio * ratio_error(search, kind, tried),
                                  .verdict = budget_verdict(search->question->budget, tried),
                                  .latency_s = tried->total.latency_s,
                                  .units_per_s = workload_estimate_units_per_s(tried),
                                  .memory_bytes = tried->memory.total_peak}};
    bool repairs = search->is_violated && trial.row.verdict == BUDGET_PASS;
    bool saves = workload_estimate_fits(tried) && trial.row.saving > RECOMMEND_GAIN_MIN &&
                 budget_is_no_worse(search->question->budget, search->now, tried);
    bool is_sure = trial.row.saving > trial.row.saving_plus_minus;
    trial.is_good = workload_estimate_fits(tried) && (repairs || (saves && is_sure));
    trial.is_unsure = saves && !trial.is_good;
    search->out->unsure += trial.is_unsure;
    return trial;
}

/* Negative if `a` is better: it meets the limits, or saves more.  Unknown savings are last. */
static int compare(const struct recommendation *a, const struct recommendation *b)
{
    bool keeps = a->verdict == BUDGET_PASS;
    if (keeps != (b->verdict == BUDGET_PASS))
        return keeps ? -1 : 1;
    if (is_known(a->saving) && is_known(b->saving))
        return (a->saving < b->saving) - (a->saving > b->saving);
    return is_known(b->saving) - is_known(a->saving);
}

/* The first of two with equal savings wins. */
static bool is_better(const struct trial *trial, const struct trial *best)
{
    bool is_tied = trial->row.verdict == best->row.verdict &&
                   fabs(trial->row.saving - best->row.saving) <= TIE;
    return trial->is_good && (!best->is_good || (!is_tied && compare(&trial->row, &best->row) < 0));
}

static void propose(struct search *search, const struct trial *trial)
{
    struct recommendations *out = search->out;
    if (!trial->is_good || out->count == RECOMMEND_MAX)
        return;
    for (size_t i = 0; i < out->count; i++)
        if (str_equal(out->items[i].options, trial->row.options))
            return;
    out->items[out->count++] = trial->row;
}

/* The same workload on another device or in another configuration; not good if the device cannot run it. */
static void try_choice(struct search *search, enum recommend_kind kind,
                       const struct hardware *hardware, const struct estimate_config *config,
                       struct trial *out)
{
    struct workload_estimate tried;
    struct error lacks = {0};
    *out = (struct trial){0};
    enum err err =
        workload_estimate_make(search->now->work, hardware, config, false, &tried, &lacks);
    if (!err) {
        *out = judge(search, kind, &tried);
        out->used = tried.used;
    }
}

/* ---- another graph: batch, fusion ---- */

static void try_work(struct search *search, enum recommend_kind kind,
                     const struct workload_spec *question, struct trial *out)
{
    struct estimate_workload work;
    struct workload_estimate tried;
    struct error lacks = {0};
    *out = (struct trial){0};
    enum err err = workload_make(question, &work, &lacks);
    if (!err) {
        err = workload_estimate_make(&work, search->now->hardware, &search->now->config, false,
                                     &tried, &lacks);
        if (!err)
            *out = judge(search, kind, &tried);
        workload_release(&work);
    }
}

static void try_batch(struct search *search, int64_t batch, struct trial *out)
{
    struct workload_spec question = search->now->work->spec;
    question.setting.batch = batch;
    try_work(search, RECOMMEND_BATCH, &question, out);
    chars_format(out->row.options, "--batch %" PRId64, batch);
}

/* The largest smaller batch that meets currently violated limits: by halving, then by bisection between the first that
 * does and the last that does not. */
static void try_smaller_batches(struct search *search)
{
    struct trial trial, best = {0};
    int64_t violates = search->now->work->spec.setting.batch, meets = 0;
    while (search->is_violated && violates - meets > 1) {
        int64_t batch = meets ? meets + (violates - meets) / 2 : violates / 2;
        try_batch(search, batch, &trial);
        bool is_met = trial.is_good && trial.row.verdict == BUDGET_PASS;
        best = is_met ? trial : best;
        meets = is_met ? batch : meets;
        violates = is_met ? violates : batch;
    }
    propose(search, &best);
}

static void try_batches(struct search *search)
{
    struct trial trials[DOUBLINGS_MAX];
    size_t count = 0, best = 0;
    int64_t batch = search->now->work->spec.setting.batch;
    for (; count < DOUBLINGS_MAX && batch > 0 && batch <= BATCH_MAX / 2; count++) {
        try_batch(search, batch *= 2, &trials[count]);
        if (count > 0 && !trials[count].is_good && !trials[count].is_unsure)
            break; /* exceeds memory or limits */
    }
    for (size_t i = 0; i < count; i++)
        if (trials[i].is_good && trials[i].row.joules_each < trials[best].row.joules_each)
            best = i;
    for (size_t i = 0; i < count; i++)
        if (trials[i].is_good &&
            (i == 0 || trials[i].row.joules_each <= NEAR_BEST * trials[best].row.joules_each)) {
            propose(search, &trials[i]);
            if (i > 0)
                break;
        }
    for (size_t i = 0; search->is_violated && i < count; i++)
        if (trials[i].is_good && trials[i].row.verdict == BUDGET_PASS) {
            propose(search, &trials[i]);
            break;
        }
}

static void try_fusion(struct search *search)
{
    struct trial trial;
    struct workload_spec question = search->now->work->spec;
    bool is_fused = question.fusion == PARTITION_FUSED;
    if (question.runtime != RUNTIME_IDEAL) /* their fusion is fixed */
        return;
    question.fusion = is_fused ? PARTITION_PLAIN : PARTITION_FUSED;
    try_work(search, RECOMMEND_FUSION, &question, &trial);
    chars_copy(trial.row.options, is_fused ? "--no-fusion" : "without --no-fusion");
    propose(search, &trial);
}

/* Launching operators one by one keeps the device waiting for its host; a graph of the same kernels does not. */
static void try_runtime(struct search *search)
{
    struct trial trial;
    struct workload_spec question = search->now->work->spec;
    if (question.runtime != RUNTIME_PYTORCH_EAGER)
        return;
    question.runtime = RUNTIME_PYTORCH_GRAPH;
    question.fusion = runtime_at(question.runtime)->fusion;
    try_work(search, RECOMMEND_RUNTIME, &question, &trial);
    chars_format(trial.row.options, "--runtime %s", runtime_at(question.runtime)->name);
    chars_copy(trial.row.note, "the same kernels, captured once");
    propose(search, &trial);
}

/* ---- another precision ---- */

/* The device may lack it, or the runtime may compute weights of that width in another precision. */
static void note_precision(enum precision precision, struct trial *trial)
{
    struct recommendation *row = &trial->row;
    if (trial->used == precision)
        chars_copy(row->note, "answers may change");
    else
        chars_format(row->note, "weights only, computed in %s; answers may change",
                     precision_name(trial->used));
}

/* The smallest change that saves, and the one that saves most.  Weight-only int4 comes last, so it must beat the native
 * precisions. */
static void try_precisions(struct search *search)
{
    const struct workload_estimate *now = search->now;
    struct trial best = {0}, min = {0};
    double width = precision_widths(now->config.precision).weight;
    if (now->config.keeps_stored)
        return; /* determined by the file */
    for (enum precision p = 0; p < PRECISION_COUNT; p++) {
        struct estimate_config config = now->config;
        struct trial trial;
        if (p == config.precision || precision_widths(p).weight > width ||
            !estimate_offers(now->hardware, p))
            continue;
        config.precision = p;
        try_choice(search, RECOMMEND_PRECISION, now->hardware, &config, &trial);
        chars_format(trial.row.options, "--precision %s", precision_name(p));
        note_precision(p, &trial);
        bool keeps = trial.row.verdict == BUDGET_PASS;
        if (trial.is_good && (!min.is_good || (keeps && min.row.verdict != BUDGET_PASS)))
            min = trial;
        if (is_better(&trial, &best))
            best = trial;
    }
    propose(search, &min);
    propose(search, &best);
}

/* ---- other devices ---- */

static bool same_device(const struct hardware *a, const struct hardware *b)
{
    return str_equal(a->id, b->id);
}

/* The same workload in the same precision on another device, unless the default runtime there is different.  The
 * options name the precision if the default there is another; stored weights are computed in the default precision
 * there. */
static void try_device(struct search *search, const struct hardware *other, struct trial *out)
{
    const struct workload_estimate *now = search->now;
    struct estimate_config config = now->config;
    struct workload_spec there = now->work->spec;
    enum precision usual = workload_default_precision(now->work, other);
    workload_spec_run_on(&there, other);
    *out = (struct trial){0};
    if (config.keeps_stored)
        config.precision = usual;
    if (other->class != now->hardware->class || same_device(other, now->hardware) ||
        !estimate_offers(other, config.precision) || there.runtime != config.runtime)
        return;
    try_choice(search, RECOMMEND_HARDWARE, other, &config, out);
    bool is_usual = config.precision == usual;
    chars_format(out->row.options, "--hardware %s%s%s", other->id, is_usual ? "" : " --precision ",
                 is_usual ? "" : precision_name(config.precision));
}

/* The cheapest device, and the cheapest of those that are not slower. */
static void try_catalog(struct search *search)
{
    const struct workload_estimate *now = search->now;
    struct trial best = {0}, fast = {0};
    for (size_t i = 0; i < hardware_count(); i++) {
        struct trial trial = {0};
        try_device(search, hardware_at(i), &trial);
        if (is_better(&trial, &best))
            best = trial;
        if (trial.row.latency_s <= now->total.latency_s && is_better(&trial, &fast))
            fast = trial;
    }
    propose(search, &best);
    propose(search, &fast);
}

static void try_points(struct search *search)
{
    const struct hardware *hardware = search->now->hardware;
    struct trial best = {0};
    for (size_t i = 0; search->question->is_in_catalog && i < hardware->point_count; i++) {
        struct hardware other = *hardware; /* owns nothing: from the catalog */
        struct trial trial;
        if (hardware_at_point(&other, hardware->points[i].name, NULL))
            continue; /* never: it is one of its own */
        try_choice(search, RECOMMEND_POINT, &other, &search->now->config, &trial);
        chars_format(trial.row.options, "--hardware %.64s", other.id);
        if (is_better(&trial, &best))
            best = trial;
    }
    propose(search, &best);
}

static void try_fewer_devices(struct search *search)
{
    const struct workload_estimate *now = search->now;
    struct trial best = {0};
    for (int devices = now->config.devices / 2; devices >= 1; devices /= 2) {
        struct estimate_config config = now->config;
        struct trial trial;
        config.devices = devices;
        try_choice(search, RECOMMEND_DEVICES, now->hardware, &config, &trial);
        chars_format(trial.row.options, "--tensor-parallel %d", devices);
        if (is_better(&trial, &best))
            best = trial;
    }
    propose(search, &best);
}

static int best_first(const void *left, const void *right)
{
    return compare(left, right);
}

void recommend_make(const struct recommend_question *question, struct recommendations *out)
{
    static void (*const TRY[])(struct search *) = {
        try_smaller_batches, try_batches,       try_precisions, try_catalog,
        try_points,          try_fewer_devices, try_fusion,     try_runtime,
    };
    struct search search = {.question = question,
                            .now = question->now,
                            .joules_now = workload_estimate_joules_per_unit(question->now),
                            .is_violated = !budget_holds(question->budget, question->now),
                            .out = out};
    out->count = out->unsure = 0;
    for (size_t i = 0; i < COUNT_OF(TRY); i++)
        TRY[i](&search);
    qsort(out->items, out->count, sizeof *out->items, best_first);
}

int recommend_devices_to_fit(const struct workload_estimate *now)
{
    for (int count = 1; count <= DEVICES_MAX; count *= 2) {
        struct estimate_config config = now->config;
        struct workload_estimate tried;
        struct error lacks = {0};
        config.devices = count;
        enum err err =
            workload_estimate_make(now->work, now->hardware, &config, false, &tried, &lacks);
        if (err) /* not supported */
            return 0;
        if (tried.memory.fits)
            return count;
    }
    return 0;
}
