/* Precisions of quantized models by runtime: widths as in files and kernels, and the precision of compute. */
#include "estimate/runtime.h"

#include "estimate/roofline.h"
#include "support/devices.h"
#include "support/unit.h"

static const enum runtime_id LLM[] = {RUNTIME_VLLM, RUNTIME_TENSORRT, RUNTIME_TORCH_COMPILE,
                                      RUNTIME_LLAMA_CPP};
enum { LLM_COUNT = sizeof LLM / sizeof *LLM };

static const struct hardware *h200(void)
{
    return hardware_named("h200");
}

static const struct hardware *xeon(void)
{
    return hardware_named("xeon-8480");
}

static void test_ideal_runtime_uses_the_precision_itself(void **state)
{
    (void)state;
    for (enum precision p = 0; p < PRECISION_COUNT; p++) {
        struct number_format format = number_format(p, RUNTIME_IDEAL, h200());
        struct precision_widths widths = precision_widths(p);
        assert_near(format.widths.weight, widths.weight, 0);
        assert_near(format.head, widths.weight, 0);
        assert_int_equal(format.products, p);
        assert_int_equal(format.attention, p);
        assert_near(format.weight_ops, 0, 0);
    }
}

/* 32 weights of 4 bits and a 16-bit scale are 18 bytes: a block of q4_0. */
static void test_integer_precisions_quantize_weights_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < LLM_COUNT; i++) {
        struct number_format four = number_format(PRECISION_INT4, LLM[i], h200());
        assert_near(32 * four.widths.weight, 18, 1e-12);
        assert_near(four.widths.activation, 2, 0);
        assert_near(four.widths.cache, 2, 0);
        assert_int_equal(four.products, PRECISION_FP16);
        assert_true(four.weight_ops > 0);
        assert_near(four.head, LLM[i] == RUNTIME_LLAMA_CPP ? 6.5 / 8 : 2, 0);
        struct number_format eight = number_format(PRECISION_INT8, LLM[i], h200());
        bool is_multiplied = LLM[i] == RUNTIME_TENSORRT; /* W8A8 */
        assert_int_equal(eight.products, is_multiplied ? PRECISION_INT8 : PRECISION_FP16);
        assert_near(32 * eight.widths.weight, is_multiplied ? 32 : 34, 1e-12); /* q8_0 */
    }
}

static void test_fp8_is_computed_in_fp8_where_supported(void **state)
{
    (void)state;
    for (size_t i = 0; i < LLM_COUNT; i++) {
        struct number_format format = number_format(PRECISION_FP8, LLM[i], h200());
        assert_int_equal(format.products, PRECISION_FP8);
        assert_int_equal(format.attention, PRECISION_FP16);
        assert_near(format.weight_ops, 0, 0);
        assert_near(format.widths.activation, 2, 0);
        assert_near(format.widths.cache, 1, 0);
        for (enum precision p = PRECISION_FP64; p <= PRECISION_BF16; p++)
            assert_int_equal(number_format(p, LLM[i], h200()).attention, p);
    }
    static const struct {
        const char *device;
        enum precision used;
    } NATIVE[] = {{"h100-sxm", PRECISION_FP8},
                  {"h200", PRECISION_FP8},
                  {"rtx-4090", PRECISION_FP8},
                  {"mi300x", PRECISION_FP8},
                  {"a100-sxm-80gb", PRECISION_FP16}};
    for (size_t i = 0; i < sizeof NATIVE / sizeof *NATIVE; i++) {
        struct hardware hardware;
        struct rates eight, four;
        struct error why = {0};
        assert_int_equal(hardware_find(NATIVE[i].device, &hardware, &why), ERR_OK);
        assert_int_equal(rates_of(&hardware, PRECISION_FP8, RUNTIME_VLLM, &eight, &why), ERR_OK);
        assert_int_equal(rates_of(&hardware, PRECISION_INT4, RUNTIME_VLLM, &four, &why), ERR_OK);
        assert_int_equal(eight.used, NATIVE[i].used);
        assert_int_equal(four.used, PRECISION_FP16);
        assert_near(four.product_flops.value, hardware.matrix_flops[PRECISION_FP16].value, 0);
    }
}

/* NVFP4: 16 weights of 4 bits and an 8-bit scale are 9 bytes.  Elsewhere weights alone have 4 bits. */
static void test_fp4_is_computed_in_fp4_where_supported(void **state)
{
    (void)state;
    const struct hardware *b200 = hardware_named("b200");
    static const enum runtime_id NATIVE[] = {RUNTIME_VLLM, RUNTIME_TENSORRT, RUNTIME_TORCH_COMPILE};
    for (size_t i = 0; i < sizeof NATIVE / sizeof *NATIVE; i++) {
        struct number_format format = number_format(PRECISION_FP4, NATIVE[i], b200);
        assert_int_equal(format.products, PRECISION_FP4);
        assert_int_equal(format.attention, PRECISION_FP16);
        assert_true(format.is_native);
        assert_near(16 * format.widths.weight, 9, 1e-12);
        assert_near(format.widths.activation, 2, 0);
        struct number_format converted = number_format(PRECISION_FP4, NATIVE[i], h200());
        assert_int_equal(converted.products, PRECISION_FP16);
        assert_true(converted.weight_ops > 0 && !converted.is_native);
    }
    assert_int_equal(number_format(PRECISION_FP4, RUNTIME_LLAMA_CPP, b200).products,
                     PRECISION_FP16);
    assert_int_equal(number_format(PRECISION_INT4, RUNTIME_VLLM, b200).products, PRECISION_FP16);
}

/* The CPU execution provider has no kernels for other floating-point types. */
static void test_onnx_runtime_computes_floats_in_fp32_on_a_cpu(void **state)
{
    (void)state;
    static const struct {
        enum precision precision, used;
    } ALL[] = {{PRECISION_FP32, PRECISION_FP32},
               {PRECISION_FP16, PRECISION_FP32},
               {PRECISION_BF16, PRECISION_FP32},
               {PRECISION_FP8, PRECISION_FP32},
               {PRECISION_INT8, PRECISION_INT8}};
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        struct number_format format = number_format(ALL[i].precision, RUNTIME_ONNXRUNTIME, xeon());
        assert_int_equal(format.products, ALL[i].used);
        assert_near(format.widths.weight, precision_widths(ALL[i].used).weight, 0);
        assert_near(format.widths.activation, precision_widths(ALL[i].used).activation, 0);
        assert_int_equal(number_format(ALL[i].precision, RUNTIME_LLAMA_CPP, xeon()).products,
                         ALL[i].precision);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ideal_runtime_uses_the_precision_itself),
        cmocka_unit_test(test_integer_precisions_quantize_weights_only),
        cmocka_unit_test(test_fp8_is_computed_in_fp8_where_supported),
        cmocka_unit_test(test_fp4_is_computed_in_fp4_where_supported),
        cmocka_unit_test(test_onnx_runtime_computes_floats_in_fp32_on_a_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
