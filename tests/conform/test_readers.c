/* test: valgrind */
/* Every model reader in the registry against the contract of graph/reader.h: it recognizes its own
 * format only, rejects damaged files with a one-line error, and builds graphs in topological order
 * with every default written back. */
#include "support/conform.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/count.h"
#include "graph/reader.h"
#include "port/file.h"
#include "port/json_read.h"
#include "support/gguf_file.h"
#include "support/model_bytes.h"
#include "support/tree.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", "/tmp/ipw-readers-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *const FILES[] = {"m.gguf", "config.json", "m.safetensors",
                                    "m.onnx", "m.bin",       "m.safetensors.index.json"};
enum { FILE_COUNT = sizeof FILES / sizeof *FILES };

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILE_COUNT; i++)
        unlink(path_of(FILES[i]));
    return rmdir(folder);
}

static void write_file(const char *name, const void *bytes, size_t length)
{
    FILE *file = fopen(path_of(name), "wb");
    if (!file) {
        fail();
        return;
    }
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* ---- registry ---- */

static void readers_are_well_formed(void **state)
{
    (void)state;
    assert_true(graph_reader_count() > 0);
    for (size_t i = 0; i < graph_reader_count(); i++) {
        const struct graph_reader *reader = graph_reader_at(i);
        CHECK(reader->name && reader->name[0], "a reader");
        for (const char *at = reader->name; *at; at++)
            CHECK(islower((unsigned char)*at) || *at == '_', reader->name);
        CHECK(reader->summary && reader->summary[0] && !strchr(reader->summary, '\n'),
              reader->name);
        CHECK(reader->probe && reader->open && reader->build, reader->name);
        CHECK(reader->close || !reader->state_size, reader->name);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(reader->name, graph_reader_at(k)->name) != 0, reader->name);
    }
}

static void unknown_names_have_no_reader(void **state)
{
    (void)state;
    static const char *const WORDS[] = {"", "/", "no such model", "/no/such/file.gguf", "."};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        struct model model;
        struct error why = {0};
        for (size_t k = 0; k < graph_reader_count(); k++)
            CHECK(graph_reader_at(k)->probe(WORDS[i], NULL, 0) == 0, graph_reader_at(k)->name);
        CHECK(model_open(WORDS[i], &model, &why) == ERR_NOT_FOUND, WORDS[i]);
        CHECK(why.text[0] && !strchr(why.text, '\n'), WORDS[i]);
        model_close(&model);
    }
}

/* ---- damaged files ---- */

/* Every reader opens the file, also those whose probe would not accept it. */
static void open_with_every_reader(const char *name)
{
    for (size_t i = 0; i < graph_reader_count(); i++) {
        const struct graph_reader *reader = graph_reader_at(i);
        struct model model;
        struct error why = {0};
        if (model_open_with(reader, path_of(name), &model, &why) == ERR_OK)
            model_close(&model);
        else
            CHECK(why.text[0] && !strchr(why.text, '\n'), reader->name);
    }
}

static void damaged_files_are_rejected(void **state)
{
    (void)state;
    struct gguf_file gguf = {0};
    struct text tensors = {0};
    gguf_file_model(&gguf);
    model_safetensors_add(&tensors);
    const char *config = model_config_text();
    const struct {
        const char *bytes;
        size_t length;
    } WHOLE[] = {{gguf.whole.bytes, gguf.whole.length},
                 {tensors.bytes, tensors.length},
                 {config, strlen(config)},
                 {"\0\0\0\0\0\0\0\0\0\0\0\0", 12},
                 {"{\"weight_map\": {\"a\": \"../a.safetensors\"}}", 40}};
    for (size_t i = 0; i < sizeof WHOLE / sizeof *WHOLE; i++)
        for (size_t k = 0; k < FILE_COUNT; k++)
            for (size_t cut = 0; cut < 4; cut++) {
                write_file(FILES[k], WHOLE[i].bytes, WHOLE[i].length * cut / 3);
                open_with_every_reader(FILES[k]);
                unlink(path_of(FILES[k]));
            }
    text_release(&tensors);
    gguf_file_release(&gguf);
}

/* ---- valid models ---- */

static void check_order(const struct graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        for (size_t k = 0; k < node->input_count; k++) {
            const struct graph_tensor *tensor = graph_input(graph, node, k);
            CHECK(!tensor || tensor->producer == GRAPH_NONE || tensor->producer < (node_id)i, name);
        }
        for (size_t k = 0; k < node->output_count; k++)
            CHECK(graph_output(graph, node, k)->producer == (node_id)i, name);
    }
}

static void check_graph(const struct graph *graph, const char *name)
{
    struct graph_cost cost = graph_cost_total(graph);
    size_t outputs = 0;
    for (size_t i = 0; i < graph->tensor_count; i++)
        outputs += graph->tensors[i].is_output;
    CHECK(graph->name[0] && graph->node_count > 0 && outputs > 0, name);
    CHECK(graph->batch > 0 && graph_parameters(graph) > 0, name);
    CHECK(isfinite(graph_flops(&cost)) && cost.macs > 0, name);
    check_order(graph, name);
}

static struct graph_options check_options(const struct model *model, struct graph_options setting)
{
    struct graph first, again;
    struct error why = {0};
    if (model_graph(model, &setting, &first, &why))
        fail_msg("%s: %s", model->name, why.text);
    check_graph(&first, model->name);
    CHECK(setting.batch > 0, model->name);
    /* The options as written back give the same graph. */
    CHECK(model_graph(model, &setting, &again, &why) == ERR_OK, model->name);
    CHECK(first.node_count == again.node_count && first.tensor_count == again.tensor_count,
          model->name);
    CHECK(graph_cost_total(&first).macs == graph_cost_total(&again).macs, model->name);
    graph_release(&first);
    graph_release(&again);
    return setting;
}

