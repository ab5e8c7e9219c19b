#define _GNU_SOURCE
#include "runner/load.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "port/thread.h"

struct load {
    atomic_bool stopping;
    unsigned count;
    _Atomic unsigned long rounds;
    pthread_t threads[];
};

enum { LANES = 16, ROUND = 4096 };

/* Independent chains of multiply-adds keep the floating-point units busy without touching memory.
 * The values stay bounded, so no denormal or infinity ever changes the cost. */
static double compute_round(double *lanes)
{
    for (int i = 0; i < ROUND; i++)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] = lanes[lane] * 0.999999 + 0.000001;
    return lanes[0];
}

static void *load_main(void *argument)
{
    struct load *load = argument;
    double lanes[LANES];
    for (int lane = 0; lane < LANES; lane++)
        lanes[lane] = 1.0 + lane * 0.01;
    volatile double keep = 0; /* the compiler must assume that the result is read */
    while (!atomic_load_explicit(&load->stopping, memory_order_relaxed)) {
        keep = compute_round(lanes);
        atomic_fetch_add_explicit(&load->rounds, 1, memory_order_relaxed);
    }
    (void)keep;
    return NULL;
}

struct load *load_start(unsigned threads)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned wanted = threads ? threads : (online > 0 ? (unsigned)online : 1);
    struct load *load = malloc(sizeof *load + wanted * sizeof load->threads[0]);
    if (!load)
        return NULL;
    load->count = 0;
    atomic_init(&load->stopping, false);
    atomic_init(&load->rounds, 0);
    while (load->count < wanted &&
           thread_start(&load->threads[load->count], load_main, load) == ERR_OK)
        load->count++;
    return load;
}

double load_stop(struct load *load)
{
    if (!load)
        return 0;
    atomic_store(&load->stopping, true);
    for (unsigned i = 0; i < load->count; i++)
        pthread_join(load->threads[i], NULL);
    double done = (double)atomic_load(&load->rounds) * ROUND * LANES * 1e-9;
    free(load);
    return done;
}
