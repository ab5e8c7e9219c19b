/* Serving under load against queueing theory, conservation laws and the estimates of its steps.
 * tests/cli/test_estimate_serve.py compares whole simulations with another simulator. */
#include "estimate/serving.h"

#include "support/unit.h"

/* ---- steps of fixed duration that are counted ---- */

struct meter {
    double fixed_s, token_s, watts;
    double seconds, joules, steps, most_tokens, most_sequences; /* over all steps */
};

static struct serving_cost metered_cost(const void *context, const struct serving_step *step)
{
    struct meter *meter = *(struct meter *const *)context;
    double tokens = step->sequences + step->prompt_tokens;
    struct serving_cost cost = {.seconds = meter->fixed_s + tokens * meter->token_s};
    cost.joules = meter->watts * cost.seconds;
    meter->seconds += cost.seconds;
    meter->joules += cost.joules;
    meter->steps++;
    meter->most_tokens = fmax(meter->most_tokens, tokens);
    meter->most_sequences = fmax(meter->most_sequences, step->sampled);
    return cost;
}

static struct meter meter;
static struct meter *const METER = &meter;
static const struct serving_model MODEL = {
    .cost = metered_cost, .context = &METER, .idle_w = 10, .relative_s = 0.1};

static struct serving_policy policy_of(unsigned sequences, unsigned tokens, double kv_tokens)
{
    return (struct serving_policy){.max_sequences = sequences,
                                   .max_tokens = tokens,
                                   .block_tokens = 1,
                                   .kv_tokens = kv_tokens,
                                   .replicas = 1};
}

static struct serving_load load_of(size_t count, struct serving_lengths input,
                                   struct serving_lengths output)
{
    struct serving_load load;
    serving_load_draw(count, input, output, 7, &load);
    return load;
}

static struct serving_result simulate(const struct serving_policy *policy,
                                      const struct serving_load *load, double rate)
{
    struct serving_result result;
    struct error why = {0};
    struct serving_run run = {
        .model = &MODEL, .policy = policy, .load = load, .rate = rate, .time_scale = 1};
    double fixed = meter.fixed_s, token = meter.token_s;
    meter = (struct meter){.fixed_s = fixed, .token_s = token, .watts = 100};
    if (serving_simulate(&run, &result, &why))
        fail_msg("%s", why.text);
    return result;
}

/* Number of requests for a mean; fewer under valgrind and sanitizers. */
static size_t request_count(size_t requests)
{
    return test_is_instrumented() ? requests / 10 : requests;
}

/* Pollaczek-Khinchine for a fixed service time: the mean wait of M/D/1 is D rho / (2 (1 - rho)). */
static double mean_ttft(double service, double rate)
{
    double rho = service * rate;
    return service + service * rho / (2 * (1 - rho));
}

static void sequential_service_is_an_m_d_1_queue(void **state)
{
    static const double RATES[] = {0.2, 0.5, 0.8};
    struct serving_policy policy = policy_of(1, 8, INFINITY);
    struct serving_load load = load_of(request_count(200000), (struct serving_lengths){1, 1},
                                       (struct serving_lengths){1, 1});
    (void)state;
    meter.fixed_s = 1;
    meter.token_s = 0;
    for (size_t i = 0; i < sizeof RATES / sizeof *RATES; i++) {
        struct serving_result result = simulate(&policy, &load, RATES[i]);
        double wanted = mean_ttft(1, RATES[i]);
        assert_near(result.ttft_s.mean, wanted, (test_is_instrumented() ? 0.1 : 0.03) * wanted);
        assert_near(result.requests_per_s, RATES[i], 0.02 * RATES[i]);
        assert_near(result.busy, RATES[i], 0.02 * RATES[i]);
        assert_near(result.latency_s.mean, result.ttft_s.mean, 1e-9);
        assert_false(is_known(result.tpot_s.at[0])); /* a single token has no ITL */
    }
    serving_load_release(&load);
}

