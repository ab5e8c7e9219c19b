/* test: tsan */
/* Sharing over scripted sensors: which request gets which energy, its notes, and what stays unattributed. */
#define _GNU_SOURCE
#include "attribute/share.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "sampler/sampler.h"
#include "support/scripted.h"
#include "support/shares.h"
#include "support/unit.h"

#define BEGIN  0.5
#define END    3.5

#define DATING 0.006 /* s: uncertainty of the time of an update */

#define COUNTER(n, d, s, l, w)                                                                     \
    .name = (n), .device = (d), .quantity = QTY_ENERGY, .scope = SCOPE_##s, .location = (l),       \
    .value = (w)
#define POWER(n, d, s, l, w)                                                                       \
    .name = (n), .device = (d), .quantity = QTY_POWER, .scope = SCOPE_##s, .location = (l),        \
    .value = (w)
#define GAUGE(n, d, q, v) .name = (n), .device = (d), .quantity = QTY_##q, .value = (v)

static const struct scripted_channel ONE_GPU[] = {{COUNTER("energy", "gpu0", GPU, 0, 100)}, {0}};

/* ---- a machine and a run that starts at BEGIN ---- */

struct fixture {
    struct sampler *sampler;
    struct sharing *sharing;
    struct shares shares;
    struct baseline_row idle_rows[2];
    struct baseline idle;
};

static void share_with(struct fixture *f, double decode_weight)
{
    f->sharing =
        sharing_new(f->sampler, &(struct sharing_options){.from = scripted_time(BEGIN),
                                                          .idle = f->idle.count ? &f->idle : NULL,
                                                          .decode_weight = decode_weight});
    assert_non_null(f->sharing);
}

static void add_idle(struct fixture *f, const char *device, double watts)
{
    f->idle.rows = f->idle_rows;
    struct baseline_row *row = &f->idle_rows[f->idle.count++];
    *row = (struct baseline_row){.watts = watts};
    memcpy(row->device, device, strlen(device) + 1);
}

/* With a baseline for gpu0, unless it is UNKNOWN. */
static void begin(struct fixture *f, const struct scripted_channel *channels, double idle_w)
{
    const struct scripted_channel *sensors[] = {channels, NULL};
    *f = (struct fixture){0};
    f->sampler = scripted_start(sensors);
    if (!isnan(idle_w))
        add_idle(f, "gpu0", idle_w);
    share_with(f, 1);
}

static void advance(struct fixture *f, double until)
{
    assert_int_equal(sharing_advance(f->sharing, scripted_time(until), shares_keep, &f->shares),
                     ERR_OK);
}

static void run(struct fixture *f, const struct scripted_request *requests)
{
    scripted_requests(f->sharing, requests);
    advance(f, END);
}

static void release(struct fixture *f)
{
    shares_release(&f->shares);
    sharing_free(f->sharing);
    scripted_stop(f->sampler);
}

static struct sharing_device_sum sum_of(const struct fixture *f, const char *device)
{
    struct sharing_device_sum sums[8];
    size_t count = sharing_sums(f->sharing, sums, 8);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(sums[i].id, device))
            return sums[i];
    fail();
    return sums[0]; /* not reached */
}

static struct ledger ledger_over(const struct fixture *f, double from, double to)
{
    struct ledger ledger;
    assert_int_equal(ledger_take(f->sampler, scripted_time(from), scripted_time(to),
                                 f->idle.count ? &f->idle : NULL, &ledger),
                     ERR_OK);
    return ledger;
}

static double joules(const struct fixture *f, uint64_t id)
{
    return shares_of(&f->shares, id)->share.total.joules;
}

/* The attributed energy equals the ledger's energy of the same time. */
static void assert_conserved(const struct fixture *f, const char *device)
{
    struct ledger ledger;
    struct sharing_device_sum sum = sum_of(f, device);
    double requests = 0;
    assert_int_equal(
        ledger_take(f->sampler, scripted_time(BEGIN), sharing_settled(f->sharing), NULL, &ledger),
        ERR_OK);
    for (size_t i = 0; i < ledger.count; i++)
        if (!strcmp(ledger.devices[i].id, device))
            assert_near(sum.settled_joules, ledger.devices[i].energy.joules,
                        1e-9 * sum.settled_joules);
    for (size_t i = 0; i < f->shares.count; i++) {
        double one = share_on(&f->shares.items[i], device)->energy.joules;
        requests += isnan(one) ? 0 : one;
    }
    assert_near(requests, sum.requests_joules, 1e-9 * sum.settled_joules);
    ledger_release(&ledger);
}

/* ---- shares of requests ---- */

