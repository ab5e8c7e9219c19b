#include "stats/online.h"

#include <math.h>

#include "core/units.h"

void online_add(struct online *stats, double value)
{
    if (!is_known(value))
        return;
    if (!stats->count || value < stats->min)
        stats->min = value;
    if (!stats->count || value > stats->max)
        stats->max = value;
    stats->count++;
    double before = value - stats->mean;
    stats->mean += before / (double)stats->count;
    stats->squares += before * (value - stats->mean);
}

void online_merge(struct online *into, const struct online *from)
{
    if (!from->count)
        return;
    if (!into->count) {
        *into = *from;
        return;
    }
    double n = (double)into->count, m = (double)from->count;
    double distance = from->mean - into->mean;
    into->mean += distance * (m / (n + m));
    into->squares += from->squares + distance * distance * (n * m / (n + m));
    into->min = fmin(into->min, from->min);
    into->max = fmax(into->max, from->max);
    into->count += from->count;
}

double online_mean(const struct online *stats)
{
    return stats->count ? stats->mean : UNKNOWN;
}

double online_min(const struct online *stats)
{
    return stats->count ? stats->min : UNKNOWN;
}

double online_max(const struct online *stats)
{
    return stats->count ? stats->max : UNKNOWN;
}

double online_variance(const struct online *stats)
{
    return stats->count < 2 ? UNKNOWN : stats->squares / (double)(stats->count - 1);
}

double online_stddev(const struct online *stats)
{
    return sqrt(online_variance(stats));
}

double online_standard_error(const struct online *stats)
{
    return stats->count < 2 ? UNKNOWN : online_stddev(stats) / sqrt((double)stats->count);
}
