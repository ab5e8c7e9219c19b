/* Invariants of every graph of the zoo: names, connections, batches; and lookup by name. */
#include <math.h>
#include <stdlib.h>

#include "catalog/model.h"
#include "core/jv.h"
#include "core/units.h"
#include "graph/count.h"
#include "graph/zoo/zoo.h"
#include "support/unit.h"

static struct graph build(const struct zoo_entry *entry, struct graph_options *options)
{
    struct graph graph = {0};
    struct error why = {0};
    if (zoo_build(entry, options, &graph, &why) != ERR_OK) {
        print_error("%s: %s\n", entry->name, why.text);
        fail();
    }
    return graph;
}

/* ---- graphs ---- */

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_names(const struct zoo_entry *entry, const struct graph *graph)
{
    const char **names = malloc(graph->node_count * sizeof *names);
    assert_non_null(names);
    for (size_t i = 0; i < graph->node_count; i++)
        names[i] = graph->nodes[i].name;
    qsort(names, graph->node_count, sizeof *names, compare_strings);
    for (size_t i = 1; i < graph->node_count; i++)
        if (!strcmp(names[i - 1], names[i])) {
            print_error("%s has two nodes %s\n", entry->name, names[i]);
            fail();
        }
    free(names);
}

/* Each activation is read or an output, each input and parameter is read: otherwise the graph is
 * wired wrongly. */
static void check_wiring(const struct zoo_entry *entry, const struct graph *graph, bool has_unread)
{
    bool *is_read = calloc(graph->tensor_count, sizeof *is_read);
    assert_non_null(is_read);
    for (size_t i = 0; i < graph->node_count; i++)
        for (size_t k = 0; k < graph->nodes[i].input_count; k++) {
            tensor_id id = graph_inputs(graph, &graph->nodes[i])[k];
            if (id == GRAPH_NONE) /* an optional input before one that it has */
                continue;
            assert_true(id >= 0);
            assert_true(graph->tensors[id].producer < (node_id)i);
            is_read[id] = true;
        }
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct graph_tensor *tensor = &graph->tensors[i];
        bool may_be_unread = tensor->role == GRAPH_CACHE || tensor->is_output ||
                             (has_unread && tensor->role == GRAPH_PARAMETER);
        if (!is_read[i] && !may_be_unread) {
            print_error("%s: nothing reads %s\n", entry->name, tensor->name);
            fail();
        }
    }
    free(is_read);
}

static void check_output(const struct graph *graph)
{
    size_t outputs = 0;
    for (size_t i = 0; i < graph->tensor_count; i++)
        outputs += graph->tensors[i].is_output;
    assert_true(outputs > 0);
}

static void test_every_graph_is_connected(void **state)
{
    (void)state;
    for (size_t i = 0; i < zoo_count(); i++)
        for (int phase = GRAPH_FORWARD; phase <= GRAPH_DECODE; phase++) {
            const struct zoo_entry *entry = zoo_at(i);
            struct graph_options options = {.phase = (enum graph_phase)phase};
            if (phase == GRAPH_DECODE && !zoo_has_phases(entry))
                continue;
            struct graph graph = build(entry, &options);
            check_names(entry, &graph);
            /* Decode does not read Whisper's encoder; an auxiliary head is never read. */
            bool has_unread = phase == GRAPH_DECODE || !strcmp(entry->name, "inception_v3");
            check_wiring(entry, &graph, has_unread);
            check_output(&graph);
            assert_int_equal(graph.unknown_count, 0);
            assert_string_equal(graph.name, entry->name);
            graph_release(&graph);
        }
}

/* Sanitizers and valgrind see every builder in test_every_graph_is_connected. */
static size_t zoo_step(void)
{
    return test_is_instrumented() ? 8 : 1;
}

static void test_defaults_are_written_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < zoo_count(); i += zoo_step()) {
        const struct zoo_entry *entry = zoo_at(i);
        struct graph_options options = {0};
        struct graph graph = build(entry, &options);
        assert_int_equal(options.batch, 1);
        assert_int_equal(options.image, entry->image);
        assert_int_equal(options.tokens, entry->tokens);
        assert_int_equal(options.context, entry->context);
        assert_true(graph.batch == 1);
        assert_true(graph.tokens == (double)entry->tokens);
        assert_true(entry->image > 0 || entry->tokens > 0);
        graph_release(&graph);
    }
}

/* Operations and activations scale with the batch; weights are read once. Swin v2 computes its
 * relative position bias once for all samples. */
