/* Counting perf events of one PMU on one CPU (no sampling, no inheritance).  Under a root prefix the counter is the
 * text file ROOT/dev/perf/<pmu type>/<config in hex>/cpu<N>, so that a test can script it. */
#ifndef IPW_PORT_PERF_EVENT_H
#define IPW_PORT_PERF_EVENT_H

#include <stdint.h>

#include "core/err.h"

/* On success the caller owns *fd.  ERR_DENIED when the kernel's policy forbids it. */
enum err perf_event_open_counter(uint32_t pmu_type, uint64_t config, int cpu, int *fd) MUST_USE;

enum err perf_event_read(int fd, uint64_t *out) MUST_USE;

#endif
