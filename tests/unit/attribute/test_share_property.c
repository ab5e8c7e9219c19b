/* Properties of sharing on random machines and random requests. */
#include "attribute/share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/sampler.h"
#include "support/rng.h"
#include "support/scripted.h"
#include "support/shares.h"
#include "support/unit.h"

#define BEGIN         0.3
#define END           3.7
#define DECODE_WEIGHT 2.5

enum { MACHINES = 60, SETS = 5, REQUESTS_MAX = 30, PIECES_MAX = 40 };

/* ---- a random machine: a counter, a counter shaped by power samples, a power sensor that may have a gap ---- */

struct machine {
    double counter[SCRIPTED_POINTS], shaped[SCRIPTED_POINTS], power[SCRIPTED_POINTS];
    struct scripted_channel channels[5];
    struct baseline_row idle_rows[3];
    struct baseline idle;
    bool has_idle;
    struct sampler *sampler;
};

static void random_profile(double *watts)
{
    double level = rng_between(20, 200);
    for (size_t i = 0; i < SCRIPTED_POINTS; i++) {
        if (rng_uniform() < 0.05)
            level = rng_between(5, 300);
        watts[i] = level * rng_between(0.9, 1.1);
    }
}

static void machine_start(struct machine *m, bool with_gap)
{
    memset(m, 0, sizeof *m);
    random_profile(m->counter);
    random_profile(m->shaped);
    random_profile(m->power);
    m->channels[0] = (struct scripted_channel){.name = "package",
                                               .device = "cpu0",
                                               .quantity = QTY_ENERGY,
                                               .scope = SCOPE_PACKAGE,
                                               .profile = m->counter};
    m->channels[1] = (struct scripted_channel){.name = "energy",
                                               .device = "gpu0",
                                               .quantity = QTY_ENERGY,
                                               .scope = SCOPE_GPU,
                                               .profile = m->shaped};
    m->channels[2] = (struct scripted_channel){.name = "power",
                                               .device = "gpu0",
                                               .quantity = QTY_POWER,
                                               .scope = SCOPE_GPU,
                                               .secondary = true,
                                               .profile = m->shaped};
    m->channels[3] = (struct scripted_channel){.name = "power1",
                                               .device = "gpu1",
                                               .quantity = QTY_POWER,
                                               .scope = SCOPE_GPU,
                                               .location = 1,
                                               .profile = m->power};
    if (with_gap) {
        m->channels[3].gap_from_s = rng_between(0.5, 2);
        m->channels[3].gap_to_s = m->channels[3].gap_from_s + rng_between(0.6, 1.5);
    }
    static const char *const IDS[] = {"cpu0", "gpu0", "gpu1"};
    for (size_t i = 0; i < 3; i++) {
        m->idle_rows[i].watts = rng_between(0, 150);
        memcpy(m->idle_rows[i].device, IDS[i], 5);
    }
    m->idle = (struct baseline){m->idle_rows, 3, 1};
    m->has_idle = rng_uniform() < 0.7;
    const struct scripted_channel *sensors[] = {m->channels, NULL};
    m->sampler = scripted_start(sensors);
}

static struct sharing *share_on_machine(struct machine *m)
{
    struct sharing *sharing =
        sharing_new(m->sampler, &(struct sharing_options){.from = scripted_time(BEGIN),
                                                          .idle = m->has_idle ? &m->idle : NULL,
                                                          .decode_weight = DECODE_WEIGHT});
    assert_non_null(sharing);
    return sharing;
}

/* ---- random requests ---- */

