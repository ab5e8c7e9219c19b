/* The control law against simulated GPUs: it settles, does not oscillate, holds the SLO and saves energy. */
#include "support/unit.h"

#include <math.h>

#include "core/random.h"
#include "core/units.h"
#include "power/governor.h"

enum { CLOCKS = 99, STEPS = 600, SETTLE = 10 };
#define FMAX  1980.0
#define FLOOR 990.0
static double clocks[CLOCKS];

/* ---- the plant ---- */

/* latency(f) = base * (max(knee, x) / max(knee, 1) * share + 1 - share), x = fmax / f, relative to the SLO. */
struct plant {
    double base, share,
        knee;     /* knee 0: none; 2: latency does not depend on the clock down to half of fmax */
    double noise; /* standard deviation of ln latency */
    double queue; /* utilization at fmax, for the queueing delay; 0: none */
    double step_up, step_down; /* factors of latency from one third and two thirds of the time on */
    unsigned delay;            /* readings until a clock change takes effect */
    double idle_w, static_w;   /* static power at any clock while busy */
    bool is_saturated; /* closed loop: work runs as fast as the clock allows, not at a given rate */
};

struct outcome {
    unsigned settled; /* the step of the last change */
    unsigned changes, late_turns, violations;
    double mhz;                    /* at the end */
    double joules, default_joules; /* per unit of work */
    double power_w;
};

static double latency_of(const struct plant *plant, double mhz)
{
    double x = FMAX / mhz, knee = fmax(plant->knee, 1);
    double service = plant->share * fmax(knee, x) / knee + 1 - plant->share;
    double busy = fmin(plant->queue * service, 0.99);
    return plant->base * service * (1 - plant->queue) / (1 - busy);
}

static double load_at(const struct plant *plant, unsigned step)
{
    double load = 1;
    if (plant->step_up > 0 && step >= STEPS / 3)
        load *= plant->step_up;
    if (plant->step_down > 0 && step >= 2 * STEPS / 3)
        load *= plant->step_down;
    return load;
}

static double power_of(const struct plant *plant, double mhz)
{
    return plant->idle_w + plant->static_w + 400 * pow(mhz / FMAX, 2.5);
}

/* At a given rate, work does not depend on the clock; the busy fraction does. */
static double joules_of(const struct plant *plant, double mhz)
{
    double time = latency_of(plant, mhz) / latency_of(plant, FMAX);
    return plant->is_saturated
               ? power_of(plant, mhz) * time
               : plant->idle_w + 0.5 * time * (power_of(plant, mhz) - plant->idle_w);
}

static struct governor_options options_of(void)
{
    for (size_t i = 0; i < CLOCKS; i++)
        clocks[i] = 510 + 15 * (double)i;
    return (struct governor_options){.settings = clocks,
                                     .count = CLOCKS,
                                     .lowest = FLOOR,
                                     .has_slo = true,
                                     .max_power_w = UNKNOWN,
                                     .elasticity = 1};
}

static struct governor_reading reading_of(const struct plant *plant, double mhz, unsigned step,
                                          struct random *random)
{
    double noise = plant->noise > 0 ? plant->noise * random_normal(random) : 0;
    double time = latency_of(plant, mhz) / latency_of(plant, FMAX);
    double work = plant->is_saturated ? 1000 / time : 1000;
    if (plant->noise > 0) /* arrivals vary more than the service time */
        work *= exp(2 * plant->noise * random_normal(random));
    return (struct governor_reading){
        .t_s = step + 1,
        .latency = latency_of(plant, mhz) * load_at(plant, step) * exp(noise),
        .power_w = joules_of(plant, mhz) / (plant->is_saturated ? time : 1),
        .setting = mhz,
        .utilization = 0.9,
        .work_per_s = work,
    };
}

static struct outcome simulate(const struct plant *plant, const struct governor_options *options,
                               uint64_t seed)
{
    struct governor governor;
    struct random random = random_seeded(seed);
    struct outcome out = {0};
    double set[STEPS + 1];
    int direction = 0;
    governor_init(&governor, options);
    set[0] = FMAX;
    for (unsigned step = 0; step < STEPS; step++) {
        double mhz = set[step > plant->delay ? step - plant->delay : 0];
        struct governor_reading reading = reading_of(plant, mhz, step, &random);
        out.violations += reading.latency > 1;
        out.joules += joules_of(plant, mhz) / STEPS;
        out.power_w = reading.power_w;
        struct governor_decision decision = governor_step(&governor, &reading);
        set[step + 1] = clocks[decision.index];
        assert_true(clocks[decision.index] >= fmin(options->lowest, FMAX));
        if (!decision.is_change)
            continue;
        int now = set[step + 1] > set[step] ? 1 : -1;
        out.late_turns += now == -direction && step > SETTLE;
        direction = now;
        out.changes++;
        out.settled = step + 1;
    }
    out.mhz = set[STEPS];
    out.default_joules = joules_of(plant, FMAX);
    return out;
}

