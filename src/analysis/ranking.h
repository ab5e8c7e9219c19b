/* Runs shown together in order of merit: the most accurate and the cheapest, by how much, and whether that is
 * significant; and the Pareto-optimal ones.
 *
 * A ranking borrows the runs; run_ranking_release frees the rest. */
#ifndef IPW_ANALYSIS_RANKING_H
#define IPW_ANALYSIS_RANKING_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/across.h"

enum { NO_RUN = -1 };

/* Whether a difference is larger than its uncertainty. */
enum difference { DIFFERENCE_UNKNOWN, DIFFERENCE_INSIDE, DIFFERENCE_OUTSIDE };

/* Indexes of runs; NO_RUN if there is none, or the figure is unknown. */
struct run_ranking {
    const struct run_figures *runs;
    size_t count;
    struct run_names names;
    bool *optimal;             /* of each run */
    struct uncertainty common; /* of all energies */
    const char *method;        /* of all energies; NULL: they differ */
    long accurate, runner_up;  /* the most accurate, of equals the cheapest; and the next */
    enum difference accuracy;  /* between the two, by Newcombe's interval */
    long cheapest, dear; /* the cheapest; and the most accurate if it is another, else the next */
    enum difference energy; /* between the two */
    long as_cheap; /* the next cheapest, unless it is `dear` or clearly above the cheapest */
};

/* Settles the errors of the runs first (run_figures_settle).  Names have about `letters` letters at most. */
enum err run_ranking_of(struct run_figures *runs, size_t count, size_t letters,
                        struct run_ranking *out) MUST_USE;
void run_ranking_release(struct run_ranking *ranking);

#endif
