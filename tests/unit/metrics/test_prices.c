#include "support/unit.h"

#include "support/tree.h"

#include "core/energy.h"
#include "core/units.h"
#include "metrics/prices.h"
#include "port/json_read.h"

#define PRICES                                                                                     \
    "{\"currency\": \"USD\", \"electricity_per_kwh\": 0.25, \"note\": \"made up\",\n"              \
    " \"models\": {\n"                                                                             \
    "  \"gpt-4o\": {\"input_per_million\": 2.5, \"output_per_million\": 10,\n"                     \
    "              \"cached_input_per_million\": 1.25, \"source\": \"x\"},\n"                      \
    "  \"GPT-4o\": {\"input_per_million\": 100, \"output_per_million\": 100},\n"                   \
    "  \"free\": {\"input_per_million\": 0, \"output_per_million\": 0},\n"                         \
    "  \"Llama-3.1-8B\": {\"input_per_million\": 1, \"output_per_million\": 2},\n"                 \
    "  \"mix-7b-chat\": {\"input_per_million\": 1, \"output_per_million\": 2},\n"                  \
    "  \"mix-7b-base\": {\"input_per_million\": 3, \"output_per_million\": 4}}}"

/* From a file p.json with these bytes. */
static enum err load(const char *json, struct prices **out, struct error *why)
{
    struct tree tree;
    char path[160];
    tree_new(&tree);
    tree_write(&tree, "/p.json", "%s", json);
    snprintf(path, sizeof path, "%s/p.json", tree.root);
    enum err err = prices_load(path, out, why);
    tree_free(&tree);
    return err;
}

static struct prices *parse(const char *json)
{
    struct prices *prices;
    struct error why = {0};
    if (load(json, &prices, &why))
        fail_msg("%s", why.text);
    return prices;
}

static void check_same(double value, double expected)
{
    assert_int_equal(is_known(value), is_known(expected));
    if (is_known(expected))
        assert_near(value, expected, 1e-12);
}

static void tokens_are_priced_by_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double prompt, cached, output;
        double input_cost, output_cost;
    } CASES[] = {
        {"gpt-4o", 1000, UNKNOWN, 500, 0.0025, 0.005},
        {"gpt-4o", 1000, 0, 500, 0.0025, 0.005},
        {"gpt-4o", 1000, 400, 500, 0.002, 0.005}, /* 600 x 2.5 + 400 x 1.25 */
        {"gpt-4o", 1000, 1001, 500, NAN, 0.005},  /* more cached tokens than prompt tokens */
        {"gpt-4o", UNKNOWN, 0, 500, NAN, 0.005},
        {"gpt-4o", 1000, 0, UNKNOWN, 0.0025, NAN},
        {"gpt-4o", -1, 0, -1, NAN, NAN},
        {"GPT-4o", 1000, 0, 1000, 0.1, 0.1}, /* the exact id has precedence */
        {"free", 1000, 0, 1000, 0, 0},
        {"Llama-3.1-8B", 1000, 500, 1000, 0.001,
         0.002}, /* no price for cached tokens: as the others */
        {"meta-llama/Llama-3.1-8B-Instruct", 1000, 0, 1000, 0.001, 0.002},
        {"llama3.1:8b", 1000, 0, 1000, 0.001, 0.002},
        {"mix-7b-chat", 1000, 0, 1000, 0.001, 0.002},
        {"mix-7b", 1000, 0, 1000, NAN, NAN}, /* ambiguous */
        {"gpt-4o-mini", 1000, 0, 1000, NAN, NAN},
        {"gpt-4", 1000, 0, 1000, NAN, NAN},
        {"", 1000, 0, 1000, NAN, NAN},
    };
    struct prices *prices = parse(PRICES);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct token_cost cost = prices_tokens(prices, CASES[i].model, CASES[i].prompt,
                                               CASES[i].cached, CASES[i].output);
        check_same(cost.input, CASES[i].input_cost);
        check_same(cost.output, CASES[i].output_cost);
        check_same(cost.total, CASES[i].input_cost + CASES[i].output_cost);
    }
    assert_string_equal(prices_currency(prices), "USD");
    prices_free(prices);
}

static void a_file_may_have_prices_of_electricity_and_devices(void **state)
{
    (void)state;
    struct prices *prices = parse(PRICES);
    check_same(prices_tariff(prices)->price_per_kwh, 0.25);
    check_same(prices_tariff(prices)->device_price_per_hour, NAN);
    check_same(prices_tariff(prices)->gco2_per_kwh, NAN);
    prices_free(prices);
    prices = parse("{\"currency\": \"EUR\", \"device_per_hour\": 2.5, \"gco2_per_kwh\": 0}");
    check_same(prices_tariff(prices)->price_per_kwh, NAN);
    check_same(prices_tariff(prices)->device_price_per_hour, 2.5);
    check_same(prices_tariff(prices)->gco2_per_kwh, 0);
    check_same(prices_tokens(prices, "m", 1, 1, 1).total, NAN);
    prices_free(prices);
}