static double macs_of(const struct model *model, struct graph_options setting)
{
    struct graph graph;
    struct error why = {0};
    CHECK(model_graph(model, &setting, &graph, &why) == ERR_OK, model->name);
    double macs = graph_cost_total(&graph).macs;
    graph_release(&graph);
    return macs;
}

static void check_rejected(const struct model *model, struct graph_options setting)
{
    struct graph graph;
    struct error why = {0};
    CHECK(model_graph(model, &setting, &graph, &why) != ERR_OK, model->name);
    CHECK(why.text[0] && !strchr(why.text, '\n'), model->name);
    CHECK(!graph.nodes && !graph.tensors, model->name);
}

static void check_model(const char *word, const char *reader)
{
    struct model model;
    struct error why = {0};
    if (model_open(word, &model, &why))
        fail_msg("%s: %s", word, why.text);
    assert_string_equal(model.reader->name, reader);
    CHECK(model.name[0] && strcmp(model.source, word) == 0, word);
    struct graph_options whole = check_options(&model, (struct graph_options){0});
    struct graph_options more = whole;
    more.batch *= 3;
    CHECK(macs_of(&model, more) == 3 * macs_of(&model, whole), word);
    check_rejected(&model, (struct graph_options){.batch = -1});
    check_rejected(&model, (struct graph_options){.batch = INT64_MAX});
    if (model.has_phases) {
        CHECK(whole.tokens > 0, word);
        struct graph_options step = {.phase = GRAPH_DECODE};
        CHECK(check_options(&model, step).context > 0, word);
        struct graph_options prefill = {.phase = GRAPH_PREFILL};
        CHECK(macs_of(&model, prefill) > macs_of(&model, step), word);
        check_rejected(&model, (struct graph_options){.tokens = -1});
        check_rejected(&model, (struct graph_options){.tokens = INT64_MAX});
        check_rejected(&model, (struct graph_options){.phase = GRAPH_DECODE, .context = INT64_MAX});
    } else {
        check_rejected(&model, (struct graph_options){.phase = GRAPH_DECODE});
    }
    model_close(&model);
    CHECK(!model.reader && !model.state, word);
}

static void valid_models_are_read(void **state)
{
    (void)state;
    struct gguf_file gguf = {0};
    gguf_file_model(&gguf);
    write_file("m.gguf", gguf.whole.bytes, gguf.whole.length);
    check_model(path_of("m.gguf"), "gguf");
    gguf_file_release(&gguf);
    static const char *const NAMES[] = {
        "resnet18",    "gpt2", "bert-base-uncased", "vit_b_16", "HuggingFaceTB/SmolLM2-135M",
        "mixtral-8x7b"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        check_model(NAMES[i], "zoo");
}

static void hugging_face_models_are_read(void **state)
{
    (void)state;
    static const char *const CONFIGS[] = {
        "{\"model_type\": \"gpt2\", \"n_embd\": 32, \"n_layer\": 2, \"n_head\": 2,"
        " \"n_positions\": 64, \"vocab_size\": 50}",
        "{\"model_type\": \"bert\", \"hidden_size\": 32, \"num_hidden_layers\": 2,"
        " \"num_attention_heads\": 2, \"intermediate_size\": 64, \"vocab_size\": 50}",
        "{\"model_type\": \"vit\", \"hidden_size\": 32, \"num_hidden_layers\": 2,"
        " \"num_attention_heads\": 2, \"intermediate_size\": 64, \"image_size\": 64}"};
    struct text tensors = {0};
    model_safetensors_add(&tensors);
    write_file("m.safetensors", tensors.bytes, tensors.length);
    check_model(path_of("m.safetensors"), "safetensors");
    text_release(&tensors);
    unlink(path_of("m.safetensors"));
    write_file("config.json", model_config_text(), strlen(model_config_text()));
    check_model(path_of("config.json"), "hf_config");
    for (size_t i = 0; i < sizeof CONFIGS / sizeof *CONFIGS; i++) {
        write_file("config.json", CONFIGS[i], strlen(CONFIGS[i]));
        check_model(folder, "hf_config");
    }
}

static void long_paths_are_read(void **state)
{
    (void)state;
    static const char INDEX[] = "{\"weight_map\": {\"a\": \"m.safetensors\"}}";
    struct tree tree;
    struct text tensors = {0};
    struct error why = {0};
    tree_new(&tree);
    char *deep = tree_deep(&tree, 1600);
    char *config = path_join(deep, "config.json"), *weights = path_join(deep, "m.safetensors");
    char *index = path_join(deep, "model.safetensors.index.json");
    assert_int_equal(output_put(config, model_config_text(), strlen(model_config_text()), &why),
                     ERR_OK);
    check_model(config, "hf_config");
    check_model(deep, "hf_config");
    unlink(config);
    model_safetensors_add(&tensors);
    assert_int_equal(output_put(weights, tensors.bytes, tensors.length, &why), ERR_OK);
    check_model(weights, "safetensors");
    assert_int_equal(output_put(index, INDEX, strlen(INDEX), &why), ERR_OK);
    check_model(index, "safetensors");
    check_model(deep, "safetensors");
    text_release(&tensors);
    free(config);
    free(weights);
    free(index);
    free(deep);
    tree_free(&tree);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_are_well_formed), cmocka_unit_test(unknown_names_have_no_reader),
        TEST(damaged_files_are_rejected),          TEST(valid_models_are_read),
        TEST(hugging_face_models_are_read),        TEST(long_paths_are_read),
    };
    return RUN_TESTS(tests);
}
