/* The saving of a setting in words, and the answer of ipw optimize as a result. */
#include "power/optimize_result.h"

#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "support/unit.h"

/* A choice of `best` over the baseline, which owns nothing. */
static struct clock_choice make_choice(struct optimize_point *best, double saving, double error,
                                       double slowdown, unsigned flags)
{
    return (struct clock_choice){.points = best,
                                 .count = 1,
                                 .baseline = optimize_point_unknown(),
                                 .is_recommended = true,
                                 .saving = saving,
                                 .saving_error = error,
                                 .slowdown = slowdown,
                                 .regret_mean = UNKNOWN,
                                 .regret_max = UNKNOWN,
                                 .thermal = {.resistance_c_per_w = UNKNOWN},
                                 .flags = flags};
}

/* The answer of ipw optimize in words; the caller releases the result. */
static const char *answer_of(const struct clock_choice *choice, const struct optimize_goal *goal,
                             struct result *result)
{
    struct optimize_result from = {.objective = "edp", .goal = goal, .choices = choice, .count = 1};
    optimize_result_fill(&from, result);
    return result_text_at(result->items, "view.answer");
}

static void savings_are_worded_by_their_certainty(void **state)
{
    static const struct {
        double saving, error, slowdown;
        unsigned flags;
        bool is_knob; /* "threads=4", against "threads=1" */
        const char *sentence, *brief;
    } CASES[] = {
        {0.28, 0.03, 0.01, 0, false,
         "1005 MHz uses 28.0 ± 3.0 % less energy per run than the highest clock measured, in 1.0 % "
         "more time.",
         "1005 MHz saves 28 ± 3 % energy, 1.0 % slower (EDP)"},
        {0.5, 0.004, -0.7, 0, true,
         "threads=4 uses 50.0 ± 0.4 % less energy per run than threads=1, in 70.0 % less time.",
         "threads=4 saves 50.0 ± 0.4 % energy against threads=1, 70.0 % less time (EDP)"},
        {-0.05, 0.02, -0.3, 0, true,
         "threads=4 uses 5.0 ± 2.0 % more energy per run than threads=1, in 30.0 % less time.",
         "threads=4 costs 5 ± 2 % energy against threads=1, 30.0 % less time (EDP)"},
        {0.28, UNKNOWN, 0.01, 0, false,
         "1005 MHz uses 28.0 % less energy per run than the highest clock measured, in 1.0 % more "
         "time (± unknown).",
         "1005 MHz saves 28.0 % energy (± unknown), 1.0 % slower (EDP)"},
        {0.28, UNKNOWN, 0.01, CHOICE_NO_REPEATS, true,
         "threads=4 used 28.0 % less energy per run than threads=1, in 1.0 % more time: one run "
         "each, which cannot be distinguished from noise (no repeats: `--repeat 3`).",
         "threads=4 measured 28.0 % less energy than threads=1, 1.0 % slower (EDP): cannot be "
         "distinguished from noise (no repeats: `ipw sweep --repeat 3`)"},
        {0, UNKNOWN, 0, CHOICE_STAY, false,
         "1005 MHz uses the least energy per run: no other setting that was measured saves any.",
         "1005 MHz, the highest clock measured, is the best (EDP)"},
        {0, UNKNOWN, 0, CHOICE_STAY | CHOICE_NO_REPEATS, true,
         "threads=4 used the least energy per run: one run each, which cannot be distinguished "
         "from noise (no repeats: `--repeat 3`).",
         "threads=4, the baseline, is the best (EDP): cannot be distinguished from noise (no "
         "repeats: `ipw sweep --repeat 3`)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct optimize_point best = optimize_point_unknown();
        struct optimize_goal goal = optimize_goal_edp();
        struct clock_choice choice =
            make_choice(&best, CASES[i].saving, CASES[i].error, CASES[i].slowdown, CASES[i].flags);
        struct text sentence = {0};
        struct result result = {0};
        best.freq_mhz = 1005;
        if (CASES[i].is_knob) {
            (void)str_copy(best.setting, sizeof best.setting, "threads=4");
            (void)str_copy(choice.baseline.setting, sizeof choice.baseline.setting, "threads=1");
        }
        optimize_saving_sentence(&choice, "run", &sentence);
        assert_string_equal(text_get(&sentence), CASES[i].sentence);
        assert_string_equal(answer_of(&choice, &goal, &result), CASES[i].brief);
        text_release(&sentence);
        result_release(&result);
    }
}

static void the_objective_is_named_by_its_exponent(void **state)
{
    static const struct {
        double exponent;
        const char *end;
    } CASES[] = {{0, "(energy)"}, {1, "(EDP)"}, {2, "(ED²P)"}, {1.5, "(energy × time^1.5)"}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct optimize_point best = optimize_point_unknown();
        struct clock_choice choice = make_choice(&best, 0.1, 0.02, 0.1, 0);
        struct optimize_goal goal = optimize_goal_edp();
        struct result result = {0};
        goal.time_exponent = CASES[i].exponent;
        assert_non_null(strstr(answer_of(&choice, &goal, &result), CASES[i].end));
        result_release(&result);
    }
}

static void clocks_are_applied_and_undone_on_the_measured_gpus(void **state)
{
    static const struct {
        const char *apply, *gpus, *command, *undo; /* NULL: null */
        unsigned flags;
    } CASES[] = {
        {NULL, NULL, "sudo nvidia-smi -lgc 1005,1005", "sudo nvidia-smi -rgc", 0},
        {NULL, "GPU-1", "sudo nvidia-smi -i GPU-1 -lgc 1005,1005", "sudo nvidia-smi -i GPU-1 -rgc",
         0},
        {"sudo nvidia-smi -lmc 1593,1593", NULL, "sudo nvidia-smi -lmc 1593,1593",
         "sudo nvidia-smi -rmc", 0},
        {"work --threads 4", NULL, "work --threads 4", NULL, 0},
        {NULL, NULL, NULL, NULL, CHOICE_STAY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct optimize_point best = optimize_point_unknown();
        struct optimize_goal goal = optimize_goal_edp();
        struct clock_choice choice = make_choice(&best, 0.1, 0.02, 0.1, CASES[i].flags);
        struct optimize_result from = {.objective = "edp",
                                       .goal = &goal,
                                       .choices = &choice,
                                       .count = 1,
                                       .apply = CASES[i].apply,
                                       .gpus = CASES[i].gpus};
        struct result result = {0};
        best.freq_mhz = 1005;
        optimize_result_fill(&from, &result);
        const char *command = result_string(result_find(&result, "recommended.command")),
                   *undo = result_string(result_find(&result, "recommended.undo"));
        assert_int_equal(command == NULL, CASES[i].command == NULL);
        assert_int_equal(undo == NULL, CASES[i].undo == NULL);
        assert_string_equal(command ? command : "", CASES[i].command ? CASES[i].command : "");
        assert_string_equal(undo ? undo : "", CASES[i].undo ? CASES[i].undo : "");
        result_release(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(savings_are_worded_by_their_certainty),
        cmocka_unit_test(the_objective_is_named_by_its_exponent),
        cmocka_unit_test(clocks_are_applied_and_undone_on_the_measured_gpus),
    };
    return RUN_TESTS(tests);
}