struct requests {
    struct scripted_request items[REQUESTS_MAX + 1];
    double arrivals[REQUESTS_MAX][PIECES_MAX];
    size_t count;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rounded to a quarter of a millisecond, the time step of the reference implementation. */
static double aligned(double s)
{
    return round(s * 4000) / 4000;
}

/* The kind of requests that a test makes. */
enum { TOKENS_KNOWN = 1, ARRIVALS_ON_GRID = 2 };

static double random_arrival(const struct scripted_request *q, int kind)
{
    double t = rng_between(q->first, q->to);
    if (kind & ARRIVALS_ON_GRID)
        t = round(t * 1000) / 1000;
    return fmin(q->to, fmax(q->first, t));
}

static void random_requests(struct requests *r, int kind)
{
    memset(r, 0, sizeof *r);
    r->count = 1 + (size_t)(rng_uniform() * (REQUESTS_MAX - 1));
    for (size_t i = 0; i < r->count; i++) {
        struct scripted_request *q = &r->items[i];
        q->id = i + 1;
        q->from = aligned(rng_between(BEGIN, END - 0.4));
        q->to = aligned(fmin(END, q->from + rng_between(0.002, 1.2)));
        q->first = rng_uniform() < 0.1 ? 0 : aligned(rng_between(q->from, q->to));
        q->prompt = floor(rng_between(1, 2000));
        q->output = floor(rng_between(1, 300));
        if (!(kind & TOKENS_KNOWN) && rng_uniform() < 0.1)
            q->prompt = UNKNOWN;
        if (!(kind & TOKENS_KNOWN) && rng_uniform() < 0.2)
            q->output = UNKNOWN;
        q->pieces = q->first > 0 ? (size_t)rng_between(0, PIECES_MAX) : 0;
        for (size_t k = 0; k < q->pieces; k++)
            r->arrivals[i][k] = k ? random_arrival(q, kind) : q->first;
        qsort(r->arrivals[i], q->pieces, sizeof(double), by_value);
        q->arrivals = r->arrivals[i];
    }
}

/* ---- two ways to settle a run ---- */

static void share_at_once(struct machine *m, const struct requests *r, struct shares *out,
                          struct sharing_device_sum *sums)
{
    struct sharing *sharing = share_on_machine(m);
    scripted_requests(sharing, r->items);
    assert_int_equal(sharing_advance(sharing, scripted_time(END), shares_keep, out), ERR_OK);
    assert_int_equal(sharing_settled(sharing), scripted_time(END));
    assert_int_equal(sharing_sums(sharing, sums, 3), 3);
    sharing_free(sharing);
}

/* As in a real run: requests begin and end while the run advances in short steps. */
static void share_in_steps(struct machine *m, const struct requests *r, struct shares *out,
                           struct sharing_device_sum *sums)
{
    struct sharing *sharing = share_on_machine(m);
    bool begun[REQUESTS_MAX] = {false}, ended[REQUESTS_MAX] = {false};
    double now = BEGIN;
    while (now < END + 0.05) {
        for (size_t i = 0; i < r->count; i++)
            if (!begun[i] && r->items[i].from <= now) {
                scripted_begin(sharing, &r->items[i]);
                begun[i] = true;
            }
        for (size_t i = 0; i < r->count; i++)
            if (!ended[i] && r->items[i].to <= now) {
                scripted_end(sharing, &r->items[i]);
                ended[i] = true;
            }
        double until = fmin(END, now - rng_between(0, 0.03));
        assert_int_equal(sharing_advance(sharing, scripted_time(until), shares_keep, out), ERR_OK);
        now += rng_between(0.001, 0.02);
    }
    assert_int_equal(sharing_advance(sharing, scripted_time(END), shares_keep, out), ERR_OK);
    assert_int_equal(sharing_sums(sharing, sums, 3), 3);
    sharing_free(sharing);
}

/* ---- properties ---- */

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

static void assert_close(double a, double b, double scale)
{
    if (isnan(a) && isnan(b))
        return;
    assert_near(a, b, 1e-9 * scale);
}

static void assert_consistent(const struct device_share *share)
{
    const struct energy *energy = &share->energy;
    if (isnan(energy->joules)) {
        assert_int_equal(energy->method, METHOD_NONE);
        assert_true(energy->note[0] != '\0');
        assert_true(isnan(share->prefill_joules) && isnan(share->window_joules));
        return;
    }
    assert_true(energy->joules >= 0 && energy->plus_minus >= 0);
    assert_true(energy->coverage > 0 && energy->coverage <= 1);
    assert_true(energy->joules <= share->window_joules * (1 + 1e-9));
    assert_true(share->prefill_joules >= 0 && share->decode_joules >= 0);
    assert_close(share->prefill_joules + share->decode_joules, energy->joules, energy->joules);
    if (isnan(energy->idle_joules))
        return;
    assert_true(energy->idle_joules >= 0 && energy->active_joules >= 0);
    assert_close(energy->idle_joules + energy->active_joules, energy->joules, energy->joules);
}

static void assert_conserved(struct machine *m, const struct shares *shares,
                             const struct sharing_device_sum *sums)
{
    struct ledger ledger;
    assert_int_equal(
        ledger_take(m->sampler, scripted_time(BEGIN), scripted_time(END), NULL, &ledger), ERR_OK);
    for (size_t d = 0; d < 3; d++) {
        double requests = 0, total = ledger.devices[d].energy.joules;
        assert_string_equal(ledger.devices[d].id, sums[d].id);
        for (size_t i = 0; i < shares->count; i++)
            requests += or_zero(share_on(&shares->items[i], sums[d].id)->energy.joules);
        assert_close(requests, sums[d].requests_joules, total);
        assert_close(requests + or_zero(sums[d].idle_joules) + sums[d].unattributed_joules, total,
                     total);
        assert_close(sums[d].settled_joules, total, total);
        assert_int_equal(isnan(sums[d].idle_joules), !m->has_idle);
        assert_true(sums[d].unattributed_joules >= -1e-9 * total);
    }
    ledger_release(&ledger);
}

static void assert_total_is_the_sum(const struct kept_share *kept)
{
    double sum = 0;
    for (size_t d = 0; d < kept->share.count; d++)
        sum += or_zero(kept->devices[d].energy.joules);
    assert_close(or_zero(kept->share.total.joules), sum, sum);
    if (!isnan(kept->share.total.joules))
        assert_close(kept->share.prefill_joules + kept->share.decode_joules, sum, sum);
}

static void assert_same_shares(const struct shares *a, const struct shares *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct kept_share *x = &a->items[i], *y = shares_of(b, x->id);
        double scale = or_zero(x->share.total.joules);
        assert_close(x->share.total.joules, y->share.total.joules, scale);
        assert_close(x->share.total.idle_joules, y->share.total.idle_joules, scale);
        assert_close(x->share.prefill_joules, y->share.prefill_joules, scale);
        assert_near(x->share.concurrency, y->share.concurrency, 1e-9);
        assert_near(x->share.alone_s, y->share.alone_s, 1e-9);
        for (size_t d = 0; d < x->share.count; d++) {
            const struct device_share *p = &x->devices[d], *q = &y->devices[d];
            assert_close(p->energy.joules, q->energy.joules, scale);
            assert_close(p->energy.plus_minus, q->energy.plus_minus, scale);
            assert_close(p->energy.coverage, q->energy.coverage, 1);
            assert_close(p->decode_joules, q->decode_joules, scale);
            assert_close(p->window_joules, q->window_joules, p->window_joules);
            assert_int_equal(p->energy.updates, q->energy.updates);
        }
    }
}