/* ---- plants that do not change ---- */

static void it_settles_on_every_kind_of_workload(void **state)
{
    (void)state;
    static const struct {
        struct plant plant;
        double low, high; /* bounds of the final clock */
    } CASES[] = {
        {{.base = 0.6, .share = 1, .idle_w = 80}, 1190, 1310},     /* compute-bound */
        {{.base = 0.85, .share = 1, .idle_w = 80}, 1700, 1860},    /* little slack */
        {{.base = 0.65, .share = 0.5, .idle_w = 80}, FLOOR, 1150}, /* half of it memory-bound */
        {{.base = 0.6, .share = 1, .knee = 2, .idle_w = 80}, FLOOR, FLOOR}, /* memory-bound */
        {{.base = 0.8, .share = 1, .knee = 2, .idle_w = 80}, FLOOR, 1200},  /* little slack */
        {{.base = 0.7, .share = 1, .knee = 1.3, .idle_w = 80},
         1090,
         1240}, /* memory-bound above a knee */
        {{.base = 0.5, .share = 1, .queue = 0.5, .idle_w = 80}, 1250, 1600}, /* a queue */
        {{.base = 0.05, .share = 1, .idle_w = 80}, FLOOR, FLOOR},            /* far below the SLO */
        {{.base = 0.6, .share = 1, .delay = 1, .idle_w = 80},
         1190,
         1310}, /* delayed by a reading */
        {{.base = 0.6, .share = 1, .delay = 2, .idle_w = 80}, 1190, 1310}, /* delayed by two */
        {{.base = 0.6, .share = 1, .knee = 2, .delay = 2, .idle_w = 80},
         FLOOR,
         FLOOR}, /* memory-bound and delayed */
    };
    struct governor_options options = options_of();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct outcome out = simulate(&CASES[i].plant, &options, 1);
        assert_true(out.settled <= SETTLE);
        assert_int_equal(out.late_turns, 0);
        assert_int_equal(out.violations, 0);
        assert_true(out.mhz >= CASES[i].low && out.mhz <= CASES[i].high);
        assert_true(out.joules < out.default_joules);
    }
}

static void without_slack_the_clock_is_unchanged(void **state)
{
    (void)state;
    struct governor_options options = options_of();
    struct plant plant = {.base = 0.96, .share = 1, .idle_w = 80};
    struct outcome out = simulate(&plant, &options, 1);
    assert_int_equal(out.changes, 0);
    plant.base = 1.3; /* overload: the default is the maximum */
    out = simulate(&plant, &options, 1);
    assert_int_equal(out.changes, 0);
    assert_near(out.mhz, FMAX, 0);
}

static void noise_does_not_make_it_oscillate(void **state)
{
    (void)state;
    struct governor_options options = options_of();
    static const double NOISE[] = {0.01, 0.03, 0.05, 0.08};
    static const struct plant PLANTS[] = {{.base = 0.6, .share = 1, .idle_w = 80},
                                          {.base = 0.6, .share = 0.5, .idle_w = 80},
                                          {.base = 0.6, .share = 1, .knee = 1.5, .idle_w = 80},
                                          {.base = 0.5, .share = 1, .delay = 1, .idle_w = 80}};
    const uint64_t seeds = test_is_instrumented() ? 3 : 20;
    unsigned violations = 0, steps = 0;
    for (size_t n = 0; n < 4; n++)
        for (size_t p = 0; p < 4; p++)
            for (uint64_t seed = 1; seed <= seeds; seed++) {
                struct plant plant = PLANTS[p];
                plant.noise = NOISE[n];
                struct outcome out = simulate(&plant, &options, seed);
                violations += out.violations;
                steps += STEPS;
                assert_true(out.violations <= STEPS / 100);
                /* A violation, which restores the default, counts as two changes. */
                assert_true(out.late_turns <= 2 * out.violations + 2);
                assert_true(out.joules < out.default_joules);
            }
    assert_true(violations < 0.005 * steps);
}

