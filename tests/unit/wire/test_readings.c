/* test: valgrind */
/* The readings of a monitor: they round-trip, and other input is rejected. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "port/json_read.h"
#include "wire/readings.h"

static const struct reading_point POINTS[] = {{100 * NS_PER_S, 0, 0},
                                              {10007199 * NS_PER_S, 7 * NS_PER_S, 1234.567890125}};

static struct text write_readings(void)
{
    struct reading_domain domain = {.device = "gpu0",
                                    .name = "NVIDIA \"H200\"",
                                    .kind = "gpu",
                                    .source = "nvml:0 energy",
                                    .channel = "energy",
                                    .scope = SCOPE_GPU,
                                    .location = 0,
                                    .method = METHOD_INTEGRAL,
                                    .accuracy = 0.05,
                                    .watts = UNKNOWN,
                                    .watts_max = 700,
                                    .period_s = UNKNOWN,
                                    .age_s = 0.25,
                                    .is_up = true,
                                    .points = POINTS,
                                    .point_count = 2};
    struct reading_gauge gauge = {
        .device = "gpu0", .channel = "temperature", .quantity = QTY_TEMPERATURE, .value = 51};
    struct readings readings = {.instance = "abc",
                                .host = "node1",
                                .monotonic = 5 * NS_PER_S,
                                .wall = 1794844402 * NS_PER_S,
                                .interval = NS_PER_S / 10,
                                .domains = &domain,
                                .domain_count = 1,
                                .gauges = &gauge,
                                .gauge_count = 1};
    struct text text = {0};
    readings_write(&readings, &text);
    assert_false(text.failed);
    return text;
}

static void readings_round_trip(void **state)
{
    (void)state;
    struct text text = write_readings();
    struct readings read;
    struct error why;
    assert_int_equal(readings_read(text_get(&text), text.length, &read, &why), ERR_OK);
    assert_string_equal(read.instance, "abc");
    assert_string_equal(read.host, "node1");
    assert_int_equal(read.monotonic, 5 * NS_PER_S);
    assert_int_equal(read.interval, NS_PER_S / 10);
    assert_int_equal(read.domain_count, 1);
    const struct reading_domain *domain = read.domains;
    assert_string_equal(domain->name, "NVIDIA \"H200\"");
    assert_string_equal(domain->uuid, "");
    assert_int_equal(domain->scope, SCOPE_GPU);
    assert_int_equal(domain->method, METHOD_INTEGRAL);
    assert_true(domain->is_up && isnan(domain->watts) && isnan(domain->period_s));
    assert_true(domain->watts_max == 700 && domain->accuracy == 0.05 && domain->age_s == 0.25);
    assert_int_equal(domain->point_count, 2);
    assert_true(domain->points[1].joules == POINTS[1].joules);
    assert_true(llabs(domain->points[1].t - POINTS[1].t) < NS_PER_US);
    assert_int_equal(domain->points[1].covered, 7 * NS_PER_S);
    assert_int_equal(read.gauge_count, 1);
    assert_true(read.gauges[0].quantity == QTY_TEMPERATURE && read.gauges[0].value == 51);
    readings_release(&read);
    text_release(&text);
}

static enum err read_changed(const char *from, const char *to, struct error *why)
{
    struct text text = write_readings(), changed = {0};
    char *at = strstr(text_get(&text), from);
    struct readings read;
    *why = (struct error){0};
    assert_non_null(at);
    text_add_bytes(&changed, text_get(&text), (size_t)(at - text_get(&text)));
    text_add(&changed, to);
    text_add(&changed, at + strlen(from));
    enum err err = readings_read(text_get(&changed), changed.length, &read, why);
    if (!err)
        readings_release(&read);
    text_release(&changed);
    text_release(&text);
    return err;
}

static void invalid_readings_are_rejected(void **state)
{
    (void)state;
    static const char *const WRONG[][3] = {
        {"ipw.readings.v1", "ipw.readings.v2", "not an ipw monitor"},
        {"\"instance\":\"abc\"", "\"instance\":null", "malformed: instance: is missing"},
        {"\"interval_s\":0.1", "\"interval_s\":0", ": interval_s: must be a number from 0.001"},
        {"\"interval_s\":0.1", "\"interval_s\":1e-10", ": interval_s: "}, /* below a nanosecond */
        {"\"energy_j\":0", "\"energy_j\":1e999", ": domains.0.points.0.energy_j: "},
        {"\"device\":\"gpu0\"", "\"device\":\"gpu\\u001b[0m\"",
         ": domains.0.device: must be one line"},
        {"\"scope\":\"gpu\"", "\"scope\":\"moon\"", ": domains.0.scope: unknown scope 'moon'"},
        {"\"method\":\"integral\"", "\"method\":\"guess\"", ": domains.0.method: unknown method"},
        {"\"uncertainty_ratio\":0.05", "\"uncertainty_ratio\":-1",
         ": domains.0.uncertainty_ratio: must be a number from 0, at most 1"},
        {"\"t_ns\":100000000000", "\"t_ns\":10007200000000000",
         ": domains.0.points.1: must be later than the one before"},
        {"\"energy_j\":0", "\"energy_j\":-5",
         ": domains.0.points.0.energy_j: must be a number from"},
        {"\"energy_j\":0", "\"energy_j\":null", ": domains.0.points.0.energy_j: is missing"},
        {"\"covered_ns\":0", "\"covered_ns\":\"0\"", ": domains.0.points.0.covered_ns: must be"},
        {"\"domains\":[", "\"domain\":[", ": domains: is missing"},
        {"\"device\":\"gpu0\",\"channel\"", "\"channel\"", ": gauges.0.device: is missing"},
    };
    struct error why;
    assert_int_equal(read_changed("abc", "def", &why), ERR_OK);
    assert_int_equal(read_changed("\"host\"", "\"more\":{},\"host\"", &why), ERR_OK);
    assert_int_equal(read_changed("\"quantity\":\"temperature\"", "\"quantity\":\"future\"", &why),
                     ERR_OK);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        assert_int_equal(read_changed(WRONG[i][0], WRONG[i][1], &why), ERR_BAD_VALUE);
        assert_contains(why.text, WRONG[i][2]);
    }
}

