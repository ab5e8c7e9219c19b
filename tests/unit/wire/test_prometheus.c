/* test: valgrind */
/* Prometheus' text format: differences between two scrapes, and malformed input. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "wire/prometheus.h"

static void parse(struct prometheus *out, const char *text)
{
    struct error why = {0};
    assert_int_equal(prometheus_parse(out, text, strlen(text), &why), ERR_OK);
}

/* A histogram with bounds 0.1, 0.2, 0.4 and +Inf by its cumulative counts. */
static void add_histogram(struct text *to, const char *labels, double a, double b, double c,
                          double d, double sum)
{
    text_addf(to,
              "x_bucket{%sle=\"0.1\"} %g\nx_bucket{%sle=\"0.2\"} %g\nx_bucket{%sle=\"0.4\"} %g\n"
              "x_bucket{%sle=\"+Inf\"} %g\nx_sum{%s} %g\nx_count{%s} %g\n",
              labels, a, labels, b, labels, c, labels, d, labels, sum, labels, d);
}

static struct prometheus_window window_between(const struct text *older, const struct text *newer,
                                               double p)
{
    struct prometheus a = {0}, b = {0};
    struct prometheus_window window;
    parse(&a, text_get(older));
    parse(&b, text_get(newer));
    assert_int_equal(prometheus_between(&a, &b, "x", p, &window), ERR_OK);
    prometheus_release(&a);
    prometheus_release(&b);
    return window;
}

static void quantiles_are_of_the_difference(void **state)
{
    (void)state;
    struct text older = {0}, newer = {0};
    add_histogram(&older, "", 1000, 1000, 1000, 1000, 50);
    add_histogram(&newer, "", 1010, 1050, 1100, 1100, 70);
    struct prometheus_window window = window_between(&older, &newer, 0.95);
    assert_near(window.count, 100, 0);
    assert_near(window.mean, 0.2, 1e-12);
    assert_near(window.quantile, 0.2 + 0.2 * 45 / 50,
                1e-12); /* the 95th, in the bucket of 51 to 100 */
    assert_false(window.is_at_least || window.is_running);
    window = window_between(&older, &newer, 0.05);
    assert_near(window.quantile, 0.1 * 5 / 10, 1e-12); /* the first bucket begins at 0 */
    window = window_between(&newer, &newer, 0.95);
    assert_near(window.count, 0, 0);
    assert_false(is_known(window.quantile) || is_known(window.mean));
    /* Beyond the last bound. */
    text_clear(&newer);
    add_histogram(&newer, "", 1000, 1000, 1080, 1100, 70);
    window = window_between(&older, &newer, 0.95);
    assert_true(window.is_at_least);
    assert_near(window.quantile, 0.4, 0);
    text_release(&older);
    text_release(&newer);
}

static void label_sets_are_summed_and_may_restart(void **state)
{
    (void)state;
    struct text older = {0}, newer = {0};
    add_histogram(&older, "engine=\"0\",", 100, 100, 100, 100, 5);
    add_histogram(&older, "engine=\"1\",", 500, 900, 900, 900, 90);
    add_histogram(&newer, "engine=\"0\",", 150, 150, 150, 150, 8);
    add_histogram(&newer, "engine=\"1\",", 0, 50, 50, 50, 8); /* restarted */
    struct prometheus_window window = window_between(&older, &newer, 0.75);
    assert_near(window.count, 100, 0);
    assert_near(window.mean, 0.11, 1e-12);
    assert_near(window.quantile, 0.15, 1e-12); /* 50 below 0.1, 50 up to 0.2 */
    /* Every bucket but one has exceeded its old count. */
    text_clear(&older);
    text_clear(&newer);
    add_histogram(&older, "", 90, 90, 90, 90, 5);
    add_histogram(&newer, "", 0, 100, 100, 100, 15);
    window = window_between(&older, &newer, 0.5);
    assert_near(window.quantile, 0.15, 1e-12);
    /* A new label set: it started at 0. */
    text_clear(&older);
    text_add(&older, "other 1\n");
    window = window_between(&older, &newer, 0.5);
    assert_near(window.count, 100, 0);
    text_release(&older);
    text_release(&newer);
}

