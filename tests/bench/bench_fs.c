/* What reading a sensor file through port/fs costs over the system call it cannot avoid: eight
 * powercap zones, read in turn by pread alone and by fs_pread_u64. */
#define _GNU_SOURCE
#include <unistd.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "port/fs.h"
#include "support/tree.h"

enum { ZONES = 8, SWEEPS = 2000, ROUNDS = 31 };

static int fds[ZONES];
static volatile uint64_t sink; /* keeps the readings from being optimised away */

static void sweep_bare(void)
{
    for (int i = 0; i < ZONES; i++) {
        char text[32];
        sink += (uint64_t)pread(fds[i], text, sizeof text, 0);
    }
}

static void sweep_fs(void)
{
    for (int i = 0; i < ZONES; i++) {
        uint64_t value;
        if (fs_pread_u64(fds[i], &value))
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
    struct tree tree;
    tree_new(&tree);
    for (int i = 0; i < ZONES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/energy_uj", i);
        tree_write(&tree, path, "%d\n", 262143328 + i);
        if (fs_open(path, &fds[i]))
            abort();
    }
    double ratio[ROUNDS];
    ns_per_read(sweep_bare); /* warm-up */
    for (int round = 0; round < ROUNDS; round++) {
        double bare = ns_per_read(sweep_bare);
        ratio[round] = ns_per_read(sweep_fs) / bare;
    }
    bench_at_most("fs_pread_u64 over pread", bench_median(ratio, ROUNDS), "ratio", 3);
    for (int i = 0; i < ZONES; i++)
        close(fds[i]);
    tree_free(&tree);
    return 0;
}
