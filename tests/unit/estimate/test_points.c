/* Many estimates: a device that cannot does not stop the others, and comes last. */
#include "estimate/points.h"

#include "port/json_read.h"
#include "support/unit.h"

enum { DEVICES = 3 };

static void find(const char *id, struct hardware *out)
{
    struct error why = {0};
    if (hardware_find(id, out, &why))
        fail_msg("%s", why.text);
}

static void one_that_cannot_comes_last(void **state)
{
    static const int64_t BATCHES[] = {1, 4};
    struct hardware hardware[DEVICES];
    struct points_candidate candidates[DEVICES] = {{0}};
    struct model model;
    struct points points;
    struct error why = {0};
    (void)state;
    find("xeon-8490h", &hardware[0]); /* states no link: cannot share a model */
    find("a100-sxm-80gb", &hardware[1]);
    find("h100-sxm", &hardware[2]);
    for (size_t i = 0; i < DEVICES; i++) {
        candidates[i].device = i;
        candidates[i].choice = (struct outcome_choice){.precision = PRECISION_FP16, .devices = 2};
    }
    assert_int_equal(model_open("resnet18", &model, &why), ERR_OK);
    struct points_question question = {.work = {.model = &model},
                                       .hardware = hardware,
                                       .candidates = candidates,
                                       .candidate_count = DEVICES,
                                       .batches = BATCHES,
                                       .batch_count = 2};
    assert_int_equal(points_make(&question, &points, &why), ERR_OK);
    points_sort(&points);
    assert_int_equal(points.count, 6);
    assert_int_equal(points.able, 4);
    for (size_t i = 0; i < points.count; i++) {
        assert_int_equal(points.items[i].missing[0] != '\0', i >= 4);
        assert_int_equal(points.items[i].device == 0, i >= 4);
        assert_false(i >= 4 && points.items[i].on_frontier);
        if (i > 0 && i < 4)
            assert_true(outcome_joules_each(&points.items[i - 1].outcome) <=
                        outcome_joules_each(&points.items[i].outcome));
    }
    assert_true(points.items[0].on_frontier); /* nothing costs less */
    points_release(&points);
    model_close(&model);
    for (size_t i = 0; i < DEVICES; i++)
        hardware_release(&hardware[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_that_cannot_comes_last)};
    return RUN_TESTS_WITH(jv_available, tests);
}