/* Random plants. */
static void random_plants_hold_the_slo_and_save_energy(void **state)
{
    (void)state;
    struct governor_options options = options_of(), fixed = options_of();
    struct random random = random_seeded(5);
    unsigned violations = 0, saved = 0, count = 0, plants = test_is_instrumented() ? 100 : 1000;
    fixed.lowest = 1e9;
    for (uint64_t i = 1; i <= plants; i++) {
        struct plant plant = {.base = 0.2 + 0.7 * random_unit(&random),
                              .share = random_unit(&random),
                              .knee = i % 3 ? 0 : 1 + 1.5 * random_unit(&random),
                              .noise = i % 2 ? 0 : 0.08 * random_unit(&random),
                              .queue = i % 5 ? 0 : 0.7 * random_unit(&random),
                              .delay = (unsigned)random_index(&random, 2),
                              .idle_w = 80};
        if (simulate(&plant, &fixed, i).violations > 1)
            continue; /* the default does not hold the SLO */
        struct outcome out = simulate(&plant, &options, i);
        assert_true(out.violations <= STEPS / 100);
        assert_true(out.late_turns <= 2 * out.violations + 4);
        violations += out.violations;
        saved += out.joules < out.default_joules;
        count++;
    }
    assert_true(count > 0.9 * plants);
    assert_true(violations < 0.002 * count * STEPS);
    assert_true(saved > 0.9 * count);
}

/* With a queue latency rises faster than 1 / f: the first step shows it, and the next ones are smaller. */
static void the_slope_of_a_queue_is_learned(void **state)
{
    (void)state;
    struct governor_options options = options_of();
    unsigned violations = 0, count = 0;
    for (int i = 0; i <= 10; i++)
        for (int k = 0; k <= 10; k++) {
            struct plant plant = {
                .base = 0.2 + 0.05 * i, .share = 1, .queue = 0.1 + 0.05 * k, .idle_w = 80};
            violations += simulate(&plant, &options, 1).violations;
            count++;
        }
    assert_true(violations <= count / 2); /* of 600 readings each */
}

static void load_changes_are_followed(void **state)
{
    (void)state;
    struct governor_options options = options_of();
    static const struct plant PLANTS[] = {
        {.base = 0.5, .share = 1, .step_up = 1.4, .step_down = 0.7, .idle_w = 80},
        {.base = 0.5, .share = 1, .step_up = 2.5, .step_down = 0.4, .idle_w = 80}, /* overload */
        {.base = 0.7, .share = 1, .step_up = 0.7, .idle_w = 80},
        {.base = 0.5, .share = 0.6, .step_up = 1.5, .noise = 0.03, .idle_w = 80},
        {.base = 0.4, .share = 1, .queue = 0.4, .step_up = 1.5, .step_down = 0.7, .idle_w = 80},
    };
    for (size_t p = 0; p < sizeof PLANTS / sizeof *PLANTS; p++) {
        struct outcome out = simulate(&PLANTS[p], &options, 7);
        assert_true(out.late_turns <= 6);
        assert_true(out.joules < out.default_joules);
        if (p != 1) /* no clock holds the SLO in a third of the time */
            assert_true(out.violations <= STEPS / 100);
        else
            assert_true(out.violations <= STEPS / 3);
    }
}

static void energy_has_a_minimum_above_the_lowest_clock(void **state)
{
    (void)state;
    struct governor_options options = options_of();
    options.lowest = 510;
    /* Saturated, with high static power: E(f) is U-shaped. */
    struct plant plant = {
        .base = 0.1, .share = 1, .static_w = 400, .idle_w = 80, .is_saturated = true};
    struct outcome out = simulate(&plant, &options, 1);
    double min = INFINITY;
    for (size_t i = 0; i < CLOCKS; i++)
        min = fmin(min, joules_of(&plant, clocks[i]));
    assert_true(joules_of(&plant, out.mhz) < 1.03 * min);
    assert_true(out.joules < 1.01 * out.default_joules);
    assert_true(out.late_turns <= 4);
}

/* A stalled server or governor does little work in one reading, and catches up in the next one:
 * neither is the cost per token. It recovers from a wrong conclusion soon, not only after the time
 * for which a clock is barred. */
static void a_stall_does_not_change_the_cost_per_token(void **state)
{
    (void)state;
    struct governor_options options = options_of();
    const struct plant plant = {.base = 0.3, .share = 0, .idle_w = 80};
    static const double SHARES[][2] = {{0.1, 1.9}, {0.5, 1.5}, {1.8, 0.2}, {0.4, 1}, {2.5, 1}};
    for (size_t s = 0; s < sizeof SHARES / sizeof *SHARES; s++)
        for (unsigned at = 0; at < 20; at++) {
            struct governor governor;
            struct random random = random_seeded(1);
            unsigned low = 0;
            governor_init(&governor, &options);
            for (unsigned step = 0; step < 60; step++) {
                struct governor_reading reading =
                    reading_of(&plant, clocks[governor.at], step, &random);
                if (step == at || step == at + 1)
                    reading.work_per_s *= SHARES[s][step - at];
                (void)governor_step(&governor, &reading);
                low += clocks[governor.at] == FLOOR;
            }
            assert_near(clocks[governor.at], FLOOR, 0);
            assert_true(low >= 30);
        }
}

