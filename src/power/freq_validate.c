/* Every protocol assigns samples to folds; a fold's samples are predicted by a model of the others and stored as
 * trials, from which all scores are computed at the end.
 *
 * If a model has no interval of its own, a trial's interval is the FREQ_LEVEL quantile of the errors of the trials
 * in the other folds: its coverage is measured without using the fold. */
#include "power/freq_validate.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/registry.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "metrics/efficiency.h"
#include "power/freq_model.h"
#include "stats/descriptive.h"

enum { FOLDS_DEFAULT = 5, SLOW_FOLDS = 5, NEAR_DEFAULT = 5, PROBES_MAX = 7, NO_FOLD = -1 };

static const char *const PROTOCOLS[FREQ_PROTOCOLS] = {"random", "frequency", "application", "gpu"};

const char *freq_protocol_name(enum freq_protocol protocol)
{
    return PROTOCOLS[protocol];
}

bool freq_protocol_leaks(enum freq_protocol protocol)
{
    return protocol == FREQ_RANDOM || protocol == FREQ_FREQUENCY;
}

enum err freq_protocol_find(const char *name, enum freq_protocol *out, struct error *why)
{
    for (*out = 0; *out < FREQ_PROTOCOLS; ++*out)
        if (str_equal(name, PROTOCOLS[*out]))
            return ERR_OK;
    return registry_unknown("protocol", name, PROTOCOLS, FREQ_PROTOCOLS, ERR_USAGE, why);
}

/* ---- folds ---- */

/* One sample, in the order of the curves. */
struct trial {
    const struct freq_curve *curve;
    const struct freq_sample *sample;
    int fold;
    bool is_probe; /* predicted but not scored */
    bool is_predicted;
    struct freq_prediction predicted;
};

struct work {
    const struct freq_model_kind *kind;
    const struct freq_curves *curves;
    const struct freq_validate_options *options;
    struct trial *trials;
    size_t count;
    size_t folds, probes, near;
    struct error *why;
};

static void list_trials(struct work *w)
{
    size_t samples = 0;
    for (size_t i = 0; i < w->curves->count; i++)
        samples += w->curves->items[i].count;
    w->trials = xcalloc(samples + 1, sizeof *w->trials);
    for (size_t i = 0; i < w->curves->count; i++)
        for (size_t k = 0; k < w->curves->items[i].count; k++)
            w->trials[w->count++] = (struct trial){.curve = &w->curves->items[i],
                                                   .sample = &w->curves->items[i].samples[k]};
}

static void fold_rows(struct work *w)
{
    struct random random = random_from(w->options->model.seed, 0x66726571);
    w->folds = w->options->folds ? w->options->folds : FOLDS_DEFAULT;
    for (size_t i = 0; i < w->count; i++)
        w->trials[i].fold = (int)(i % w->folds);
    for (size_t i = w->count; i-- > 1;) { /* shuffles the folds, not the samples */
        size_t other = random_below(&random, i + 1);
        int fold = w->trials[i].fold;
        w->trials[i].fold = w->trials[other].fold;
        w->trials[other].fold = fold;
    }
}

/* Equal clocks of all applications are left out together. */
static void fold_frequencies(struct work *w)
{
    double *clocks = xmalloc((w->count + 1) * sizeof *clocks);
    size_t different = 0;
    for (size_t i = 0; i < w->count; i++)
        clocks[i] = w->trials[i].sample->freq_mhz;
    qsort(clocks, w->count, sizeof *clocks, compare_doubles);
    for (size_t i = 0; i < w->count; i++)
        if (i == 0 || clocks[i] != clocks[different - 1])
            clocks[different++] = clocks[i];
    w->folds = w->kind->is_slow && different > SLOW_FOLDS ? SLOW_FOLDS : different;
    for (size_t i = 0; i < w->count; i++) {
        const double *at = bsearch(&w->trials[i].sample->freq_mhz, clocks, different,
                                   sizeof *clocks, compare_doubles);
        w->trials[i].fold = (int)((size_t)(at - clocks) % w->folds);
    }
    free(clocks);
}

/* By application (the same on every GPU is one) or by GPU. */
static void fold_names(struct work *w, bool is_gpu)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct freq_curve *curve = w->trials[i].curve;
        w->trials[i].fold = NO_FOLD;
        for (size_t k = 0; k < i && w->trials[i].fold == NO_FOLD;
             k += w->trials[k].curve->count) /* the first trial of each previous curve */
            if (str_equal(is_gpu ? w->trials[k].curve->gpu : w->trials[k].curve->application,
                          is_gpu ? curve->gpu : curve->application))
                w->trials[i].fold = w->trials[k].fold;
        if (w->trials[i].fold == NO_FOLD)
            w->trials[i].fold = (int)w->folds++;
    }
}

