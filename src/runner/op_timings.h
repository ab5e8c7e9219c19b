/* Operations of llama.cpp and of ONNX Runtime timed on this machine, over the sizes, precisions and working sets of
 * models: the part of a calibration from which times are estimated.
 *
 * Ownership: timings_measure fills a struct that timings_release frees. */
#ifndef IPW_RUNNER_OP_TIMINGS_H
#define IPW_RUNNER_OP_TIMINGS_H

#include <stdbool.h>

#include "catalog/hardware.h"
#include "core/err.h"

struct op_time;
struct op_timer_shape;

/* Times an operation on a number of threads; ERR_UNSUPPORTED if it cannot be timed. */
typedef enum err timings_clock(void *context, unsigned threads, const struct op_timer_shape *shape,
                               double budget_s, struct op_time *out, struct error *why);

struct timings_options {
    unsigned threads;                                                /* at least 1 */
    double budget_s;                                                 /* time per operation */
    void (*progress)(const char *load, unsigned done, unsigned all); /* may be NULL */
    timings_clock *clock; /* NULL: llama.cpp's library on this machine */
    void *context;        /* passed to `clock` */
    bool skips_llama, skips_onnx;
};

struct timings {
    struct hardware_timings table; /* runtime NULL: the library is not installed */
    char source[160];
    char missing[240];   /* why there are none; or "" */
    char unsettled[240]; /* operations whose rounds differ, if few enough to continue; or "" */
    struct hardware_timing *items;
    int signal; /* that ended the measurement; or 0 */
};

/* Times the operations of llama.cpp, then those of ONNX Runtime (without `clock`), in three rounds that alternate (two
 * with a budget below 2 ms); each counts with its shortest.  One whose two shortest differ by more than 20 %, during
 * which a thread waited for a CPU, or which took longer than one that includes it, is timed again, six times at most (two
 * with such a budget, which also leaves out the longest products).
 * ERR_BUSY, with the reason, where more than a third of the operations still differ, or several threads take longer
 * than one does.  ERR_INTERRUPTED with the signal in one of them; without a library it is no error, and its `missing`
 * says why. */
enum err timings_measure(const struct timings_options *options,
                         struct timings out[TIMINGS_RUNTIMES], struct error *why) MUST_USE;
void timings_release(struct timings *timings);

#endif