/* ---- a message of gRPC ---- */

static void add_double(struct text *to, unsigned char field, double value)
{
    char bytes[9] = {(char)(field << 3 | 1)};
    memcpy(bytes + 1, &value, 8); /* the test machines are little-endian, as is the format */
    if (field > 15) {
        text_add_bytes(to, (char[]){(char)((field << 3 | 1) | 0x80), 1}, 2);
        text_add_bytes(to, bytes + 1, 8);
    } else {
        text_add_bytes(to, bytes, 9);
    }
}

/* As upstream's server with 2 GPUs sends it: unknown fields are -1. */
static struct text telemetry(void)
{
    struct text text = {0};
    add_double(&text, 1, 612.5);
    add_double(&text, 2, 1000.25);
    add_double(&text, 3, 45);
    add_double(&text, 4, 2048);
    add_double(&text, 5, -1);
    text_add_bytes(&text, "\x32\x06nvidia", 8);
    text_add_bytes(&text, "\x38\x80\x80\x80\x80\x80\x80\x80\x80\x10", 10); /* 2^60 ns */
    text_add_bytes(&text, "\x42\x0b\x0a\x02os\x22\x05node1", 13);
    text_add_bytes(&text, "\x4a\x06\x0a\x04H200", 8);
    add_double(&text, 10, -1);
    add_double(&text, 11, -1);
    add_double(&text, 14, 50);
    add_double(&text, 17, 4096);
    text_add_bytes(&text, "\xfa\x01\x01!", 4); /* field 31, of a future version */
    return text;
}

static void a_grpc_message_is_read(void **state)
{
    (void)state;
    struct text text = telemetry();
    struct readings read;
    struct error why;
    assert_int_equal(readings_from_telemetry((unsigned char *)text.bytes, text.length, &read, &why),
                     ERR_OK);
    assert_int_equal(read.wall, (nanos)1 << 60);
    assert_string_equal(read.host, "node1");
    assert_int_equal(read.domain_count, 1); /* -1 J of CPU energy is unknown, not 0 J */
    assert_string_equal(read.domains[0].device, "gpu");
    assert_string_equal(read.domains[0].name, "H200");
    assert_true(read.domains[0].watts == 612.5 && read.domains[0].points[0].joules == 1000.25);
    assert_int_equal(read.domains[0].method, METHOD_COUNTER);
    for (size_t i = 0; i < read.gauge_count; i++)
        if (read.gauges[i].quantity == QTY_MEMORY_TOTAL)
            assert_true(read.gauges[i].value == 4096.0 * 1024 * 1024);
        else if (read.gauges[i].quantity == QTY_TENSOR_UTILIZATION)
            assert_true(isnan(read.gauges[i].value));
    readings_release(&read);
    text_release(&text);
}

/* Truncated or modified: it is read or rejected, and never read past its end. */
static void damaged_messages_are_read_or_rejected(void **state)
{
    (void)state;
    struct text text = telemetry();
    for (size_t length = 0; length <= text.length; length++)
        for (unsigned value = 0; value < 256; value += 5) {
            unsigned char *copy = malloc(length + 1);
            struct readings read;
            struct error why;
            memcpy(copy, text.bytes, length);
            if (length)
                copy[(length * 7 + value) % length] = (unsigned char)value;
            enum err err = readings_from_telemetry(copy, length, &read, &why);
            assert_true(err == ERR_OK || err == ERR_BAD_VALUE);
            if (!err)
                readings_release(&read);
            free(copy);
        }
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_round_trip),
        cmocka_unit_test(invalid_readings_are_rejected),
        cmocka_unit_test(a_grpc_message_is_read),
        cmocka_unit_test(damaged_messages_are_read_or_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