/* ---- models ---- */

static void model_of(const struct plant *plant, double *slowdown, double *energy)
{
    for (size_t i = 0; i < CLOCKS; i++) {
        slowdown[i] = latency_of(plant, clocks[i]) / latency_of(plant, FMAX);
        energy[i] = joules_of(plant, clocks[i]);
    }
}

static void a_model_converges_faster_than_the_bound(void **state)
{
    (void)state;
    double slowdown[CLOCKS], energy[CLOCKS];
    struct governor_options options = options_of();
    /* Memory-bound down to 1.7: the bound alone allows only steps of a few percent. */
    struct plant plant = {.base = 0.86, .share = 1, .knee = 1.7, .idle_w = 80};
    struct outcome without = simulate(&plant, &options, 1);
    model_of(&plant, slowdown, energy);
    options.slowdown = slowdown;
    options.energy = energy;
    struct outcome with = simulate(&plant, &options, 1);
    assert_true(with.settled <= SETTLE);
    assert_true(with.settled < without.settled || with.joules < without.joules);
    assert_true(with.mhz <= 1200);
    assert_int_equal(with.violations, 0);
    /* The energy minimum of the model is above the lowest clock that latency allows. */
    for (size_t i = 0; i < CLOCKS; i++)
        energy[i] = fabs(clocks[i] - 1500);
    with = simulate(&plant, &options, 1);
    assert_near(with.mhz, 1500, 45);
}

static void a_wrong_model_does_not_violate_the_slo(void **state)
{
    (void)state;
    double slowdown[CLOCKS], energy[CLOCKS];
    struct governor_options options = options_of();
    options.slowdown = slowdown;
    options.energy = energy;
    static const struct plant PLANTS[] = {
        {.base = 0.6, .share = 1, .idle_w = 80},
        {.base = 0.8, .share = 1, .idle_w = 80},
        {.base = 0.7, .share = 0.6, .idle_w = 80},
        {.base = 0.5, .share = 1, .queue = 0.4, .idle_w = 80},
    };
    static const struct plant MODELS[] = {
        {.base = 1,
         .share = 1,
         .knee = 2.5,
         .idle_w = 80}, /* latency does not depend on the clock */
        {.base = 1, .share = 0.3, .idle_w = 80},
        {.base = 1, .share = 1, .queue = 0.7, .idle_w = 80}, /* too steep */
    };
    for (size_t p = 0; p < 4; p++)
        for (size_t m = 0; m < 3; m++) {
            model_of(&MODELS[m], slowdown, energy);
            struct outcome out = simulate(&PLANTS[p], &options, 3);
            assert_true(out.violations <= STEPS / 100);
            assert_true(out.settled <= SETTLE);
            assert_true(out.late_turns <= 2);
            /* The energy minimum of the last model is at the default. */
            assert_true(m == 2 ? out.changes == 0 : out.joules < out.default_joules);
        }
}

/* ---- power ---- */

static void a_power_cap_is_held(void **state)
{
    (void)state;
    struct governor_options options = options_of();
    struct plant plant = {.base = 0.5, .share = 1, .idle_w = 80, .is_saturated = true};
    options.has_slo = false;
    for (int cap = 150; cap <= 450; cap += 50) {
        options.max_power_w = cap;
        struct outcome out = simulate(&plant, &options, 1);
        assert_true(out.power_w <= cap || out.mhz == FLOOR);
        assert_true(out.settled <= 2 * SETTLE);
        assert_true(out.late_turns == 0);
        assert_true(out.power_w >= 0.85 * cap || out.mhz == FLOOR); /* no lower than necessary */
    }
    options.max_power_w = 600;
    struct outcome out = simulate(&plant, &options, 1);
    assert_int_equal(out.changes, 0);
    /* With an SLO it goes below what the cap requires. */
    options.has_slo = true;
    options.max_power_w = 400;
    out = simulate(&plant, &options, 1);
    assert_near(out.mhz, 1050, 60);
    assert_int_equal(out.violations, 0);
}

/* ---- missing readings ---- */

