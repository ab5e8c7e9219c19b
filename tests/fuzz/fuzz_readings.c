/* The readings of another host's monitor, as JSON and as a message of gRPC: strings end, points are in order, and what is read can be written and read again. */
#include "fuzz/fuzz.h"

#include "wire/readings.h"

static void check(const struct readings *readings)
{
    for (size_t i = 0; i < readings->domain_count; i++) {
        const struct reading_domain *domain = &readings->domains[i];
        fuzz_check(str_is_plain(domain->device) && str_is_plain(domain->name) &&
                   str_is_plain(domain->source));
        fuzz_check(domain->scope < SCOPE_COUNT);
        for (size_t k = 1; k < domain->point_count; k++)
            fuzz_check(domain->points[k].t >= domain->points[k - 1].t &&
                       domain->points[k].joules >= 0);
    }
    for (size_t i = 0; i < readings->gauge_count; i++)
        fuzz_check(readings->gauges[i].quantity < QTY_COUNT);
}

static void run(const char *bytes, size_t length)
{
    struct readings readings, again;
    struct text written = {0};
    struct error why = {0};
    bool is_message = fuzz_choose(&bytes, &length, 2);
    enum err err =
        is_message ? readings_from_telemetry((const unsigned char *)bytes, length, &readings, &why)
                   : readings_read(bytes, length, &readings, &why);
    fuzz_check_error(err, &why);
    if (err)
        return;
    check(&readings);
    readings_write(&readings, &written);
    if (!is_message) {
        err = readings_read(written.bytes, written.length, &again, &why);
        if (err)
            fuzz_fail(why.text);
        fuzz_check(again.domain_count == readings.domain_count);
        readings_release(&again);
    }
    text_release(&written);
    readings_release(&readings);
}

static void seeds(void)
{
    static const struct reading_point POINTS[] = {{1000, 900, 1.5}, {2000, 1900, 2.25}};
    struct reading_domain domains[] = {{.device = "gpu0",
                                        .name = "NVIDIA H200",
                                        .kind = "gpu",
                                        .source = "nvml:0 energy",
                                        .channel = "energy",
                                        .uuid = "GPU-1",
                                        .scope = SCOPE_GPU,
                                        .method = METHOD_COUNTER,
                                        .accuracy = 0.05,
                                        .watts = 300,
                                        .watts_max = 700,
                                        .period_s = 0.1,
                                        .age_s = 0.01,
                                        .is_up = true,
                                        .is_counted = true,
                                        .points = POINTS,
                                        .point_count = 2},
                                       {.device = "cpu0",
                                        .kind = "cpu",
                                        .source = "rapl",
                                        .channel = "package",
                                        .location = -1,
                                        .scope = SCOPE_PACKAGE,
                                        .method = METHOD_INTEGRAL,
                                        .watts = UNKNOWN,
                                        .watts_max = UNKNOWN,
                                        .period_s = UNKNOWN,
                                        .age_s = UNKNOWN}};
    struct reading_gauge gauges[] = {{.device = "gpu0",
                                      .channel = "temperature",
                                      .quantity = QTY_TEMPERATURE,
                                      .value = 45,
                                      .age_s = 0.1}};
    struct readings readings = {.instance = "i",
                                .host = "node1",
                                .monotonic = 3000,
                                .wall = 4000,
                                .interval = 50000000,
                                .domains = domains,
                                .domain_count = 2,
                                .gauges = gauges,
                                .gauge_count = 1};
    static const char MESSAGE[] =
        "\x09\0\0\0\0\0\x24\x83\x40\x11\0\0\0\0\0\x40\x8f\x40\x19\0\0\0\0\0\x80\x46\x40"
        "\x32\x06nvidia\x38\x80\x80\x80\x80\x80\x80\x80\x80\x10\x42\x0b\x0a\x02os\x22\x05node1"
        "\x4a\x06\x0a\x04H200\x51\0\0\0\0\0\0\xf0\xbf\x71\0\0\0\0\0\0\x49\x40\xfa\x01\x01!";
    struct text text = {0};
    readings_write(&readings, &text);
    fuzz_seed_bytes(0, text.bytes, text.length);
    text_release(&text);
    fuzz_seed_bytes(1, MESSAGE, sizeof MESSAGE - 1);
}

static const char *const WORDS[] = {
    "null",       "[]",          "[1]",        "{}", "-1", "1e999", "9223372036854775807",
    "\"points\"", "\"domains\"", "\"joules\"", NULL};

const struct fuzz_target fuzz_readings = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
