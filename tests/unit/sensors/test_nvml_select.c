/* Device selection: --devices, CUDA_VISIBLE_DEVICES, indices, UUIDs and MIG instances. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "support/nvml_fake.h"

/* Four cards; the second and third share a UUID prefix, the last has two MIG instances. */
static const char *const MACHINE = "devices 4\n"
                                   "uuid 0 GPU-aaaa0000-1111-2222-3333-444444444444\n"
                                   "uuid 1 GPU-bbbb1111-1111-2222-3333-444444444444\n"
                                   "uuid 2 GPU-bbbb2222-1111-2222-3333-444444444444\n"
                                   "uuid 3 GPU-cccc3333-1111-2222-3333-444444444444\n"
                                   "mig 3 2\n";

static int setup(void **state)
{
    nvml_fake_start(state);
    nvml_fake_script("%s", MACHINE);
    return 0;
}

/* The found cards as digits: "013"; a finding that is not ok is "!" */
static void find_cards(const char *devices, char *to)
{
    const struct sensor_findings *findings = nvml_fake_probe(devices);
    for (size_t i = 0; i < findings->count; i++)
        *to++ = findings->items[i].status == SENSOR_OK ? findings->items[i].id[5] : '!';
    *to = '\0';
}

static void cuda_visible_devices_is_parsed_like_cuda(void **state)
{
    (void)state;
    static const struct {
        const char *visible, *cards;
    } CASES[] = {
        {"0,1,2,3", "0123"},
        {"2", "2"},
        {" 1 , 0 ", "01"},
        {"3,3", "3"},    /* duplicates count once */
        {"0,-1,1", "0"}, /* the list ends at the first invalid entry */
        {"1,7,0", "1"},
        {"0,,1", "0"},
        {"0,x,1", "0"},
        {"GPU-aaaa", "0"},   /* a unique prefix */
        {"GPU-bbbb,0", "!"}, /* and an ambiguous one: invalid */
        {"GPU-bbbb2", "2"},
        {"GPU-cccc3333-1111-2222-3333-444444444444,GPU-aaaa0000", "03"},
        {"MIG-31000000-5555-6666-7777-888888888888", "3"},
        {"MIG-31,MIG-32", "3"}, /* two instances, one card */
        {"MIG-3", "!"},         /* two instances: invalid to CUDA */
        {"MIG-91", "!"},
        {"MIG-GPU-cccc3333-1111-2222-3333-444444444444/1/0", "3"},
        {"MIG-GPU-dddd3333-1111-2222-3333-444444444444/1/0", "!"},
        {"", "!"},
        {"-1", "!"},
        {"NoDevFiles", "!"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char cards[32];
        setenv("CUDA_VISIBLE_DEVICES", CASES[i].visible, 1);
        find_cards(NULL, cards);
        assert_string_equal(cards, CASES[i].cards);
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
    char cards[32];
    find_cards(NULL, cards);
    assert_string_equal(cards, "0123");
}

static void hidden_cards_are_absent_with_the_reason(void **state)
{
    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    assert_int_equal(nvml_fake_probe(NULL)->count, 1);
    const struct sensor_finding *finding = nvml_fake_finding("nvml");
    assert_non_null(finding);
    assert_int_equal(finding->status, SENSOR_ABSENT);
    assert_string_equal(finding->reason, "hidden by CUDA_VISIBLE_DEVICES=-1");
}

static void devices_may_be_indices_or_uuids(void **state)
{
    (void)state;
    static const struct {
        const char *devices, *cards;
    } CASES[] = {
        {"0", "0"},           {"3,1", "13"},     {"GPU-aaaa", "0"}, {"GPU-bbbb1,GPU-cccc", "13"},
        {"MIG-31", "3"},      {"MIG-31,3", "3"}, {"2,2,2", "2"},    {"", "0123"},
        {"1,nonsense", "!1"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char cards[32];
        find_cards(CASES[i].devices, cards);
        assert_string_equal(cards, CASES[i].cards);
    }
}

static void the_devices_option_overrides_cuda(void **state)
{
    (void)state;
    char cards[32];
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    find_cards("2", cards);
    assert_string_equal(cards, "2");
}

static void an_unknown_device_lists_the_available_ones(void **state)
{
    (void)state;
    static const char *const UNKNOWN_ONES[] = {"4", "-1", "GPU-bbbb", "GPU-zzzz", "H200"};
    for (size_t i = 0; i < sizeof UNKNOWN_ONES / sizeof *UNKNOWN_ONES; i++) {
        char id[48];
        snprintf(id, sizeof id, "nvml:%s", UNKNOWN_ONES[i]);
        assert_int_equal(nvml_fake_probe(UNKNOWN_ONES[i])->count, 1);
        const struct sensor_finding *finding = nvml_fake_finding(id);
        assert_non_null(finding);
        assert_int_equal(finding->status, SENSOR_ABSENT);
        assert_non_null(strstr(finding->reason, UNKNOWN_ONES[i]));
        assert_non_null(strstr(finding->reason, "0 (GPU-aaaa0000), 1 (GPU-bbbb1111), "
                                                "2 (GPU-bbbb2222), 3 (GPU-cccc3333)"));
    }
}

static void a_long_entry_is_truncated_not_overrun(void **state)
{
    (void)state;
    char entry[600];
    memset(entry, 'z', sizeof entry - 1);
    entry[sizeof entry - 1] = '\0';
    const struct sensor_findings *findings = nvml_fake_probe(entry);
    assert_int_equal(findings->count, 1);
    assert_int_equal(findings->items[0].status, SENSOR_ABSENT);
    assert_non_null(strstr(findings->items[0].reason, "GPU-aaaa0000"));
    setenv("CUDA_VISIBLE_DEVICES", entry, 1);
    assert_int_equal(nvml_fake_probe(NULL)->count, 1);
    assert_int_equal(nvml_fake_finding("nvml")->status, SENSOR_ABSENT);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, nvml_fake_stop)
    const struct CMUnitTest tests[] = {
        TEST(cuda_visible_devices_is_parsed_like_cuda),
        TEST(hidden_cards_are_absent_with_the_reason),
        TEST(devices_may_be_indices_or_uuids),
        TEST(the_devices_option_overrides_cuda),
        TEST(an_unknown_device_lists_the_available_ones),
        TEST(a_long_entry_is_truncated_not_overrun),
    };
    return RUN_TESTS(tests);
}