/* ---- reference implementation: the same rule, in small time steps ---- */

#define CELL (1 / 4000.0)

static double oracle_prefill(const struct scripted_request *q, double from, double to)
{
    double end = q->first > 0 ? q->first : q->to;
    double inside = fmin(to, end) - fmax(from, q->from);
    return inside > 0 ? q->prompt * inside / (end - q->from) : 0;
}

/* Walks all intervals between arrivals. */
static double oracle_decode(const struct scripted_request *q, double from, double to)
{
    bool has_decode = q->first > 0 && q->first < q->to;
    double begin = has_decode ? q->first : q->from, sum = 0, whole = 0, last = begin;
    double output = isnan(q->output) ? (double)q->pieces : q->output;
    double inside = fmin(to, q->to) - fmax(from, begin);
    if (inside <= 0 || (!has_decode && output == 0))
        return 0;
    if (output == 0)
        return NAN;
    for (size_t k = 0; k < q->pieces && has_decode;) {
        double t = q->arrivals[k];
        double together = 0;
        for (; k < q->pieces && q->arrivals[k] == t; k++)
            together++;
        if (t <= begin + 1e-9)
            continue;
        double part = (fmin(to, t) - fmax(from, last)) / (t - last);
        sum += together * fmax(0, fmin(1, part));
        whole += together;
        last = t;
    }
    return whole > 0 ? output * sum / whole : output * inside / (q->to - begin);
}

