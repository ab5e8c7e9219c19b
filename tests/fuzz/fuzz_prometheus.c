/* libFuzzer: any bytes as two scrapes of a server's metrics: counts are not negative, and a
 * quantile is within its buckets. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/units.h"
#include "wire/prometheus.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct prometheus older = {0}, newer = {0};
    struct prometheus_window window;
    struct error why;
    size_t half = length / 2;
    if (prometheus_parse(&older, (const char *)bytes, half, &why) == ERR_OK &&
        prometheus_parse(&newer, (const char *)bytes + half, length - half, &why) == ERR_OK &&
        prometheus_between(&older, &newer, "x", 0.95, &window) == ERR_OK) {
        double low, high;
        if (window.count < 0)
            abort();
        if (is_known(window.quantile) && !window.is_running) {
            prometheus_bounds(&newer, "x", window.quantile, &low, &high);
            if (low > fmax(0, window.quantile) || window.quantile > high)
                abort();
        }
    }
    prometheus_release(&older);
    prometheus_release(&newer);
    return 0;
}
