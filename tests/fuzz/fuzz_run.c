/* A run directory, through all commands that read runs. */
#include "fuzz/fuzz.h"

#include "support/run_files.h"

static void run(const char *bytes, size_t length)
{
    const char *wrong = run_files_exercise(bytes, length);
    if (wrong)
        fuzz_fail(wrong);
}

static void seeds(void)
{
    static const char *const RUNS[] = {"gpu-concurrent", "cpu-judged", "gpu-repeats"};
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        struct text files = {0};
        fuzz_check(run_files_add(&files, RUNS[i]));
        fuzz_seed_bytes(-1, files.bytes, files.length);
        text_release(&files);
    }
}

const struct fuzz_target fuzz_run = {.run = run, .seeds = seeds, .has_values = true};
