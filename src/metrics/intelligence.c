#include "metrics/intelligence.h"

#include <math.h>
#include <stdlib.h>

#include "core/finding.h"
#include "core/text.h"
#include "core/units.h"

/* ---- repeats ---- */

static int by_index(const void *left, const void *right)
{
    return compare_numbers(((const struct question *)left)->index,
                           ((const struct question *)right)->index);
}

static void add(struct question *to, const struct question *more)
{
    to->right += more->right;
    to->graded += more->graded;
    to->joules += more->joules;
    to->known += more->known;
}

size_t questions_merge(struct question *answers, size_t count)
{
    size_t questions = 0;
    if (count)
        qsort(answers, count, sizeof *answers, by_index);
    for (size_t i = 0; i < count; i++)
        if (questions && answers[questions - 1].index == answers[i].index)
            add(&answers[questions - 1], &answers[i]);
        else
            answers[questions++] = answers[i];
    return questions;
}

static struct question total_of(const struct question *questions, size_t count)
{
    struct question total = {0};
    for (size_t i = 0; i < count; i++)
        add(&total, &questions[i]);
    return total;
}

/* Without repeats this is the number of graded questions, which leaves Wilson's interval unchanged. */
static double effective_of(const struct question *questions, size_t count,
                           const struct question *total)
{
    double share = total->right / total->graded, squares = 0, asked = 0;
    for (size_t i = 0; i < count; i++) {
        double residual = questions[i].right - share * questions[i].graded;
        squares += residual * residual;
        asked += questions[i].graded > 0;
    }
    double variance = squares / (total->graded * total->graded);
    if (!(variance > 0))
        return asked;
    return fmin(share * (1 - share) / variance, total->graded);
}