static enum err make_folds(struct work *w)
{
    enum freq_protocol protocol = w->options->protocol;
    if (protocol == FREQ_RANDOM)
        fold_rows(w);
    else if (protocol == FREQ_FREQUENCY)
        fold_frequencies(w);
    else
        fold_names(w, protocol == FREQ_GPU);
    if (w->folds < 2 || w->folds > w->count)
        return err_set(w->why, ERR_NO_DATA, "validation by %s needs at least two of them",
                       PROTOCOLS[protocol]);
    return ERR_OK;
}

/* The curves without the samples of a fold; their samples are copies. */
static void without_fold(const struct work *w, int fold, struct freq_curves *out)
{
    *out = (struct freq_curves){.items = xcalloc(w->curves->count + 1, sizeof *out->items)};
    for (size_t i = 0, at = 0; i < w->curves->count; i++) {
        const struct freq_curve *curve = &w->curves->items[i];
        struct freq_curve *copy = &out->items[out->count];
        *copy = *curve;
        copy->count = 0;
        copy->samples = xmalloc((curve->count + 1) * sizeof *copy->samples);
        for (size_t k = 0; k < curve->count; k++, at++)
            if (w->trials[at].fold != fold)
                copy->samples[copy->count++] = curve->samples[k];
        if (copy->count)
            out->count++;
        else
            free(copy->samples);
    }
}

/* ---- predicting ---- */

/* Clocks that a probe is the median of were used, and are not scored. */
static void mark_probes(const struct work *w, struct trial *trials, size_t count,
                        const struct freq_sample *probes, size_t probe_count)
{
    for (size_t p = 0; p < probe_count; p++) {
        size_t at = 0;
        for (size_t i = 0; i < count; i++)
            if (trials[i].sample->freq_mhz == probes[p].freq_mhz)
                at = i;
        for (size_t i = at - (at < w->near / 2 ? at : w->near / 2);
             i < count && i <= at + w->near / 2; i++)
            trials[i].is_probe = true;
    }
}

/* The target of a curve: a known application of the model, or a new one. */
static struct freq_target target_of(const struct work *w, struct trial *trials, size_t count,
                                    struct freq_sample *probes)
{
    const struct freq_curve *curve = trials[0].curve;
    bool is_new = !freq_protocol_leaks(w->options->protocol);
    size_t probe_count = is_new ? freq_curve_probes(curve, w->probes, w->near, probes) : 0;
    struct freq_target target = freq_target_of(curve, probes, probe_count);
    if (!is_new)
        target.application = curve->application;
    mark_probes(w, trials, count, probes, probe_count);
    return target;
}

/* Rows of an application that is in the fit, each with its own activities: as in public studies. */
static enum err predict_rows(const struct work *w, const void *state, struct freq_target *target,
                             const struct trial *trials, size_t count, int fold,
                             struct freq_prediction *out)
{
    enum err err = ERR_OK;
    for (size_t i = 0, at = 0; !err && i < count; i++) {
        const struct freq_sample *sample = trials[i].sample;
        if (trials[i].fold != fold)
            continue;
        for (size_t k = 0; k < FREQ_ACTIVITIES; k++)
            if (is_known(sample->activity[k]))
                target->activity[k] = sample->activity[k];
        err = w->kind->predict(state, target, &sample->freq_mhz, 1, &out[at++], w->why);
    }
    return err;
}

/* Predicts the trials of a fold among those of one curve. */
static enum err predict_curve(const struct work *w, const void *state, struct trial *trials,
                              size_t count, int fold)
{
    struct freq_sample probes[PROBES_MAX] = {0};
    struct freq_prediction *out = xcalloc(count + 1, sizeof *out);
    double *mhz = xcalloc(count + 1, sizeof *mhz);
    size_t wanted = 0, at = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < count; i++)
        if (trials[i].fold == fold)
            mhz[wanted++] = trials[i].sample->freq_mhz;
    if (wanted) {
        struct freq_target target = target_of(w, trials, count, probes);
        err = freq_protocol_leaks(w->options->protocol)
                  ? predict_rows(w, state, &target, trials, count, fold, out)
                  : w->kind->predict(state, &target, mhz, wanted, out, w->why);
    }
    for (size_t i = 0; !err && i < count; i++)
        if (trials[i].fold == fold) {
            trials[i].predicted = out[at++];
            trials[i].is_predicted = true;
        }
    free(out);
    free(mhz);
    /* An application without activities cannot be predicted from them. */
    return err == ERR_NO_DATA || err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err run_fold(const struct work *w, int fold)
{
    struct freq_curves rest;
    struct freq_model_options options = w->options->model;
    void *state = NULL;
    without_fold(w, fold, &rest);
    enum err err = w->kind->fit(&rest, &options, &state, w->why);
    for (size_t i = 0, next; !err && i < w->count; i = next) {
        next = i + w->trials[i].curve->count;
        err = predict_curve(w, state, w->trials + i, next - i, fold);
    }
    if (state)
        freq_state_free(w->kind->fields, state);
    freq_curves_release(&rest);
    return err;
}

