/* test: real time, tsan */
/* The loads of a calibration: every vector width computes what scalar code does, and a team of
 * threads counts its work. */
#include "core/units.h"
#include "port/thread.h"
#include "runner/microbench/team.h"
#include "support/unit.h"

#include <stdlib.h>

enum { COUNT = 4 * KERNELS_STEP, N = KERNELS_GEMM };

static float *random_numbers(size_t count, unsigned seed)
{
    float *x = aligned_alloc(64, count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)((i * 7 + seed) % 13) * 0.25F - 1;
    return x;
}

static void test_mix_alternates(void **state)
{
    (void)state;
    for (const struct kernels *const *k = kernels_all(); *k; k++)
        for (size_t steps = 0; steps < 4; steps++) {
            float *x = random_numbers(COUNT, 1), *old = random_numbers(COUNT, 1);
            (*k)->mix(x, COUNT, 0.5F, steps);
            for (size_t i = 0; i < COUNT; i++)
                assert_near(x[i], steps % 2 ? 0.5F - old[i] : old[i], 1e-6);
            free(x);
            free(old);
        }
}

static void test_compute_returns_the_number_of_elements(void **state)
{
    (void)state;
    for (const struct kernels *const *k = kernels_all(); *k; k++) {
        float *x = random_numbers(KERNELS_COMPUTE, 2), *old = random_numbers(KERNELS_COMPUTE, 2);
        size_t count = (*k)->compute(x, 0.5F, 3), changed = 0;
        for (size_t i = 0; i < KERNELS_COMPUTE; i++) {
            assert_near(x[i], i < count ? 0.5F - old[i] : old[i], 1e-6);
            changed += x[i] != old[i];
        }
        assert_true(count > 0 && count <= KERNELS_COMPUTE && changed > 0);
        free(x);
        free(old);
    }
}

static void test_triad_matches_scalar_code(void **state)
{
    (void)state;
    for (const struct kernels *const *k = kernels_all(); *k; k++) {
        float *a = random_numbers(COUNT, 3), *b = random_numbers(COUNT, 4),
              *c = random_numbers(COUNT, 5);
        (*k)->triad(a, b, c, 0.5F, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            assert_near(a[i], b[i] + 0.5F * c[i], 1e-6);
        free(a);
        free(b);
        free(c);
    }
}

static void test_gemm_matches_scalar_code(void **state)
{
    (void)state;
    const size_t size = (size_t)N * N;
    for (const struct kernels *const *k = kernels_all(); *k; k++) {
        float *a = random_numbers(size, 1), *b = random_numbers(size, 2),
              *c = random_numbers(size, 3);
        float *old = random_numbers(size, 3);
        (*k)->gemm(c, a, b);
        for (size_t place = 0; place < size; place += 97) {
            double sum = old[place];
            for (size_t i = 0; i < N; i++)
                sum += (double)a[place / N * N + i] * b[i * N + place % N];
            assert_near(c[place], sum, 1e-2);
        }
        free(a);
        free(b);
        free(c);
        free(old);
    }
}

static struct team_work run_team(struct team_order order)
{
    struct team *team;
    struct error why = {0};
    struct team_work work;
    assert_int_equal(team_start(&order, &team, &why), ERR_OK);
    do {
        thread_sleep(NS_PER_MS);
        work = team_done(team);
    } while (work.flops == 0 && work.barriers == 0);
    team_stop(team);
    return work;
}

static void test_a_team_counts_its_work(void **state)
{
    (void)state;
    const size_t bytes = 1 << 20;
    struct team_work work = run_team((struct team_order){TEAM_COMPUTE, 0, 2, bytes});
    assert_true(work.flops > 0 && work.bytes == 0);
    work = run_team((struct team_order){TEAM_MIX, 8, 2, bytes});
    assert_near(work.flops / work.bytes, 2, 1e-9); /* 16 operations per 8 bytes */
    work = run_team((struct team_order){TEAM_TRIAD, 0, 2, bytes});
    assert_near(work.flops / work.bytes, 2.0 / 12, 1e-9);
    work = run_team((struct team_order){TEAM_GEMM, 0, 2, bytes});
    assert_near(fmod(work.flops, 2.0 * N * N * N), 0, 0.5);
    work = run_team((struct team_order){TEAM_BARRIER, 0, 3, bytes});
    assert_true(work.barriers >= 2 && work.flops == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mix_alternates),
        cmocka_unit_test(test_compute_returns_the_number_of_elements),
        cmocka_unit_test(test_triad_matches_scalar_code),
        cmocka_unit_test(test_gemm_matches_scalar_code),
        cmocka_unit_test(test_a_team_counts_its_work),
    };
    return RUN_TESTS(tests);
}