static void counters_and_summaries_are_differenced(void **state)
{
    (void)state;
    struct prometheus a = {0}, b = {0};
    struct prometheus_window window;
    parse(&a, "tokens_total{m=\"a\"} 10\ntokens_total{m=\"b\"} 5\ns_count 4\ns_sum 2\n"
              "s{quantile=\"0.5\"} 0.1\ns{quantile=\"0.99\"} 0.3\n");
    parse(&b, "tokens_total{m=\"a\"} 25\ntokens_total{m=\"b\"} 2\ns_count 14\ns_sum 4\n"
              "s{quantile=\"0.5\"} 0.2\ns{quantile=\"0.99\"} 0.7\n");
    assert_near(prometheus_increase(&a, &b, "tokens_total"), 17, 0);
    assert_false(is_known(prometheus_increase(&a, &b, "none_total")));
    assert_int_equal(prometheus_between(&a, &b, "s", 0.95, &window), ERR_OK);
    assert_near(window.quantile, 0.7, 0); /* the next larger one */
    assert_true(window.is_running);
    assert_near(window.mean, 0.2, 1e-12);
    assert_int_equal(prometheus_between(&a, &b, "none", 0.95, &window), ERR_NOT_FOUND);
    assert_int_equal(prometheus_between(&b, &a, "tokens_total", 0.95, &window), ERR_NOT_FOUND);
    prometheus_release(&a);
    prometheus_release(&b);
}

static void lines_of_real_servers_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *line, *name;
        double value;
    } CASES[] = {
        {"vllm:x_total 5", "vllm:x_total", 5},
        {"a{}  1e3", "a", 1000},
        {"a{b=\"c\"} 2 1700000000000\r", "a", 2},
        {"a{b=\"c\",} 3", "a", 3},
        {"a { b = \"}\" , d=\"\\\"\\\\\\n,=\" } 4", "a", 4},
        {"a{le=\"+Inf\"} 5 # {trace=\"x\"} 0.5 1.2", "a", 5},
        {"\ta -6.5\t", "a", -6.5},
        {"{\"a.b\",c=\"d\"} 7", "a.b", 7},
        {"a +Inf", "a", INFINITY},
    };
    struct prometheus metrics = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        parse(&metrics, CASES[i].line);
        assert_int_equal(metrics.count, 1);
        assert_string_equal(metrics.items[0].name, CASES[i].name);
        assert_true(metrics.items[0].value == CASES[i].value);
    }
    parse(&metrics, "a NaN\n# TYPE a gauge\n\n   \n#EOF");
    assert_true(metrics.count == 1 && isnan(metrics.items[0].value) && !metrics.skipped);
    parse(&metrics, "");
    assert_int_equal(metrics.count, 0);
    prometheus_release(&metrics);
}

static void invalid_lines_are_skipped(void **state)
{
    (void)state;
    static const char *const CASES[] = {
        "a",
        "a b",
        "a 1x",
        "a{b=\"c\" 1",
        "a{b=c} 1",
        "a{b} 1",
        "{} 1",
        "a{b=\"c} 1",
        "a{=\"c\"} 1",
        "a 1 2 3",
        "a{le=\"x\"} 1",
        "a{b=\"c\"d=\"e\"} 1",
        "a{,} 1",
        "{\"a\",\"b\"} 1",
        "a{quantile=\"2\"} 1",
        "a{le=\"nan\"} 1",
        "a 0x",
        "{",
    };
    struct prometheus metrics = {0};
    struct error why = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text text = {0};
        assert_int_equal(prometheus_parse(&metrics, CASES[i], strlen(CASES[i]), &why),
                         ERR_BAD_VALUE);
        text_addf(&text, "%s\ngood 1\n", CASES[i]);
        parse(&metrics, text_get(&text));
        assert_int_equal(metrics.count, 1);
        assert_int_equal(metrics.skipped, 1);
        text_release(&text);
    }
    static const char PAGE[] = "<!DOCTYPE html>\n<html><body>Not found</body></html>\n";
    assert_int_equal(prometheus_parse(&metrics, PAGE, sizeof PAGE - 1, &why), ERR_BAD_VALUE);
    static const char NUL[] = "a\0b 1\n\0\0\0 2\n";
    assert_int_equal(prometheus_parse(&metrics, NUL, sizeof NUL - 1, &why), ERR_BAD_VALUE);
    prometheus_release(&metrics);
}