static struct governor_decision feed_reading(struct governor *governor, double t_s, double latency)
{
    struct governor_reading reading = {.t_s = t_s,
                                       .latency = latency,
                                       .power_w = 300,
                                       .setting = UNKNOWN,
                                       .utilization = UNKNOWN,
                                       .work_per_s = UNKNOWN};
    return governor_step(governor, &reading);
}

/* Lowers the clock; returns the time. */
static double lower_clock(struct governor *governor)
{
    double t_s = 1;
    while (clocks[governor->at] > 1200 && t_s < 30)
        (void)feed_reading(governor, t_s++, 0.4);
    assert_true(clocks[governor->at] <= 1200);
    return t_s;
}

static void missing_readings_restore_the_default(void **state)
{
    (void)state;
    struct governor governor;
    struct governor_options options = options_of();
    static const double MISSING[] = {NAN, INFINITY, -1, 0};
    for (size_t i = 0; i < 4; i++) {
        governor_init(&governor, &options);
        double t_s = lower_clock(&governor);
        assert_false(feed_reading(&governor, t_s++, MISSING[i]).is_change); /* one may be missing */
        struct governor_decision decision = feed_reading(&governor, t_s++, MISSING[i]);
        assert_true(decision.is_change && decision.is_default);
        assert_int_equal(decision.action, GOVERNOR_STALE);
        assert_false(feed_reading(&governor, t_s++, MISSING[i]).is_change);
        while (governor.at == CLOCKS - 1 && t_s < 100) /* and it continues afterwards */
            (void)feed_reading(&governor, t_s++, 0.4);
        assert_true(governor.at < CLOCKS - 1);
    }
    /* A repeated reading does not count. */
    governor_init(&governor, &options);
    double t_s = lower_clock(&governor);
    (void)feed_reading(&governor, t_s - 1, 0.4);
    assert_int_equal(feed_reading(&governor, t_s - 1, 0.4).action, GOVERNOR_STALE);
    assert_int_equal(governor.at, CLOCKS - 1);
}

static void a_violation_restores_the_default(void **state)
{
    (void)state;
    struct governor governor;
    struct governor_options options = options_of();
    governor_init(&governor, &options);
    double t_s = lower_clock(&governor);
    size_t low = governor.at;
    struct governor_decision decision = feed_reading(&governor, t_s++, 1.01);
    assert_true(decision.is_default && decision.is_change);
    assert_int_equal(decision.action, GOVERNOR_VIOLATED);
    for (int i = 0; i < 20; i++) { /* not that low again soon */
        (void)feed_reading(&governor, t_s++, 0.4);
        assert_true(governor.at > low);
    }
    assert_true(governor.at < CLOCKS - 1);
}

static void advice_mode_does_not_change_the_clock(void **state)
{
    (void)state;
    struct governor governor;
    struct governor_options options = options_of();
    options.is_advice = true;
    governor_init(&governor, &options);
    struct governor_decision decision = {0};
    for (int i = 1; i < 50; i++) {
        decision = feed_reading(&governor, i, 0.4);
        assert_int_equal(governor.at, CLOCKS - 1);
    }
    assert_true(decision.is_change && !decision.is_default);
    assert_int_equal(decision.action, GOVERNOR_LOWER);
}

static void a_single_clock_is_never_changed(void **state)
{
    (void)state;
    struct governor governor;
    static const double ONE[] = {1980};
    struct governor_options options = {
        .settings = ONE, .count = 1, .lowest = 5000, .has_slo = true, .max_power_w = 100};
    governor_init(&governor, &options);
    for (int i = 1; i < 50; i++)
        assert_false(feed_reading(&governor, i, i % 3 ? 0.3 : 2).is_change);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_settles_on_every_kind_of_workload),
        cmocka_unit_test(without_slack_the_clock_is_unchanged),
        cmocka_unit_test(noise_does_not_make_it_oscillate),
        cmocka_unit_test(random_plants_hold_the_slo_and_save_energy),
        cmocka_unit_test(the_slope_of_a_queue_is_learned),
        cmocka_unit_test(load_changes_are_followed),
        cmocka_unit_test(energy_has_a_minimum_above_the_lowest_clock),
        cmocka_unit_test(a_stall_does_not_change_the_cost_per_token),
        cmocka_unit_test(a_model_converges_faster_than_the_bound),
        cmocka_unit_test(a_wrong_model_does_not_violate_the_slo),
        cmocka_unit_test(a_power_cap_is_held),
        cmocka_unit_test(missing_readings_restore_the_default),
        cmocka_unit_test(a_violation_restores_the_default),
        cmocka_unit_test(advice_mode_does_not_change_the_clock),
        cmocka_unit_test(a_single_clock_is_never_changed),
    };
    return RUN_TESTS(tests);
}