/* Queries the sampler for every time step and shares the energy by weight; for gpu1. */
static void oracle_shares(struct machine *m, const struct requests *r, double *joules)
{
    long cells = lround((END - BEGIN) / CELL);
    memset(joules, 0, REQUESTS_MAX * sizeof *joules);
    for (long c = 0; c < cells; c++) {
        /* The same numbers as the edges of requests: in a phase with unknown tokens, 1e-16 s in
         * another step would make all weights there unknown. */
        double from = aligned(BEGIN + (double)c * CELL),
               to = aligned(BEGIN + (double)(c + 1) * CELL);
        double weights[REQUESTS_MAX], sum = 0, middle = (from + to) / 2;
        size_t alive = 0;
        struct window window;
        if (sampler_window(m->sampler, 0, 3, scripted_time(from), scripted_time(to), &window))
            continue;
        for (size_t i = 0; i < r->count; i++) {
            const struct scripted_request *q = &r->items[i];
            weights[i] = 0;
            if (q->from > middle || q->to < middle)
                continue;
            alive++;
            weights[i] = oracle_prefill(q, from, to) + DECODE_WEIGHT * oracle_decode(q, from, to);
            sum += weights[i];
        }
        double idle = m->has_idle ? fmin(window.sum, m->idle_rows[2].watts * window.covered_s) : 0;
        for (size_t i = 0; i < r->count; i++) {
            const struct scripted_request *q = &r->items[i];
            if (q->from > middle || q->to < middle)
                continue;
            double part = sum > 1e-9 ? weights[i] / sum
                                     : 1 / (double)alive; /* below that is rounding error */
            joules[i] += part * (window.sum - idle) + idle / (double)alive;
        }
    }
}

/* ---- the tests ---- */

static void for_each_set_from(unsigned seed, bool with_gap, int kind, unsigned machines,
                              void (*check)(struct machine *, struct requests *))
{
    static struct machine machine;
    static struct requests requests;
    for (unsigned i = 0; i < (test_is_instrumented() ? 2 : machines); i++) {
        rng_seed(seed + i);
        machine_start(&machine, with_gap);
        for (unsigned k = 0; k < SETS; k++) {
            random_requests(&requests, kind);
            check(&machine, &requests);
        }
        scripted_stop(machine.sampler);
    }
}

static void for_each_set(bool with_gap, int kind, unsigned machines,
                         void (*check)(struct machine *, struct requests *))
{
    for_each_set_from(1000, with_gap, kind, machines, check);
}

static void check_conservation(struct machine *m, struct requests *r)
{
    struct shares shares = {0};
    struct sharing_device_sum sums[3];
    share_at_once(m, r, &shares, sums);
    assert_int_equal(shares.count, r->count);
    assert_conserved(m, &shares, sums);
    for (size_t i = 0; i < shares.count; i++) {
        for (size_t d = 0; d < shares.items[i].share.count; d++)
            assert_consistent(&shares.items[i].devices[d]);
        assert_total_is_the_sum(&shares.items[i]);
        if (i)
            assert_true(r->items[shares.items[i].id - 1].to >=
                        r->items[shares.items[i - 1].id - 1].to);
    }
    shares_release(&shares);
}

static void energy_is_conserved(void **state)
{
    (void)state;
    for_each_set(false, 0, MACHINES, check_conservation);
}

