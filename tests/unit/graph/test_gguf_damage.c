#include "support/damage.h"
#include "support/gguf_file.h"
#include "support/unit.h"

static void test_damage(void **state)
{
    (void)state;
    struct gguf_file file = {0};
    gguf_file_model(&file);
    size_t header = 2048; /* where the mutations are worth the most */
    assert_true(header < file.whole.length);
    damage_test(file.whole.bytes, file.whole.length, header, 20240, gguf_file_exercise);
    gguf_file_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damage)};
    return RUN_TESTS(tests);
}
