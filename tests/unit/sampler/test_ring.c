/* test: tsan, valgrind */
#include "support/unit.h"

#include <pthread.h>
#include <sched.h>

#include "sampler/ring.h"

static struct channel_sample numbered_sample(uint64_t n)
{
    return (struct channel_sample){.t = (nanos)n, .count = n * 3, .channel = (uint16_t)(n % 24)};
}

static void order_is_kept_across_the_wrap(void **state)
{
    (void)state;
    struct ring ring;
    struct channel_sample out;
    assert_int_equal(ring_init(&ring, 8), ERR_OK);
    assert_false(ring_pop(&ring, &out));
    uint64_t pushed = 0, popped = 0;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < round % 8 + 1; i++) {
            struct channel_sample in = numbered_sample(pushed++);
            assert_true(ring_push(&ring, &in));
        }
        while (ring_pop(&ring, &out)) {
            struct channel_sample expected = numbered_sample(popped++);
            assert_int_equal(out.t, expected.t);
            assert_int_equal(out.count, expected.count);
            assert_int_equal(out.channel, expected.channel);
        }
        assert_int_equal(popped, pushed);
    }
    assert_int_equal(ring.dropped, 0);
    ring_release(&ring);
}

static void capacity_is_rounded_up(void **state)
{
    (void)state;
    struct ring ring;
    struct channel_sample in = numbered_sample(1);
    assert_int_equal(ring_init(&ring, 5), ERR_OK);
    for (int i = 0; i < 8; i++)
        assert_true(ring_push(&ring, &in));
    assert_false(ring_push(&ring, &in));
    ring_release(&ring);
}

static void a_full_ring_drops_and_counts_new_samples(void **state)
{
    (void)state;
    struct ring ring;
    struct channel_sample out;
    assert_int_equal(ring_init(&ring, 4), ERR_OK);
    for (uint64_t i = 0; i < 10; i++) {
        struct channel_sample in = numbered_sample(i);
        assert_int_equal(ring_push(&ring, &in), i < 4);
    }
    assert_int_equal(ring.dropped, 6);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(ring_pop(&ring, &out));
        assert_int_equal(out.t, i);
    }
    assert_false(ring_pop(&ring, &out));
    struct channel_sample in = numbered_sample(99);
    assert_true(ring_push(&ring, &in));
    assert_true(ring_pop(&ring, &out));
    assert_int_equal(out.t, 99);
    ring_release(&ring);
}

enum { MANY = 200000 };

static void *produce(void *argument)
{
    struct ring *ring = argument;
    for (uint64_t i = 0; i < MANY; i++) {
        struct channel_sample in = numbered_sample(i);
        while (!ring_push(ring, &in))
            sched_yield();
    }
    return NULL;
}

static void one_producer_and_one_consumer_run_concurrently(void **state)
{
    (void)state;
    struct ring ring;
    pthread_t producer;
    assert_int_equal(ring_init(&ring, 64), ERR_OK);
    assert_int_equal(pthread_create(&producer, NULL, produce, &ring), 0);
    for (uint64_t i = 0; i < MANY; i++) {
        struct channel_sample out, expected = numbered_sample(i);
        while (!ring_pop(&ring, &out))
            sched_yield();
        if (out.t != expected.t || out.count != expected.count || out.channel != expected.channel)
            fail_msg("sample %llu is torn or out of order", (unsigned long long)i);
    }
    pthread_join(producer, NULL);
    struct channel_sample out;
    assert_false(ring_pop(&ring, &out));
    ring_release(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_kept_across_the_wrap),
        cmocka_unit_test(capacity_is_rounded_up),
        cmocka_unit_test(a_full_ring_drops_and_counts_new_samples),
        cmocka_unit_test(one_producer_and_one_consumer_run_concurrently),
    };
    return RUN_TESTS(tests);
}
