/* The overhead of reading a sensor file through port/fs over the system call: eight powercap zones,
 * read in turn by plain pread and by fs_pread_u64. */
#include "bench/bench.h"
#include "bench/zones.h"
#include "core/clock.h"
#include "port/fs.h"

enum { SWEEPS = 2000, ROUNDS = 31 };

static struct zones zones;
static volatile uint64_t sink; /* keeps the readings from being optimized away */

static void sweep_bare(void)
{
    sink += zones_pread(&zones);
}

static void sweep_fs(void)
{
    for (int i = 0; i < ZONES; i++) {
        uint64_t value;
        if (fs_pread_u64(zones.fds[i], &value))
            abort();
        sink += value;
    }
}

static double ns_per_read(void (*sweep)(void))
{
    nanos start = clock_now();
    for (int i = 0; i < SWEEPS; i++)
        sweep();
    return (double)(clock_now() - start) / (SWEEPS * ZONES);
}

int main(void)
{
    zones_new(&zones);
    double ratio[ROUNDS];
    ns_per_read(sweep_bare); /* warm-up */
    for (int round = 0; round < ROUNDS; round++) {
        double bare = ns_per_read(sweep_bare);
        ratio[round] = ns_per_read(sweep_fs) / bare;
    }
    bench_at_most("fs_pread_u64 over pread", bench_median(ratio, ROUNDS), "ratio", 3);
    zones_free(&zones);
    return 0;
}