static void test_batch_scales_costs(void **state)
{
    (void)state;
    for (size_t i = 0; i < zoo_count(); i += zoo_step()) {
        double once = strncmp(zoo_at(i)->name, "swin_v2", 7) == 0 ? 0.01 : 0;
        struct graph_options single = {0}, several = {.batch = 5};
        struct graph one = build(zoo_at(i), &single), five = build(zoo_at(i), &several);
        struct graph_cost cost = graph_cost_total(&one), of_five = graph_cost_total(&five);
        assert_near(of_five.macs, 5 * cost.macs, 5 * once * cost.macs);
        assert_near(of_five.out.cached, 5 * cost.out.cached, 0);
        assert_true(of_five.elementwise > (4.99 - 20 * once) * cost.elementwise);
        assert_true(of_five.elementwise <= 5 * cost.elementwise);
        assert_near(graph_parameters(&five), graph_parameters(&one), 0);
        /* Only rows of tables depend on the number of tokens. */
        assert_true(of_five.weights.weights >= cost.weights.weights);
        assert_true(zoo_at(i)->tokens > 0 || of_five.weights.weights == cost.weights.weights);
        graph_release(&one);
        graph_release(&five);
    }
}

static void test_transformer_nodes_have_layers_and_components(void **state)
{
    (void)state;
    struct graph_options options = {0};
    struct graph graph = build(zoo_find("bert-base"), &options);
    double by_component[DECODER_COMPONENT_COUNT + 1] = {0};
    int seen[12] = {0};
    for (size_t i = 0; i < graph.node_count; i++) {
        const struct graph_node *node = &graph.nodes[i];
        by_component[node->component] += graph_node_cost(&graph, node).macs;
        assert_true(node->layer >= -1 && node->layer < 12);
        if (node->layer >= 0)
            seen[node->layer]++;
    }
    for (int layer = 0; layer < 12; layer++)
        assert_int_equal(seen[layer], 12);
    assert_near(by_component[DECODER_ATTN_QKV], 12.0 * 128 * 3 * 768 * 768, 0);
    assert_near(by_component[DECODER_ATTN_SCORES], 12.0 * 2 * 128 * 128 * 768, 0);
    assert_near(by_component[DECODER_ATTN_OUT], 12.0 * 128 * 768 * 768, 0);
    assert_near(by_component[DECODER_FFN_GATE_UP], 12.0 * 128 * 768 * 3072, 0);
    assert_near(by_component[DECODER_FFN_DOWN], 12.0 * 128 * 768 * 3072, 0);
    assert_near(by_component[DECODER_HEAD], 768.0 * 768, 0); /* the pooler */
    assert_near(by_component[DECODER_COMPONENT_COUNT], 0, 0);
    graph_release(&graph);
}

static bool has_node(const struct graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (!strcmp(graph->nodes[i].name, name))
            return true;
    return false;
}

static void test_nodes_are_named_like_modules(void **state)
{
    (void)state;
    static const struct {
        const char *model, *nodes[3];
    } NAMES[] = {
        {"resnet18", {"layer1.0.conv1", "layer4.1.bn2", "layer2.0.downsample.0"}},
        {"mobilenet_v2", {"features.0.0", "features.18.1", "features.17.conv.3"}},
        {"mobilenet_v3_large", {"features.4.block.2.fc1", "features.16.0", "classifier.3"}},
        {"efficientnet_b0", {"features.1.0.block.1.fc2", "features.7.0.block.3.1", "features.8.2"}},
        {"vgg16", {"features.28", "features.30", "classifier.6"}},
        {"vit_b_16", {"conv_proj", "encoder.layers.encoder_layer_11.mlp.3", "heads.head"}},
        {"bert-base-uncased",
         {"encoder.layer.0.attention.self.query", "embeddings.word_embeddings", "pooler.dense"}},
        {"gpt2", {"transformer.h.11.attn.c_attn", "transformer.ln_f", "lm_head"}},
        {"whisper-base",
         {"model.encoder.conv2", "model.decoder.layers.5.encoder_attn.q_proj", "proj_out"}},
        {"stable-diffusion-1.5-unet",
         {"down_blocks.2.attentions.1.transformer_blocks.0.attn2.to_k", "mid_block.resnets.1.conv2",
          "up_blocks.3.resnets.2.time_emb_proj"}},
        {"yolov8n", {"model.22.cv3.2.2", "model.4.m.1.cv2.conv", "model.9.cv2.bn"}},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        struct graph_options options = {0};
        struct graph graph = build(zoo_find(NAMES[i].model), &options);
        for (int k = 0; k < 3; k++)
            if (!has_node(&graph, NAMES[i].nodes[k])) {
                print_error("%s has no node %s\n", NAMES[i].model, NAMES[i].nodes[k]);
                fail();
            }
        graph_release(&graph);
    }
}