/* First-order (delta method) errors of ratios of sums, from the residual of each question. */
struct repeats repeats_of(const struct question *questions, size_t count)
{
    struct question total = total_of(questions, count);
    struct repeats out = {count, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    double accuracy = total.right / total.graded, joules = total.joules / total.known;
    double accuracy_squares = 0, joules_squares = 0, ipj_squares = 0;
    if (total.graded > 0)
        out.effective = effective_of(questions, count, &total);
    for (size_t i = 0; i < count; i++) {
        double right = (questions[i].right - accuracy * questions[i].graded) / total.graded;
        double spent = (questions[i].joules - joules * questions[i].known) / total.known;
        double both = right / joules - accuracy / (joules * joules) * spent;
        accuracy_squares += right * right;
        joules_squares += spent * spent;
        ipj_squares += both * both;
    }
    if (count < 2)
        return out;
    double scale = (double)count / (double)(count - 1);
    out.accuracy_error = sqrt(scale * accuracy_squares);
    out.joules_error = sqrt(scale * joules_squares);
    out.ipj_error = sqrt(scale * ipj_squares);
    return out;
}

/* The Python IPW treats a figure at or below this as missing. */
#define UPSTREAM_MIN 1e-12

#define Z_95         1.959963984540054

static bool upstream_has(double value)
{
    return is_known(value) && value > UPSTREAM_MIN;
}

/* The Python analysis uses graded queries only: an energy of zero or less is replaced by power x time,
 * a missing one stays unknown, and power per query is energy / time, else the sampled mean. */
static void add_upstream_graded(struct intelligence_tally *tally,
                                const struct intelligence_query *query)
{
    double joules = query->gpu_joules, watts = query->gpu_watts, seconds = query->seconds;
    bool imputed = is_known(joules) && !upstream_has(joules);
    if (imputed)
        joules = upstream_has(watts) && upstream_has(seconds) ? watts * seconds : UNKNOWN;
    else if (upstream_has(joules) && upstream_has(seconds))
        watts = joules / seconds;
    if (upstream_has(joules))
        online_add(&tally->upstream_graded_joules, joules);
    if (upstream_has(watts))
        online_add(&tally->upstream_graded_watts, watts);
}

/* The Python exporter and dashboard sum over all answered queries. */
static void add_upstream(struct intelligence_tally *tally, const struct intelligence_query *query)
{
    double joules = query->gpu_joules, watts = query->gpu_watts, seconds = query->seconds;
    if (!upstream_has(joules))
        joules = upstream_has(watts) && upstream_has(seconds) ? watts * seconds : UNKNOWN;
    if (!upstream_has(joules))
        return;
    online_add(&tally->upstream_joules, joules);
    tally->upstream_seconds += upstream_has(seconds) ? seconds : UNKNOWN;
}

static void add_pair(struct intelligence_tally *tally, double right, double joules)
{
    if (!is_known(joules))
        return;
    double distance = right - tally->graded_right.mean; /* from the mean before this query */
    online_add(&tally->graded_right, right);
    online_add(&tally->graded_joules, joules);
    tally->right_by_joules += distance * (joules - tally->graded_joules.mean);
}

enum query_outcome query_outcome_of(bool completed, int correct, int unread)
{
    if (!completed)
        return OUTCOME_FAILED;
    if (unread == 1)
        return OUTCOME_UNREAD;
    if (correct < 0)
        return OUTCOME_UNGRADED;
    return correct ? OUTCOME_CORRECT : OUTCOME_INCORRECT;
}

void intelligence_add(struct intelligence_tally *tally, const struct intelligence_query *query)
{
    tally->hides_unread = tally->hides_unread || query->hides_unread;
    switch (query->outcome) {
    case OUTCOME_CORRECT:
        tally->correct++;
        add_pair(tally, 1, query->joules);
        add_upstream_graded(tally, query);
        break;
    case OUTCOME_INCORRECT:
        tally->incorrect++;
        add_pair(tally, 0, query->joules);
        add_upstream_graded(tally, query);
        break;
    case OUTCOME_UNREAD:
        tally->unread++;
        add_pair(tally, 0, query->joules);
        add_upstream_graded(tally, query);
        break;
    case OUTCOME_UNGRADED:
        tally->ungraded++;
        break;
    case OUTCOME_FAILED:
        tally->failed++;
        return;
    }
    online_add(&tally->joules, query->joules);
    online_add(&tally->active_joules, query->active_joules);
    add_upstream(tally, query);
}

static uint64_t graded_count(const struct intelligence_tally *tally)
{
    return tally->correct + tally->incorrect + tally->unread;
}

/* An unread answer may be correct: with all of them the accuracy is at most this. */
static void fill_unread(const struct intelligence_tally *tally, struct intelligence *out)
{
    double graded = (double)out->graded;
    out->unread = tally->hides_unread ? UNKNOWN : (double)tally->unread;
    out->unread_share = ratio(out->unread, graded);
    out->accuracy_at_most = ratio((double)tally->correct + out->unread, graded);
}

static void fill_accuracy(const struct intelligence_tally *tally, struct intelligence *out)
{
    double graded = (double)(out->graded = graded_count(tally));
    double n = tally->repeats.questions ? tally->repeats.effective : graded;
    double p = ratio((double)tally->correct, graded);
    out->accuracy = p;
    double z2 = Z_95 * Z_95;
    double middle = ratio(p + z2 / (2 * n), 1 + z2 / n);
    double half = ratio(Z_95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)), 1 + z2 / n);
    /* Rounding may exceed the bounds slightly. */
    out->accuracy_low = is_known(p) ? fmax(0, middle - half) : UNKNOWN;
    out->accuracy_high = is_known(p) ? fmin(1, middle + half) : UNKNOWN;
}

/* Standard error of the accuracy; UNKNOWN below two graded queries.  When all or none are correct the
 * sample variance is 0, which understates the uncertainty: Wilson's interval is used instead. */
static double accuracy_error(const struct intelligence_tally *tally, const struct intelligence *out)
{
    double accuracy = out->accuracy, graded = (double)out->graded;
    double sampled = sqrt(ratio(accuracy * (1 - accuracy), graded - 1));
    if (accuracy == 0 || accuracy == 1)
        return is_known(sampled) ? (out->accuracy_high - out->accuracy_low) / (2 * Z_95) : UNKNOWN;
    return tally->repeats.questions ? tally->repeats.accuracy_error : sampled;
}

