/* The work of a workload, counted pass by pass as the engine computes it. */
#include <math.h>
#include <stdio.h>

#include "graph/gguf.h"
#include "runner/layers/layers.h"
#include "support/decoders.h"
#include "support/gguf_file.h"
#include "support/tree.h"
#include "support/unit.h"

/* The work of one pass by the formulas: FLOPs, and bytes with activations of 4 bytes and a cache of 2. */
static void add_formula(const struct decoder *decoder, struct graph_options options,
                        double work[DECODER_COMPONENT_COUNT][2])
{
    for (int layer = DECODER_OUTSIDE; layer < (int)decoder->layer_count; layer++)
        for (int c = 0; c < DECODER_COMPONENT_COUNT; c++) {
            struct decoder_figures one =
                decoders_cost(decoder, &options, layer, (enum decoder_component)c);
            work[c][0] += 2 * one.macs + one.elementwise;
            work[c][1] += one.weight_bytes + 4 * (one.in + one.out) +
                          2 * (one.cache_read + one.cache_written);
        }
    int64_t tokens = options.phase == GRAPH_DECODE ? 1 : options.tokens;
    work[DECODER_EMBEDDING][1] += 4 * (double)(tokens * options.batch); /* token ids */
}

static struct tree tree;
static char path[160];

/* Writes a model file; the caller releases the decoder. */
static struct decoder small_model(void)
{
    struct gguf_file file = {0};
    struct gguf gguf;
    struct decoder decoder;
    struct error why = {0};
    gguf_file_model(&file);
    tree_write_bytes(&tree, "/m.gguf", 0, text_get(&file.whole), file.whole.length);
    snprintf(path, sizeof path, "%s/m.gguf", tree.root);
    assert_int_equal(gguf_read("m", file.whole.bytes, file.whole.length, &gguf, &why), ERR_OK);
    assert_int_equal(decoder_read(&gguf, &decoder, &why), ERR_OK);
    gguf_close(&gguf);
    gguf_file_release(&file);
    return decoder;
}

/* 3 sequences in graphs of at most 8 tokens: 2 tokens of each.  Then 3 tokens after the prompt. */
static void test_work_is_the_sum_of_its_passes(void **state)
{
    (void)state;
    static struct layers_model model;
    tree_new(&tree);
    struct decoder decoder = small_model();
    model.path = path;
    model.settings[0] = (struct layers_setting){.phase = LAYERS_PREFILL, .prompt = 5};
    model.settings[1] = (struct layers_setting){.phase = LAYERS_DECODE, .prompt = 5};
    model.setting_count = 2;
    layers_count_work(&model, 3, 3, 8);
    assert_string_equal(model.work_unknown, "");
    double expected[LAYERS_PHASES][DECODER_COMPONENT_COUNT][2] = {0};
    for (int64_t done = 0; done < 5; done += 2)
        add_formula(
            &decoder,
            (struct graph_options){.phase = GRAPH_PREFILL,
                                   .batch = 3,
                                   .tokens = done < 4 ? 2 : 1,
                                   .cached = done,
                                   .pruning = done < 4 ? GRAPH_PRUNE_ALL : GRAPH_PRUNE_TO_LAST},
            expected[LAYERS_PREFILL]);
    for (int64_t context = 6; context <= 8; context++)
        add_formula(&decoder,
                    (struct graph_options){.phase = GRAPH_DECODE, .batch = 3, .context = context},
                    expected[LAYERS_DECODE]);
    for (int phase = 0; phase < LAYERS_PHASES; phase++) {
        for (int c = 0; c < DECODER_COMPONENT_COUNT; c++)
            for (int i = 0; i < 2; i++)
                assert_near(model.work[phase][c][i], expected[phase][c][i],
                            1e-12 * expected[phase][c][i]);
        assert_true(isnan(model.work[phase][LAYERS_WHOLE][0]));
    }
    decoder_release(&decoder);
    tree_free(&tree);
}

/* What cannot be counted is unknown, with the reason. */
static void test_uncountable_work_is_unknown(void **state)
{
    (void)state;
    static struct layers_model model;
    tree_new(&tree);
    tree_write(&tree, "/m.gguf", "GGUF");
    snprintf(path, sizeof path, "%s/m.gguf", tree.root);
    model = (struct layers_model){.path = path, .setting_count = 1};
    model.settings[0] = (struct layers_setting){.phase = LAYERS_PREFILL, .prompt = 5};
    layers_count_work(&model, 1, 1, 8);
    assert_contains(model.work_unknown, "m.gguf");
    for (int c = 0; c < LAYERS_COMPONENTS; c++)
        assert_true(isnan(model.work[LAYERS_PREFILL][c][0]) &&
                    isnan(model.work[LAYERS_DECODE][c][1]));
    tree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_is_the_sum_of_its_passes),
        cmocka_unit_test(test_uncountable_work_is_unknown),
    };
    return RUN_TESTS(tests);
}
