/* ONNX files: parsed, shapes inferred, counted and drawn. */
#include "fuzz/fuzz.h"

#include "support/onnx_file.h"

static void run(const char *bytes, size_t length)
{
    const char *wrong = onnx_file_exercise(bytes, length);
    if (wrong)
        fuzz_fail(wrong);
}

static void seeds(void)
{
    struct text file = {0};
    onnx_file_model(&file);
    fuzz_seed_bytes(-1, file.bytes, file.length);
    text_release(&file);
}

static const char *const WORDS[] = {"Conv",  "MatMul", "Gemm",   "Reshape", "Shape",  "Gather",
                                    "Slice", "Concat", "Resize", "Loop",    "If",     "LSTM",
                                    "GRU",   "Expand", "Tile",   "Pad",     "Einsum", "perm",
                                    "axis",  "axes",   "pads",   "starts",  "ends",   NULL};

const struct fuzz_target fuzz_onnx = {.run = run, .seeds = seeds, .words = WORDS};
