/* Verdicts of `ipw compare` on a simulated machine: the same command on both sides, with disturbances that runs record
 * (background load, idle power, their order), and pairs that truly differ.  The tables are what compare reads of run
 * directories; every rate is over fixed seeds. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/run_table.h"

enum { QUERIES = 12, SIDE_MAX = 10, RUNS_MAX = 2 * SIDE_MAX, SEEDS = 20 };

/* ---- the machine ---- */

#define IDLE_W   40.0
#define ACTIVE_W 80.0
#define RUN_S    60.0
#define CPUS     32
#define OWN_CPUS 16.0

enum order {
    BLOCKS,    /* AAABBB */
    REVERSED,  /* BBBAAA */
    ALTERNATE, /* ABABAB */
    MIRRORED   /* ABBAAB... */
};

enum which { SIDE_A = 1, SIDE_B = 2, BOTH = 3, HALF_OF_B = 4 };

/* A pair of sides.  Powers in watts; noise, factors and shares are relative. */
struct scenario {
    const char *name;
    size_t runs; /* of each side; 0: 5 */
    enum order order;
    double noise;   /* of the power between runs; 0: 1 % */
    double noise_b; /* of side B; 0: the same */
    bool heavy_tails;
    double effect; /* true difference of B in power and time: 0 for the same command */

    enum which loaded;
    double load_w, load_share; /* of background processes: power, and share of the CPUs */
    double load_seen;          /* their recorded energy over the true one; 0: 1; < 0: unknown */
    double load_more_w;        /* growth of the background power from run to run */
    double gpu_pct;            /* utilization of the GPU by others on side B */

    enum which idle_of;
    double idle_w;      /* change of idle power */
    bool no_idle_after; /* idle power was not measured again after the runs */
    double drift_w;     /* change of power from run to run */
    bool drifts_idle;   /* idle power drifts with it */
    double warming;     /* power that the first run lacks, relative; it decays by half each run */
    double walk_w;      /* standard deviation of a random walk */
    enum which throttled;
    double outlier; /* of one run of B */
};

struct machine {
    struct run_table runs[RUNS_MAX];
    struct compare_side a, b;
};

static size_t runs_of(const struct scenario *scenario)
{
    return scenario->runs ? scenario->runs : 5;
}

static void fill_numbers(struct run_table *table, enum run_number column, double value)
{
    table->numbers[column] = xmalloc(QUERIES * sizeof(double));
    for (size_t i = 0; i < QUERIES; i++)
        table->numbers[column][i] = value;
}

static void new_table(struct run_table *table)
{
    static const enum run_number COLUMNS[] = {
        RUN_JOULES,      RUN_ACTIVE_JOULES, RUN_LATENCY, RUN_TTFT,   RUN_OUTPUT_TOKENS,
        RUN_CONCURRENCY, RUN_COVERAGE,      RUN_INDEX,   RUN_REPEAT, RUN_QUESTION};
    *table = (struct run_table){.rows = QUERIES,
                                .directory = "",
                                .model = "m",
                                .has_summary = true,
                                .format = 1,
                                .ours = true};
    for (size_t i = 0; i < COUNT_OF(COLUMNS); i++)
        fill_numbers(table, COLUMNS[i], 1);
    for (size_t i = 0; i < RUN_FLAGS; i++) {
        table->flags[i] = xmalloc(QUERIES);
        memset(table->flags[i], -1, QUERIES);
    }
    for (size_t i = 0; i < RUN_WORDS; i++) {
        table->words[i].texts = xcalloc(1, sizeof(char *));
        table->words[i].texts[0] = xstrdup("");
        table->words[i].count = 1;
    }
    summary_init(&table->summary);
    table->summary.hardware_label = "H";
    table->summary.host_name = "node";
    table->summary.energy.method = "counter";
    table->summary.energy.source = "s";
}

static void free_table(struct run_table *table)
{
    for (size_t i = 0; i < RUN_NUMBERS; i++)
        free(table->numbers[i]);
    for (size_t i = 0; i < RUN_FLAGS; i++)
        free(table->flags[i]);
    for (size_t i = 0; i < RUN_WORDS; i++) {
        free(table->words[i].texts[0]);
        free((void *)table->words[i].texts);
    }
}