static void test_a_single_request_gets_the_energy_of_its_window(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f,
          (const struct scripted_channel[]){{COUNTER("energy", "gpu0", GPU, 0, 100), .step_s = 1.5,
                                             .step_value = 250, .relative_accuracy = 0.03},
                                            {0}},
          20);
    run(&f, (const struct scripted_request[]){{1, 1.00321, 1.2, 2.0077, 100, 50, NULL, 50}, {0}});
    struct ledger ledger = ledger_over(&f, 1.00321, 2.0077);
    const struct kept_share *kept = shares_of(&f.shares, 1);
    const struct energy *share = &share_on(kept, "gpu0")->energy,
                        *whole = &ledger.devices[0].energy;
    assert_near(share->joules, whole->joules, 1e-9 * whole->joules);
    assert_near(share->idle_joules, whole->idle_joules, 1e-9 * whole->joules);
    assert_near(share->active_joules, whole->active_joules, 1e-9 * whole->joules);
    assert_near(share->plus_minus, hypot(share->statistical, 0.03 * share->joules), 1e-9);
    /* An uncertain tick moves energy between its neighbors: where an edge is between two, it matters less for each. */
    assert_true(share->statistical <= whole->statistical);
    assert_true(share->statistical >= 0.5 * whole->statistical);
    assert_near(share->coverage, 1, 1e-9);
    assert_int_equal(share->method, METHOD_COUNTER);
    assert_int_equal(share->updates, whole->updates);
    assert_false(share->low_confidence);
    assert_string_equal(share->source, whole->source);
    assert_string_equal(share->note, "");
    assert_near(share_on(kept, "gpu0")->window_joules, whole->joules, 1e-9 * whole->joules);
    assert_near(kept->share.total.joules, whole->joules, 1e-9 * whole->joules);
    assert_near(kept->share.total.plus_minus, share->plus_minus, 1e-9 * whole->joules);
    assert_near(kept->share.alone_s, 1.00449, 1e-9);
    assert_near(kept->share.concurrency, 1, 1e-9);
    assert_conserved(&f, "gpu0");
    ledger_release(&ledger);
    release(&f);
}

static void test_identical_requests_get_equal_halves(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    run(&f, (const struct scripted_request[]){
                {1, 1, 1.3, 2, 100, 70, NULL, 70}, {2, 1, 1.3, 2, 100, 70, NULL, 70}, {0}});
    assert_near(joules(&f, 1), 50, 0.001);
    assert_near(joules(&f, 1), joules(&f, 2), 1e-9);
    assert_near(shares_of(&f.shares, 1)->share.concurrency, 2, 1e-9);
    assert_near(shares_of(&f.shares, 1)->share.alone_s, 0, 1e-12);
    release(&f);
}

/* Idle energy is shared equally and active energy by tokens: 20 W and 80 W. */
static void test_active_energy_is_shared_by_tokens_and_idle_equally(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    run(&f, (const struct scripted_request[]){
                {1, 1, 0, 2, 300, 0, NULL, 0}, {2, 1, 0, 2, 100, 0, NULL, 0}, {0}});
    const struct energy *heavy = &shares_of(&f.shares, 1)->share.total;
    const struct energy *light = &shares_of(&f.shares, 2)->share.total;
    assert_near(heavy->active_joules, 60, 0.001);
    assert_near(light->active_joules, 20, 0.001);
    assert_near(heavy->idle_joules, 10, 0.001);
    assert_near(light->idle_joules, 10, 0.001);
    release(&f);
}

static void test_decode_tokens_have_the_given_weight(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, UNKNOWN);
    sharing_free(f.sharing);
    share_with(&f, 10);
    /* In the second from 1 to 2 one decodes 50 tokens and the other prefills 500. */
    run(&f, (const struct scripted_request[]){
                {1, 0.9, 1, 2, 10, 50, NULL, 51}, {2, 1, 0, 2, 500, 0, NULL, 0}, {0}});
    assert_near(share_on(shares_of(&f.shares, 1), "gpu0")->decode_joules, 50, 0.001);
    assert_near(joules(&f, 2), 50, 0.001);
    release(&f);
}

static void test_unknown_token_counts_give_equal_shares(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    /* From 1 to 1.5 the second has no known tokens; from 1.5 on both decode known tokens, 3 to 1. */
    run(&f, (const struct scripted_request[]){
                {1, 1, 1.5, 2, 900, 300, NULL, 301}, {2, 1, 1.5, 2, UNKNOWN, 100, NULL, 101}, {0}});
    const struct device_share *a = share_on(shares_of(&f.shares, 1), "gpu0");
    const struct device_share *b = share_on(shares_of(&f.shares, 2), "gpu0");
    assert_near(a->prefill_joules, 25, 0.001);
    assert_near(b->prefill_joules, 25, 0.001);
    assert_near(a->decode_joules, 35, 0.001);
    assert_near(b->decode_joules, 15, 0.001);
    release(&f);
}

/* After their last tokens both are in flight and process no tokens: energy without any weight is not lost. */
static void test_zero_tokens_give_equal_shares(void **state)
{
    (void)state;
    struct fixture f;
    static const double EARLY[] = {1.1, 1.2};
    begin(&f, ONE_GPU, UNKNOWN);
    run(&f, (const struct scripted_request[]){
                {1, 1, 1.1, 2, 10, 30, EARLY, 2}, {2, 1, 1.1, 2, 10, 10, EARLY, 2}, {0}});
    assert_near(joules(&f, 1), 5 + 7.5 + 40, 0.001);
    assert_near(joules(&f, 2), 5 + 2.5 + 40, 0.001);
    assert_conserved(&f, "gpu0");
    release(&f);
}