static void maximum_load_matches_queueing_theory(void **state)
{
    struct serving_policy policy = policy_of(1, 8, INFINITY);
    struct serving_load load = load_of(request_count(40000), (struct serving_lengths){1, 1},
                                       (struct serving_lengths){1, 1});
    struct serving_run run = {.model = &MODEL, .policy = &policy, .load = &load, .time_scale = 1};
    struct serving_slo slo = {.ttft_s = 2, .itl_s = UNKNOWN, .quantile = -1};
    struct serving_curve curve;
    struct error why = {0};
    (void)state;
    meter.fixed_s = 1;
    meter.token_s = 0;
    assert_int_equal(serving_curve_make(&run, NULL, 0, &slo, NULL, &curve, &why), ERR_OK);
    assert_near(curve.largest.rate, 2.0 / 3,
                test_is_instrumented() ? 0.06 : 0.02); /* mean_ttft(1, 2/3) = 2 */
    assert_int_equal(curve.count, 8);
    for (size_t i = 0; i < curve.count; i++) {
        const struct serving_point *point = &curve.points[i];
        assert_int_equal(point->meets, point->mid.ttft_s.mean <= 2);
        assert_true(point->fast.ttft_s.mean < point->mid.ttft_s.mean);
        assert_true(point->slow.ttft_s.mean > point->mid.ttft_s.mean);
    }
    serving_curve_release(&curve);
    slo.ttft_s = 0.5; /* below the service time */
    assert_int_equal(serving_curve_make(&run, NULL, 0, &slo, NULL, &curve, &why), ERR_OK);
    assert_near(curve.largest.rate, 0, 0);
    serving_curve_release(&curve);
    serving_load_release(&load);
}

/* One request per second and replica is the capacity, whatever the SLO; twice that is overload,
 * although the finite number of requests waits less than the SLO. */
static void a_loose_slo_gives_the_capacity(void **state)
{
    struct serving_policy policy = policy_of(1, 8, INFINITY);
    struct serving_load load = load_of(request_count(10000), (struct serving_lengths){1, 1},
                                       (struct serving_lengths){1, 1});
    struct serving_run run = {.model = &MODEL, .policy = &policy, .load = &load, .time_scale = 1};
    struct serving_slo slo = {.ttft_s = 1e9, .itl_s = UNKNOWN, .quantile = 2};
    struct serving_curve curve;
    struct error why = {0};
    (void)state;
    meter.fixed_s = 1;
    meter.token_s = 0;
    for (unsigned replicas = 1; replicas <= 3; replicas += 2) {
        double rates[] = {0.5 * replicas, 2 * replicas};
        policy.replicas = replicas;
        assert_int_equal(serving_curve_make(&run, rates, 2, &slo, NULL, &curve, &why), ERR_OK);
        assert_near(curve.capacity, replicas, 1e-6);
        assert_true(curve.largest.rate <= replicas * (1 + 1e-6));
        assert_true(curve.largest.rate > 0.8 * replicas); /* at 1 a queue may grow randomly */
        assert_true(curve.is_limited_by_capacity);
        assert_true(curve.points[0].meets);
        assert_false(curve.points[1].meets);
        serving_curve_release(&curve);
    }
    slo.ttft_s = 1.5; /* binds: at p99 the wait exceeds half a service time */
    policy.replicas = 1;
    assert_int_equal(serving_curve_make(&run, NULL, 0, &slo, NULL, &curve, &why), ERR_OK);
    assert_false(curve.is_limited_by_capacity);
    serving_curve_release(&curve);
    serving_load_release(&load);
}

/* ---- conservation laws ---- */

static void tokens_and_energy_are_conserved(void **state)
{
    static const unsigned REPLICAS[] = {1, 3};
    struct serving_load load =
        load_of(3000, (struct serving_lengths){10, 300}, (struct serving_lengths){1, 80});
    struct serving_policy policy = policy_of(16, 128, 900);
    (void)state;
    meter.fixed_s = 0.01;
    meter.token_s = 0.0001;
    for (size_t i = 0; i < 2; i++) {
        policy.replicas = REPLICAS[i];
        struct serving_result result = simulate(&policy, &load, 2.5 * REPLICAS[i]);
        double tokens = load.mean_output * (double)load.count;
        /* Little's law: requests in flight are arrivals per second times their time in the system. */
        assert_near(result.in_flight, result.requests_per_s * result.latency_s.mean,
                    1e-9 * result.in_flight);
        assert_near(result.tokens_per_s * result.duration_s, tokens, 1e-6 * tokens);
        assert_near(result.step_j, meter.joules, 1e-9 * meter.joules);
        assert_near(result.idle_j, 10 * (REPLICAS[i] * result.duration_s - meter.seconds),
                    1e-6 * result.idle_j);
        assert_near(result.joules, result.step_j + result.idle_j, 1e-9 * result.joules);
        assert_near(result.joules_per_token * tokens, result.joules, 1e-6 * result.joules);
        assert_near(result.steps, meter.steps, 0);
    }
    serving_load_release(&load);
}

