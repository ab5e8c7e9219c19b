/* test: valgrind */
#include "support/damage.h"
#include "support/gguf_file.h"
#include "support/unit.h"

static void damaged_gguf_files_are_handled(void **state)
{
    (void)state;
    struct gguf_file file = {0};
    gguf_file_model(&file);
    size_t header = 2048; /* the part of the file that is mutated most */
    assert_true(header < file.whole.length);
    damage_test(file.whole.bytes, file.whole.length, header, 20240, gguf_file_exercise);
    gguf_file_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_gguf_files_are_handled)};
    return RUN_TESTS(tests);
}
