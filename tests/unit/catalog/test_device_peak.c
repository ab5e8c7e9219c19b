#include "support/unit.h"

#include "catalog/device_peak.h"
#include "core/units.h"

static const struct {
    const char *name;
    double tflops, gb_per_s; /* as published */
} KNOWN[] = {
    {"NVIDIA H100 80GB HBM3", 989.4, 3350},
    {"NVIDIA H100 PCIe", 756, 2039},
    {"NVIDIA H100 NVL", 835.5, 3938},
    {"NVIDIA H100 80GB HBM3 x8", 989.4, 3350},
    {"NVIDIA H200", 989.4, 4800},
    {"NVIDIA H200 NVL", 835.5, 4800},
    {"NVIDIA GH200 480GB", 989.4, 4000},
    {"NVIDIA GH200 144G HBM3e", 989.4, 4900},
    {"NVIDIA B200", 2250, 7672},
    {"NVIDIA GB200", 2500, 8000},
    {"NVIDIA A100-SXM4-40GB", 312, 1555},
    {"NVIDIA A100-SXM4-80GB", 312, 2039},
    {"NVIDIA A100-PCIE-40GB", 312, 1555},
    {"NVIDIA A100 80GB PCIe", 312, 1935},
    {"NVIDIA A100", 312, NAN},
    {"NVIDIA A10", 125, 600},
    {"NVIDIA A10G", 70, 600},
    {"NVIDIA A30", 165, 933},
    {"NVIDIA A40", 149.7, 696},
    {"NVIDIA L4", 121, 300},
    {"NVIDIA L40", 181.05, 864},
    {"NVIDIA L40S", 362.05, 864},
    {"Tesla T4", 65, 320},
    {"Tesla V100-SXM2-32GB", 125, 900},
    {"Tesla V100-PCIE-16GB", 112, 900},
    {"NVIDIA RTX A6000", 154.8, 768},
    {"NVIDIA RTX A5000", 111.1, 768},
    {"NVIDIA RTX 6000 Ada Generation", 364.2, 960},
    {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 503.8, 1792},
    {"NVIDIA GeForce RTX 5090", 209.5, 1792},
    {"NVIDIA GeForce RTX 5080", 112.6, 960},
    {"NVIDIA GeForce RTX 4090", 165.2, 1008},
    {"NVIDIA GeForce RTX 4090 D", 147.1, 1008},
    {"NVIDIA GeForce RTX 4080", 97.5, 716.8},
    {"NVIDIA GeForce RTX 4080 SUPER", 104.4, 736.3},
    {"NVIDIA GeForce RTX 4070", 58.3, 504.2},
    {"NVIDIA GeForce RTX 4070 Ti", 80.2, 504.2},
    {"NVIDIA GeForce RTX 4070 Ti SUPER", 88.2, 672.3},
    {"NVIDIA GeForce RTX 3090", 71, 936.2},
    {"NVIDIA GeForce RTX 3080", 59.5, NAN},
    {"NVIDIA Jetson AGX Orin Developer Kit", 42.5, 204.8},
    {"NVIDIA Jetson Orin Nano Developer Kit", 10, 68},
    {"NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super", 16.7, 102},
    {"NVIDIA Jetson Orin NX Engineering Reference Developer Kit", NAN, 102.4},
    {"AMD Instinct MI300X", 1307.4, 5300},
    {"AMD Instinct MI300X OAM", 1307.4, 5300},
    {"AMD Instinct MI325X", 1307.4, 6000},
    {"AMD INSTINCT MI250 (MCM) OAM AC MBA", 181, 1638.4},
    {"AMD Radeon RX 7900 XTX", 122.8, 960},
};

static void check_same(double value, double expected)
{
    assert_int_equal(is_known(value), is_known(expected));
    if (is_known(expected))
        assert_near(value, expected, 1e-9);
}

static void published_devices_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        struct device_peak peak;
        if (!device_peak_find(KNOWN[i].name, &peak))
            fail_msg("%s not found", KNOWN[i].name);
        check_same(peak.tflops, KNOWN[i].tflops);
        check_same(peak.gb_per_s, KNOWN[i].gb_per_s);
        assert_non_null(peak.source);
    }
}

static void other_products_do_not_match_a_known_device(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {
        "",
        "NVIDIA",
        "NVIDIA H100", /* three products with different peaks */
        "NVIDIA Graphics Device",
        "NVIDIA A1000",
        "NVIDIA A100X",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb", /* a partition of a device */
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3080 Laptop GPU",
        "NVIDIA GeForce RTX 2080 with Max-Q Design",
        "NVIDIA GeForce RTX 5090 D",
        "NVIDIA GeForce RTX 4050",
        "NVIDIA GeForce RTX 40",
        "Quadro RTX 6000", /* the Turing one, not the Ada one */
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "NVIDIA L400",
        "Radeon RX 7900 XT/7900 XTX",
        "AMD EPYC 9654 96-Core Processor",
        "NVIDIA L4 x888888888888888888888888888888", /* a longer word than in any device name */
        "L4 gpu gpu gpu gpu gpu gpu gpu gpu gpu gpu gpu gpu gpu gpu gpu gpu", /* more words than in any device name */
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct device_peak peak;
        if (device_peak_find(OTHERS[i], &peak))
            fail_msg("%s matched %s", OTHERS[i], peak.name);
        assert_false(is_known(peak.tflops));
        assert_false(is_known(peak.gb_per_s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_devices_are_found),
        cmocka_unit_test(other_products_do_not_match_a_known_device),
    };
    return RUN_TESTS(tests);
}