static void test_concurrency_is_a_time_average(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    run(&f, (const struct scripted_request[]){
                {1, 1, 0, 2, 10, 0, NULL, 0}, {2, 1.75, 0, 2.25, 10, 0, NULL, 0}, {0}});
    assert_near(shares_of(&f.shares, 1)->share.concurrency, 1.25, 1e-9);
    assert_near(shares_of(&f.shares, 1)->share.alone_s, 0.75, 1e-9);
    assert_near(shares_of(&f.shares, 2)->share.concurrency, 1.5, 1e-9);
    release(&f);
}

static void test_phases_add_up_and_have_their_own_uncertainty(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f,
          (const struct scripted_channel[]){
              {COUNTER("energy", "gpu0", GPU, 0, 100), .step_s = 1.05, .step_value = 300}, {0}},
          20);
    run(&f, (const struct scripted_request[]){{1, 1, 1.05, 2, 10, 9, NULL, 9}, {0}});
    const struct share *share = &shares_of(&f.shares, 1)->share;
    /* An update is dated half a period before the read that found it. */
    assert_near(share->prefill_joules, 5, DATING * 200);
    assert_near(share->decode_joules, 285, DATING * 200);
    assert_near(share->prefill.joules, share->prefill_joules, 1e-9);
    assert_near(share->decode.joules, share->decode_joules, 1e-9);
    assert_near(share->prefill.joules + share->decode.joules, share->total.joules, 1e-9);
    assert_near(share->prefill.idle_joules, 1, 0.001);
    assert_true(share->prefill.low_confidence);
    assert_int_equal(share->prefill.updates, 5);
    assert_false(share->decode.low_confidence);
    assert_near(share->decode.coverage, 1, 1e-9);
    release(&f);
}

static void test_request_without_tokens_has_no_decode_energy(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, UNKNOWN, NULL, 0}, {0}});
    const struct share *share = &shares_of(&f.shares, 1)->share;
    assert_near(share->prefill_joules, share->total.joules, 1e-9);
    assert_near(share->decode_joules, 0, 1e-12);
    assert_true(isnan(share->decode.joules));
    assert_string_equal(share->decode.note, "the request had no decode phase");
    release(&f);
}

/* ---- idle, unattributed ---- */

static void test_time_without_requests_is_idle_or_unattributed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 30);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0}, {0}});
    struct sharing_device_sum sum = sum_of(&f, "gpu0");
    assert_true(sum.counted);
    assert_near(sum.requests_joules, 100, 0.001);
    assert_near(sum.idle_joules, 2 * 30, 0.001);
    assert_near(sum.unattributed_joules, 2 * 70, 0.001);
    assert_near(sum.settled_joules, 300, 0.001);
    assert_conserved(&f, "gpu0");
    release(&f);
}

static void test_without_a_baseline_idle_is_unknown(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, UNKNOWN);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0}, {0}});
    struct sharing_device_sum sum = sum_of(&f, "gpu0");
    assert_true(isnan(sum.idle_joules));
    assert_near(sum.unattributed_joules, 200, 0.001);
    assert_true(isnan(shares_of(&f.shares, 1)->share.total.idle_joules));
    assert_true(isnan(shares_of(&f.shares, 1)->share.total.active_joules));
    assert_near(joules(&f, 1), 100, 0.001);
    assert_conserved(&f, "gpu0");
    release(&f);
}

static void test_idle_energy_is_at_most_the_measured_energy(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 130);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0}, {0}});
    assert_near(shares_of(&f.shares, 1)->share.total.idle_joules, 100, 0.001);
    assert_near(shares_of(&f.shares, 1)->share.total.active_joules, 0, 1e-9);
    assert_near(sum_of(&f, "gpu0").unattributed_joules, 0, 1e-9);
    assert_conserved(&f, "gpu0");
    release(&f);
}

/* Power that oscillates about the baseline: the idle part of every window is the baseline, not the
 * sum of slices each limited to its own joules. */
