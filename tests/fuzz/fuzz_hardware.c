/* JSON files about devices, models and prices: hardware, run at its last operating point; the figures of --model-compat;
 * prices; and the lists of the catalog. */
#include "fuzz/fuzz.h"

#include "catalog/catalog_file.h"
#include "core/units.h"
#include "estimate/legacy.h"
#include "metrics/prices.h"
#include "support/hardware_file.h"

static void read_prices(const char *path)
{
    struct prices *prices;
    struct error why = {0};
    enum err err = prices_load(path, &prices, &why);
    fuzz_check_error(err, &why);
    if (!err) {
        struct token_cost cost = prices_tokens(prices, "gpt-4o", 1000, 10, 50);
        fuzz_check(!(cost.total < 0) && *prices_currency(prices));
        (void)prices_tariff(prices);
    }
    prices_free(prices);
}

static const struct {
    const struct catalog_format *format;
    const char *seed; /* below data/ */
} LISTS[] = {
    {&CATALOG_PEAK_LIST, "hardware/peaks-nvidia-jetson"},
    {&CATALOG_POWER_LIST, "hardware/power-arm"},
    {&CATALOG_MODEL_LIST, "models/gemma"},
};
enum { LIST_COUNT = sizeof LISTS / sizeof *LISTS, FIRST_LIST = 3 };

static void read_list(size_t kind, const char *bytes, size_t length)
{
    struct error why = {0};
    void *parsed = NULL;
    enum err err = catalog_list_parse(LISTS[kind].format, "list", bytes, length, &parsed, &why);
    fuzz_check_error(err, &why);
    if (!err)
        catalog_list_free(LISTS[kind].format, parsed);
}

static void run(const char *bytes, size_t length)
{
    unsigned choice = fuzz_choose(&bytes, &length, FIRST_LIST + LIST_COUNT);
    struct legacy_hardware legacy;
    struct error why = {0};
    const char *wrong = choice ? NULL : hardware_file_exercise(bytes, length);
    if (wrong)
        fuzz_fail(wrong);
    if (choice == 1)
        fuzz_check_error(legacy_hardware_read(fuzz_file("h.json", bytes, length), &legacy, &why),
                         &why);
    if (choice == 2)
        read_prices(fuzz_file("prices.json", bytes, length));
    if (choice >= FIRST_LIST)
        read_list(choice - FIRST_LIST, bytes, length);
}

static void seeds(void)
{
    static const char *const FILES[] = {"h200", "jetson-orin-nano-8gb", "epyc-7742"};
    struct text timed = {0};
    hardware_file_with("\"year\": 2024",
                       "\"timings\": [{\"runtime\": \"llama.cpp\", \"threads\": 8, "
                       "\"source\": \"s\", \"operations\": [{\"op\": \"product\", \"format\": "
                       "\"q4_k\", \"rows\": 1, \"us\": 2}, {\"op\": \"pass\", \"us\": 1}]}]",
                       &timed);
    fuzz_seed(0, HARDWARE_FILE);
    fuzz_seed(0, text_get(&timed));
    text_release(&timed);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char path[512];
        str_format(path, sizeof path, IPW_FIXTURES "/../../data/hardware/%s.json", FILES[i]);
        fuzz_seed_file(0, path, 1 << 16);
    }
    for (size_t i = 0; i < LIST_COUNT; i++) {
        char path[512];
        str_format(path, sizeof path, IPW_FIXTURES "/../../data/%s.json", LISTS[i].seed);
        fuzz_seed_file((int)(FIRST_LIST + i), path, 1 << 16);
    }
    fuzz_seed_file(1, IPW_FIXTURES "/hardware/legacy-a100-like.json", 1 << 14);
    fuzz_seed(2, "{\"currency\":\"USD\",\"electricity_per_kwh\":0.25,\"device_per_hour\":2.5,"
                 "\"gco2_per_kwh\":380,\"models\":{\"gpt-4o\":{\"input_per_million\":2.5,"
                 "\"output_per_million\":10,\"cached_input_per_million\":1.25,\"note\":\"n\"}}}");
}

static const char *const WORDS[] = {"null",
                                    "[1]",
                                    "[]",
                                    "{}",
                                    "true",
                                    "-1",
                                    "1e308",
                                    "\"value\"",
                                    "\"unit\"",
                                    "\"points\"",
                                    "\"timings\"",
                                    "\"operations\"",
                                    "\"kernel_classes\"",
                                    "\"processor\"",
                                    "\"host\"",
                                    "\"link\"",
                                    NULL};

const struct fuzz_target fuzz_hardware = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
