/* Many estimates: a device that cannot run the model does not stop the others, and comes last; the
 * Pareto front is per demand. */
#include "estimate/estimate_grid.h"

#include "port/json_read.h"
#include "support/unit.h"

enum { DEVICES = 3, BATCHES = 2, CONTEXTS = 3 };

static void find_hardware(const char *id, struct hardware *out)
{
    struct error why = {0};
    if (hardware_find(id, out, &why))
        fail_msg("%s", why.text);
}

static void a_device_that_cannot_run_the_model_comes_last(void **state)
{
    struct hardware hardware[DEVICES];
    struct grid_candidate candidates[DEVICES] = {{0}};
    struct model model;
    struct estimate_grid points;
    struct error why = {0};
    (void)state;
    find_hardware("xeon-8490h",
                  &hardware[0]); /* no link bandwidth: cannot be used for tensor parallelism */
    find_hardware("a100-sxm-80gb", &hardware[1]);
    find_hardware("h100-sxm", &hardware[2]);
    for (size_t i = 0; i < DEVICES; i++) {
        candidates[i].device = i;
        candidates[i].config = (struct estimate_config){.precision = PRECISION_FP16, .devices = 2};
    }
    assert_int_equal(model_open("resnet18", &model, &why), ERR_OK);
    struct workload_spec works[BATCHES] = {
        {.model = &model, .setting = {.batch = 1}},
        {.model = &model, .setting = {.batch = 4}},
    };
    const struct workload_list list = {works, BATCHES};
    const struct candidates all = {.hardware = hardware, .items = candidates, .count = DEVICES};
    assert_int_equal(estimate_grid_make(&list, &all, &points, &why), ERR_OK);
    assert_int_equal(points.count, 6);
    assert_int_equal(points.able, 4);
    assert_int_equal(points.demand_count, 1);
    for (size_t i = 0; i < points.count; i++) {
        assert_int_equal(points.items[i].missing[0] != '\0', i >= 4);
        assert_int_equal(points.items[i].device == 0, i >= 4);
        assert_non_null(points.items[i].work);
        assert_false(i >= 4 && points.items[i].on_frontier);
        if (i > 0 && i < 4)
            assert_true(workload_estimate_joules_per_unit(&points.items[i - 1].estimate) <=
                        workload_estimate_joules_per_unit(&points.items[i].estimate));
    }
    assert_true(points.items[0].on_frontier); /* nothing costs less */
    estimate_grid_release(&points);
    model_close(&model);
    for (size_t i = 0; i < DEVICES; i++)
        hardware_release(&hardware[i]);
}

/* Whether another point of the same demand is at least as good in both, and better in one. */
static bool is_dominated(const struct estimate_grid *points, const struct grid_point *mine)
{
    double joules = workload_estimate_joules_per_unit(&mine->estimate),
           seconds = mine->estimate.total.latency_s;
    for (size_t i = 0; i < points->count; i++) {
        const struct grid_point *other = &points->items[i];
        double x = workload_estimate_joules_per_unit(&other->estimate),
               y = other->estimate.total.latency_s;
        if (other->work->spec.setting.context == mine->work->spec.setting.context && x <= joules &&
            y <= seconds && (x < joules || y < seconds))
            return true;
    }
    return false;
}

/* A short context costs less and has a lower latency than a long one, but does not dominate it. */
static void the_pareto_front_is_per_demand(void **state)
{
    static const int64_t LENGTHS[CONTEXTS] = {8192, 512, 2048}; /* unordered */
    struct hardware hardware[2];
    struct grid_candidate candidates[2] = {{0}};
    struct workload_spec works[CONTEXTS * BATCHES];
    struct model model;
    struct estimate_grid points;
    struct error why = {0};
    (void)state;
    find_hardware("l4", &hardware[0]);
    find_hardware("h200", &hardware[1]);
    for (size_t i = 0; i < 2; i++) {
        candidates[i].device = i;
        candidates[i].config = (struct estimate_config){.precision = PRECISION_FP16, .devices = 1};
    }
    assert_int_equal(model_open("llama-3.2-1b", &model, &why), ERR_OK);
    for (size_t i = 0; i < CONTEXTS * BATCHES; i++)
        works[i] = (struct workload_spec){.model = &model,
                                          .setting = {.phase = GRAPH_DECODE,
                                                      .batch = i / CONTEXTS ? 8 : 1,
                                                      .context = LENGTHS[i % CONTEXTS]}};
    const struct workload_list list = {works, CONTEXTS * BATCHES};
    const struct candidates all = {.hardware = hardware, .items = candidates, .count = 2};
    assert_int_equal(estimate_grid_make(&list, &all, &points, &why), ERR_OK);
    assert_int_equal(points.count, 12);
    assert_int_equal(points.demand_count, CONTEXTS);
    for (size_t i = 0; i < points.count; i++) {
        const struct grid_point *point = &points.items[i];
        static const int64_t SORTED[CONTEXTS] = {512, 2048, 8192};
        assert_int_equal(point->demand, i / 4);
        assert_int_equal(point->rank, i % 4);
        assert_int_equal(point->work->spec.setting.context, SORTED[i / 4]);
        assert_int_equal(point->on_frontier, !is_dominated(&points, point));
        assert_true(point->rank == 0 || workload_estimate_joules_per_unit(&point[-1].estimate) <=
                                            workload_estimate_joules_per_unit(&point->estimate));
    }
    estimate_grid_release(&points);
    model_close(&model);
    for (size_t i = 0; i < 2; i++)
        hardware_release(&hardware[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_cannot_run_the_model_comes_last),
        cmocka_unit_test(the_pareto_front_is_per_demand)};
    return RUN_TESTS(tests);
}