static void test_idle_energy_is_limited_per_window_not_per_slice(void **state)
{
    (void)state;
    static double profile[SCRIPTED_POINTS];
    for (size_t i = 0; i < SCRIPTED_POINTS; i++)
        profile[i] = i / 2 % 2 ? 200 : 20;
    const struct scripted_channel wave[] = {{.name = "energy",
                                             .device = "gpu0",
                                             .quantity = QTY_ENERGY,
                                             .scope = SCOPE_GPU,
                                             .profile = profile},
                                            {0}};
    struct fixture f;
    begin(&f, wave, 90);
    run(&f, (const struct scripted_request[]){
                {1, 1, 1.2, 2, 10, 9, NULL, 0}, {2, 1.4, 1.6, 1.8, 10, 9, NULL, 0}, {0}});
    const struct kept_share *one = shares_of(&f.shares, 1), *two = shares_of(&f.shares, 2);
    assert_near(one->share.total.idle_joules, 90 * (0.6 + 0.4 / 2), 0.001);
    assert_near(two->share.total.idle_joules, 90 * 0.4 / 2, 0.001);
    assert_near(one->share.total.joules + two->share.total.joules, 110, 2);
    assert_near(one->share.prefill.idle_joules, 90 * 0.2, 0.001);
    struct sharing_device_sum sum = sum_of(&f, "gpu0");
    assert_near(sum.idle_joules, 90 * 2, 0.001);
    assert_near(sum.unattributed_joules, 20 * 2, 2);
    assert_conserved(&f, "gpu0");
    release(&f);
}

/* Idle power equals busy power: rounding differences are not energy. */
static void test_rounding_leaves_no_active_energy_at_idle_power(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 100);
    run(&f, (const struct scripted_request[]){
                {1, 1, 1.3, 2, 10, 9, NULL, 0}, {2, 1.5, 1.7, 3, 10, 9, NULL, 0}, {0}});
    for (uint64_t id = 1; id <= 2; id++) {
        const struct energy *total = &shares_of(&f.shares, id)->share.total;
        assert_true(total->joules > 10);
        assert_true(total->active_joules == 0);
        assert_true(total->idle_joules == total->joules);
    }
    assert_conserved(&f, "gpu0");
    release(&f);
}

/* ---- gaps and dead sensors ---- */

static void test_gap_reduces_coverage_and_is_not_interpolated(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f,
          (const struct scripted_channel[]){
              {POWER("power", "gpu0", GPU, 0, 100), .gap_from_s = 1.5, .gap_to_s = 2.5}, {0}},
          20);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0},
                                              {2, 1.7, 0, 2.3, 10, 0, NULL, 0},
                                              {3, 2.4, 0, 3, 10, 0, NULL, 0},
                                              {0}});
    const struct energy *half = &shares_of(&f.shares, 1)->share.total;
    assert_near(half->joules, 50, 0.001);
    assert_near(half->coverage, 0.5, 1e-6);
    assert_contains(half->note, "50.0 % of the window was not covered");
    const struct kept_share *none = shares_of(&f.shares, 2);
    assert_true(isnan(none->share.total.joules));
    assert_int_equal(none->share.total.method, METHOD_NONE);
    assert_contains(none->share.total.note, "no reading");
    assert_contains(share_on(none, "gpu0")->energy.note, "no reading");
    assert_true(isnan(share_on(none, "gpu0")->window_joules));
    assert_true(isnan(none->share.prefill_joules));
    assert_near(joules(&f, 3), 50, 0.001);
    /* Of 1.9 s with requests 1 s is covered: mean power is still 100 W. */
    assert_near(sharing_busy_s(f.sharing), 1.9, 0.002);
    assert_near(sharing_busy_w(f.sharing), 100, 0.01);
    assert_conserved(&f, "gpu0");
    release(&f);
}

static void test_dead_sensor_is_unknown_next_to_a_working_one(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f,
          (const struct scripted_channel[]){
              {COUNTER("energy", "gpu0", GPU, 0, 100)},
              {COUNTER("package", "cpu0", PACKAGE, 0, 50), .dead = true},
              {0}},
          20);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0}, {0}});
    const struct kept_share *kept = shares_of(&f.shares, 1);
    assert_near(kept->share.total.joules, 100, 0.001);
    assert_contains(kept->share.total.note, "without cpu0");
    assert_true(isnan(share_on(kept, "cpu0")->energy.joules));
    assert_contains(share_on(kept, "cpu0")->energy.note, "counter did not change");
    assert_true(isnan(sum_of(&f, "cpu0").settled_joules));
    assert_true(isnan(sum_of(&f, "cpu0").requests_joules));
    assert_conserved(&f, "gpu0");
    release(&f);
}

/* The counter ends in the middle of a request; from there on the power samples are used. */
static void test_another_channel_continues_where_one_ends(void **state)
{
    (void)state;
    struct fixture f;
    begin(
        &f,
        (const struct scripted_channel[]){{COUNTER("energy", "gpu0", GPU, 0, 100), .ends_s = 2},
                                          {POWER("power", "gpu0", GPU, 0, 110), .secondary = true},
                                          {0}},
        20);
    scripted_requests(f.sharing,
                      (const struct scripted_request[]){{1, 1.5, 0, 2.5, 10, 0, NULL, 0}, {0}});
    advance(&f, 2);
    assert_int_equal(f.shares.count, 0);
    advance(&f, END);
    const struct energy *energy = &share_on(shares_of(&f.shares, 1), "gpu0")->energy;
    assert_near(energy->joules, 50 + 55, DATING * 100);
    assert_int_equal(energy->method, METHOD_INTEGRAL);
    assert_near(energy->coverage, 1, DATING);
    assert_string_equal(energy->source, "test:0 energy + test:0 power");
    /* The running sums of the two channels are unrelated. */
    assert_near(sum_of(&f, "gpu0").settled_joules, 1.5 * 100 + 1.5 * 110, DATING * 100);
    release(&f);
}

