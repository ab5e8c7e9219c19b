/* libFuzzer: any bytes as lines of a GPU profiler: fractions are between 0 and 1, nothing is
 * negative, and a recognized log has columns. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "wire/gpu_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct gpu_log log = {0};
    char *copy = malloc(length + 1);
    if (!copy)
        return 0;
    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    (void)gpu_log_is(copy, length);
    for (char *at = copy, *next; at; at = next) {
        struct gpu_log_row row;
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        if (gpu_log_line(&log, at, &row) != GPU_LOG_ROW)
            continue;
        if (!log.count)
            abort();
        for (size_t v = 0; v < GPU_LOG_VALUES; v++)
            if (row.values[v] < 0 || (v >= GPU_LOG_UTILIZATION && row.values[v] > 1.01))
                abort();
    }
    free(copy);
    return 0;
}
