/* The results of estimates: figures carry their unit and ±, parts add up to the total, and every column of the CSV is
 * in the row of a point. */
#include "estimate/estimate_result.h"

#include <math.h>
#include <string.h>

#include "core/energy.h"
#include "core/result.h"
#include "port/json_read.h"
#include "support/unit.h"

static const struct tariff PRICES = {
    .price_per_kwh = 0.3, .gco2_per_kwh = 400, .device_price_per_hour = 2};

static void find_hardware(const char *id, struct hardware *out)
{
    struct error why = {0};
    if (hardware_find(id, out, &why))
        fail_msg("%s", why.text);
}

/* A request to a decoder on one device. */
static void estimate_request(const struct estimate_shown *shown, struct result *out)
{
    struct model model;
    struct hardware hardware;
    struct estimate_workload work;
    struct workload_estimate estimate;
    struct error why = {0};
    const struct budget budget = budget_none();
    const struct estimate_config config = {.precision = PRECISION_FP16, .devices = 1};
    find_hardware("h200", &hardware);
    assert_int_equal(model_open("llama-3.2-1b", &model, &why), ERR_OK);
    const struct workload_spec spec = {.model = &model,
                                       .setting = {.batch = 2, .tokens = 64},
                                       .is_request = true,
                                       .output_tokens = 8};
    assert_int_equal(workload_make(&spec, &work, &why), ERR_OK);
    assert_int_equal(workload_estimate_make(&work, &hardware, &config, true, &estimate, &why),
                     ERR_OK);
    const struct recommend_question question = {&estimate, &budget, true};
    estimate_result_make(&question, shown, out);
    workload_estimate_release(&estimate);
    workload_release(&work);
    model_close(&model);
    hardware_release(&hardware);
}

static double sum_of(const struct result *result, const char *list, const char *path)
{
    double sum = 0;
    RESULT_EACH (row, result_find(result, list))
        sum += result_number_at(row, path);
    return sum;
}

static void assert_close(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.17g is not %.17g", got, expected);
}

static void figures_have_their_unit_and_error(void **state)
{
    static const struct {
        const char *figure, *unit, *error;
    } FIGURES[] = {
        {"energy_j.total", "J", "energy_j.plus_minus"},
        {"latency_s", "s", "latency_plus_minus"},
        {"each.energy_j", "J", "each.plus_minus"},
        {"request.energy_j", "J", "request.plus_minus"},
        {"request.phases.1.latency_s", "s", "request.phases.1.latency_plus_minus"},
        {"power_w.average", "W", "power_w.plus_minus"},
        {"operating.cost_per_query", "", "operating.cost_per_query_plus_minus"},
        {"operating.gco2e_per_query", "g", "operating.gco2e_per_query_plus_minus"},
    };
    struct result result = {0};
    (void)state;
    estimate_request(&(struct estimate_shown){.tariff = &PRICES}, &result);
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++) {
        const struct result_item *figure = result_find(&result, FIGURES[i].figure);
        assert_non_null(figure);
        assert_string_equal(figure->unit, FIGURES[i].unit);
        assert_true(figure->number > 0 && figure->error > 0);
        assert_float_equal(figure->error, result_number_at(result.items, FIGURES[i].error), 0);
    }
    result_release(&result);
}

static void parts_add_up_to_the_total(void **state)
{
    struct result result = {0};
    double before = INFINITY;
    (void)state;
    estimate_request(&(struct estimate_shown){0}, &result);
    double joules = result_number_at(result.items, "energy_j.total");
    assert_close(sum_of(&result, "request.phases", "energy_j.total"), joules);
    assert_close(sum_of(&result, "request.phases", "latency_s"),
                 result_number_at(result.items, "latency_s"));
    assert_close(sum_of(&result, "subgraphs", "energy_j"), joules);
    assert_close(sum_of(&result, "view.consumers", "energy_j"), joules);
    assert_close(sum_of(&result, "view.consumers", "subgraphs"),
                 (double)result_length(result_find(&result, "subgraphs")));
    RESULT_EACH (row, result_find(&result, "view.consumers")) {
        assert_true(result_number_at(row, "energy_j") <= before);
        before = result_number_at(row, "energy_j");
    }
    result_release(&result);
}