static bool applies(enum which which, bool is_b, size_t number)
{
    if (which == HALF_OF_B)
        return is_b && number % 2;
    return which & (is_b ? SIDE_B : SIDE_A);
}

/* Of unit variance; Student's t with 3 degrees of freedom has heavy tails. */
static double noise_of(const struct scenario *scenario, struct random *draws)
{
    double normal = random_normal(draws);
    if (!scenario->heavy_tails)
        return normal;
    double squares = 0;
    for (int i = 0; i < 3; i++)
        squares += pow(random_normal(draws), 2);
    return normal / sqrt(squares);
}

/* One run: its true powers and time. */
struct state {
    double idle_w, active_w, load_w, run_s;
};

static void add_finding(struct summary_conditions *conditions, enum finding_code code)
{
    struct finding *finding = &conditions->findings[conditions->finding_count++];
    chars_copy(finding->code, finding_row(code)->code);
    chars_copy(finding->text, finding_row(code)->meaning);
    finding->severity = FINDING_WARNING;
}

/* What the runner records of the conditions (attribute/conditions.c). */
static void record_conditions(const struct scenario *scenario, const struct state *run, bool is_b,
                              size_t number, struct random *draws, struct summary *out)
{
    const double idle_error = 0.2;
    struct summary_conditions *c = &out->conditions;
    bool is_loaded = applies(scenario->loaded, is_b, number);
    double share = 0.002 + (is_loaded ? scenario->load_share : 0) + 3e-4 * random_normal(draws);
    double load_j = (0.2 + run->load_w * (scenario->load_seen > 0 ? scenario->load_seen : 1)) *
                    run->run_s * (1 + 0.02 * random_normal(draws));
    c->seconds = run->run_s;
    c->cpus = CPUS;
    c->background_cpus = fmax(share, 0) * CPUS;
    c->background_cpus_plus_minus = 0.02;
    c->cpu_own_s = OWN_CPUS * run->run_s;
    c->cpu_busy_s = c->cpu_own_s + c->background_cpus * run->run_s;
    c->background_joules = scenario->load_seen < 0 ? UNKNOWN : load_j;
    c->background_gpu_pct = scenario->gpu_pct > 0 && is_b ? scenario->gpu_pct : 0;
    c->idle_w = run->idle_w + idle_error * random_normal(draws);
    c->idle_plus_minus = c->idle_after_plus_minus = idle_error;
    c->idle_after_w =
        scenario->no_idle_after ? UNKNOWN : run->idle_w + idle_error * random_normal(draws);
    if (fmax(share, load_j / out->energy.joules) > 0.05)
        add_finding(c, FINDING_BACKGROUND_CPU);
    if (c->background_gpu_pct > 5)
        add_finding(c, FINDING_BACKGROUND_GPU);
    if (applies(scenario->throttled, is_b, number))
        add_finding(c, FINDING_THROTTLED);
}

static void record_queries(const struct state *run, struct random *draws, struct run_table *out)
{
    double watts = run->idle_w + run->active_w + run->load_w, joules = 0, weights[QUERIES], all = 0;
    for (size_t i = 0; i < QUERIES; i++)
        all += weights[i] = (1 + (double)(i % 4)) * (1 + 0.01 * random_normal(draws));
    for (size_t i = 0; i < QUERIES; i++) {
        double s = run->run_s * weights[i] / all;
        double j = watts * s * (1 + 0.01 * random_normal(draws) / sqrt(QUERIES));
        out->numbers[RUN_INDEX][i] = out->numbers[RUN_QUESTION][i] = (double)i;
        out->numbers[RUN_REPEAT][i] = 0;
        out->numbers[RUN_LATENCY][i] = s;
        out->numbers[RUN_TTFT][i] = 0.1 * s;
        out->numbers[RUN_OUTPUT_TOKENS][i] = 20 * (1 + (double)(i % 4));
        out->numbers[RUN_JOULES][i] = j;
        out->numbers[RUN_ACTIVE_JOULES][i] = j - run->idle_w * s;
        joules += j;
    }
    out->summary.energy.joules = joules;
    out->summary.energy.plus_minus = 0.03 * joules;
    out->summary.energy.statistical = 0;
    out->summary.busy_watts = joules / run->run_s;
}

