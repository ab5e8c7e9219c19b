/* The quality of a run's answers, in its summary.  Plain data. */
#ifndef IPW_RUNDIR_QUALITY_H
#define IPW_RUNDIR_QUALITY_H

#include <stdint.h>

#include "rundir/record.h"

struct summary;

/* A metric of all answers together (graders/grader.h), or the mean of their scores. */
struct summary_quality {
    char name[24];            /* "map_50", "wer" */
    double value, plus_minus; /* UNKNOWN: see reason */
    int64_t count;            /* answers that it is of */
    enum better better;
    char reason[200]; /* why unknown, or what limits it; "" */
};

enum { SUMMARY_QUALITIES_MAX = 16 };

/* By its name; NULL: the run has none. */
const struct summary_quality *summary_quality_find(const struct summary *summary, const char *name);
/* The first one whose value is known; NULL: none. */
const struct summary_quality *summary_quality_first(const struct summary *summary);

#endif
