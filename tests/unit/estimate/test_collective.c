/* Collectives against a simulation that passes each message and adds the vectors; and against
 * published all-reduce measurements. */
#include "estimate/parallel.h"

#include <math.h>
#include <stdbool.h>

#include "core/units.h"
#include "support/unit.h"

enum { DEVICES_MAX = 16 };
#define GB 1e9
#define US 1e-6

/* ---- reference simulation ---- */

/* Devices with a vector each. A step costs a latency, plus the most bytes that any device sends in
 * it over its link bandwidth. */
struct world {
    int devices;
    double parts[DEVICES_MAX][DEVICES_MAX]; /* by device and part of the vector */
    double seconds;
};

static struct world new_world(int devices)
{
    struct world world = {.devices = devices};
    for (int d = 0; d < devices; d++)
        for (int p = 0; p < devices; p++)
            world.parts[d][p] = 1 + d * 100 + p;
    return world;
}

static double sum_of_part(int devices, int part)
{
    double sum = 0;
    for (int d = 0; d < devices; d++)
        sum += 1 + d * 100 + part;
    return sum;
}

static void assert_is_reduced(const struct world *world)
{
    for (int d = 0; d < world->devices; d++)
        for (int p = 0; p < world->devices; p++)
            assert_near(world->parts[d][p], sum_of_part(world->devices, p), 1e-9);
}

static void step(struct world *world, double bytes, double rate, double latency)
{
    world->seconds += latency + bytes / rate;
}

/* Each device passes a part on to the next: first partial sums, then the results. */
static double ring_s(int devices, double bytes, double rate, double latency)
{
    struct world world = new_world(devices);
    for (int s = 0; s < 2 * (devices - 1); s++) {
        struct world before = world;
        for (int d = 0; d < devices; d++) {
            int to = (d + 1) % devices, part = ((d - s) % devices + devices) % devices;
            bool is_sum = s < devices - 1;
            world.parts[to][part] = before.parts[d][part] + (is_sum ? before.parts[to][part] : 0);
        }
        step(&world, bytes / devices, rate, latency);
    }
    assert_is_reduced(&world);
    return world.seconds;
}

/* Each reads all of every other device. */
static double one_shot_s(int devices, double bytes, double rate, double latency)
{
    struct world world = new_world(devices), before = world;
    step(&world, 0, rate, latency); /* barrier */
    for (int d = 0; d < devices; d++)
        for (int other = 0; other < devices; other++)
            for (int p = 0; p < devices && other != d; p++)
                world.parts[d][p] += before.parts[other][p];
    step(&world, bytes * (devices - 1), rate, latency);
    assert_is_reduced(&world);
    return world.seconds;
}

/* Each reduces one part, and then reads the other parts. */
static double two_shot_s(int devices, double bytes, double rate, double latency)
{
    struct world world = new_world(devices), before = world;
    step(&world, 0, rate, latency);
    for (int d = 0; d < devices; d++)
        for (int other = 0; other < devices; other++)
            if (other != d)
                world.parts[d][d] += before.parts[other][d];
    step(&world, bytes / devices * (devices - 1), rate, latency);
    step(&world, 0, rate, latency);
    for (int d = 0; d < devices; d++)
        for (int p = 0; p < devices; p++)
            world.parts[d][p] = world.parts[p][p];
    step(&world, bytes / devices * (devices - 1), rate, latency);
    assert_is_reduced(&world);
    return world.seconds;
}

static const double SIZES[] = {8, 4e3, 3e4, 2.5e5, 1e6, 1.6e7, 1e9};

static void ring_all_reduce_matches_the_simulation(void **state)
{
    (void)state;
    struct collective_link link = {30 * GB, 3 * US, UNKNOWN, UNKNOWN};
    for (int devices = 2; devices <= DEVICES_MAX; devices++)
        for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
            double oracle = ring_s(devices, SIZES[i], 0.8 * 30 * GB, 3 * US);
            assert_near(collective_all_reduce_s(&link, SIZES[i], devices), oracle, 1e-9 * oracle);
            assert_near(collective_all_gather_s(&link, SIZES[i], devices), oracle / 2,
                        1e-9 * oracle);
        }
}