static void errors_of_a_file_name_the_position(void **state)
{
    (void)state;
#define MODEL_WITH(fields) "{\"currency\": \"USD\", \"models\": {\"m\": {" fields "}}}"
    static const struct {
        const char *json, *says;
    } BAD[] = {
        {"", "p.json: not JSON at byte 0"},
        {"{\"currency\": \"USD\",", "p.json: not JSON at byte"},
        {"[]", "p.json: must be one JSON object"},
        {"{}", "p.json: currency: missing"},
        {"{\"currency\": 1}", "p.json: currency: missing"},
        {"{\"currency\": \"USD\"}", "p.json: no prices"},
        {"{\"currency\": \"USD\", \"models\": {}}", "p.json: no prices"},
        {"{\"currency\": \"USD\", \"models\": []}", "p.json: models: must be an object"},
        {"{\"currency\": \"USD\", \"model\": {}}", "p.json: model: unknown key"},
        {"{\"currency\": \"USD\", \"note\": 1}", "p.json: note: unknown key"},
        {"{\"currency\": \"USD\", \"currency\": \"EUR\"}",
         "p.json: currency: given more than once"},
        {"{\"currency\": \"USD\", \"electricity_per_kwh\": \"0.25\"}",
         "p.json: electricity_per_kwh: must be a number"},
        {"{\"currency\": \"USD\", \"device_per_hour\": -1}",
         "p.json: device_per_hour: must be a number"},
        {"{\"currency\": \"USD\", \"gco2_per_kwh\": true}",
         "p.json: gco2_per_kwh: must be a number"},
        {"{\"currency\": \"USD\", \"models\": {\"m\": 3}}", "p.json: models.m: must be an object"},
        {MODEL_WITH(""), "p.json: models.m.input_per_million: missing"},
        {MODEL_WITH("\"input_per_million\": 1"), "p.json: models.m.output_per_million: missing"},
        {MODEL_WITH("\"input_per_million\": -1, \"output_per_million\": 1"),
         "p.json: models.m.input_per_million: must be a number, 0 or more"},
        {MODEL_WITH("\"input_per_million\": 1e999, \"output_per_million\": 1"),
         "p.json: models.m.input_per_million: must be a number"},
        {MODEL_WITH("\"input_per_million\": 1, \"output_per_million\": true"),
         "p.json: models.m.output_per_million: must be a number"},
        {MODEL_WITH("\"input_per_million\": 1, \"output_per_million\": 1, \"cached\": 1"),
         "p.json: models.m.cached: unknown key"},
        {MODEL_WITH("\"input_per_million\": 1, \"output_per_million\": 1,"
                    " \"cached_input_per_million\": \"1\""),
         "p.json: models.m.cached_input_per_million: must be a number"},
        {"{\"currency\": \"USD\", \"models\": {"
         "\"m\": {\"input_per_million\": 1, \"output_per_million\": 1},"
         "\"m\": {\"input_per_million\": 2, \"output_per_million\": 2}}}",
         "p.json: models.m: given more than once"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct prices *prices = NULL;
        struct error why = {0};
        assert_int_equal(load(BAD[i].json, &prices, &why), ERR_BAD_VALUE);
        assert_null(prices);
        assert_contains(why.text, BAD[i].says);
    }
}

static void price_files_are_loaded(void **state)
{
    (void)state;
    struct prices *prices = NULL;
    struct error why = {0};
    assert_int_equal(prices_load(IPW_FIXTURES "/../../examples/prices.json", &prices, &why),
                     ERR_OK);
    check_same(prices_tokens(prices, "gpt-4o", 1e6, UNKNOWN, 1e6).total, 12.5);
    check_same(prices_tokens(prices, "gpt-4o-mini", 1e6, UNKNOWN, 1e6).total, 0.75);
    check_same(prices_tokens(prices, "claude-sonnet-4-20250514", 1e6, UNKNOWN, 1e6).total, 18);
    check_same(prices_tokens(prices, "gemini-2.0-flash", 1e6, UNKNOWN, 1e6).total, 0.5);
    prices_free(prices);

    assert_int_equal(prices_load(IPW_FIXTURES "/nothing.json", &prices, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "nothing.json: No such file");
    assert_null(prices);
    assert_int_not_equal(prices_load(IPW_FIXTURES, &prices, &why), ERR_OK); /* a directory */
    assert_int_equal(prices_load("/dev/zero", &prices, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "/dev/zero: longer than 1048576 bytes");
    prices_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_priced_by_the_file),
        cmocka_unit_test(a_file_may_have_prices_of_electricity_and_devices),
        cmocka_unit_test(errors_of_a_file_name_the_position),
        cmocka_unit_test(price_files_are_loaded),
    };
    return RUN_TESTS(tests);
}