/* Grouped by layer, unless in full. */
static void csv_is_one_row_or_the_subgraphs(void **state)
{
    struct result brief = {0}, full = {0};
    (void)state;
    estimate_request(&(struct estimate_shown){0}, &brief);
    estimate_request(&(struct estimate_shown){.in_full = true}, &full);
    size_t subgraphs = result_length(result_find(&full, "subgraphs"));
    assert_string_equal(brief.rows, "");
    assert_string_equal(full.rows, "subgraphs");
    assert_true(result_length(result_find(&brief, "view.consumers")) < subgraphs);
    assert_int_equal(result_length(result_find(&full, "view.consumers")), subgraphs);
    for (const struct result_column *column = full.columns; column->title; column++)
        RESULT_EACH (row, result_find(&full, "subgraphs"))
            if (!result_at(row, column->path))
                fail_msg("no '%s' in a subgraph", column->path);
    result_release(&brief);
    result_release(&full);
}

static void check_points(const struct result *result, size_t able)
{
    static const char *const OF_SETTING[] = {
        "model",         "hardware", "precision",     "batch",   "phase",
        "prompt_tokens", "context",  "output_tokens", "devices", "missing"};
    size_t i = 0;
    RESULT_EACH (point, result_find(result, "points")) {
        bool is_missing = i++ >= able;
        assert_int_equal(result_text_at(point, "missing")[0] != '\0', is_missing);
        for (const struct result_column *column = result->columns; column->title; column++) {
            bool is_setting = false;
            for (size_t k = 0; k < sizeof OF_SETTING / sizeof *OF_SETTING; k++)
                is_setting |= strcmp(column->title, OF_SETTING[k]) == 0;
            if ((result_at(point, column->path) != NULL) != (is_setting || !is_missing))
                fail_msg("column '%s' of point %zu", column->title, i);
        }
    }
}

static void points_have_all_columns_and_missing_ones_their_setting(void **state)
{
    enum { DEVICES = 2 };
    struct hardware hardware[DEVICES];
    struct grid_candidate candidates[DEVICES] = {{0}};
    struct model model;
    struct estimate_grid grid;
    struct result result = {0};
    struct error why = {0};
    struct budget budget = budget_none();
    (void)state;
    budget.max[BUDGET_LATENCY] = 1;
    find_hardware("xeon-8490h", &hardware[0]); /* cannot be used for tensor parallelism */
    find_hardware("h100-sxm", &hardware[1]);
    for (size_t i = 0; i < DEVICES; i++) {
        candidates[i].device = i;
        candidates[i].config = (struct estimate_config){.precision = PRECISION_FP16, .devices = 2};
    }
    assert_int_equal(model_open("resnet18", &model, &why), ERR_OK);
    struct workload_spec works[] = {{.model = &model, .setting = {.batch = 1}},
                                    {.model = &model, .setting = {.batch = 4}}};
    const struct workload_list list = {works, sizeof works / sizeof *works};
    const struct candidates all = {.hardware = hardware, .items = candidates, .count = DEVICES};
    assert_int_equal(estimate_grid_make(&list, &all, &grid, &why), ERR_OK);
    grid_result_make(&grid, &budget, &(struct estimate_shown){.tariff = &PRICES}, &result);
    assert_int_equal(result_length(result_find(&result, "points")), grid.count);
    check_points(&result, grid.able);
    assert_string_equal(result_text_at(result.items, "points.0.budget.verdict"), "PASS");
    assert_true(result_flag_at(result.items, "view.differ.batches"));
    result_release(&result);
    estimate_grid_release(&grid);
    model_close(&model);
    for (size_t i = 0; i < DEVICES; i++)
        hardware_release(&hardware[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_have_their_unit_and_error),
        cmocka_unit_test(parts_add_up_to_the_total),
        cmocka_unit_test(csv_is_one_row_or_the_subgraphs),
        cmocka_unit_test(points_have_all_columns_and_missing_ones_their_setting),
    };
    return RUN_TESTS(tests);
}
