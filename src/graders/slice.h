/* A stretch of somebody else's text: start and length, no ending NUL.
 * It owns nothing; whoever made the text keeps it alive. */
#ifndef IPW_GRADERS_SLICE_H
#define IPW_GRADERS_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *start;
    size_t length;
};

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline struct slice slice_between(const char *start, const char *end)
{
    return (struct slice){start, (size_t)(end - start)};
}

static inline const char *slice_end(struct slice slice)
{
    return slice.start + slice.length;
}

static inline bool slice_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Without ASCII white space at both ends. */
static inline struct slice slice_trim(struct slice slice)
{
    while (slice.length && slice_is_space(slice.start[0])) {
        slice.start++;
        slice.length--;
    }
    while (slice.length && slice_is_space(slice.start[slice.length - 1]))
        slice.length--;
    return slice;
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.length == b.length && memcmp(a.start, b.start, a.length) == 0;
}

static inline bool slice_starts(struct slice slice, const char *prefix)
{
    size_t length = strlen(prefix);
    return slice.length >= length && memcmp(slice.start, prefix, length) == 0;
}

#endif
