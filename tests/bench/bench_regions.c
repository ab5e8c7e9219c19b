/* The cost of a region of libipw, with ten before it and with 270 000. */
#include "ipw.h"

#include <time.h>

#include "bench/bench.h"

enum { FEW = 10, MANY = 270000, BATCH = 2000, ROUNDS = 9 };

static void run_regions(ipw_session *session, int count)
{
    for (int i = 0; i < count; i++)
        if (ipw_end(session, ipw_begin(session, "token")) != IPW_OK)
            abort();
}

static ipw_session *open_with(int regions)
{
    ipw_options options = IPW_OPTIONS_INIT;
    options.sensors = "null";
    ipw_session *session = ipw_open(&options, NULL);
    if (!session)
        abort();
    run_regions(session, regions);
    return session;
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double region_us(ipw_session *session)
{
    double start = cpu_us();
    run_regions(session, BATCH);
    return (cpu_us() - start) / BATCH;
}

/* The small session is reset in every round; the large one only grows. */
int main(void)
{
    double few_us[ROUNDS], many_us[ROUNDS], ratio[ROUNDS];
    ipw_session *many = open_with(MANY);
    for (int round = 0; round < ROUNDS; round++) {
        ipw_session *few = open_with(FEW);
        few_us[round] = region_us(few);
        many_us[round] = region_us(many);
        ratio[round] = many_us[round] / few_us[round];
        ipw_close(few);
    }
    ipw_close(many);
    bench_report("a region of libipw after ten", bench_median(few_us, ROUNDS), "us");
    bench_report("a region of libipw after 270 000", bench_median(many_us, ROUNDS), "us");
    bench_at_most("a region of libipw after 270 000 against ten", bench_median(ratio, ROUNDS),
                  "ratio", 1.2);
    return 0;
}
