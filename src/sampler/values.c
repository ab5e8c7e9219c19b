#include "sampler/values.h"

#include "stats/quantile.h"

/* The median of this many values, evenly chosen, is as good as that of all. */
enum { MEDIAN_OF = 255 };

struct range {
    size_t first, end; /* points [first, end) */
};

/* Is the reading before the window still what stood when it began? */
static bool stands(const struct timeline *timeline, size_t index, nanos from, nanos stale)
{
    struct point p[2];
    size_t n = index + 1 < timeline_count(timeline) ? 2 : 1;
    if (timeline_read(timeline, index, n, p) != ERR_OK)
        return false;
    return from - p[0].t <= stale || (n == 2 && p[1].covered > p[0].covered);
}

static enum err find_values(const struct timeline *timeline, nanos from, nanos to, nanos stale,
                            struct range *out)
{
    size_t count = timeline_count(timeline);
    bool means = timeline->shape == SHAPE_MEANS;
    enum err err = timeline_after(timeline, means ? from : from - 1, &out->first);
    if (!err)
        err = timeline_after(timeline, means ? to - 1 : to, &out->end);
    if (err)
        return err;
    /* The interval that the end falls into has its mean at the point after it. */
    if (means && out->end < count)
        out->end++;
    if (!means && out->first == out->end && out->first > 0 &&
        stands(timeline, out->first - 1, from, stale))
        out->first--;
    return out->first < out->end ? ERR_OK : ERR_NO_DATA;
}

/* By insertion: most windows hold a handful of values. */
static void sort_values(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        size_t place = i;
        for (; place > 0 && values[place - 1] > value; place--)
            values[place] = values[place - 1];
        values[place] = value;
    }
}

/* The known ones of MEDIAN_OF values at most, evenly chosen, ascending. */
static enum err choose_values(const struct timeline *timeline, const struct range *range,
                              double *values, size_t *kept)
{
    enum { CHUNK = 16 };
    struct point chunk[CHUNK];
    size_t all = range->end - range->first, wanted = all < MEDIAN_OF ? all : MEDIAN_OF;
    *kept = 0;
    for (size_t i = 0, n; i < wanted; i += n) {
        n = 1;
        if (all == wanted)
            n = wanted - i < CHUNK ? wanted - i : CHUNK;
        enum err err = timeline_read(timeline, range->first + i * all / wanted, n, chunk);
        if (err)
            return err;
        for (size_t k = 0; k < n; k++)
            if (is_known(chunk[k].value))
                values[(*kept)++] = chunk[k].value;
    }
    sort_values(values, *kept);
    return *kept ? ERR_OK : ERR_NO_DATA;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

enum err values_of(const struct timeline *timeline, nanos from, nanos to, nanos stale,
                   struct value_stats *out)
{
    struct range range;
    struct window window;
    double values[MEDIAN_OF];
    size_t kept = 0;
    *out = (struct value_stats){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    if (timeline_count(timeline) == 0 || to <= from)
        return ERR_NO_DATA;
    enum err err = find_values(timeline, from, to, stale, &range);
    if (!err)
        err = choose_values(timeline, &range, values, &kept);
    if (err)
        return err;
    *out = (struct value_stats){
        .avg = mean_of(values, kept),
        .max = values[kept - 1],
        .median = quantile_sorted(values, kept, 0.5),
        .min = values[0],
    };
    if (range.end - range.first > MEDIAN_OF)
        err = timeline_extremes(timeline, from, to, &out->min, &out->max);
    if (!err && timeline_window(timeline, from, to, &window) == ERR_OK)
        out->avg = window.sum / window.covered_s;
    return err;
}
