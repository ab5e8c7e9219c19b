#include "support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/html/html.h"
#include "report/html/sections.h"

/* ---- columns: decoded like in the page ---- */

static unsigned letter_value(char letter)
{
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = strchr(LETTERS, letter);
    return letter && found ? (unsigned)(found - LETTERS) : 0;
}

static unsigned byte_at(const char *data, size_t place)
{
    const char *group = data + place / 3 * 4;
    uint32_t bits = letter_value(group[0]) << 18 | letter_value(group[1]) << 12 |
                    letter_value(group[2]) << 6 | letter_value(group[3]);
    return bits >> (16 - 8 * (place % 3)) & 255;
}

static double value_at(const struct jv *column, size_t row)
{
    double first = jv_number(jv_get(column, "first"));
    if (jv_get(column, "same"))
        return jv_number(jv_get(column, "same"));
    if (is_known(first))
        return first + (double)row * jv_number(jv_get(column, "by"));
    unsigned bytes = (unsigned)jv_number(jv_get(column, "bytes"));
    const char *data = jv_text(jv_get(column, "data"));
    double low = jv_number(jv_get(column, "low")), step = jv_number(jv_get(column, "step"));
    uint32_t code = 0;
    for (unsigned i = 0; i < bytes; i++)
        code |= byte_at(data, row * bytes + i) << 8 * i;
    if (code == (UINT32_C(1) << 8 * bytes) - 1)
        return UNKNOWN;
    return jv_bool(jv_get(column, "log"), false) ? low * exp(code * step) : low + code * step;
}

static struct jv *pack_column(const double *values, size_t count, unsigned bytes)
{
    struct text text = {0};
    struct json json;
    struct jv *out;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    column_put(&json, "column", values, count, bytes);
    json_object_end(&json);
    assert_int_equal(jv_parse(text_get(&text), text.length, &out, NULL), ERR_OK);
    text_release(&text);
    return out;
}

static void integers_are_exact_and_unknown_stays_unknown(void **state)
{
    (void)state;
    static const double VALUES[] = {7, 300, UNKNOWN, 65541, 7, 70000, 12};
    struct jv *column = pack_column(VALUES, 7, 2);
    for (size_t i = 0; i < 7; i++) {
        double got = value_at(jv_get(column, "column"), i);
        assert_true(is_known(VALUES[i]) ? got == VALUES[i] : !is_known(got));
    }
    jv_free(column);
}

static void figures_over_six_magnitudes_keep_their_digits(void **state)
{
    (void)state;
    double values[1001];
    for (size_t i = 0; i < 1001; i++)
        values[i] = 1e-4 * pow(1e6, (double)i / 1000) * 1.234567;
    values[500] = UNKNOWN;
    struct jv *column = pack_column(values, 1001, 2);
    for (size_t i = 0; i < 1001; i++) {
        double got = value_at(jv_get(column, "column"), i);
        if (i == 500)
            assert_false(is_known(got));
        else
            assert_true(fabs(got / values[i] - 1) < 2e-4);
    }
    jv_free(column);
}

static void constant_and_counting_columns_take_no_space(void **state)
{
    (void)state;
    static const double SAME[] = {1.5, 1.5, 1.5}, COUNTS[] = {4, 5, 6, 7},
                        NONE[] = {UNKNOWN, UNKNOWN}, HOLE[] = {4, 5, UNKNOWN};
    struct jv *same = pack_column(SAME, 3, 2), *counts = pack_column(COUNTS, 4, 2),
              *none = pack_column(NONE, 2, 2), *hole = pack_column(HOLE, 3, 2);
    assert_true(value_at(jv_get(same, "column"), 2) == 1.5);
    assert_null(jv_get(jv_get(counts, "column"), "data"));
    assert_true(value_at(jv_get(counts, "column"), 3) == 7);
    assert_false(is_known(value_at(jv_get(none, "column"), 1)));
    assert_true(value_at(jv_get(hole, "column"), 1) == 5);
    assert_false(is_known(value_at(jv_get(hole, "column"), 2)));
    jv_free(same);
    jv_free(counts);
    jv_free(none);
    jv_free(hole);
}

static void columns_with_zero_or_negative_values_are_linear(void **state)
{
    (void)state;
    static const double VALUES[] = {-2.5, 0, 1.25, 997.5};
    struct jv *column = pack_column(VALUES, 4, 3);
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs(value_at(jv_get(column, "column"), i) - VALUES[i]) < 1e-4);
    jv_free(column);
}

/* ---- the page ---- */

static void data_cannot_escape_its_element(void **state)
{
    (void)state;
    struct text data = {0}, page = {0};
    text_add(&data, "{\"a\":\"</script><!--&\xE2\x80\xA8\xE2\x80\xA9\xE2\x82\xAC {{data}}\"}");
    html_page("<b>&\"", &data, &page);
    assert_non_null(strstr(text_get(&page), "<title>&lt;b&gt;&amp;&quot;</title>"));
    assert_non_null(strstr(
        text_get(&page),
        "{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026\\u2028\\u2029\xE2\x82\xAC {{data}}\"}"));
    text_release(&data);
    text_release(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact_and_unknown_stays_unknown),
        cmocka_unit_test(figures_over_six_magnitudes_keep_their_digits),
        cmocka_unit_test(constant_and_counting_columns_take_no_space),
        cmocka_unit_test(columns_with_zero_or_negative_values_are_linear),
        cmocka_unit_test(data_cannot_escape_its_element),
    };
    return RUN_TESTS(tests);
}
