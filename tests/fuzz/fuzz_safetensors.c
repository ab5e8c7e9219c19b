/* The headers of safetensors files: parsed, the model guessed, built and counted. */
#include "fuzz/fuzz.h"

#include "support/model_bytes.h"

static void run(const char *bytes, size_t length)
{
    const char *wrong = model_safetensors_exercise(bytes, length);
    if (wrong)
        fuzz_fail(wrong);
}

static void seeds(void)
{
    struct text file = {0};
    model_safetensors_add(&file);
    fuzz_seed_bytes(-1, file.bytes, file.length);
    text_release(&file);
}

static const char *const WORDS[] = {
    "{",    "}",       "[]",  "\"dtype\"",    "\"shape\"", "\"data_offsets\"",
    "BF16", "F8_E4M3", "I64", "__metadata__", "weight",    NULL};

const struct fuzz_target fuzz_safetensors = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