static void limits_hold_under_overload(void **state)
{
    struct serving_load load =
        load_of(2000, (struct serving_lengths){10, 300}, (struct serving_lengths){1, 200});
    struct serving_policy policy = policy_of(12, 64, 701);
    (void)state;
    meter.fixed_s = 0.01;
    meter.token_s = 0.0001;
    for (unsigned block = 1; block <= 16; block *= 16) {
        policy.block_tokens = block;
        struct serving_result result = simulate(&policy, &load, 100);
        assert_true(result.kv_peak_tokens <= 701);
        assert_true(result.kv_peak_tokens > 600); /* the limit was effective */
        assert_true(result.preemptions > 0);
        assert_true(meter.most_tokens <= 64);
        assert_true(meter.most_sequences <= 12);
        assert_true(result.grows);
    }
    policy.reserves = true;
    struct serving_result result = simulate(&policy, &load, 100);
    assert_near(result.preemptions, 0, 0);
    assert_true(result.kv_peak_tokens <= 701);
    serving_load_release(&load);
}

static void latency_rises_with_load(void **state)
{
    struct serving_load load =
        load_of(4000, (struct serving_lengths){50, 200}, (struct serving_lengths){10, 60});
    struct serving_policy policy = policy_of(32, 256, INFINITY);
    struct serving_result before = {0};
    (void)state;
    meter.fixed_s = 0.01;
    meter.token_s = 0.0001;
    for (int doubled = 0; doubled < 8; doubled++) {
        struct serving_result result = simulate(&policy, &load, ldexp(0.5, doubled));
        assert_true(result.ttft_s.at[2] > before.ttft_s.at[2]);
        assert_true(result.itl_s.at[2] >= before.itl_s.at[2]);
        assert_true(result.ttft_s.at[0] <= result.ttft_s.at[1]);
        assert_true(result.ttft_s.at[1] <= result.ttft_s.at[2]);
        if (before.joules_per_token > 0)
            assert_true(result.joules_per_token < before.joules_per_token);
        before = result;
    }
    serving_load_release(&load);
}

static void a_request_that_cannot_fit_is_rejected(void **state)
{
    struct serving_load load =
        load_of(10, (struct serving_lengths){100, 100}, (struct serving_lengths){50, 50});
    struct serving_policy policy = policy_of(4, 64, 149);
    struct serving_run run = {
        .model = &MODEL, .policy = &policy, .load = &load, .rate = 1, .time_scale = 1};
    struct serving_result result;
    struct error why = {0};
    (void)state;
    assert_int_equal(serving_simulate(&run, &result, &why), ERR_BAD_VALUE);
    assert_non_null(strstr(why.text, "150 tokens exceeds the KV cache of 149"));
    policy.kv_tokens = 150;
    assert_int_equal(serving_simulate(&run, &result, &why), ERR_OK);
    serving_load_release(&load);
}

/* ---- steps ---- */

struct device {
    struct model model;
    struct hardware hardware;
    struct grid_candidate candidate;
    struct workload_spec spec;
    struct serving_question question;
};

static void open_device(struct device *device, const char *model, const struct serving_load *load)
{
    struct error why = {0};
    *device = (struct device){0};
    assert_int_equal(model_open(model, &device->model, &why), ERR_OK);
    assert_int_equal(hardware_find("h100-sxm", &device->hardware, &why), ERR_OK);
    device->candidate.config = (struct estimate_config){.precision = PRECISION_FP16, .devices = 1};
    device->spec = (struct workload_spec){.model = &device->model, .fusion = PARTITION_FUSED};
    device->question = (struct serving_question){.candidate = &device->candidate,
                                                 .hardware = &device->hardware,
                                                 .spec = &device->spec,
                                                 .load = load,
                                                 .kv_cache_bytes = UNKNOWN};
}

