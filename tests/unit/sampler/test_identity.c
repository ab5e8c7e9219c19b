/* GPUs seen by several drivers. */
#include "support/unit.h"

#include <string.h>

#include "core/text.h"
#include "sampler/source.h"

static const struct sensor_driver NVML = {.name = "nvml"}, SMI = {.name = "amdsmi"},
                                  HWMON = {.name = "hwmon"};

static struct sensor card(const struct sensor_driver *driver, const char *id, const char *device,
                          int location, const char *bus)
{
    struct sensor sensor = {.driver = driver, .kind = SENSOR_GPU};
    str_copy(sensor.id, sizeof sensor.id, id);
    struct sensor_channel *channel = sensor_add_channel(&sensor, "power", device, QTY_POWER);
    channel->scope = SCOPE_GPU;
    channel->location = location;
    sensor_add_channel(&sensor, "temperature", device, QTY_TEMPERATURE);
    if (bus)
        sensor_add_fact(&sensor, "pci_bus_id", bus);
    return sensor;
}

static void one_card_is_measured_once(void **state)
{
    (void)state;
    struct sensor first = card(&SMI, "amdsmi:0", "gpu0", 0, "0000:0c:00.0");
    struct sensor again = card(&HWMON, "hwmon:amdgpu0", "gpu0", 0, "0000:0C:00.0");
    const struct sensor *others[] = {&first};
    struct error why;
    assert_int_equal(identity_check(others, 1, &again, &why), ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "amdsmi:0"));
}

static void bus_addresses_are_compared_in_any_format(void **state)
{
    (void)state;
    struct sensor first = card(&NVML, "nvml:0", "gpu0", 0, "00000000:0C:00.0");
    struct sensor again = card(&HWMON, "hwmon:nouveau0", "gpu0", 0, "0000:0c:00.0");
    const struct sensor *others[] = {&first};
    assert_int_equal(identity_check(others, 1, &again, NULL), ERR_UNSUPPORTED);
}

/* A card and integrated graphics: both were reported as gpu0, and must not be summed as one. */
static void cards_of_the_same_name_are_renumbered(void **state)
{
    (void)state;
    struct sensor first = card(&NVML, "nvml:0", "gpu0", 0, "00000000:01:00.0");
    struct sensor second = card(&NVML, "nvml:1", "gpu1", 1, "00000000:02:00.0");
    struct sensor third = card(&HWMON, "hwmon:amdgpu0", "gpu0", 0, "0000:c5:00.0");
    const struct sensor *others[] = {&first, &second};
    assert_int_equal(identity_check(others, 2, &third, NULL), ERR_OK);
    assert_string_equal(third.channels[0].device, "gpu2");
    assert_int_equal(third.channels[0].location, 2);
    assert_string_equal(third.channels[1].device, "gpu2");
    assert_int_equal(third.channels[1].location, -1);
}

static void other_devices_are_unchanged(void **state)
{
    (void)state;
    struct sensor first = card(&NVML, "nvml:0", "gpu0", 0, NULL);
    struct sensor second = card(&NVML, "nvml:1", "gpu1", 1, NULL);
    struct sensor cpu = {.driver = &HWMON, .kind = SENSOR_CPU};
    sensor_add_channel(&cpu, "power", "cpu0", QTY_POWER);
    const struct sensor *others[] = {&first};
    assert_int_equal(identity_check(others, 1, &second, NULL), ERR_OK);
    assert_string_equal(second.channels[0].device, "gpu1");
    assert_int_equal(identity_check(others, 1, &cpu, NULL), ERR_OK);
    assert_string_equal(cpu.channels[0].device, "cpu0");
}

static void another_card_does_not_replace_the_lost_one(void **state)
{
    (void)state;
    struct sensor lost = card(&HWMON, "hwmon:amdgpu0", "gpu0", 0, "0000:03:00.0");
    struct sensor same = card(&HWMON, "hwmon:amdgpu0", "gpu4", 4, "0000:03:00.0");
    struct sensor next = card(&HWMON, "hwmon:amdgpu0", "gpu0", 0, "0000:44:00.0");
    struct sensor silent = card(&HWMON, "hwmon:amdgpu0", "gpu0", 0, NULL);
    assert_true(identity_continues(&lost, &same)); /* the name is assigned by the sampler */
    assert_false(identity_continues(&lost, &next));
    assert_true(identity_continues(&lost, &silent));
    sensor_add_fact(&lost, "uuid", "GPU-1");
    sensor_add_fact(&same, "uuid", "GPU-2");
    assert_false(identity_continues(&lost, &same));
    silent.channels[0].wraps_at = 7;
    assert_false(identity_continues(&lost, &silent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_card_is_measured_once),
        cmocka_unit_test(another_card_does_not_replace_the_lost_one),
        cmocka_unit_test(bus_addresses_are_compared_in_any_format),
        cmocka_unit_test(cards_of_the_same_name_are_renumbered),
        cmocka_unit_test(other_devices_are_unchanged),
    };
    return RUN_TESTS(tests);
}