static void measure(const struct scenario *scenario, bool is_b, size_t number, size_t position,
                    double walk_w, struct random *draws, struct run_table *out)
{
    double k = (double)position, effect = is_b ? 1 + scenario->effect : 1;
    double noise = scenario->noise > 0 ? scenario->noise : 0.01;
    double drift = scenario->drift_w * k + walk_w;
    bool is_loaded = applies(scenario->loaded, is_b, number);
    if (is_b && scenario->noise_b > 0)
        noise = scenario->noise_b;
    struct state run = {
        .idle_w = IDLE_W + (applies(scenario->idle_of, is_b, number) ? scenario->idle_w : 0) +
                  (scenario->drifts_idle ? drift : 0),
        .load_w = is_loaded ? scenario->load_w + scenario->load_more_w * k : 0,
        .run_s = RUN_S * sqrt(effect) * (1 + 0.2 * noise * random_normal(draws))};
    double watts = (IDLE_W + ACTIVE_W) * sqrt(effect) * (1 + noise * noise_of(scenario, draws)) *
                   (1 - scenario->warming * pow(0.5, k));
    if (is_b && number == 1)
        watts *= 1 + scenario->outlier;
    run.active_w = watts - IDLE_W + (scenario->drifts_idle ? 0 : drift);
    if (is_loaded) /* it takes some time of the CPUs away */
        run.run_s *= 1 + 0.2 * scenario->load_share;
    new_table(out);
    record_queries(&run, draws, out);
    record_conditions(scenario, &run, is_b, number, draws, &out->summary);
    out->summary.started_at = 1.7e9 + 100 * k;
}

static bool is_b_at(const struct scenario *scenario, size_t position, size_t runs)
{
    switch (scenario->order) {
    case REVERSED:
        return position < runs;
    case ALTERNATE:
        return position % 2;
    case MIRRORED:
        return (position + position / 2) % 2;
    case BLOCKS:
        break;
    }
    return position >= runs;
}

static void measure_all(const struct scenario *scenario, uint64_t seed, struct machine *out)
{
    struct random draws = random_from(seed, 7);
    size_t runs = runs_of(scenario), in_a = 0, in_b = 0;
    double walk_w = 0;
    for (size_t i = 0; i < 2 * runs; i++) {
        bool is_b = in_b < runs && (in_a == runs || is_b_at(scenario, i, runs));
        size_t number = is_b ? in_b++ : in_a++;
        measure(scenario, is_b, number, i, walk_w, &draws,
                &out->runs[is_b ? runs + number : number]);
        walk_w += scenario->walk_w * random_normal(&draws);
    }
    out->a = (struct compare_side){out->runs, runs};
    out->b = (struct compare_side){out->runs + runs, runs};
}

/* ---- verdicts ---- */

static bool is_decided(const struct compared *compared)
{
    return compared->verdict == VERDICT_BETTER || compared->verdict == VERDICT_WORSE ||
           compared->verdict == VERDICT_HIGHER || compared->verdict == VERDICT_LOWER;
}

/* Of the seeds: how many have a verdict on the energy per query, and on any metric. */
struct rate {
    size_t energy, any, of;
};

static void add_pair(const struct scenario *scenario, uint64_t seed, struct rate *rate)
{
    static const struct run_spread ASSUMED = RUN_SPREAD_ASSUMED;
    const struct compare_options options = {.seed = seed};
    struct machine machine;
    struct comparison comparison;
    bool any = false;
    measure_all(scenario, seed, &machine);
    compare_sides(&machine.a, &machine.b, &options, &ASSUMED, &comparison);
    compare_verdicts(&comparison, 1);
    for (size_t i = 0; i < COMPARE_METRICS; i++)
        any = any || is_decided(&comparison.metrics[i]);
    rate->energy += is_decided(&comparison.metrics[COMPARE_ENERGY_PER_QUERY]);
    rate->any += any;
    rate->of++;
    findings_release(&comparison.findings);
    for (size_t i = 0; i < machine.a.count + machine.b.count; i++)
        free_table(&machine.runs[i]);
}

/* Where a pair takes ten times as long, one shows errors of memory. */
static bool are_rates_known(void)
{
    return !test_is_instrumented();
}