/* ---- intervals ---- */

static double measured_of(const struct trial *trial, size_t figure)
{
    if (figure == FREQ_POWER_W)
        return trial->sample->power_w;
    return figure == FREQ_TIME_S ? trial->sample->time_s : trial->sample->energy_j;
}

static bool is_scored(const struct trial *trial, size_t figure)
{
    return trial->is_predicted && !trial->is_probe &&
           is_known(trial->predicted.figures[figure].value) && is_known(measured_of(trial, figure));
}

/* The curves, or GPUs, with scored trials outside a group of folds of left-out applications or GPUs. */
static size_t count_outside(const struct work *w, int group, int groups, size_t figure,
                            bool is_gpus)
{
    const struct freq_curve *last = NULL;
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct trial *trial = &w->trials[i];
        if (trial->fold % groups == group || !is_scored(trial, figure))
            continue;
        bool is_same = last == trial->curve;
        if (is_gpus && last) /* the curves are sorted by them */
            is_same = str_equal(last->gpu, trial->curve->gpu);
        count += !is_same;
        last = trial->curve;
    }
    return count;
}

/* A fold without an interval of its own gets that of the others' errors. */
static void set_intervals(struct work *w, size_t figure)
{
    double *errors = xmalloc((w->count + 1) * sizeof *errors);
    /* Few enough folds to iterate over all trials for each: left-out clocks have the model's own interval, or share
     * that of their fold modulo this. */
    enum { GROUPS = 24 };
    for (int group = 0; group < GROUPS; group++) {
        size_t known = 0;
        for (size_t i = 0; i < w->count; i++)
            if (w->trials[i].fold % GROUPS != group && is_scored(&w->trials[i], figure))
                errors[known++] = fabs(measured_of(&w->trials[i], figure) /
                                           w->trials[i].predicted.figures[figure].value -
                                       1);
        double half = conformal_quantile(errors, known, FREQ_LEVEL);
        if (!freq_protocol_leaks(w->options->protocol)) /* else rows of the same curves */
            half *= freq_curves_factor(count_outside(w, group, GROUPS, figure, false));
        if (w->options->protocol == FREQ_GPU)
            half *= freq_curves_factor(count_outside(w, group, GROUPS, figure, true));
        for (size_t i = 0; i < w->count; i++) {
            struct freq_value *value = &w->trials[i].predicted.figures[figure];
            if (w->trials[i].fold % GROUPS == group && !is_known(value->low))
                *value = freq_value_within(value->value, half);
        }
    }
    free(errors);
}

/* ---- scores ---- */

struct sums {
    struct online measured, absolute, square;
    double predicted_sum, measured_sum, within[3], covered, intervals;
};

static void add_trial(struct sums *s, const struct trial *trial, size_t figure)
{
    static const double WITHIN[3] = {0.05, 0.10, 0.15};
    const struct freq_value *value = &trial->predicted.figures[figure];
    double measured = measured_of(trial, figure), off = value->value - measured;
    online_add(&s->measured, measured);
    online_add(&s->absolute, fabs(off));
    online_add(&s->square, off * off);
    s->predicted_sum += value->value;
    s->measured_sum += measured;
    for (size_t i = 0; i < 3; i++)
        s->within[i] += fabs(off) <= WITHIN[i] * measured;
    if (is_known(value->low)) {
        s->covered += measured >= value->low && measured <= value->high;
        s->intervals++;
    }
}

/* Mean relative error over the scored trials of a curve. */
static double curve_mape(const struct trial *trials, size_t count, size_t figure)
{
    struct online errors = {0};
    for (size_t i = 0; i < count; i++)
        if (is_scored(&trials[i], figure))
            online_add(&errors, fabs(trials[i].predicted.figures[figure].value /
                                         measured_of(&trials[i], figure) -
                                     1));
    return online_mean(&errors);
}

static struct freq_score score_of(const struct work *w, const struct freq_validation *v,
                                  size_t figure)
{
    struct sums s = {0};
    struct online mapes = {0};
    for (size_t i = 0; i < w->count; i++)
        if (is_scored(&w->trials[i], figure))
            add_trial(&s, &w->trials[i], figure);
    for (size_t i = 0; i < v->curve_count; i++)
        online_add(&mapes, v->curves[i].mape[figure]);
    double n = (double)s.absolute.count, spread = s.measured.squares;
    struct freq_score score = {.rows = s.absolute.count,
                               .mae = online_mean(&s.absolute),
                               .rmse = sqrt(online_mean(&s.square)),
                               .r2 = spread > 0 ? 1 - n * online_mean(&s.square) / spread : UNKNOWN,
                               .mape = online_mean(&mapes),
                               .total = ratio(s.predicted_sum, s.measured_sum) - 1,
                               .coverage = ratio(s.covered, s.intervals)};
    for (size_t i = 0; i < 3; i++)
        score.within[i] = ratio(s.within[i], n);
    return score;
}

