/* The cost of a window over a long history: 100 000 random windows over a million and over ten
 * million samples, most of them on disk. */
#define _GNU_SOURCE
#include <stdint.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "sampler/window.h"

enum { QUERIES = 100000, SMALL = 1000 * 1000, LARGE = 10 * SMALL, ROUNDS = 5 };

static uint64_t seed = 1;
static volatile double sink;

static uint64_t next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 20;
}

/* Samples a millisecond apart, give or take a quarter. */
static void fill(struct timeline *timeline, struct spill *spill, long samples)
{
    spill_init(spill);
    timeline_init(timeline, spill, SHAPE_MEANS);
    struct timeline_point p = {.t = 1, .value = UNKNOWN};
    for (long i = 0; i < samples; i++) {
        if (timeline_append(timeline, &p))
            abort();
        nanos dt = 750 * NS_PER_US + (nanos)(next_random() % 500000);
        p.value = 50 + (double)(next_random() % 1000) / 10;
        p.t += dt;
        p.covered += dt;
        p.sum += p.value * seconds(dt);
    }
}

static double query_seconds(const struct timeline *timeline)
{
    nanos span = timeline_last(timeline)->t, start = clock_now();
    for (int i = 0; i < QUERIES; i++) {
        struct window window;
        nanos from = (nanos)(next_random() % (uint64_t)span);
        nanos length = 1 + (nanos)(next_random() % (uint64_t)(10 * NS_PER_S));
        if (window_read(timeline, from, from + length, &window))
            continue; /* past the end */
        sink += window.sum;
    }
    return seconds(clock_now() - start);
}

int main(void)
{
    struct timeline small, large;
    struct spill small_spill, large_spill;
    double small_s[ROUNDS], large_s[ROUNDS], ratio[ROUNDS];
    fill(&small, &small_spill, SMALL);
    fill(&large, &large_spill, LARGE);
    if (small.thinned || large.thinned) {
        fprintf(stderr, "no space for the history: %s\n", large_spill.why.text);
        return 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        small_s[round] = query_seconds(&small);
        large_s[round] = query_seconds(&large);
        ratio[round] = large_s[round] / small_s[round];
    }
    double whole = bench_median(large_s, ROUNDS), growth = bench_median(ratio, ROUNDS);
    bench_report("100 000 windows over 10 000 000 samples", whole, "s");
    bench_at_most("a window for ten times the samples", growth, "ratio", 2);
    timeline_release(&small);
    timeline_release(&large);
    spill_release(&small_spill);
    spill_release(&large_spill);
    return 0;
}
