/* Which power figure is used for a processor. */
#include "support/unit.h"

#include <stdlib.h>

#include "catalog/cpu_power.h"
#include "core/units.h"
#include "support/tsv.h"

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

/* ---- the processors of version 0.1.0, whose figures must not change ---- */

static unsigned parse_number(const char *field)
{
    return (unsigned)strtoul(field, NULL, 0);
}

static void compare_row(char **fields)
{
    struct cpu_power_key key = {
        .brand = fields[0],
        .product = fields[1],
        .board = fields[2],
        .vendor = fields[3],
        .family = parse_number(fields[4]),
        .model = parse_number(fields[5]),
        .implementer = parse_number(fields[6]),
        .part = parse_number(fields[7]),
        .is_single_threaded = fields[8][0] == '1' && fields[9][0] == '0',
    };
    struct cpu_power found = cpu_power_find(&key);
    if (found.watts_per_thread != tsv_number(fields[10]) ||
        found.relative_accuracy != tsv_number(fields[11]) || strcmp(found.name, fields[12]) != 0 ||
        strcmp(found.source, fields[13]) != 0)
        fail_msg("%s %s %s: %.17g W +- %.3g of %s (%s), expected %s", key.brand, key.product,
                 key.board, found.watts_per_thread, found.relative_accuracy, found.name,
                 found.source, fields[10]);
}

static void processors_of_version_0_1_0_keep_their_figures(void **state)
{
    (void)state;
    assert_true(tsv_each("catalog/cpu_power.tsv", 14, compare_row) > 1000);
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
        cmocka_unit_test(processors_of_version_0_1_0_keep_their_figures),
        cmocka_unit_test(arm_cores_and_products_have_names),
    };
    return RUN_TESTS(tests);
}
