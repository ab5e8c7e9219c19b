/* Schedulers against what those of diffusers computed, recorded by tests/fixtures/workloads/schedulers/make, and their
 * configurations. */
#include "support/unit.h"

#include <math.h>

#include "core/jv.h"
#include "port/json_read.h"
#include "port/npy.h"
#include "workloads/scheduler.h"

#define FOLDER IPW_FIXTURES "/workloads/schedulers/"

/* ---- the recorded cases ---- */

struct recording {
    struct jv *cases;
    struct npy outputs, noise, samples;
    size_t next; /* step of `samples` */
};

static void read_array(const char *name, struct npy *out)
{
    struct error why = {0};
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", name);
    if (npy_read(path, 1 << 20, out, &why) != ERR_OK)
        fail_msg("%s", why.text);
}

static void open_recording(struct recording *recording)
{
    struct error why = {0};
    *recording = (struct recording){0};
    if (jv_read(FOLDER "cases.json", 1 << 20, &recording->cases, &why) != ERR_OK)
        fail_msg("%s", why.text);
    read_array("outputs.npy", &recording->outputs);
    read_array("noise.npy", &recording->noise);
    read_array("samples.npy", &recording->samples);
}

static void close_recording(struct recording *recording)
{
    jv_free(recording->cases);
    npy_release(&recording->outputs);
    npy_release(&recording->noise);
    npy_release(&recording->samples);
}

static const struct jv *element(const struct jv *array, size_t index)
{
    const struct jv *at = jv_first(array);
    while (index-- > 0)
        at = jv_next(at);
    return at;
}

/* The largest difference relative to the largest value. */
static double difference(const float *seen, const float *expected, size_t count)
{
    double largest = 0;
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
        worst = isfinite(seen[i]) ? fmax(worst, fabs((double)seen[i] - expected[i])) : INFINITY;
    }
    return worst / largest;
}

static void check_timestep(const struct scheduler *scheduler, const struct jv *facts,
                           const char *label)
{
    size_t i = scheduler->index;
    double timestep = jv_number(element(jv_get(facts, "timesteps"), i));
    const struct jv *scale = element(jv_get(facts, "scales"), i);
    if (!(fabs(scheduler->timesteps[i] - timestep) <= 1e-3))
        fail_msg("%s: timestep %zu is %.9g, not %.9g", label, i, scheduler->timesteps[i], timestep);
    double expected = scale ? jv_number(scale) : 1;
    if (!(fabs(scheduler_input_scale(scheduler) - expected) <= 1e-6 * expected))
        fail_msg("%s: input scale %zu is %.9g, not %.9g", label, i,
                 scheduler_input_scale(scheduler), expected);
}

/* Every step from the same model outputs; returns the worst difference. */
static double run_case(struct recording *recording, const struct jv *facts)
{
    struct error why = {0};
    struct scheduler scheduler;
    double steps = jv_get_number(facts, "steps");
    size_t config = (size_t)jv_get_number(facts, "config");
    size_t count = recording->noise.count;
    size_t last = recording->outputs.count / count - 1;
    float sample[64];
    char label[64];
    const char *name = jv_get_text(facts, "scheduler");
    snprintf(label, sizeof label, "%s, config %zu, %g steps", name, config, steps);
    if (scheduler_open(scheduler_find(name, NULL),
                       element(jv_get(recording->cases, "configs"), config), &scheduler, &why) ||
        scheduler_start(&scheduler, (size_t)steps, count, &why))
        fail_msg("%s: %s", label, why.text);
    double eta = jv_get_number(facts, "eta");
    scheduler.eta = isfinite(eta) ? eta : 0;
    double init_sigma = jv_get_number(facts, "init_noise_sigma");
    assert_true(fabs(scheduler.init_sigma - init_sigma) <= 1e-6 * init_sigma);
    for (size_t i = 0; i < count; i++)
        sample[i] = (float)(recording->noise.values[i] * scheduler.init_sigma);
    double worst = 0;
    for (size_t i = 0; i < scheduler.steps; i++) {
        const float *outputs = recording->outputs.values;
        check_timestep(&scheduler, facts, label);
        scheduler_step(&scheduler, outputs + i * count, outputs + (last - i) * count, sample);
        double seen =
            difference(sample, recording->samples.values + recording->next++ * count, count);
        if (!(seen <= 1e-5))
            fail_msg("%s: step %zu differs by %.3g of the largest value", label, i, seen);
        worst = fmax(worst, seen);
    }
    scheduler_release(&scheduler);
    return worst;
}

static void samples_are_those_of_diffusers(void **state)
{
    (void)state;
    struct recording recording;
    double worst = 0;
    open_recording(&recording);
    JV_EACH (facts, jv_first(jv_get(recording.cases, "cases")))
        worst = fmax(worst, run_case(&recording, facts));
    printf("worst difference: %.2g of the largest value, %zu steps\n", worst, recording.next);
    assert_int_equal(recording.next * recording.noise.count, recording.samples.count);
    assert_true(recording.next > 2000);
    close_recording(&recording);
}

/* ---- configurations ---- */

static enum err open_text(const char *name, const char *text, struct scheduler *out,
                          struct error *why)
{
    struct jv *config = NULL;
    assert_int_equal(jv_parse(text, strlen(text), &config, why), ERR_OK);
    enum err err = scheduler_open(scheduler_find(name, NULL), config, out, why);
    jv_free(config);
    return err;
}

