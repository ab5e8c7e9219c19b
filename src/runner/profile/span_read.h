/* A line of spans.jsonl, read back.  A struct span owns its trace: span_release gives it back. */
#ifndef IPW_RUNNER_PROFILE_SPAN_READ_H
#define IPW_RUNNER_PROFILE_SPAN_READ_H

#include <stdbool.h>

#include "core/err.h"
#include "runner/profile/record.h"
#include "trace/request.h"

struct jv;

struct span {
    enum span_kind kind;
    char key[40];
    unsigned start, attempt;
    struct judgement judgement; /* of one that was sent */
    struct request_trace trace; /* of a moment `from` alone is set */
};

/* *ours is false for a line that is no span as we write it; ERR_NO_MEMORY is the only error.  Second 0
 * becomes `zero`, which must not be 0 itself: in a trace that stands for unknown. */
enum err span_from_json(const struct jv *line, nanos zero, struct span *out, bool *ours) MUST_USE;
void span_release(struct span *span);

/* Has it an end? */
bool span_is_whole(const struct span *span);
bool span_is_judges(const struct span *span);

#endif
