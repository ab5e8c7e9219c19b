/* Models by their path: the format is recognized by its first bytes, and the files of a folder are found through each
 * other. */
#include "fuzz/fuzz.h"

#include "graph/reader.h"
#include "support/gguf_file.h"
#include "support/model_bytes.h"
#include "support/onnx_file.h"

static const struct {
    const char *file, *source;
} KINDS[] = {
    {"m/config.json", "m"},
    {"m/model.safetensors.index.json", "m/model.safetensors.index.json"},
    {"s/model.safetensors", "s/model.safetensors"},
    {"any", "any"},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static void run(const char *bytes, size_t length)
{
    unsigned kind = fuzz_choose(&bytes, &length, KIND_COUNT);
    char source[256];
    struct model model;
    struct graph graph = {0};
    struct error why = {0};
    fuzz_file(KINDS[kind].file, bytes, length);
    str_format(source, sizeof source, "%s/%s", fuzz_folder(), KINDS[kind].source);
    enum err err = model_open(source, &model, &why);
    fuzz_check_error(err, &why);
    if (err)
        return;
    struct graph_options options = {.batch = 1};
    err = model_graph(&model, &options, &graph, &why);
    fuzz_check_error(err, &why);
    if (!err)
        graph_release(&graph);
    model_close(&model);
}

static void seeds(void)
{
    struct text file = {0};
    struct gguf_file gguf = {0};
    fuzz_seed(0, model_config_text());
    fuzz_seed(
        1, "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a.weight\":\"model-1.safetensors\","
           "\"b.weight\":\"../s/model.safetensors\"}}");
    model_safetensors_add(&file);
    fuzz_seed_bytes(2, file.bytes, file.length);
    text_clear(&file);
    onnx_file_model(&file);
    fuzz_seed_bytes(3, file.bytes, file.length);
    text_release(&file);
    gguf_file_model(&gguf);
    fuzz_seed_bytes(3, gguf.whole.bytes, gguf.whole.length);
    gguf_file_release(&gguf);
}

static const char *const WORDS[] = {
    "\"weight_map\"", "\"model_type\"", "GGUF", "null", "[1]", "{}", NULL};

const struct fuzz_target fuzz_model_files = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
