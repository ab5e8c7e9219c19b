/* GGUF files: parsed, traversed and counted as a decoder. */
#include "fuzz/fuzz.h"

#include "support/gguf_file.h"

static void run(const char *bytes, size_t length)
{
    const char *wrong = gguf_file_exercise(bytes, length);
    if (wrong)
        fuzz_fail(wrong);
}

static void seeds(void)
{
    struct gguf_file file = {0};
    gguf_file_model(&file);
    fuzz_seed_bytes(-1, file.whole.bytes, file.whole.length);
    gguf_file_release(&file);
}

static const char *const WORDS[] = {
    "GGUF",        "general.architecture", "general.alignment",    "llama",
    "block_count", "expert_count",         "attention.head_count", "context_length",
    "blk.0",       "attn_q.weight",        "output.weight",        NULL};

const struct fuzz_target fuzz_gguf = {.run = run, .seeds = seeds, .words = WORDS};
