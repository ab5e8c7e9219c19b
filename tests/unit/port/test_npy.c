/* NumPy's files: types, shapes and damage.  tests/fixtures/workloads has files that NumPy wrote. */
#include "support/unit.h"

#include "core/text.h"
#include "port/npy.h"

/* A file of version 1 with this dictionary, and its numbers. */
static enum err parse(const char *dictionary, const void *numbers, size_t size, struct npy *out,
                      struct error *why)
{
    struct text file = {0};
    size_t length = strlen(dictionary);
    text_add_bytes(&file, "\x93NUMPY\x01\x00", 8);
    text_add_bytes(&file, (char[]){(char)(length & 0xFF), (char)(length >> 8)}, 2);
    text_add(&file, dictionary);
    text_add_bytes(&file, numbers, size);
    enum err err = npy_parse(file.bytes, file.length, out, why);
    text_release(&file);
    return err;
}

static void numbers_of_all_sizes_are_read(void **state)
{
    (void)state;
    static const double DOUBLES[] = {1, -2.5, 1e-3, 4, 5, 6};
    static const float FLOATS[] = {1, -2.5F, 1e-3F, 4, 5, 6};
    static const uint16_t HALVES[] = {0x3C00, 0xC100, 0x1419, 0x4400, 0x4500, 0x4600};
    static const struct {
        const char *type;
        const void *numbers;
        size_t size;
        float third;
    } CASES[] = {
        {"<f8", DOUBLES, sizeof DOUBLES, 1e-3F},
        {"<f4", FLOATS, sizeof FLOATS, 1e-3F},
        {"<f2", HALVES, sizeof HALVES, 0x1.064p-10F},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct npy npy;
        struct error why = {0};
        char dictionary[128];
        snprintf(dictionary, sizeof dictionary,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }\n", CASES[i].type);
        assert_int_equal(parse(dictionary, CASES[i].numbers, CASES[i].size, &npy, &why), ERR_OK);
        assert_int_equal(npy.rank, 2);
        assert_int_equal(npy.shape[0], 2);
        assert_int_equal(npy.shape[1], 3);
        assert_int_equal(npy.count, 6);
        assert_true(npy.values[1] == -2.5F && npy.values[2] == CASES[i].third &&
                    npy.values[5] == 6);
        npy_release(&npy);
    }
}

static void what_is_written_can_be_read(void **state)
{
    (void)state;
    static const float VALUES[] = {1, -2, 3e-30F, 4};
    struct text file = {0};
    struct npy npy;
    struct error why = {0};
    npy_write(VALUES, (const int64_t[]){2, 1, 2}, 3, &file);
    assert_int_equal((file.length - sizeof VALUES) % 64, 0); /* as NumPy aligns the numbers */
    assert_int_equal(npy_parse(file.bytes, file.length, &npy, &why), ERR_OK);
    assert_int_equal(npy.rank, 3);
    assert_int_equal(npy.shape[1], 1);
    assert_memory_equal(npy.values, VALUES, sizeof VALUES);
    npy_release(&npy);
    text_release(&file);
}

static void files_of_numpy_are_read(void **state)
{
    (void)state;
    struct npy npy;
    struct error why = {0};
    struct text shape = {0};
    assert_int_equal(
        npy_read(IPW_FIXTURES "/workloads/schedulers/outputs.npy", 1 << 20, &npy, &why), ERR_OK);
    npy_add_shape(npy.shape, npy.rank, &shape);
    assert_string_equal(text_get(&shape), "(50, 6)");
    text_release(&shape);
    npy_release(&npy);
    assert_int_equal(npy_read("/nonexistent.npy", 1 << 20, &npy, &why), ERR_NOT_FOUND);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    static const char NUMBERS[8] = "";
    static const struct {
        const char *dictionary, *error;
    } CASES[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "truncated"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", "float32"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "float32"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "C order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000,2000000000,16), }",
         "overflows"},
        {"{'descr': '<f4', 'fortran_order': False}", "no shape"},
        {"", "float32"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct npy npy;
        struct error why = {0};
        if (!parse(CASES[i].dictionary, NUMBERS, sizeof NUMBERS, &npy, &why) ||
            !strstr(why.text, CASES[i].error))
            fail_msg("%s: %s", CASES[i].dictionary, why.text);
    }
    struct npy npy;
    struct error why = {0};
    assert_int_equal(npy_parse("\x93NUMPY\x01\x00\xFF\xFF....", 14, &npy, &why), ERR_BAD_VALUE);
    assert_int_equal(npy_parse("", 0, &npy, &why), ERR_BAD_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_all_sizes_are_read),
        cmocka_unit_test(what_is_written_can_be_read),
        cmocka_unit_test(files_of_numpy_are_read),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return RUN_TESTS(tests);
}