/* A psys dies and the package replaces it in the total: nothing is counted twice or lost. */
static void test_total_follows_a_change_of_source(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f,
          (const struct scripted_channel[]){
              {COUNTER("psys", "psys", PLATFORM, -1, 100), .ends_s = 2, .relative_accuracy = 0.1},
              {COUNTER("package", "cpu0", PACKAGE, 0, 60), .relative_accuracy = 0.1},
              {0}},
          UNKNOWN);
    scripted_requests(f.sharing,
                      (const struct scripted_request[]){{1, 1.5, 0, 2.5, 10, 0, NULL, 0}, {0}});
    advance(&f, 2);
    advance(&f, END);
    const struct kept_share *kept = shares_of(&f.shares, 1);
    assert_near(share_on(kept, "psys")->energy.joules, 50, DATING * 100);
    assert_near(share_on(kept, "cpu0")->energy.joules, 60, 0.001);
    assert_near(kept->share.total.joules, 50 + 30, DATING * 100);
    assert_near(kept->share.prefill_joules, kept->share.total.joules, 1e-9);
    assert_near(kept->share.total.plus_minus, hypot(5, 6) * 80 / 110, 0.1);
    assert_near(sharing_busy_w(f.sharing), 80, 1); /* half a second of each */
    release(&f);
}

/* Energy that is found after its time was settled is kept, but attributed to no request. */
static void test_joules_found_after_settling_are_unattributed(void **state)
{
    (void)state;
    struct fixture f = {0};
    const struct scripted_channel *sensors[] = {ONE_GPU, NULL};
    f.sampler = scripted_start_until(sensors, 1.5);
    add_idle(&f, "gpu0", 20);
    share_with(&f, 1);
    scripted_requests(f.sharing, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0},
                                                                   {2, 2, 0, 3, 10, 0, NULL, 0},
                                                                   {3, 1.6, 0, 1.7, 10, 0, NULL, 0},
                                                                   {0}});
    advance(&f, 2.5);
    assert_near(joules(&f, 1), 50, DATING * 100);
    assert_near(shares_of(&f.shares, 1)->share.total.coverage, 0.5, DATING);
    assert_true(isnan(joules(&f, 3)));
    scripted_resume();
    advance(&f, END);
    assert_near(joules(&f, 2), 50, 0.001);
    assert_near(sum_of(&f, "gpu0").unattributed_joules, 0.5 * 80 + 100 + 0.5 * 80, DATING * 200);
    assert_near(sharing_busy_s(f.sharing), 2, 0.002);
    assert_near(sharing_busy_w(f.sharing), 100, 1);
    assert_conserved(&f, "gpu0");
    release(&f);
}

/* The same where no reading was known at first. */
static void test_readings_that_start_after_settling_are_unattributed(void **state)
{
    (void)state;
    struct fixture f = {0};
    const struct scripted_channel *sensors[] = {ONE_GPU, NULL};
    f.sampler = scripted_start_until(sensors, 0.2);
    share_with(&f, 1);
    scripted_requests(f.sharing,
                      (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0}, {0}});
    advance(&f, 2.5);
    assert_true(isnan(joules(&f, 1)));
    assert_true(isnan(sum_of(&f, "gpu0").settled_joules));
    scripted_resume();
    advance(&f, END);
    assert_near(sum_of(&f, "gpu0").unattributed_joules, 300, 0.001);
    release(&f);
}

/* ---- the total ---- */

static void test_total_adds_the_counted_devices(void **state)
{
    (void)state;
    struct fixture f = {0};
    const struct scripted_channel *sensors[] = {
        (const struct scripted_channel[]){
            {COUNTER("energy", "gpu0", GPU, 0, 100), .relative_accuracy = 0.03},
            {COUNTER("energy1", "gpu1", GPU, 1, 100), .relative_accuracy = 0.03},
            {COUNTER("core", "cpu0", CORE, 0, 40)},
            {COUNTER("psys", "psys", PLATFORM, -1, 100), .relative_accuracy = 0.03},
            {0}},
        NULL};
    f.sampler = scripted_start(sensors);
    add_idle(&f, "gpu0", 20);
    share_with(&f, 1);
    run(&f, (const struct scripted_request[]){
                {1, 1, 0, 2, 10, 0, NULL, 0}, {2, 1, 0, 2, 10, 0, NULL, 0}, {0}});
    const struct kept_share *kept = shares_of(&f.shares, 1);
    assert_near(kept->share.total.joules, 150, 0.001);
    assert_near(sharing_busy_w(f.sharing), 300, 0.1);
    assert_near(kept->share.total.plus_minus, hypot(3, 1.5), 0.05);
    assert_true(isnan(kept->share.total.idle_joules)); /* the others have no baseline */
    assert_near(share_on(kept, "gpu0")->energy.idle_joules, 10, 0.001);
    assert_near(share_on(kept, "cpu0")->energy.joules, 20, 0.001);
    assert_false(sum_of(&f, "cpu0").counted);
    assert_string_equal(kept->share.total.source, "test:0 energy + test:0 energy1 + test:0 psys");
    release(&f);
}

