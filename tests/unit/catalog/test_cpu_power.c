/* Which power figure is used for a processor. */
#include "support/unit.h"

#include "catalog/cpu_power.h"
#include "core/units.h"

static struct cpu_power find_brand(const char *brand)
{
    return cpu_power_find(&(struct cpu_power_key){.brand = brand,
                                                  .product = "",
                                                  .board = "",
                                                  .vendor = "GenuineIntel",
                                                  .family = 6,
                                                  .model = 999});
}

static void assert_matches(const char *brand, const char *name)
{
    struct cpu_power found = find_brand(brand);
    if (strcmp(found.name, name) != 0)
        fail_msg("%s: %s, expected %s", brand, found.name, name);
}

static void near_misses_do_not_match(void **state)
{
    (void)state;
    static const char NONE[] = "processor not in the table";
    assert_matches("intel(r) core(tm) I7-8700k cpu", "Core i7-8700K");
    assert_matches("Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", "Core i7-8700K");
    assert_matches("Intel(R) Core(TM) i7-8700T CPU", NONE);
    assert_matches("AMD Ryzen 9 7950X3D 16-Core", "Ryzen 9 7950X3D");
    assert_matches("AMD Ryzen 9 7950X4D 16-Core", NONE);
    assert_matches("Intel(R) Xeon(R) Platinum 8480", NONE); /* the table has 8480+ */
    assert_matches("AMD EPYC 97554 8-Core", NONE);
    assert_matches("NotXeon 6980P", NONE);
    assert_matches("Raspberry Pi 400", NONE);
    assert_matches("", NONE);
    /* A brand without a number must not match a part by accident. */
    assert_matches("Intel(R) Xeon(R) Processor 8-Core", NONE);
    assert_near(find_brand("").relative_accuracy, 0.8, 1e-9);
}

/* ---- the ways to a figure ---- */

/* One row for each way; the figures themselves are data. */
static const struct {
    struct cpu_power_key key;
    double watts_per_thread, relative_accuracy;
    const char *name, *source;
} FOUND[] = {
    /* the exact part: by brand, by product, by board; x86 has two threads per core unless SMT is off */
    {{"AMD EPYC 9965 16-Core Processor", "", "", "AuthenticAMD", 0, 0, 0, 0, false},
     500.0 / 384,
     0.4,
     "EPYC 9965",
     "AMD TDP"},
    {{"AMD EPYC 9965 16-Core Processor", "", "", "AuthenticAMD", 0, 0, 0, 0, true},
     500.0 / 192,
     0.4,
     "EPYC 9965",
     "AMD TDP"},
    {{"Intel(R) Xeon(R) CPU Max 9480 @ 2.40GHz", "", "", "GenuineIntel", 0, 0, 0, 0, true},
     350.0 / 56,
     0.4,
     "Xeon Max 9480",
     "Intel TDP"},
    {{"Altra Q80-33", "", "", "", 0, 0, 0, 0, true}, 3.125, 0.4, "Altra Q80-33", "Ampere TDP"},
    {{"", "Altra Q80-33", "", "", 0, 0, 0, 0, false}, 3.125, 0.4, "Altra Q80-33", "Ampere TDP"},
    {{"Neoverse-V2", "Raspberry Pi 5", "x", "", 0, 0, 0, 0, false},
     2,
     0.6,
     "Raspberry Pi 5",
     "no published figure"},
    {{"", "", "Raspberry Pi 5 Model B", "", 0, 0, 0, 0, false},
     2,
     0.6,
     "Raspberry Pi 5",
     "no published figure"},
    /* the family, of the same vendor only; the core of an Arm processor */
    {{"a masked Processor", "", "", "GenuineIntel", 6, 94, 0, 0, false},
     9.5,
     0.6,
     "Skylake desktop",
     "usual parts of the family"},
    {{"a masked Processor", "", "", "AuthenticAMD", 25, 80, 0, 0, false},
     2.5,
     0.6,
     "Ryzen 5000 laptop",
     "usual parts of the family"},
    {{"", "", "", "HygonGenuine", 6, 183, 0, 0, false},
     3.5,
     0.8,
     "processor not in the table",
     "a general figure"},
    {{"some core", "", "", "", 0, 0, 0x41, 0xd40, false},
     1.8,
     0.6,
     "Neoverse-V1",
     "usual chips with this core"},
    {{"", "", "", "", 0, 0, 0x42, 0xd85, false},
     2,
     0.8,
     "processor not in the table",
     "a general figure"},
};

static void each_way_leads_to_a_figure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof FOUND / sizeof *FOUND; i++) {
        struct cpu_power found = cpu_power_find(&FOUND[i].key);
        assert_string_equal(found.name, FOUND[i].name);
        assert_string_equal(found.source, FOUND[i].source);
        assert_near(found.watts_per_thread, FOUND[i].watts_per_thread, 1e-9);
        assert_near(found.relative_accuracy, FOUND[i].relative_accuracy, 1e-9);
    }
}

/* ---- Arm ---- */

static void arm_cores_and_products_have_names(void **state)
{
    (void)state;
    assert_string_equal(cpu_core_name(0x41, 0xd4f), "Neoverse-V2");
    assert_string_equal(cpu_core_name(0x41, 0xd4a), "Neoverse-E1"); /* power unknown */
    assert_string_equal(cpu_core_name(0x41, 0xfff), "");
    assert_string_equal(cpu_core_name(0, 0), "");
    assert_string_equal(cpu_product_name("Amazon EC2", 0x41, 0xd4f), "AWS Graviton4");
    assert_string_equal(cpu_product_name("Google", 0x41, 0xd4f), "Google Axion");
    assert_string_equal(cpu_product_name("NVIDIA", 0x41, 0xd4f), "NVIDIA Grace");
    assert_string_equal(cpu_product_name("Acme", 0x41, 0xd4f), "");
    assert_string_equal(cpu_product_name("", 0, 0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_misses_do_not_match),
        cmocka_unit_test(each_way_leads_to_a_figure),
        cmocka_unit_test(arm_cores_and_products_have_names),
    };
    return RUN_TESTS(tests);
}