static void energy_is_conserved_with_gaps(void **state)
{
    (void)state;
    for_each_set(true, 0, MACHINES / 3, check_conservation);
}

static void check_steps(struct machine *m, struct requests *r)
{
    struct shares once = {0}, steps = {0};
    struct sharing_device_sum once_sums[3], step_sums[3];
    share_at_once(m, r, &once, once_sums);
    share_in_steps(m, r, &steps, step_sums);
    assert_same_shares(&once, &steps);
    assert_conserved(m, &steps, step_sums);
    for (size_t d = 0; d < 3; d++)
        assert_close(once_sums[d].unattributed_joules, step_sums[d].unattributed_joules,
                     once_sums[d].settled_joules);
    shares_release(&once);
    shares_release(&steps);
}

static void stepwise_and_single_pass_settling_agree(void **state)
{
    (void)state;
    for_each_set(false, 0, MACHINES / 3, check_steps);
}

static void check_permutation(struct machine *m, struct requests *r)
{
    static struct requests other;
    struct shares shares = {0}, moved = {0};
    struct sharing_device_sum sums[3];
    share_at_once(m, r, &shares, sums);
    other = *r;
    for (size_t i = r->count; i-- > 1;) {
        size_t k = (size_t)(rng_uniform() * (double)(i + 1));
        struct scripted_request kept = other.items[i];
        other.items[i] = other.items[k];
        other.items[k] = kept;
    }
    for (size_t i = 0; i < r->count; i++)
        other.items[i].id = 1000 - other.items[i].id;
    share_at_once(m, &other, &moved, sums);
    for (size_t i = 0; i < moved.count; i++)
        moved.items[i].id = 1000 - moved.items[i].id;
    assert_same_shares(&shares, &moved);
    shares_release(&shares);
    shares_release(&moved);
}

static void shares_do_not_depend_on_ids_or_order(void **state)
{
    (void)state;
    for_each_set(false, 0, MACHINES / 3, check_permutation);
}

static void check_scale(struct machine *m, struct requests *r)
{
    struct shares shares = {0}, doubled = {0};
    struct sharing_device_sum sums[3];
    share_at_once(m, r, &shares, sums);
    for (size_t i = 0; i < r->count; i++) {
        r->items[i].prompt *= 2;
        r->items[i].output *= 2;
    }
    share_at_once(m, r, &doubled, sums);
    assert_same_shares(&shares, &doubled);
    shares_release(&shares);
    shares_release(&doubled);
}

static void shares_do_not_depend_on_the_scale_of_tokens(void **state)
{
    (void)state;
    for_each_set(false, TOKENS_KNOWN, MACHINES / 3, check_scale);
}

static void check_oracle(struct machine *m, struct requests *r)
{
    struct shares shares = {0};
    struct sharing_device_sum sums[3];
    double joules[REQUESTS_MAX];
    share_at_once(m, r, &shares, sums);
    oracle_shares(m, r, joules);
    for (size_t i = 0; i < r->count; i++) {
        double mine = or_zero(share_on(shares_of(&shares, r->items[i].id), "gpu1")->energy.joules);
        /* Where the power crosses the baseline inside a slice, part of it may count as idle here
         * and as active there: at most 3 mJ with the seeds from 1000 to 1150. */
        double tolerance = m->has_idle ? 0.005 : 1e-7 * (1 + joules[i]);
        assert_near(mine, joules[i], tolerance);
    }
    shares_release(&shares);
}

static void shares_match_a_reference_implementation(void **state)
{
    (void)state;
    for_each_set_from(1048, true, ARRIVALS_ON_GRID, 8, check_oracle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_is_conserved),
        cmocka_unit_test(energy_is_conserved_with_gaps),
        cmocka_unit_test(stepwise_and_single_pass_settling_agree),
        cmocka_unit_test(shares_do_not_depend_on_ids_or_order),
        cmocka_unit_test(shares_do_not_depend_on_the_scale_of_tokens),
        cmocka_unit_test(shares_match_a_reference_implementation),
    };
    return RUN_TESTS(tests);
}