/* ---- rejected options ---- */

static void test_options_out_of_range_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
        struct graph_options options;
    } REJECTED[] = {
        {"resnet50", "batch of -1", {.batch = -1}},
        {"resnet50", "batch of 4000000000", {.batch = INT64_C(4000000000)}},
        {"resnet50", "no decode", {.phase = GRAPH_DECODE}},
        {"alexnet", "too small", {.image = 8}},
        {"vit_b_16", "multiple of its patch size 16", {.image = 230}},
        {"yolov8n", "multiple of 32", {.image = 650}},
        {"stable-diffusion-1.5-unet", "multiple of 64", {.image = 520}},
        {"bert-base-uncased", "512 positions, too few for 513 tokens", {.tokens = 513}},
        {"gpt2",
         "1024 positions, too few for 1025 tokens",
         {.phase = GRAPH_DECODE, .context = 1025}},
        {"whisper-base", "448 positions", {.tokens = 449}},
        {"stable-diffusion-1.5-text-encoder", "77 positions", {.tokens = 78}},
    };
    for (size_t i = 0; i < sizeof REJECTED / sizeof *REJECTED; i++) {
        struct graph_options options = REJECTED[i].options;
        struct graph graph = {0};
        struct error why = {0};
        assert_int_not_equal(zoo_build(zoo_find(REJECTED[i].name), &options, &graph, &why), ERR_OK);
        assert_contains(why.text, REJECTED[i].says);
        assert_contains(why.text, REJECTED[i].name);
        assert_null(graph.nodes);
    }
}

/* ---- names ---- */

static void test_aliases_resolve_to_their_model(void **state)
{
    (void)state;
    static const char *const SAME[][2] = {
        {"resnet-50", "resnet50"},
        {"microsoft/resnet-50", "resnet50"},
        {"ResNet50", "resnet50"},
        {"google/vit-base-patch16-224", "vit_b_16"},
        {"vit-b-16", "vit_b_16"},
        {"google-bert/bert-base-uncased", "bert-base-uncased"},
        {"bert-base", "bert-base-uncased"},
        {"openai-community/gpt2", "gpt2"},
        {"openai/whisper-base", "whisper-base"},
        {"google/efficientnet-b0", "efficientnet_b0"},
        {"stable-diffusion-1-5-unet", "stable-diffusion-1.5-unet"},
        {"YOLOv8n", "yolov8n"},
    };
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        assert_non_null(zoo_find(SAME[i][0]));
        assert_string_equal(zoo_find(SAME[i][0])->name, SAME[i][1]);
    }
    static const char *const OTHERS[] = {"resnet51",
                                         "resnet5",
                                         "resnet500",
                                         "",
                                         "/",
                                         "/resnet50",
                                         "resnet50/",
                                         "./resnet50",
                                         "a/b/resnet50",
                                         "~/resnet50",
                                         "resnet50.onnx",
                                         "microsoft/"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        assert_null(zoo_find(OTHERS[i]));
    for (size_t i = 0; i < model_card_count(); i++) {
        const struct model_card *card = model_card_at(i);
        for (const char *const *name = card->names; card->architecture && *name; name++) {
            if (!zoo_find(*name))
                fail_msg("%s resolves to %s, which does not exist", *name, card->architecture);
            assert_string_equal(zoo_find(*name)->name, card->architecture);
        }
    }
    assert_string_equal(zoo_find("RegNet-X-16gf")->name, "regnet_x_16gf");
    assert_string_equal(zoo_find("regnet-x-1.6gf")->name, "regnet_x_1_6gf");
    for (size_t i = 0; i < zoo_count(); i++) /* no name shadows another */
        assert_ptr_equal(zoo_find(zoo_at(i)->name), zoo_at(i));
}

static void compare_count(const char *name, const char *what, double counted, double given,
                          double tolerance)
{
    if (fabs(counted - given) > fmax(tolerance * given, 0.0005e9))
        fail_msg("%s: %.6g %s, the catalog has %.6g", name, counted, what, given);
}

static int64_t key_of(const struct jv *config, const char *key)
{
    int64_t value = 0;
    (void)jv_integer(jv_get(config, key), &value);
    return value;
}