static void test_missing_sensors_are_reported(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f,
          (const struct scripted_channel[]){{GAUGE("temperature", "gpu0", TEMPERATURE, 50)}, {0}},
          UNKNOWN);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0}, {0}});
    const struct kept_share *kept = shares_of(&f.shares, 1);
    assert_true(isnan(kept->share.total.joules));
    assert_contains(kept->share.total.note, "no sensor measures energy");
    assert_true(isnan(share_on(kept, "gpu0")->energy.joules));
    assert_near(share_on(kept, "gpu0")->gauges[QTY_TEMPERATURE].median, 50, 1e-9);
    release(&f);
}

static void test_request_of_zero_duration_is_unknown(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    scripted_requests(f.sharing,
                      (const struct scripted_request[]){{1, 1, 0, 1, 10, 0, NULL, 0}, {0}});
    advance(&f, 1); /* its end: it is settled by then */
    assert_true(isnan(joules(&f, 1)));
    assert_contains(shares_of(&f.shares, 1)->share.total.note, "took no time");
    release(&f);
}

/* ---- gauges ---- */

static void test_gauges_are_evaluated_over_the_request_window(void **state)
{
    (void)state;
    struct fixture f;
    static double use[SCRIPTED_POINTS];
    for (size_t i = 0; i < SCRIPTED_POINTS; i++)
        use[i] = i == 150 ? 90 : i == 151 ? 70 : 30;
    begin(&f,
          (const struct scripted_channel[]){
              {COUNTER("energy", "gpu0", GPU, 0, 100), .step_s = 1.5, .step_value = 200},
              {GAUGE("use", "gpu0", UTILIZATION, 0), .profile = use},
              {GAUGE("temperature", "gpu0", TEMPERATURE, 40), .ends_s = 1.2},
              {GAUGE("clock", "gpu0", CLOCK, 900), .missing = true},
              {0}},
          20);
    run(&f, (const struct scripted_request[]){{1, 1.475, 0, 1.525, 10, 0, NULL, 0},
                                              {2, 1.503, 0, 1.507, 10, 0, NULL, 0},
                                              {3, 3, 0, 3.1, 10, 0, NULL, 0},
                                              {0}});
    const struct device_share *one = share_on(shares_of(&f.shares, 1), "gpu0");
    assert_near(one->gauges[QTY_UTILIZATION].max, 90, 1e-9);
    assert_near(one->gauges[QTY_UTILIZATION].min, 30, 1e-9);
    assert_near(one->gauges[QTY_UTILIZATION].median, 30, 1e-9); /* 30 30 90 70 30 */
    assert_near(one->gauges[QTY_UTILIZATION].avg, 30 + (60 + 40) * 0.01 / 0.05, 1e-6);
    assert_near(one->watts.avg, one->window_joules / 0.05, 1e-6);
    assert_near(one->watts.avg, 150, 100 * DATING / 0.05);
    assert_near(one->watts.max, 200, 0.01);
    assert_near(one->watts.min, 100, 0.01);
    assert_true(isnan(one->gauges[QTY_CLOCK].avg));
    assert_true(isnan(one->gauges[QTY_MEMORY_USED].max));
    /* The last reading is a third of a second old: it still holds; after two seconds it does not. */
    assert_near(one->gauges[QTY_TEMPERATURE].avg, 40, 1e-9);
    assert_true(isnan(share_on(shares_of(&f.shares, 3), "gpu0")->gauges[QTY_TEMPERATURE].avg));
    /* No reading inside the window: the one that held at its start. */
    const struct device_share *two = share_on(shares_of(&f.shares, 2), "gpu0");
    assert_near(two->gauges[QTY_UTILIZATION].median, 90, 1e-9);
    assert_near(two->gauges[QTY_UTILIZATION].avg, 90 - 20 * 0.5, 1e-6);
    release(&f);
}

/* ---- order of settling ---- */

static void test_a_request_in_flight_delays_settling(void **state)
{
    (void)state;
    struct fixture f;
    const struct scripted_request early = {1, 1, 0, 2, 10, 0, NULL, 0};
    const struct scripted_request inner = {2, 1.2, 0, 1.4, 2, 0, NULL, 0};
    begin(&f, ONE_GPU, 20);
    scripted_begin(f.sharing, &early);
    scripted_begin(f.sharing, &inner);
    scripted_end(f.sharing, &inner);
    advance(&f, END);
    assert_int_equal(f.shares.count, 0);
    assert_int_equal(sharing_settled(f.sharing), scripted_time(1));
    scripted_end(f.sharing, &early);
    advance(&f, 1.7);
    assert_int_equal(f.shares.count, 1);
    assert_near(joules(&f, 2), 10, 0.001);
    advance(&f, 1.2); /* advancing to a time in the past changes nothing */
    assert_int_equal(sharing_settled(f.sharing), scripted_time(1.7));
    advance(&f, END);
    assert_near(joules(&f, 1), 90, 0.001);
    assert_conserved(&f, "gpu0");
    release(&f);
}

