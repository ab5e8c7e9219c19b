/* Two scrapes of a server's metrics: counts are not negative, and a quantile is within its buckets; and the Accept
 * header of a scrape of ours. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "core/units.h"
#include "wire/prometheus.h"

static void run(const char *bytes, size_t length)
{
    struct prometheus older = {0}, newer = {0};
    struct prometheus_window window;
    struct error why = {0};
    size_t half = length / 2;
    if (prometheus_parse(&older, bytes, half, &why) == ERR_OK &&
        prometheus_parse(&newer, bytes + half, length - half, &why) == ERR_OK &&
        prometheus_between(&older, &newer, "x", 0.95, &window) == ERR_OK) {
        double low, high;
        fuzz_check(!(window.count < 0));
        if (is_known(window.quantile) && !window.is_running) {
            prometheus_bounds(&newer, "x", window.quantile, &low, &high);
            fuzz_check(low <= fmax(0, window.quantile) && window.quantile <= high);
        }
        fuzz_check(!(prometheus_increase(&older, &newer, "x_count") < 0));
    }
    prometheus_release(&older);
    prometheus_release(&newer);
    (void)exposition_wants_openmetrics(fuzz_string(bytes, length));
}

static void seeds(void)
{
    static const char SCRAPE[] = "# TYPE x histogram\n"
                                 "x_bucket{m=\"a\\\"b\",le=\"0.1\"} %d1\n"
                                 "x_bucket{m=\"a\\\"b\",le=\"0.2\"} %d5 # {t=\"1\"} 0.15\n"
                                 "x_bucket{m=\"a\\\"b\",le=\"+Inf\"} %d6 1700000000000\n"
                                 "x_sum{m=\"a\\\"b\"} %d.5\nx_count{m=\"a\\\"b\"} %d6\n"
                                 "x{quantile=\"0.95\"} NaN\n";
    struct text scrapes = {0};
    for (int i = 1; i <= 2; i++) /* of equal length */
        text_addf(&scrapes, SCRAPE, i, i, i, i, i);
    fuzz_seed(-1, text_get(&scrapes));
    text_release(&scrapes);
    fuzz_seed(-1, "x{quantile=\"0.95\"} 1\nx_count 3 # x{quantile=\"0.95\"} 2\nx_count 4\n");
    fuzz_seed(-1, "text/plain;q=0.5, application/openmetrics-text; version=1.0.0;q=0.8,*/*;q=0.1");
}

static const char *const WORDS[] = {"x_bucket", "x_sum", "x_count", "le=\"", "quantile=\"",
                                    "+Inf",     "-Inf",  "NaN",     "1e308", "{",
                                    "} ",       "\\\"",  NULL};

const struct fuzz_target fuzz_prometheus = {.run = run, .seeds = seeds, .words = WORDS};
