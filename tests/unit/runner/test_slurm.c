/* The script of a Slurm job array, and values that it must not contain. */
#include "support/unit.h"

#include <string.h>

#include "core/text.h"
#include "runner/slurm.h"

static enum err write_script(const struct slurm_options *options, struct text *out,
                             struct error *why)
{
    static const size_t PARTS[] = {7, 2, 5};
    const struct slurm_array array = {.options = options,
                                      .name = "job",
                                      .logs = "/a b/logs",
                                      .parts = PARTS,
                                      .count = 3,
                                      .command = "ipw 'it'\\''s' --point ",
                                      .suffix = "/3"};
    return slurm_script(&array, out, why);
}

static void a_script_has_the_given_options(void **state)
{
    const char *const more[] = {"qos=high", "--exclusive"};
    const struct slurm_options options = {.partition = "gpu",
                                          .gres = "gpu:1",
                                          .time = "1:00:00",
                                          .account = "me",
                                          .nodes = 2,
                                          .array_limit = 4,
                                          .more = more,
                                          .more_count = 2};
    struct text out = {0};
    (void)state;
    assert_int_equal(write_script(&options, &out, NULL), ERR_OK);
    static const char *const LINES[] = {
        "#!/bin/bash\n#SBATCH ",     "#SBATCH --array=0-2%4\n",
        "#SBATCH --partition=gpu\n", "#SBATCH --gres=gpu:1\n",
        "#SBATCH --time=1:00:00\n",  "#SBATCH --account=me\n",
        "#SBATCH --nodes=2\n",       "#SBATCH --qos=high\n",
        "#SBATCH --exclusive\n",     "#SBATCH --output=\"/a b/logs/%A_%a.log\"\n",
        "\nparts=(7 2 5)\n"};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        assert_non_null(strstr(text_get(&out), LINES[i]));
    assert_non_null(strstr(text_get(&out), "\nexec ipw 'it'\\''s' --point "
                                           "\"${parts[SLURM_ARRAY_TASK_ID]}\"/3\n"));
    text_release(&out);
}

/* A value cannot end its line, nor begin another option. */
static void unsafe_options_are_rejected(void **state)
{
    static const char *const WRONG[] = {"", "a b", "a\nrm", "a\"b", "a'b", "a\\b", "a#b"};
    static const char *const OURS[] = {"",        "--",     "array=0-9", "--output=x",
                                       "chdir=/", "a b",    "arr=1",     "--a=1",
                                       "o=x",     "outp=x", "chd=/"};
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct text out = {0};
        struct error why = {0};
        assert_int_equal(write_script(&(struct slurm_options){.gres = WRONG[i]}, &out, &why),
                         ERR_USAGE);
        assert_non_null(strstr(why.text, "--gres"));
        text_release(&out);
    }
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++) {
        struct text out = {0};
        struct error why = {0};
        const struct slurm_options options = {.more = &OURS[i], .more_count = 1};
        assert_int_equal(write_script(&options, &out, &why), ERR_USAGE);
        assert_non_null(strstr(why.text, "--sbatch"));
        text_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_has_the_given_options),
        cmocka_unit_test(unsafe_options_are_rejected),
    };
    return RUN_TESTS(tests);
}
