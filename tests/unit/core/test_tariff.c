#include "support/unit.h"

#include "core/energy.h"

static const struct tariff ALL = {0.3, 400, 2};

static void check_charge(struct charge found, struct charge wanted)
{
    const double pairs[][2] = {{found.cost, wanted.cost},
                               {found.cost_plus_minus, wanted.cost_plus_minus},
                               {found.gco2e, wanted.gco2e},
                               {found.gco2e_plus_minus, wanted.gco2e_plus_minus}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(is_known(pairs[i][0]), is_known(pairs[i][1]));
        if (is_known(pairs[i][1]))
            assert_near(pairs[i][0], pairs[i][1], 1e-12);
    }
}

static void energy_is_charged_by_the_kilowatt_hour_and_devices_by_the_hour(void **state)
{
    (void)state;
    /* 7.2 MJ are 2 kWh, 1800 s half an hour. */
    check_charge(tariff_charge(&ALL, 7.2e6, 3.6e5, 1800), (struct charge){0.6 + 1, 0.03, 800, 40});
    assert_near(tariff_electricity(&ALL, 3.6e6), 0.3, 1e-12);
    assert_near(tariff_devices(&ALL, 7200), 4, 1e-12);
    assert_near(tariff_emissions(&ALL, 1.8e6), 200, 1e-12);
}

static void without_a_price_there_is_no_charge(void **state)
{
    (void)state;
    const struct tariff none = TARIFF_NONE, power = {0.3, UNKNOWN, UNKNOWN},
                        carbon = {UNKNOWN, 400, UNKNOWN}, devices = {UNKNOWN, UNKNOWN, 2},
                        nothing = {0, 0, 0};
    assert_false(tariff_given(&none));
    assert_true(tariff_given(&power) && tariff_given(&carbon) && tariff_given(&devices));
    assert_true(tariff_given(&nothing)); /* a price of 0 is a price */
    check_charge(tariff_charge(&none, 1, 1, 1), (struct charge)CHARGE_UNKNOWN);
    check_charge(tariff_charge(&power, 3.6e6, 3.6e4, UNKNOWN),
                 (struct charge){0.3, 0.003, UNKNOWN, UNKNOWN});
    check_charge(tariff_charge(&carbon, 3.6e6, 3.6e4, UNKNOWN),
                 (struct charge){UNKNOWN, UNKNOWN, 400, 4});
    check_charge(tariff_charge(&devices, UNKNOWN, UNKNOWN, 3600),
                 (struct charge){2, UNKNOWN, UNKNOWN, UNKNOWN});
    check_charge(tariff_charge(&nothing, 3.6e6, 3.6e4, 3600), (struct charge){0, 0, 0, 0});
}

static void an_unknown_amount_has_an_unknown_charge(void **state)
{
    (void)state;
    check_charge(tariff_charge(&ALL, UNKNOWN, UNKNOWN, 3600), (struct charge)CHARGE_UNKNOWN);
    check_charge(tariff_charge(&ALL, 3.6e6, 3.6e4, UNKNOWN),
                 (struct charge){UNKNOWN, UNKNOWN, 400, 4});
    check_charge(tariff_charge(&ALL, 3.6e6, UNKNOWN, 3600),
                 (struct charge){2.3, UNKNOWN, 400, UNKNOWN});
}

static void options_override_prices_individually(void **state)
{
    (void)state;
    struct tariff tariff = {0.3, 400, UNKNOWN};
    const struct tariff by = {UNKNOWN, 50, 0};
    tariff_override(&tariff, &by);
    assert_near(tariff.price_per_kwh, 0.3, 0);
    assert_near(tariff.gco2_per_kwh, 50, 0);
    assert_near(tariff.device_price_per_hour, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_is_charged_by_the_kilowatt_hour_and_devices_by_the_hour),
        cmocka_unit_test(without_a_price_there_is_no_charge),
        cmocka_unit_test(an_unknown_amount_has_an_unknown_charge),
        cmocka_unit_test(options_override_prices_individually),
    };
    return RUN_TESTS(tests);
}