static void close_device(struct device *device)
{
    hardware_release(&device->hardware);
    model_close(&device->model);
}

/* As in `ipw estimate --phase`. */
static struct serving_cost pass_of(const struct device *device, struct graph_options setting)
{
    struct estimate_workload work;
    struct workload_estimate estimate;
    struct error why = {0};
    struct workload_spec spec = device->spec;
    spec.setting = setting;
    assert_int_equal(workload_make(&spec, &work, &why), ERR_OK);
    assert_int_equal(workload_estimate_make(&work, &device->hardware, &device->candidate.config,
                                            false, &estimate, &why),
                     ERR_OK);
    struct serving_cost cost = {estimate.total.latency_s, estimate.total.joules.total};
    workload_estimate_release(&estimate);
    workload_release(&work);
    return cost;
}

static void assert_cost(struct serving_cost cost, struct serving_cost wanted, double share)
{
    assert_near(cost.seconds, wanted.seconds, share * wanted.seconds);
    assert_near(cost.joules, wanted.joules, share * wanted.joules);
}

static void step_costs_match_the_estimates(void **state)
{
    struct serving_load load =
        load_of(10, (struct serving_lengths){512, 512}, (struct serving_lengths){256, 256});
    struct serving_policy policy = {.max_sequences = 64, .max_tokens = 2048};
    struct serving_steps *steps;
    struct device device;
    struct error why = {0};
    (void)state;
    open_device(&device, "gpt2", &load);
    assert_int_equal(serving_steps_make(&device.question, &policy, &steps, &why), ERR_OK);
    struct serving_model model = serving_steps_model(steps);

    struct serving_step prompt = {.prompt_tokens = 256, .pairs = 256.0 * 256, .sampled = 1};
    struct serving_cost whole = model.cost(model.context, &prompt);
    assert_cost(
        whole,
        pass_of(&device, (struct graph_options){.phase = GRAPH_PREFILL, .batch = 1, .tokens = 256}),
        1e-6);
    struct serving_step decode = {.sequences = 16, .context = 16 * 384, .sampled = 16};
    assert_cost(model.cost(model.context, &decode),
                pass_of(&device,
                        (struct graph_options){.phase = GRAPH_DECODE, .batch = 16, .context = 384}),
                0.02);
    /* Between the grid points too. */
    struct serving_step other = {.sequences = 24, .context = 24 * 600, .sampled = 24};
    assert_cost(model.cost(model.context, &other),
                pass_of(&device,
                        (struct graph_options){.phase = GRAPH_DECODE, .batch = 24, .context = 600}),
                0.10);
    /* A mixed step costs more than either part, and less than one after the other. */
    struct serving_step mixed = {.sequences = 16,
                                 .context = 16 * 384,
                                 .sampled = 17,
                                 .prompt_tokens = 256,
                                 .pairs = 256.0 * 256};
    double both = model.cost(model.context, &mixed).seconds;
    double apart = model.cost(model.context, &decode).seconds;
    assert_true(both > fmax(apart, whole.seconds));
    assert_true(both < apart + whole.seconds);
    serving_steps_release(steps);
    close_device(&device);
    serving_load_release(&load);
}

/* 30 s of audio are encoded once per request, whatever its prompt length. */
static void an_encoder_runs_with_prompts_only(void **state)
{
    struct serving_load load =
        load_of(10, (struct serving_lengths){4, 4}, (struct serving_lengths){100, 100});
    struct serving_policy policy = {.max_sequences = 64, .max_tokens = 512};
    struct serving_steps *steps;
    struct device device;
    struct error why = {0};
    (void)state;
    open_device(&device, "whisper-small", &load);
    assert_int_equal(serving_steps_make(&device.question, &policy, &steps, &why), ERR_OK);
    struct serving_model model = serving_steps_model(steps);
    for (int64_t batch = 1; batch <= 16; batch *= 4) {
        double count = (double)batch;
        struct serving_step prompts = {
            .prompt_tokens = 4 * count, .begun = count, .pairs = 16 * count, .sampled = count};
        struct graph_options setting = {.phase = GRAPH_PREFILL, .batch = batch, .tokens = 4};
        assert_cost(model.cost(model.context, &prompts), pass_of(&device, setting), 0.02);
        struct serving_step decode = {.sequences = count, .context = 52 * count, .sampled = count};
        setting = (struct graph_options){.phase = GRAPH_DECODE, .batch = batch, .context = 52};
        assert_cost(model.cost(model.context, &decode), pass_of(&device, setting), 0.02);
    }
    serving_steps_release(steps);
    close_device(&device);
    serving_load_release(&load);
}