static void test_shares_are_delivered_in_order_of_completion(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    run(&f, (const struct scripted_request[]){{7, 1, 0, 3, 10, 0, NULL, 0},
                                              {3, 1.5, 0, 2, 10, 0, NULL, 0},
                                              {5, 1.2, 0, 2.5, 10, 0, NULL, 0},
                                              {9, 2.2, 0, 2.3, 10, 0, NULL, 0},
                                              {0}});
    static const uint64_t ORDER[] = {3, 9, 5, 7};
    assert_int_equal(f.shares.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(f.shares.items[i].id, ORDER[i]);
    release(&f);
}

static void test_forgotten_request_does_not_delay_settling(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    scripted_begin(f.sharing, &(struct scripted_request){1, 1, 0, 2, 10, 0, NULL, 0});
    sharing_forget(f.sharing, 1);
    sharing_forget(f.sharing, 2);
    advance(&f, END);
    assert_int_equal(sharing_settled(f.sharing), scripted_time(END));
    assert_int_equal(f.shares.count, 0);
    assert_near(sum_of(&f, "gpu0").requests_joules, 0, 1e-12);
    assert_conserved(&f, "gpu0");
    release(&f);
}

static void test_duplicate_and_unknown_ids_are_rejected(void **state)
{
    (void)state;
    struct fixture f;
    struct request_trace stranger = {.id = 9, .from = scripted_time(1), .to = scripted_time(2)};
    begin(&f, ONE_GPU, 20);
    assert_int_equal(sharing_begin(f.sharing, 1, scripted_time(1)), ERR_OK);
    assert_int_equal(sharing_begin(f.sharing, 1, scripted_time(1)), ERR_BAD_VALUE);
    assert_int_equal(sharing_end(f.sharing, &stranger), ERR_NOT_FOUND);
    release(&f);
}

/* A request that is reported after its start was settled gets the rest. */
static void test_late_request_gets_only_unsettled_energy(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, ONE_GPU, 20);
    advance(&f, 1.5);
    run(&f, (const struct scripted_request[]){{1, 1, 0, 2, 10, 0, NULL, 0},
                                              {2, 1, 0, 1.25, 10, 0, NULL, 0},
                                              {3, 0.9, 0, 1.3, 10, 0, NULL, 0},
                                              {0}});
    assert_int_equal(f.shares.items[0].id, 2);
    assert_int_equal(f.shares.items[1].id, 3);
    assert_near(joules(&f, 1), 50, 0.001);
    assert_near(shares_of(&f.shares, 1)->share.total.coverage, 0.5, 1e-9);
    assert_true(isnan(joules(&f, 2)));
    assert_contains(shares_of(&f.shares, 2)->share.total.note, "settled");
    assert_conserved(&f, "gpu0");
    release(&f);
}

static void test_inconsistent_times_are_repaired(void **state)
{
    (void)state;
    struct fixture f;
    static const double WILD[] = {1.5, 1.2, 9, 1.7};
    begin(&f, ONE_GPU, 20);
    run(&f, (const struct scripted_request[]){{1, 1, 1.2, 2, 10, 4, WILD, 4},
                                              {2, 1, 1.2, 2, 10, 4, NULL, 4},
                                              {3, 2.5, 2.4, 2.4, 10, 4, WILD, 4},
                                              {0}});
    assert_int_equal(f.shares.count, 3);
    assert_near(joules(&f, 1) + joules(&f, 2), 100, 0.001);
    assert_true(isnan(joules(&f, 3)));
    assert_conserved(&f, "gpu0");
    release(&f);
}

/* ---- threads and memory ---- */

enum { THREADS = 4, EACH = 500 };

struct client {
    struct sharing *sharing;
    unsigned number;
    atomic_int *running;
};

/* Short consecutive requests over the whole script, in any order relative to the other threads. */
static void *client_main(void *argument)
{
    struct client *client = argument;
    for (unsigned i = 0; i < EACH; i++) {
        double from = BEGIN + 2.9 * i / EACH + 0.001 * client->number;
        struct scripted_request request = {
            1 + client->number * EACH + i, from, from + 0.003, from + 0.02, 10, 8, NULL, 8};
        scripted_begin(client->sharing, &request);
        if (i % 50 == 7)
            sharing_forget(client->sharing, request.id);
        else
            scripted_end(client->sharing, &request);
    }
    atomic_fetch_sub(client->running, 1);
    return NULL;
}

static void count_share(void *context, const struct share *share)
{
    size_t *count = context;
    (void)share;
    (*count)++;
}