/* The fastest of the three algorithms: few steps for small messages, few bytes for large ones. */
static void fully_connected_all_reduce_matches_the_simulation(void **state)
{
    (void)state;
    for (int mesh = 0; mesh <= 1; mesh++)
        for (int devices = 2; devices <= 8; devices++)
            for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
                struct collective_link link = {60 * GB, 2 * US, 7, mesh ? 7 : UNKNOWN};
                double rate = 60 * GB * (mesh ? devices - 1 : 1), bytes = SIZES[i];
                double ring = ring_s(devices, bytes, 0.8 * rate, 2 * US);
                double one = one_shot_s(devices, bytes, 0.5 * rate, 2 * US);
                double two = two_shot_s(devices, bytes, 0.5 * rate, 2 * US);
                double min = fmin(ring, fmin(one, two));
                assert_near(collective_all_reduce_s(&link, bytes, devices), min, 1e-9 * min);
            }
    struct collective_link pair = {60 * GB, 2 * US, 1,
                                   UNKNOWN}; /* a bridge: four devices form a ring */
    assert_near(collective_all_reduce_s(&pair, 8, 2), 4 * US, 1e-8);
    assert_near(collective_all_reduce_s(&pair, 8, 4), 12 * US, 1e-8);
    assert_near(collective_all_reduce_s(&pair, 1e6, 1), 0, 0);
    assert_near(collective_all_gather_s(&pair, 0, 2), 0, 0);
}

/* ---- measured ---- */

struct measured {
    double bytes, us;
};

static void assert_follows(const struct collective_link *link, int devices,
                           const struct measured *rows, size_t count)
{
    double logs = 0;
    for (size_t i = 0; i < count; i++) {
        double ratio = collective_all_reduce_s(link, rows[i].bytes, devices) / (rows[i].us * US);
        assert_true(ratio > 0.5 && ratio < 1.5);
        logs += log(ratio) / (double)count;
    }
    assert_true(exp(logs) > 0.75 && exp(logs) < 1.35);
}
#define FOLLOWS(link, devices, rows) assert_follows(link, devices, rows, sizeof rows / sizeof *rows)

/* The sources are in docs/measurements.md, "Communication". */
static void all_reduce_matches_published_measurements(void **state)
{
    (void)state;
    static const struct measured A100[] = {{24.6e3, 7.7},  {98.3e3, 8},    {196.6e3, 12.6},
                                           {786e3, 15.2},  {1.57e6, 21.9}, {3.15e6, 36.8},
                                           {6.29e6, 63.1}, {11.7e6, 102.8}};
    static const struct measured MI300X[] = {{1024, 5.39},   {8192, 5.8},   {16384, 6.57},
                                             {32768, 8.02},  {65536, 8.77}, {131072, 9.61},
                                             {262144, 11.68}};
    static const struct measured H100_2[] = {
        {1024, 3.7}, {65536, 4.5}, {524288, 7.9}, {1048576, 12.5}, {2097152, 19.9}};
    static const struct measured H100_8[] = {
        {1024, 5.9}, {65536, 7.8}, {524288, 16.7}, {1048576, 22.1}, {2097152, 33.8}};
    static const struct measured PCIE[] = {
        {4096, 19.4}, {16384, 22.3}, {32768, 24.2}, {131072, 51.8}, {393216, 83.5}};
    FOLLOWS((&(struct collective_link){300 * GB, 3.3 * US, 7, UNKNOWN}), 8, A100);
    FOLLOWS((&(struct collective_link){64 * GB, 2.7 * US, 7, 7}), 8, MI300X);
    FOLLOWS((&(struct collective_link){450 * GB, 2.4 * US, 7, UNKNOWN}), 2, H100_2);
    FOLLOWS((&(struct collective_link){450 * GB, 2.4 * US, 7, UNKNOWN}), 8, H100_8);
    FOLLOWS((&(struct collective_link){15.8 * GB, 3.1 * US, UNKNOWN, UNKNOWN}), 4, PCIE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_all_reduce_matches_the_simulation),
        cmocka_unit_test(fully_connected_all_reduce_matches_the_simulation),
        cmocka_unit_test(all_reduce_matches_published_measurements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
