/* What a start measured with comes back from the journal as it was, or not at all. */
#include "support/unit.h"

#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/measuring.h"
#include "sampler/sampler.h"
#include "sensors/registry.h"

static struct sampler *make_sampler(void)
{
    const nanos limits[] = {500 * NS_PER_MS, 1500 * NS_PER_MS};
    struct error why;
    struct sensor sensor = {
        .driver = sensor_driver_find("nvml"),
        .id = "nvml:0",
        .name = "A \"GPU\"",
        .kind = SENSOR_GPU,
        .channel_count = 2,
        .channels = {{.name = "energy",
                      .device = "gpu0",
                      .quantity = QTY_ENERGY,
                      .scope = SCOPE_GPU,
                      .location = 3,
                      .joules_per_count = 1e-3,
                      .relative_accuracy = 0.05},
                     {.name = "power",
                      .device = "gpu0",
                      .quantity = QTY_POWER,
                      .scope = SCOPE_GPU,
                      .location = -1,
                      .estimated = true,
                      .interval_mean = true,
                      .secondary = true}},
    };
    struct sampler *sampler = sampler_new(0);
    assert_non_null(sampler);
    assert_int_equal(sampler_add_past(sampler, &sensor, limits, &why), ERR_OK);
    return sampler;
}

static struct text written(bool idle)
{
    struct baseline_row rows[] = {{"gpu0", 81.25, 0.5}};
    struct measuring measuring = {
        .from_s = 0.015625, .decode_weight = 2.5, .has_idle = idle, .idle = {rows, 1, 10}};
    struct sampler *sampler = make_sampler();
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    measuring_to_json(&json, NULL, &measuring, sampler);
    sampler_free(sampler);
    return text;
}

static enum err read_back(const char *text, struct measuring *out, struct sampler *sampler)
{
    struct jv *value;
    struct error why;
    assert_int_equal(jv_parse(text, strlen(text), &value, NULL), ERR_OK);
    enum err err = measuring_from_json(value, out, sampler, &why);
    jv_free(value);
    return err;
}

static void it_comes_back(void **state)
{
    (void)state;
    struct text text = written(true);
    struct measuring measuring;
    struct sampler *there = make_sampler(), *here = sampler_new(0);
    assert_int_equal(read_back(text_get(&text), &measuring, here), ERR_OK);
    assert_near(measuring.from_s, 0.015625, 0);
    assert_near(measuring.decode_weight, 2.5, 0);
    assert_true(measuring.has_idle);
    assert_int_equal(measuring.idle.count, 1);
    assert_string_equal(measuring.idle.rows[0].device, "gpu0");
    assert_near(measuring.idle.rows[0].watts, 81.25, 0);
    assert_near(measuring.idle.rows[0].sigma, 0.5, 0);
    assert_near(measuring.idle.seconds, 10, 0);
    assert_int_equal(sampler_count(here), 1);
    const struct sensor *a = sampler_sensor(there, 0), *b = sampler_sensor(here, 0);
    assert_ptr_equal(a->driver, b->driver);
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->channel_count, b->channel_count);
    for (size_t i = 0; i < a->channel_count; i++) {
        const struct sensor_channel *x = &a->channels[i], *y = &b->channels[i];
        struct channel_state p, q;
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->device, y->device);
        assert_int_equal(x->quantity, y->quantity);
        assert_int_equal(x->scope, y->scope);
        assert_int_equal(x->location, y->location);
        assert_near(x->joules_per_count, y->joules_per_count, 0);
        assert_near(x->relative_accuracy, y->relative_accuracy, 0);
        assert_int_equal(x->estimated, y->estimated);
        assert_int_equal(x->interval_mean, y->interval_mean);
        assert_int_equal(x->secondary, y->secondary);
        sampler_channel(there, 0, i, &p);
        sampler_channel(here, 0, i, &q);
        assert_int_equal(p.gap_limit, q.gap_limit);
    }
    measuring_release(&measuring);
    sampler_free(there);
    sampler_free(here);
    text_release(&text);
}

static void without_a_baseline(void **state)
{
    (void)state;
    struct text text = written(false);
    struct measuring measuring;
    struct sampler *here = sampler_new(0);
    assert_int_equal(read_back(text_get(&text), &measuring, here), ERR_OK);
    assert_false(measuring.has_idle);
    measuring_release(&measuring);
    sampler_free(here);
    text_release(&text);
}

static void what_is_not_as_we_write_it_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *there, *instead;
    } CHANGES[] = {
        {"\"from_s\":0.015625", "\"from_s\":null"},
        {"\"decode_weight\"", "\"weight\""},
        {"\"sensors\":[", "\"others\":["},
        {"\"id\":\"nvml:0\"", "\"id\":7"},
        {"\"kind\":\"gpu\"", "\"kind\":\"toaster\""},
        {"\"quantity\":\"power\"", "\"quantity\":\"luck\""},
        {"\"scope\":\"gpu\"", "\"scope\":\"moon\""},
        {"\"location\":3", "\"location\":\"here\""},
        {"\"gap_limit_s\":0.5", "\"gap_limit_s\":-1"},
        {"\"power_w\":81.25", "\"power_w\":null"},
        {"\"device\":\"gpu0\"", "\"device\":\"a name that no device of ours has\""},
    };
    struct text text = written(true);
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        struct text changed = {0};
        struct measuring measuring;
        struct sampler *here = sampler_new(0);
        const char *at = strstr(text_get(&text), CHANGES[i].there);
        assert_non_null(at);
        text_add_bytes(&changed, text.bytes, (size_t)(at - text.bytes));
        text_add(&changed, CHANGES[i].instead);
        text_add(&changed, at + strlen(CHANGES[i].there));
        assert_int_equal(read_back(text_get(&changed), &measuring, here), ERR_BAD_VALUE);
        measuring_release(&measuring);
        sampler_free(here);
        text_release(&changed);
    }
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_back),
        cmocka_unit_test(without_a_baseline),
        cmocka_unit_test(what_is_not_as_we_write_it_is_refused),
    };
    return RUN_TESTS_WITH(jv_available, tests);
}