/* Buckets that decrease, are not numbers, repeat or have no +Inf: a value or none, never one outside the bounds. */
static void malformed_histograms_are_handled(void **state)
{
    (void)state;
    static const char *const VALUES[] = {"NaN", "-Inf", "+Inf", "-5", "0", "7", "1e300", "3"};
    static const char *const BOUNDS[] = {"0.1", "-1", "0.2", "+Inf", "0.2", "1e308", "0"};
    struct random random = random_seeded(11);
    struct prometheus a = {0}, b = {0};
    for (int round = 0; round < 3000; round++) {
        struct prometheus_window window;
        struct text text = {0};
        text_addf(&text, "x_count %s\nx_sum %s\n", VALUES[random_index(&random, 8)],
                  VALUES[random_index(&random, 8)]);
        for (size_t i = random_index(&random, 9); i-- > 0;)
            text_addf(&text, "x_bucket{e=\"%zu\",le=\"%s\"} %s\n", random_index(&random, 2),
                      BOUNDS[random_index(&random, 7)], VALUES[random_index(&random, 8)]);
        parse(&b, text_get(&text));
        if (prometheus_between(&a, &b, "x", 0.95, &window) == ERR_OK) {
            assert_true(window.count >= 0);
            assert_true(!is_known(window.quantile) ||
                        (window.quantile >= -1 && window.quantile <= 1e308));
        }
        struct prometheus older = a;
        a = b;
        b = older;
        text_release(&text);
    }
    /* Random bytes. */
    for (int round = 0; round < 3000; round++) {
        static const char BYTES[] = "ax_{}=\",\\ \n#0127.e+-NaInfle\t\r\0\xff";
        char text[120];
        struct error why = {0};
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = BYTES[random_index(&random, sizeof BYTES)];
        (void)!prometheus_parse(&b, text, sizeof text, &why);
        assert_true(b.count + b.skipped <= sizeof text);
    }
    prometheus_release(&a);
    prometheus_release(&b);
}

static void labels_have_no_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *value, *written;
    } CASES[] = {
        {"plain \xc3\xbc", "plain \xc3\xbc"}, {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
        {"\x1b[31m\a", "\\\\x1b[31m\\\\x07"}, {"a\tb\rc\x7f", "a\\\\tb\\\\rc\\\\u007f"},
        {"\xe2\x80\xae", "\\\\u202e"},        {"\xff", "\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text labels = {0}, expected = {0};
        exposition_label(&labels, "x", CASES[i].value);
        text_addf(&expected, "x=\"%s\"", CASES[i].written);
        assert_string_equal(text_get(&labels), text_get(&expected));
        text_release(&labels);
        text_release(&expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_of_the_difference),
        cmocka_unit_test(label_sets_are_summed_and_may_restart),
        cmocka_unit_test(counters_and_summaries_are_differenced),
        cmocka_unit_test(lines_of_real_servers_are_parsed),
        cmocka_unit_test(invalid_lines_are_skipped),
        cmocka_unit_test(malformed_histograms_are_handled),
        cmocka_unit_test(labels_have_no_control_characters),
    };
    return RUN_TESTS(tests);
}