/* Covariance of the accuracy and the mean energy: only queries that are in both contribute. */
static double mean_covariance(const struct intelligence_tally *tally)
{
    double pairs = (double)tally->graded_right.count;
    double graded = (double)graded_count(tally);
    double covariance = ratio(tally->right_by_joules, pairs - 1);
    return covariance * ratio(ratio(pairs, graded), (double)tally->joules.count);
}

/* First-order error propagation of accuracy / joules, with their covariance: a longer answer costs more
 * and is correct more or less often. */
static double ipj_error(const struct intelligence_tally *tally, const struct intelligence *out)
{
    bool repeats = tally->repeats.questions, edge = out->accuracy == 0 || out->accuracy == 1;
    double joules = online_mean(&tally->joules);
    double error = repeats ? tally->repeats.joules_error : online_standard_error(&tally->joules);
    double slope = ratio(out->accuracy, joules);
    if (repeats && !edge)
        return tally->repeats.ipj_error;
    double variance = out->accuracy_error * out->accuracy_error + slope * slope * error * error -
                      (edge ? 0 : 2 * slope * mean_covariance(tally));
    if (!is_known(variance))
        return UNKNOWN;
    return ratio(sqrt(variance > 0 ? variance : 0), joules);
}

static void fill_ipj(const struct intelligence_tally *tally, double calibration,
                     struct intelligence *out)
{
    out->energy_queries = tally->joules.count;
    out->joules_per_query = online_mean(&tally->joules);
    out->active_joules_per_query = online_mean(&tally->active_joules);
    out->ipj = ratio(out->accuracy, out->joules_per_query);
    out->ipj_active = ratio(out->accuracy, out->active_joules_per_query);
    out->accuracy_error = accuracy_error(tally, out);
    out->ipj_statistical = ipj_error(tally, out);
    out->ipj_plus_minus = hypot(out->ipj_statistical, out->ipj * calibration);
}

static void fill_ipw(const struct busy_energy *busy, struct intelligence *out)
{
    out->busy_watts = ratio(busy->joules, busy->seconds);
    out->ipw = ratio(out->accuracy, out->busy_watts);
    out->ipw_plus_minus = hypot(ratio(out->accuracy_error, out->busy_watts),
                                out->ipw * ratio(busy->plus_minus, busy->joules));
}

static void fill_upstream(const struct intelligence_tally *tally, struct intelligence *out)
{
    double mean = online_mean(&tally->upstream_joules);
    double total = mean * (double)tally->upstream_joules.count;
    out->upstream_ipj_mean_query =
        ratio(out->accuracy, online_mean(&tally->upstream_graded_joules));
    out->upstream_ipj_total = ratio(out->accuracy, total);
    out->upstream_ipw_mean_query = ratio(out->accuracy, online_mean(&tally->upstream_graded_watts));
    out->upstream_ipw_total = ratio(out->accuracy, ratio(total, tally->upstream_seconds));
}

void intelligence_of(const struct intelligence_tally *tally, const struct busy_energy *busy,
                     double calibration, struct intelligence *out)
{
    *out = (struct intelligence){0};
    fill_accuracy(tally, out);
    fill_unread(tally, out);
    fill_ipj(tally, calibration, out);
    fill_ipw(busy, out);
    fill_upstream(tally, out);
}

void intelligence_unread(const struct intelligence *figures, char *to, size_t size)
{
    to[0] = '\0';
    if (figures->unread > 0)
        str_format(to, size,
                   "%.0f of %llu graded answers (%.1f %%) could not be read by the grader and "
                   "count as not correct: the accuracy is %.1f %%, and at most %.1f %%",
                   figures->unread, (unsigned long long)figures->graded,
                   100 * figures->unread_share, 100 * figures->accuracy,
                   100 * figures->accuracy_at_most);
}

bool intelligence_check(const struct intelligence *figures, struct findings *out)
{
    char text[sizeof((struct finding *)0)->text];
    bool is_raised = figures->unread_share > INTELLIGENCE_UNREAD_MAX;
    intelligence_unread(figures, text, sizeof text);
    if (is_raised)
        finding_raise(out, FINDING_UNREAD_ANSWERS, "%s", text);
    return is_raised;
}