static void test_requests_of_several_threads(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t threads[THREADS];
    struct client clients[THREADS];
    atomic_int running = THREADS;
    size_t handed = 0;
    begin(&f, ONE_GPU, 20);
    for (unsigned i = 0; i < THREADS; i++) {
        clients[i] = (struct client){f.sharing, i, &running};
        assert_int_equal(pthread_create(&threads[i], NULL, client_main, &clients[i]), 0);
    }
    double t = BEGIN;
    while (atomic_load(&running) > 0) {
        assert_int_equal(sharing_advance(f.sharing, scripted_time(t), count_share, &handed),
                         ERR_OK);
        t = fmin(END, t + 0.01);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sharing_advance(f.sharing, scripted_time(END), count_share, &handed), ERR_OK);
    assert_int_equal(handed, THREADS * EACH - THREADS * (EACH / 50));
    struct sharing_device_sum sum = sum_of(&f, "gpu0");
    assert_near(sum.settled_joules, 300, 0.001);
    release(&f);
}

static void pass_requests(struct fixture *f, unsigned first, unsigned count, double from, double to,
                          size_t *handed)
{
    double step = (to - from) / count;
    for (unsigned i = 0; i < count; i++) {
        double begins = from + step * i;
        struct scripted_request request = {first + i, begins, begins + step, begins + 8 * step,
                                           10,        8,      NULL,          8};
        scripted_begin(f->sharing, &request);
        scripted_end(f->sharing, &request);
        if (i % 64 == 63)
            assert_int_equal(
                sharing_advance(f->sharing, scripted_time(begins), count_share, handed), ERR_OK);
    }
    assert_int_equal(sharing_advance(f->sharing, scripted_time(to + 8 * step), count_share, handed),
                     ERR_OK);
}

static void test_settled_requests_are_freed(void **state)
{
    (void)state;
    enum { FIRST = 2000 };
    const unsigned many = test_is_instrumented() ? 20000 : 100000;
    struct fixture f;
    size_t handed = 0;
    begin(&f, ONE_GPU, 20);
    pass_requests(&f, 1, FIRST, 0.6, 0.7, &handed);
    size_t before = mallinfo2().uordblks;
    pass_requests(&f, 1 + FIRST, many, 0.8, 3.4, &handed);
    size_t after = mallinfo2().uordblks;
    assert_int_equal(handed, FIRST + many);
    assert_true(after < before + 64 * 1024);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_single_request_gets_the_energy_of_its_window),
        cmocka_unit_test(test_identical_requests_get_equal_halves),
        cmocka_unit_test(test_active_energy_is_shared_by_tokens_and_idle_equally),
        cmocka_unit_test(test_decode_tokens_have_the_given_weight),
        cmocka_unit_test(test_unknown_token_counts_give_equal_shares),
        cmocka_unit_test(test_zero_tokens_give_equal_shares),
        cmocka_unit_test(test_concurrency_is_a_time_average),
        cmocka_unit_test(test_phases_add_up_and_have_their_own_uncertainty),
        cmocka_unit_test(test_request_without_tokens_has_no_decode_energy),
        cmocka_unit_test(test_time_without_requests_is_idle_or_unattributed),
        cmocka_unit_test(test_without_a_baseline_idle_is_unknown),
        cmocka_unit_test(test_idle_energy_is_at_most_the_measured_energy),
        cmocka_unit_test(test_idle_energy_is_limited_per_window_not_per_slice),
        cmocka_unit_test(test_rounding_leaves_no_active_energy_at_idle_power),
        cmocka_unit_test(test_gap_reduces_coverage_and_is_not_interpolated),
        cmocka_unit_test(test_dead_sensor_is_unknown_next_to_a_working_one),
        cmocka_unit_test(test_another_channel_continues_where_one_ends),
        cmocka_unit_test(test_total_follows_a_change_of_source),
        cmocka_unit_test(test_joules_found_after_settling_are_unattributed),
        cmocka_unit_test(test_readings_that_start_after_settling_are_unattributed),
        cmocka_unit_test(test_total_adds_the_counted_devices),
        cmocka_unit_test(test_missing_sensors_are_reported),
        cmocka_unit_test(test_request_of_zero_duration_is_unknown),
        cmocka_unit_test(test_gauges_are_evaluated_over_the_request_window),
        cmocka_unit_test(test_a_request_in_flight_delays_settling),
        cmocka_unit_test(test_shares_are_delivered_in_order_of_completion),
        cmocka_unit_test(test_forgotten_request_does_not_delay_settling),
        cmocka_unit_test(test_duplicate_and_unknown_ids_are_rejected),
        cmocka_unit_test(test_late_request_gets_only_unsettled_energy),
        cmocka_unit_test(test_inconsistent_times_are_repaired),
        cmocka_unit_test(test_requests_of_several_threads),
        cmocka_unit_test(test_settled_requests_are_freed),
    };
    return RUN_TESTS(tests);
}