static struct rate rate_of(const struct scenario *scenario, size_t seeds)
{
    struct rate rate = {0};
    for (size_t seed = 0; seed < (are_rates_known() ? seeds : 1); seed++)
        add_pair(scenario, 1000 + seed, &rate);
    return rate;
}

static void print_rate(const char *name, const struct rate *rate)
{
    print_message("%-64s energy %3.0f %%, any metric %3.0f %%\n", name,
                  100 * (double)rate->energy / (double)rate->of,
                  100 * (double)rate->any / (double)rate->of);
}

/* ---- the same command on both sides, disturbed ---- */

#define LOAD(share, watts) .load_share = (share), .load_w = (watts)

static const struct scenario DISTURBED[] = {
    /* background load */
    {"4 % background CPU of 6 W in B", .loaded = SIDE_B, LOAD(0.04, 6)},
    {"the same in A", .loaded = SIDE_A, LOAD(0.04, 6)},
    {"the same in B, 3 runs", .runs = 3, .loaded = SIDE_B, LOAD(0.04, 6)},
    {"the same in B, alternating", .order = ALTERNATE, .loaded = SIDE_B, LOAD(0.04, 6)},
    {"the same, 60 % of its energy seen", .loaded = SIDE_B, LOAD(0.04, 6), .load_seen = 0.6},
    {"the same, its energy unknown", .loaded = SIDE_B, LOAD(0.04, 6), .load_seen = -1},
    {"the same, small noise", .noise = 0.002, .loaded = SIDE_B, LOAD(0.04, 6)},
    {"2 % background CPU of 3 W in B", .loaded = SIDE_B, LOAD(0.02, 3), .load_seen = 0.8},
    {"1 % background CPU of 2 W in B, small noise", .noise = 0.003, .loaded = SIDE_B,
     LOAD(0.01, 2)},
    {"8 % background CPU of 12 W in B", .loaded = SIDE_B, LOAD(0.08, 12)},
    {"4 % background CPU of 6 W in every other run of B", .loaded = HALF_OF_B, LOAD(0.04, 6)},
    {"background load that grows by 1 W", .loaded = BOTH, LOAD(0.03, 2), .load_more_w = 1},
    {"3 % of the GPU for others in B", .gpu_pct = 3, .idle_of = SIDE_B, .idle_w = 0.1},
    /* idle power */
    {"idle 40 -> 41.8 W in B", .idle_of = SIDE_B, .idle_w = 1.8},
    {"the same in A", .idle_of = SIDE_A, .idle_w = 1.8},
    {"the same in B, 3 runs", .runs = 3, .idle_of = SIDE_B, .idle_w = 1.8},
    {"the same in B, 10 runs", .runs = 10, .idle_of = SIDE_B, .idle_w = 1.8},
    {"the same in B, small noise", .noise = 0.003, .idle_of = SIDE_B, .idle_w = 1.8},
    {"the same in B, alternating", .order = ALTERNATE, .idle_of = SIDE_B, .idle_w = 1.8},
    {"the same in B, not measured after", .no_idle_after = true, .idle_of = SIDE_B, .idle_w = 1.8},
    {"idle 40 -> 44 W in B", .idle_of = SIDE_B, .idle_w = 4},
    {"idle 40 -> 37 W in B", .idle_of = SIDE_B, .idle_w = -3},
    {"idle 40 -> 41 W in B, small noise", .noise = 0.003, .idle_of = SIDE_B, .idle_w = 1},
    {"idle 40 -> 43 W in every other run of B", .idle_of = HALF_OF_B, .idle_w = 3},
    /* drift */
    {"drift of 0.6 W per run, 3 runs", .runs = 3, .drift_w = 0.6},
    {"the same, noise of 0.3 %", .runs = 3, .noise = 0.003, .drift_w = 0.6},
    {"the same, noise of 0.1 %", .runs = 3, .noise = 0.001, .drift_w = 0.6},
    {"the same, 5 runs", .drift_w = 0.6},
    {"drift of -0.6 W per run, B first, noise of 0.3 %", .order = REVERSED, .noise = 0.003,
     .drift_w = -0.6},
    {"drift of 0.6 W per run, alternating, noise of 0.3 %", .order = ALTERNATE, .noise = 0.003,
     .drift_w = 0.6},
    {"drift of 2 W per run, mirrored", .order = MIRRORED, .drift_w = 2},
    {"drift of 0.6 W per run, of idle power as well", .noise = 0.003, .drift_w = 0.6,
     .drifts_idle = true},
    {"drift of 1.5 W per run", .drift_w = 1.5},
    {"first runs cold by 5 %, recovering", .warming = 0.05},
    {"random walk of 0.5 W per run", .noise = 0.005, .walk_w = 0.5},
    /* others, and several */
    {"one run of B higher by 8 %", .outlier = 0.08},
    {"B throttled", .throttled = SIDE_B, .noise = 0.005, .idle_of = SIDE_B, .idle_w = -1.5},
    {"noise of B three times as large", .noise = 0.005, .noise_b = 0.015},
    {"background load and higher idle power in B", .loaded = SIDE_B, LOAD(0.03, 4),
     .idle_of = SIDE_B, .idle_w = 1.8},
    {"background load in B and drift", .loaded = SIDE_B, LOAD(0.03, 4), .drift_w = 0.4},
};