/* Gate, up and down of the experts that a token does not use. */
static double inactive_of(const char *name)
{
    const struct model_shape *shape = model_shape_find(name);
    const struct jv *config = shape ? shape->config : NULL;
    int64_t experts = key_of(config, "num_experts") + key_of(config, "num_local_experts") +
                      key_of(config, "n_routed_experts");
    int64_t width = key_of(config, "moe_intermediate_size");
    int64_t period = key_of(config, "interleave_moe_layer_step");
    int64_t layers = key_of(config, "num_hidden_layers") - key_of(config, "first_k_dense_replace");
    if (!experts)
        return 0;
    width = width ? width : key_of(config, "intermediate_size");
    layers = period ? layers / period : layers;
    return (double)(layers * (experts - key_of(config, "num_experts_per_tok")) * 3 *
                    key_of(config, "hidden_size") * width);
}

/* Rows of the token table: a token uses one. */
static double table_of(const struct graph *graph)
{
    for (size_t i = 0; i < graph->tensor_count; i++)
        if (strstr(graph->tensors[i].name, "token_embd"))
            return graph_elements(&graph->tensors[i]);
    return 0;
}

/* Model cards include the token table, or not. */
static void compare_active(const struct model_card *card, double active, double table,
                           double tolerance)
{
    double without = active - table, given = card->size.active;
    bool is_left_out = fabs(without - given) < fabs(active - given);
    compare_count(card->names[0], "active", is_left_out ? without : active, given, tolerance);
}

static void test_graph_sizes_match_the_catalog(void **state)
{
    (void)state;
    size_t compared = 0;
    for (size_t i = 0; i < model_card_count(); i++) {
        const struct model_card *card = model_card_at(i);
        const struct zoo_entry *entry = zoo_find(card->names[0]);
        struct graph_options options = {0};
        if (!entry || !is_known(card->size.total))
            continue;
        struct graph graph = build(entry, &options);
        const double total = graph_parameters(&graph);
        const double active = total - inactive_of(entry->name);
        /* Counted sizes have four digits, three for small models, those of a model card two or three. */
        bool is_counted = strstr(card->size.source, "counted");
        /* The graph of a multimodal model has its text part alone. */
        bool is_part = total == active && card->size.active < card->size.total;
        double whole = is_part ? card->size.active : card->size.total;
        compare_count(card->names[0], "parameters", total, whole, is_counted ? 6e-4 : 1.2e-2);
        compare_active(card, active, table_of(&graph), is_counted ? 6e-4 : 2e-2);
        graph_release(&graph);
        compared++;
    }
    assert_true(compared >= 45);
}

static void test_models_are_opened_by_name(void **state)
{
    (void)state;
    struct model model;
    struct graph_options options = {.batch = 2};
    struct graph graph;
    struct error why = {0};
    assert_int_equal(model_open("openai-community/gpt2-medium", &model, &why), ERR_OK);
    assert_string_equal(model.reader->name, "zoo");
    assert_string_equal(model.name, "gpt2-medium");
    assert_true(model.has_phases);
    assert_int_equal(model_graph(&model, &options, &graph, &why), ERR_OK);
    assert_near(graph.tokens, 2.0 * (double)options.tokens, 0);
    graph_release(&graph);
    options.phase = GRAPH_DECODE; /* the same model again */
    assert_int_equal(model_graph(&model, &options, &graph, &why), ERR_OK);
    assert_near(graph.tokens, 2, 0);
    graph_release(&graph);
    model_close(&model);
    assert_int_equal(model_open("resnett50", &model, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "did you mean resnet50");
    assert_int_equal(model_open("resnet51", &model, &why), ERR_NOT_FOUND); /* another depth */
    assert_contains(why.text, "ipw list models");
    assert_int_equal(model_open("there/is/no/model", &model, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "ipw list models");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_graph_is_connected),
        cmocka_unit_test(test_defaults_are_written_back),
        cmocka_unit_test(test_batch_scales_costs),
        cmocka_unit_test(test_transformer_nodes_have_layers_and_components),
        cmocka_unit_test(test_nodes_are_named_like_modules),
        cmocka_unit_test(test_options_out_of_range_are_rejected),
        cmocka_unit_test(test_aliases_resolve_to_their_model),
        cmocka_unit_test(test_graph_sizes_match_the_catalog),
        cmocka_unit_test(test_models_are_opened_by_name),
    };
    return RUN_TESTS(tests);
}
