/* Prompts have the requested length, and no two share a prefix. */
#include "support/unit.h"

#include "support/items.h"

static unsigned count_words(const char *text)
{
    unsigned words = *text != '\0';
    for (; *text; text++)
        words += *text == ' ';
    return words;
}

static void prompts_have_the_requested_number_of_words(void **state)
{
    (void)state;
    static const unsigned LENGTHS[] = {1, 2, 100, 5000};
    for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
        struct items items;
        char expected[80];
        assert_int_equal(
            items_read(&items, "fixed_length", "prompt_length=%u, output_length=7", LENGTHS[i]),
            ERR_OK);
        assert_int_equal(items.count, 8);
        assert_int_equal(items.reported, 8);
        snprintf(expected, sizeof expected, "{\"prompt_length\":%u,\"output_length\":7,",
                 LENGTHS[i]);
        for (size_t j = 0; j < items.count; j++) {
            assert_int_equal(count_words(items.all[j].problem), LENGTHS[i]);
            assert_contains(item_metadata_text(&items.all[j]), expected);
            assert_int_equal(items.all[j].output_length, 7);
            assert_string_equal(items.all[j].answer, "");
        }
        items_release(&items);
    }
}

static void prompts_differ_in_their_first_word(void **state)
{
    (void)state;
    struct items items;
    assert_int_equal(items_read(&items, "fixed_length", "num_samples=100, prompt_length=20"),
                     ERR_OK);
    for (size_t i = 0; i < items.count; i++)
        for (size_t j = 0; j < i; j++) {
            const char *a = items.all[i].problem, *b = items.all[j].problem;
            size_t length = strcspn(a, " ");
            assert_false(strcspn(b, " ") == length && strncmp(a, b, length) == 0);
        }
    items_release(&items);
}

static void length_can_be_given_in_characters(void **state)
{
    (void)state;
    struct items items;
    assert_int_equal(items_read(&items, "fixed_length", "chars_per_token=5, num_samples=50"),
                     ERR_OK);
    for (size_t i = 0; i < items.count; i++) {
        assert_int_equal(strlen(items.all[i].problem), 500);
        assert_int_not_equal(items.all[i].problem[499], ' ');
        assert_contains(item_metadata_text(&items.all[i]),
                        "\"counted_in\":\"characters\",\"chars_per_token\":5");
    }
    items_release(&items);
}

static void out_of_range_lengths_are_rejected(void **state)
{
    (void)state;
    static const char *const WRONG[] = {"prompt_length=0", "prompt_length=99999999",
                                        "num_samples=0", "chars_per_token=65", "seed=x"};
    struct items items;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        assert_int_equal(items_read(&items, "fixed_length", "%s", WRONG[i]), ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_have_the_requested_number_of_words),
        cmocka_unit_test(prompts_differ_in_their_first_word),
        cmocka_unit_test(length_can_be_given_in_characters),
        cmocka_unit_test(out_of_range_lengths_are_rejected),
    };
    return RUN_TESTS(tests);
}