/* A token of GPT-2 has 2 x 12 layers x 768 KV values of 2 bytes, in the memory that weights and activations leave. */
static void the_kv_cache_uses_the_remaining_memory(void **state)
{
    struct serving_load load =
        load_of(10, (struct serving_lengths){500, 500}, (struct serving_lengths){100, 100});
    struct serving_policy policy = {0};
    struct serving_steps *steps;
    struct device device;
    struct error why = {0};
    (void)state;
    open_device(&device, "gpt2", &load);
    assert_int_equal(serving_steps_make(&device.question, &policy, &steps, &why), ERR_OK);
    assert_near(serving_steps_model(steps).kv_bytes, 2 * 12 * 768 * 2, 1e-6);
    double capacity = hardware_main_memory(&device.hardware)->capacity_bytes.value;
    double cache = policy.kv_tokens * 2 * 12 * 768 * 2;
    assert_true(cache < 0.92 * capacity - 124e6 * 2);
    assert_true(cache > 0.92 * capacity - 4e9);
    serving_steps_release(steps);

    device.question.kv_cache_bytes = 599.5 * 2 * 12 * 768 * 2;
    assert_int_equal(serving_steps_make(&device.question, &policy, &steps, &why), ERR_USAGE);
    assert_non_null(strstr(why.text, "a request of 600 tokens exceeds the KV cache"));
    close_device(&device);
    serving_load_release(&load);
}

/* ---- options ---- */

static void lengths_and_rates_are_parsed_strictly(void **state)
{
    static const char *const BAD_RATES[] = {"0",     "-1", "",        "1,,2", "1:2",    "5:1:1",
                                            "1:5:0", "x",  "1:2:3:4", "nan",  "1:1e6:1"};
    static const char *const BAD_LENGTHS[] = {"0", "5..2", "..5", "5..", "a", "", "1..2..3"};
    struct serving_lengths lengths;
    double *rates;
    size_t count;
    struct error why = {0};
    (void)state;
    for (size_t i = 0; i < sizeof BAD_RATES / sizeof *BAD_RATES; i++)
        assert_int_equal(serving_rates_parse(BAD_RATES[i], &rates, &count, &why), ERR_USAGE);
    for (size_t i = 0; i < sizeof BAD_LENGTHS / sizeof *BAD_LENGTHS; i++)
        assert_int_equal(serving_lengths_parse("x", BAD_LENGTHS[i], &lengths, &why), ERR_USAGE);
    assert_int_equal(serving_rates_parse("4,1:2:0.5", &rates, &count, &why), ERR_OK);
    assert_int_equal(count, 4);
    assert_near(rates[1], 1.5, 1e-12); /* in ascending order */
    assert_near(rates[3], 4, 0);
    free(rates);
    assert_int_equal(serving_lengths_parse("x", "100..500", &lengths, &why), ERR_OK);
    struct serving_load load = load_of(20000, lengths, (struct serving_lengths){3, 3});
    assert_near(load.mean_input, 300, 3);
    assert_int_equal(load.longest_input, 500);
    assert_near(load.items[load.count - 1].arrival / (double)load.count, 1, 0.03);
    serving_load_release(&load);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_service_is_an_m_d_1_queue),
        cmocka_unit_test(maximum_load_matches_queueing_theory),
        cmocka_unit_test(a_loose_slo_gives_the_capacity),
        cmocka_unit_test(tokens_and_energy_are_conserved),
        cmocka_unit_test(limits_hold_under_overload),
        cmocka_unit_test(latency_rises_with_load),
        cmocka_unit_test(a_request_that_cannot_fit_is_rejected),
        cmocka_unit_test(step_costs_match_the_estimates),
        cmocka_unit_test(an_encoder_runs_with_prompts_only),
        cmocka_unit_test(the_kv_cache_uses_the_remaining_memory),
        cmocka_unit_test(lengths_and_rates_are_parsed_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
