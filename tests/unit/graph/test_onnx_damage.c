/* test: valgrind */
#include "core/text.h"
#include "support/damage.h"
#include "support/onnx_file.h"
#include "support/unit.h"

static void damaged_onnx_files_are_handled(void **state)
{
    (void)state;
    struct text file = {0};
    onnx_file_model(&file);
    damage_test(file.bytes, file.length, file.length, 20261, onnx_file_exercise);
    text_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_onnx_files_are_handled)};
    return RUN_TESTS(tests);
}
