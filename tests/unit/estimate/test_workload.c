/* A request is a prefill and decode steps: the weight of each sampled step, against counting. */
#include "estimate/workload.h"

#include "support/unit.h"

static void make_request(struct model *model, int64_t prompt, int64_t output,
                         struct estimate_workload *out)
{
    struct error why = {0};
    struct workload_spec question = {.model = model,
                                     .setting = {.tokens = prompt, .batch = 2},
                                     .is_request = true,
                                     .output_tokens = output};
    if (workload_make(&question, out, &why))
        fail_msg("%s", why.text);
}

static void sampled_decode_steps_are_weighted_to_all_steps(void **state)
{
    static const int64_t OUTPUTS[] = {1, 2, 3, 5, 6, 7, 50, 101, 500};
    struct model model;
    struct error why = {0};
    (void)state;
    assert_int_equal(model_open("gpt2", &model, &why), ERR_OK);
    for (size_t i = 0; i < sizeof OUTPUTS / sizeof *OUTPUTS; i++) {
        struct estimate_workload workload;
        double steps = 0, contexts = 0, wanted = 0;
        make_request(&model, 17, OUTPUTS[i], &workload);
        assert_int_equal(workload.passes[0].setting.phase, GRAPH_PREFILL);
        assert_near(workload.passes[0].times, 1, 0);
        for (size_t k = 1; k < workload.count; k++) {
            const struct workload_pass *pass = &workload.passes[k];
            assert_int_equal(pass->setting.phase, GRAPH_DECODE);
            steps += pass->times;
            contexts += pass->times * (double)pass->setting.context;
        }
        for (int64_t step = 0; step < OUTPUTS[i] - 1; step++)
            wanted += 18 + (double)step;
        assert_near(steps, (double)OUTPUTS[i] - 1, 1e-9);
        assert_near(contexts, wanted, 1e-6 * wanted); /* exact for linear costs */
        assert_near(workload.units, 2 * (double)OUTPUTS[i], 0);
        workload_release(&workload);
    }
    model_close(&model);
}

static void a_short_output_has_every_decode_step(void **state)
{
    struct model model;
    struct estimate_workload workload;
    struct error why = {0};
    (void)state;
    assert_int_equal(model_open("gpt2", &model, &why), ERR_OK);
    make_request(&model, 9, WORKLOAD_STEPS_MAX + 1, &workload);
    assert_int_equal(workload.count, WORKLOAD_STEPS_MAX + 1);
    for (size_t k = 1; k < workload.count; k++) {
        assert_near(workload.passes[k].times, 1, 0);
        assert_int_equal(workload.passes[k].setting.context, 9 + (int64_t)k);
    }
    workload_release(&workload);
    model_close(&model);
}

/* Longer than the context: nothing is left to release, and the error is the model's. */
static void a_request_over_the_context_limit_is_rejected(void **state)
{
    struct model model;
    struct estimate_workload workload;
    struct error why = {0};
    (void)state;
    assert_int_equal(model_open("gpt2", &model, &why), ERR_OK);
    struct workload_spec question = {
        .model = &model, .setting = {.tokens = 1000}, .is_request = true, .output_tokens = 100};
    assert_int_not_equal(workload_make(&question, &workload, &why), ERR_OK);
    assert_non_null(strstr(why.text, "1024"));
    assert_int_equal(workload.count, 0);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampled_decode_steps_are_weighted_to_all_steps),
        cmocka_unit_test(a_short_output_has_every_decode_step),
        cmocka_unit_test(a_request_over_the_context_limit_is_rejected),
    };
    return RUN_TESTS(tests);
}
