#include "report/live/spark.h"

#include <math.h>
#include <string.h>

#include "core/units.h"

static const char *const BLOCKS[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ASCII[] = {" ", "_", ".", "-", "~", "=", "+", "*", "#"};
enum { LEVELS = 8 };

double spark_top(const float *values, size_t count)
{
    static const double STEPS[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10};
    double most = 0;
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i]) && values[i] > most)
            most = values[i];
    if (most <= 0)
        return 1;
    double decade = pow(10, floor(log10(most)));
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++)
        if (STEPS[i] * decade >= most * (1 - 1e-6)) /* a float of 500 may be a hair above it */
            return STEPS[i] * decade;
    return 10 * decade;
}

static int level_in(double value, double top, unsigned row, unsigned rows)
{
    if (!is_known(value))
        return 0;
    long level = lround(value / top * LEVELS * rows);
    if (level < 1)
        level = 1;
    level -= (long)LEVELS * (rows - 1 - row);
    return level < 0 ? 0 : level > LEVELS ? LEVELS : (int)level;
}

void spark_row(const float *values, size_t count, double top, unsigned row, unsigned rows,
               bool utf8, char *to)
{
    const char *const *cells = utf8 ? BLOCKS : ASCII;
    for (size_t i = 0; i < count; i++) {
        const char *cell = cells[level_in(values[i], top, row, rows)];
        size_t length = strlen(cell);
        memcpy(to, cell, length);
        to += length;
    }
    *to = '\0';
}

void spark_meter(double share, size_t width, bool utf8, char *to)
{
    size_t filled = is_known(share) && share > 0 ? (size_t)lround(share * (double)width) : 0;
    for (size_t i = 0; i < width; i++) {
        const char *cell = i < filled ? (utf8 ? "█" : "#") : (utf8 ? "░" : ".");
        size_t length = strlen(cell);
        memcpy(to, cell, length);
        to += length;
    }
    *to = '\0';
}
