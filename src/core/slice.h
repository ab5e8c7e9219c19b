/* A part of a text: start and length, with or without a NUL behind it.
 * It owns nothing: the text must outlive it. */
#ifndef IPW_CORE_SLICE_H
#define IPW_CORE_SLICE_H

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
    return slice.length ? slice.start + slice.length
                        : slice.start; /* also of an empty one at NULL */
}

static inline bool slice_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Trims ASCII white space at both ends. */
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

/* The last component of a path, without the slashes at its end: "run" of "runs/run/". */
static inline struct slice slice_path_name(struct slice path)
{
    while (path.length > 1 && path.start[path.length - 1] == '/')
        path.length--;
    size_t from = path.length;
    while (from > 0 && path.start[from - 1] != '/')
        from--;
    return (struct slice){path.start + from, path.length - from};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.start, b.start, a.length) == 0);
}

static inline bool slice_is(struct slice slice, const char *string)
{
    return slice_equal(slice, slice_of(string));
}

static inline bool slice_starts(struct slice slice, const char *prefix)
{
    size_t length = strlen(prefix);
    return slice.length >= length && memcmp(slice.start, prefix, length) == 0;
}

#endif