static void disturbances_give_no_verdict(void **state)
{
    (void)state;
    struct rate all = {0};
    assert_int_equal(COUNT_OF(DISTURBED), 40);
    for (size_t i = 0; i < COUNT_OF(DISTURBED); i++) {
        struct rate rate = rate_of(&DISTURBED[i], SEEDS);
        print_rate(DISTURBED[i].name, &rate);
        all.energy += rate.energy;
        all.any += rate.any;
        all.of += rate.of;
    }
    print_rate("all disturbed", &all);
    assert_true(!are_rates_known() || 50 * all.energy <= all.of); /* 2 % */
}

/* ---- undisturbed ---- */

static void a_true_difference_of_3_percent_is_decided(void **state)
{
    (void)state;
    static const struct scenario PAIRS[] = {
        {"3 % more, 5 runs, one side after the other", .effect = 0.03},
        {"3 % less, 5 runs, one side after the other", .effect = -0.03},
        {"3 % more, 5 runs, alternating", .order = ALTERNATE, .effect = 0.03},
        {"3 % less, 5 runs, mirrored", .order = MIRRORED, .effect = -0.03},
    };
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        struct rate rate = rate_of(&PAIRS[i], 15 * SEEDS);
        print_rate(PAIRS[i].name, &rate);
        assert_true(!are_rates_known() || 10 * rate.energy >= 8 * rate.of);
    }
}

static void equal_sides_are_rarely_decided(void **state)
{
    (void)state;
    static const struct scenario PAIRS[] = {
        {"equal, 5 runs", .runs = 5},
        {"equal, 3 runs", .runs = 3},
        {"equal, 5 runs, alternating", .order = ALTERNATE},
        {"equal, 10 runs", .runs = 10},
        {"equal, 5 runs, heavy tails", .heavy_tails = true, .order = ALTERNATE},
    };
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        struct rate rate = rate_of(&PAIRS[i], 15 * SEEDS);
        print_rate(PAIRS[i].name, &rate);
        assert_true(!are_rates_known() || 100 * rate.any <= 6 * rate.of);
    }
}

/* ---- one run a side ---- */

static void one_run_a_side_decides_large_differences_only(void **state)
{
    (void)state;
    static const struct scenario EQUAL = {"one run a side, equal, noise of 2 %", 1, .noise = 0.02};
    static const struct scenario TWICE = {"one run a side, twice", 1, .noise = 0.02, .effect = 1};
    struct rate equal = rate_of(&EQUAL, 20 * SEEDS), twice = rate_of(&TWICE, SEEDS);
    print_rate(EQUAL.name, &equal);
    print_rate(TWICE.name, &twice);
    assert_true(!are_rates_known() || 100 * equal.any <= equal.of);
    assert_int_equal(twice.energy, twice.of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disturbances_give_no_verdict),
        cmocka_unit_test(a_true_difference_of_3_percent_is_decided),
        cmocka_unit_test(equal_sides_are_rarely_decided),
        cmocka_unit_test(one_run_a_side_decides_large_differences_only),
    };
    return RUN_TESTS(tests);
}
