/* Eight powercap zones on a fake machine, and the minimal cost of reading them. */
#ifndef TESTS_BENCH_ZONES_H
#define TESTS_BENCH_ZONES_H

#include <stdint.h>

#include "support/tree.h"

enum { ZONES = 8 };

struct zones {
    struct tree tree;
    int fds[ZONES];
};

void zones_new(struct zones *zones);
void zones_free(struct zones *zones);

/* One bare pread per zone; returns the bytes read, so that the calls are not optimized away. */
uint64_t zones_pread(const struct zones *zones);

#endif