static void what_is_not_supported_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *scheduler, *config;
        const char *error; /* part of the message; NULL: supported */
    } CASES[] = {
        {"ddim", "{}", NULL},
        {"ddim", "{\"thresholding\": true}", "thresholding"},
        {"euler", "{\"thresholding\": true}", NULL}, /* it has no such option */
        {"ddim", "{\"thresholding\": false, \"trained_betas\": null}", NULL},
        {"ddim", "{\"trained_betas\": [0.1, 0.2]}", "trained_betas"},
        {"ddim", "{\"rescale_betas_zero_snr\": true}", "rescale_betas_zero_snr"},
        {"ddim", "{\"prediction_type\": \"flow_prediction\"}", "epsilon, v_prediction, sample"},
        {"ddim", "{\"beta_schedule\": \"sigmoid\"}", "beta_schedule 'sigmoid'"},
        {"ddim", "{\"timestep_spacing\": \"log\"}", "timestep_spacing"},
        {"ddim", "{\"num_train_timesteps\": 0}", "num_train_timesteps"},
        {"ddim", "{\"num_train_timesteps\": \"many\"}", "num_train_timesteps"},
        {"ddim", "{\"beta_start\": 0, \"beta_end\": 0}", "betas"},
        {"ddim", "{\"solver_order\": 3}", NULL},
        {"dpm++2m", "{\"solver_order\": 3}", "solver_order"},
        {"dpm++2m", "{\"algorithm_type\": \"sde-dpmsolver++\"}", "sde-dpmsolver++"},
        {"dpm++2m", "{\"solver_type\": \"heun\"}", "heun"},
        {"dpm++2m", "{\"solver_type\": \"bh2\"}", NULL}, /* of a UniPC configuration */
        {"unipc", "{\"solver_type\": \"bh1\"}", "bh1"},
        {"unipc", "{\"solver_type\": \"midpoint\", \"disable_corrector\": []}", NULL},
        {"unipc", "{\"disable_corrector\": [0]}", "disable_corrector"},
        {"unipc", "{\"predict_x0\": false}", "predict_x0"},
        {"unipc", "{\"predict_x0\": true}", NULL},
        {"euler", "{\"sigma_max\": 80}", "sigma_max: 80"},
        {"euler", "{\"timestep_type\": \"continuous\"}", "continuous"},
        {"euler", "{\"final_sigmas_type\": \"one\"}", "final_sigmas_type"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct scheduler scheduler;
        struct error why = {0};
        enum err err = open_text(CASES[i].scheduler, CASES[i].config, &scheduler, &why);
        if (!err != !CASES[i].error || (err && !strstr(why.text, CASES[i].error)))
            fail_msg("%s %s: %s", CASES[i].scheduler, CASES[i].config, why.text);
        if (!err)
            scheduler_release(&scheduler);
    }
}

static void the_class_of_a_configuration_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *config, *name, *error;
    } CASES[] = {
        {"{\"_class_name\": \"DDIMScheduler\"}", "ddim", NULL},
        {"{\"_class_name\": \"UniPCMultistepScheduler\"}", "unipc", NULL},
        {"{\"_class_name\": \"PNDMScheduler\"}", NULL, "scheduler= (ddim, euler, dpm++2m, unipc)"},
        {"{}", NULL, "''"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct jv *config = NULL;
        struct error why = {0};
        assert_int_equal(jv_parse(CASES[i].config, strlen(CASES[i].config), &config, NULL), ERR_OK);
        const struct scheduler_driver *found = scheduler_of_config(config, &why);
        if (CASES[i].name)
            assert_string_equal(found->name, CASES[i].name);
        else
            assert_true(!found && strstr(why.text, CASES[i].error));
        jv_free(config);
    }
    struct error why = {0};
    assert_null(scheduler_find("dpm++", &why));
    assert_non_null(strstr(why.text, "dpm++2m"));
}

static void steps_are_limited_by_training(void **state)
{
    (void)state;
    struct scheduler scheduler;
    struct error why = {0};
    assert_int_equal(
        open_text("ddim", "{\"num_train_timesteps\": 50, \"steps_offset\": 1}", &scheduler, &why),
        ERR_OK);
    assert_int_equal(scheduler_start(&scheduler, 0, 4, &why), ERR_USAGE);
    assert_int_equal(scheduler_start(&scheduler, 51, 4, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "1 to 50"));
    /* With an offset the first of 50 would be timestep 50. */
    assert_int_equal(scheduler_start(&scheduler, 50, 4, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "fewer steps"));
    assert_int_equal(scheduler_start(&scheduler, 25, 4, &why), ERR_OK);
    assert_int_equal(scheduler.timesteps[0], 49);
    scheduler_release(&scheduler);
}

/* A scheduler may be started again: the second image does not depend on the first. */
static void a_restart_forgets_the_last_image(void **state)
{
    (void)state;
    static const float OUTPUT[4] = {0.5F, -1, 2, 0.1F};
    for (const struct scheduler_driver *const *at = SCHEDULER_DRIVERS; *at; at++) {
        struct scheduler scheduler;
        struct error why = {0};
        float first[4], again[4];
        assert_int_equal(open_text((*at)->name, "{}", &scheduler, &why), ERR_OK);
        for (int round = 0; round < 2; round++) {
            float *sample = round ? again : first;
            assert_int_equal(scheduler_start(&scheduler, 5, 4, &why), ERR_OK);
            memcpy(sample, OUTPUT, sizeof OUTPUT);
            for (int i = 0; i < 5; i++)
                scheduler_step(&scheduler, OUTPUT, NULL, sample);
        }
        assert_memory_equal(first, again, sizeof first);
        scheduler_release(&scheduler);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_those_of_diffusers),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(the_class_of_a_configuration_is_found),
        cmocka_unit_test(steps_are_limited_by_training),
        cmocka_unit_test(a_restart_forgets_the_last_image),
    };
    return RUN_TESTS(tests);
}
