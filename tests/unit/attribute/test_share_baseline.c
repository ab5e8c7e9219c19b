/* A baseline that comes later: all energy is attributed again, as if it had been there from the start. */
#include "attribute/share.h"

#include <string.h>

#include "sampler/sampler.h"
#include "support/scripted.h"
#include "support/shares.h"
#include "support/unit.h"

#define BEGIN 0.5
#define END   3.5

static const struct scripted_channel ONE_GPU[] = {
    {.name = "energy", .device = "gpu0", .quantity = QTY_ENERGY, .scope = SCOPE_GPU, .value = 100},
    {0}};

static struct baseline_row IDLE_ROWS[] = {{.device = "gpu0", .watts = 20}};
static const struct baseline IDLE = {.rows = IDLE_ROWS, .count = 1};

static unsigned contexts_released;

static void release_context(void *context)
{
    (void)context;
    contexts_released++;
}

/* A machine and a run that starts at BEGIN. */
struct fixture {
    struct sampler *sampler;
    struct sharing *sharing;
    struct shares shares;
};

static void begin(struct fixture *f, size_t keep_max)
{
    const struct scripted_channel *sensors[] = {ONE_GPU, NULL};
    *f = (struct fixture){.sampler = scripted_start(sensors)};
    f->sharing = sharing_new(f->sampler, &(struct sharing_options){.from = scripted_time(BEGIN),
                                                                   .keep_max = keep_max,
                                                                   .release = release_context});
    assert_non_null(f->sharing);
    contexts_released = 0;
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

static const struct share *share_of(const struct fixture *f, uint64_t id)
{
    return &shares_of(&f->shares, id)->share;
}

static struct sharing_device_sum sum_of(const struct fixture *f)
{
    struct sharing_device_sum sum;
    assert_int_equal(sharing_sums(f->sharing, &sum, 1), 1);
    return sum;
}

/* The shares that were delivered are those of the totals, which are the ledger's energy of the same time. */
static void assert_conserved(const struct fixture *f)
{
    struct ledger ledger;
    struct sharing_device_sum sum = sum_of(f);
    double requests = 0;
    assert_int_equal(
        ledger_take(f->sampler, scripted_time(BEGIN), sharing_settled(f->sharing), NULL, &ledger),
        ERR_OK);
    assert_near(sum.settled_joules, ledger.total.joules, 1e-9 * sum.settled_joules);
    for (size_t i = 0; i < f->shares.count; i++)
        requests += f->shares.items[i].share.total.joules;
    assert_near(requests, sum.requests_joules, 1e-9 * sum.settled_joules);
    ledger_release(&ledger);
}

static const struct scripted_request UNEVEN[] = {
    {1, 1, 0, 2, 300, 0, NULL, 0}, {2, 1, 0, 2, 100, 0, NULL, 0}, {0}};

/* Including a request that is in flight meanwhile. */
static void test_a_later_baseline_attributes_all_again(void **state)
{
    (void)state;
    struct fixture f;
    const struct scripted_request last = {3, 1.8, 2.5, 3, 40, 60, NULL, 60};
    begin(&f, 1 << 20);
    scripted_begin(f.sharing, &last);
    scripted_requests(f.sharing, UNEVEN);
    advance(&f, 2.2); /* up to 1.8 */
    assert_int_equal(f.shares.count, 0);
    scripted_end(f.sharing, &last);
    advance(&f, 2.2);
    assert_int_equal(f.shares.count, 2);
    assert_true(share_of(&f, 1)->is_provisional);
    assert_false(is_known(share_of(&f, 1)->total.idle_joules));
    /* All by tokens until 1.8. */
    assert_true(share_of(&f, 1)->total.joules > 2.5 * share_of(&f, 2)->total.joules);
    shares_release(&f.shares);
    sharing_set_idle(f.sharing, &IDLE);
    advance(&f, 2.4);
    assert_int_equal(f.shares.count, 2);
    advance(&f, END);
    assert_int_equal(f.shares.count, 3);
    assert_conserved(&f);

    struct fixture expected = {.sampler = f.sampler};
    expected.sharing = sharing_new(
        f.sampler, &(struct sharing_options){.from = scripted_time(BEGIN), .idle = &IDLE});
    scripted_begin(expected.sharing, &last);
    scripted_end(expected.sharing, &last);
    run(&expected, UNEVEN);
    for (uint64_t id = 1; id <= 3; id++) {
        const struct share *is = share_of(&f, id), *should = share_of(&expected, id);
        assert_false(is->is_provisional);
        assert_near(is->total.joules, should->total.joules, 1e-9 * should->total.joules);
        assert_near(is->total.idle_joules, should->total.idle_joules, 1e-9 * should->total.joules);
        assert_near(is->concurrency, should->concurrency, 1e-9);
    }
    assert_near(sum_of(&f).idle_joules, sum_of(&expected).idle_joules, 1e-6);
    assert_near(sharing_busy_s(f.sharing), sharing_busy_s(expected.sharing), 1e-9);
    assert_int_equal(contexts_released, 0); /* all were returned for good */
    shares_release(&expected.shares);
    sharing_free(expected.sharing);
    release(&f);
}

static void test_it_holds_from_then_on_if_requests_are_not_kept(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 100); /* bytes: less than a request */
    run(&f, UNEVEN);
    assert_false(share_of(&f, 1)->is_provisional);
    sharing_set_idle(f.sharing, &IDLE);
    scripted_requests(f.sharing, (const struct scripted_request[]){
                                     {4, END + 0.1, 0, END + 0.3, 1, 0, NULL, 0}, {0}});
    advance(&f, END + 0.4);
    assert_int_equal(f.shares.count, 3);
    assert_false(is_known(share_of(&f, 1)->total.idle_joules));
    assert_near(share_of(&f, 4)->total.idle_joules, 4, 0.01);
    assert_conserved(&f);
    release(&f);
}

static void test_kept_requests_are_released_without_a_baseline(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1 << 20);
    run(&f, UNEVEN);
    assert_true(share_of(&f, 1)->is_provisional);
    assert_int_equal(contexts_released, 0);
    release(&f);
    assert_int_equal(contexts_released, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_later_baseline_attributes_all_again),
        cmocka_unit_test(test_it_holds_from_then_on_if_requests_are_not_kept),
        cmocka_unit_test(test_kept_requests_are_released_without_a_baseline),
    };
    return RUN_TESTS(tests);
}