/* ---- regret ---- */

extern const struct freq_model_kind freq_model_roofline;

/* The true cost of each clock is that of a fit to all samples of the curve: single measurements are too noisy to
 * define an optimum. */
static enum err set_regret(const struct work *w, const struct trial *trials, size_t count,
                           struct freq_curve_score *score)
{
    struct freq_curves alone = {.items = (struct freq_curve *)score->curve, .count = 1};
    struct freq_target target = {.gpu = score->curve->gpu,
                                 .application = score->curve->application};
    double lowest = INFINITY, picked = INFINITY, cost = UNKNOWN;
    void *state = NULL;
    enum err err = freq_model_roofline.fit(&alone, &w->options->model, &state, w->why);
    for (size_t i = 0; !err && i < count; i++) {
        const struct freq_value *figures = trials[i].predicted.figures;
        struct freq_prediction own;
        err = freq_model_roofline.predict(state, &target, &trials[i].sample->freq_mhz, 1, &own,
                                          w->why);
        double true_edp = err ? UNKNOWN
                              : energy_delay_product(own.figures[FREQ_ENERGY_J].value,
                                                     own.figures[FREQ_TIME_S].value, 1);
        double edp = trials[i].is_predicted ? energy_delay_product(figures[FREQ_ENERGY_J].value,
                                                                   figures[FREQ_TIME_S].value, 1)
                                            : UNKNOWN;
        lowest = fmin(lowest, true_edp);
        if (edp < picked) {
            picked = edp;
            cost = true_edp;
            score->picked_mhz = trials[i].sample->freq_mhz;
        }
    }
    score->regret = cost / lowest - 1;
    if (state)
        freq_state_free(freq_model_roofline.fields, state);
    return err;
}

static enum err score_curves(const struct work *w, const struct findings *findings,
                             struct freq_validation *out)
{
    struct online regrets = {0};
    enum err err = ERR_OK;
    out->curves = xcalloc(w->curves->count + 1, sizeof *out->curves);
    for (size_t i = 0, next; !err && i < w->count; i = next) {
        struct freq_curve_score *score = &out->curves[out->curve_count++];
        *score = (struct freq_curve_score){
            .curve = w->trials[i].curve, .picked_mhz = UNKNOWN, .regret = UNKNOWN};
        next = i + score->curve->count;
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            score->mape[k] = curve_mape(w->trials + i, next - i, k);
        if (!data_findings_invalid(findings, score->curve))
            err = set_regret(w, w->trials + i, next - i, score);
        online_add(&regrets, score->regret);
    }
    out->regret_mean = online_mean(&regrets);
    out->regret_max = online_max(&regrets);
    return err;
}

/* ---- validation ---- */

void freq_validation_release(struct freq_validation *validation)
{
    free(validation->curves);
    *validation = (struct freq_validation){0};
}

static size_t probes_of(const struct freq_model_kind *kind,
                        const struct freq_validate_options *options)
{
    if (freq_protocol_leaks(options->protocol))
        return 0;
    if (options->probes >= 0)
        return options->probes < PROBES_MAX ? (size_t)options->probes : PROBES_MAX;
    return kind->has_probes || options->protocol == FREQ_GPU ? FREQ_PROBES : 0;
}

enum err freq_validate(const struct freq_model_kind *kind, const struct freq_curves *curves,
                       const struct findings *findings, const struct freq_validate_options *options,
                       struct freq_validation *out, struct error *why)
{
    struct work w = {.kind = kind, .curves = curves, .options = options, .why = why};
    w.near = options->probe_near ? options->probe_near : NEAR_DEFAULT;
    w.probes = probes_of(kind, options);
    *out =
        (struct freq_validation){.kind = kind, .protocol = options->protocol, .probes = w.probes};
    if (kind->has_probes && !freq_protocol_leaks(options->protocol) && w.probes == 0)
        return err_set(why, ERR_USAGE, "model %s needs probes of a new application", kind->name);
    list_trials(&w);
    enum err err = make_folds(&w);
    for (size_t fold = 0; !err && fold < w.folds; fold++)
        err = run_fold(&w, (int)fold);
    for (size_t k = 0; !err && k < FREQ_FIGURES; k++)
        set_intervals(&w, k);
    if (!err)
        err = score_curves(&w, findings, out);
    for (size_t k = 0; !err && k < FREQ_FIGURES; k++)
        out->figures[k] = score_of(&w, out, k);
    out->folds = w.folds;
    free(w.trials);
    if (err)
        freq_validation_release(out);
    return err;
}
