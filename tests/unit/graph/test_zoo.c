/* The zoo against published figures: exact parameters, MACs to the printed precision. */
#include "graph/count.h"
#include "graph/zoo/zoo.h"
#include "support/unit.h"

static struct graph build(const char *name, struct graph_options options)
{
    struct graph graph = {0};
    struct error why = {0};
    const struct zoo_entry *entry = zoo_find(name);
    if (!entry || zoo_build(entry, &options, &graph, &why) != ERR_OK) {
        print_error("%s: %s\n", name, entry ? why.text : "no such entry");
        fail();
    }
    return graph;
}

static double macs_of(const char *name, struct graph_options options)
{
    struct graph graph = build(name, options);
    double macs = graph_cost_total(&graph).macs;
    graph_release(&graph);
    return macs;
}

/* ---- parameters ---- */

/* From the tables of pretrained weights of torchvision; sums over parameters() of the models of
 * transformers and diffusers; Ultralytics' summaries before fusing (which count the 16 weights of
 * the DFL layer); the LSTM tutorial. */
static const struct {
    const char *name;
    double parameters;
} PARAMETERS[] = {
    {"resnet18", 11689512},
    {"resnet34", 21797672},
    {"resnet50", 25557032},
    {"resnet101", 44549160},
    {"resnet152", 60192808},
    {"resnext50_32x4d", 25028904},
    {"resnext101_32x8d", 88791336},
    {"resnext101_64x4d", 83455272},
    {"wide_resnet50_2", 68883240},
    {"wide_resnet101_2", 126886696},
    {"mobilenet_v2", 3504872},
    {"mobilenet_v3_small", 2542856},
    {"mobilenet_v3_large", 5483032},
    {"efficientnet_b0", 5288548},
    {"efficientnet_b1", 7794184},
    {"efficientnet_b2", 9109994},
    {"efficientnet_b3", 12233232},
    {"efficientnet_b4", 19341616},
    {"efficientnet_b5", 30389784},
    {"efficientnet_b6", 43040704},
    {"efficientnet_b7", 66347960},
    {"efficientnet_v2_s", 21458488},
    {"efficientnet_v2_m", 54139356},
    {"efficientnet_v2_l", 118515272},
    {"vgg11", 132863336},
    {"vgg11_bn", 132868840},
    {"vgg13", 133047848},
    {"vgg13_bn", 133053736},
    {"vgg16", 138357544},
    {"vgg16_bn", 138365992},
    {"vgg19", 143667240},
    {"vgg19_bn", 143678248},
    {"alexnet", 61100840},
    {"densenet121", 7978856},
    {"densenet161", 28681000},
    {"densenet169", 14149480},
    {"densenet201", 20013928},
    {"squeezenet1_0", 1248424},
    {"squeezenet1_1", 1235496},
    {"googlenet", 6624904},
    {"inception_v3", 27161264},
    {"convnext_tiny", 28589128},
    {"convnext_small", 50223688},
    {"convnext_base", 88591464},
    {"convnext_large", 197767336},
    {"shufflenet_v2_x0_5", 1366792},
    {"shufflenet_v2_x1_0", 2278604},
    {"shufflenet_v2_x1_5", 3503624},
    {"shufflenet_v2_x2_0", 7393996},
    {"mnasnet0_5", 2218512},
    {"mnasnet0_75", 3170208},
    {"mnasnet1_0", 4383312},
    {"mnasnet1_3", 6282256},
    {"regnet_x_400mf", 5495976},
    {"regnet_x_800mf", 7259656},
    {"regnet_x_1_6gf", 9190136},
    {"regnet_x_3_2gf", 15296552},
    {"regnet_x_8gf", 39572648},
    {"regnet_x_16gf", 54278536},
    {"regnet_x_32gf", 107811560},
    {"regnet_y_400mf", 4344144},
    {"regnet_y_800mf", 6432512},
    {"regnet_y_1_6gf", 11202430},
    {"regnet_y_3_2gf", 19436338},
    {"regnet_y_8gf", 39381472},
    {"regnet_y_16gf", 83590140},
    {"regnet_y_32gf", 145046770},
    {"regnet_y_128gf", 644812894},
    {"vit_b_16", 86567656},
    {"vit_b_32", 88224232},
    {"vit_l_16", 304326632},
    {"vit_l_32", 306535400},
    {"vit_h_14", 632045800},
    {"swin_t", 28288354},
    {"swin_s", 49606258},
    {"swin_b", 87768224},
    {"swin_v2_t", 28351570},
    {"swin_v2_s", 49737442},
    {"swin_v2_b", 87930848},
    {"maxvit_t", 30919624},
    {"fcn_resnet50", 35322218},
    {"fcn_resnet101", 54314346},
    {"deeplabv3_resnet50", 42004074},
    {"deeplabv3_resnet101", 60996202},
    {"deeplabv3_mobilenet_v3_large", 11029328},
    {"lraspp_mobilenet_v3_large", 3221538},
    {"bert-base-uncased", 109482240},
    {"bert-large-uncased", 335141888},
    {"bert-base-cased", 108310272},
    {"bert-large-cased", 333579264},
    {"all-MiniLM-L6-v2", 22713216},
    {"all-MiniLM-L12-v2", 33360000},
    {"distilbert-base-uncased", 66362880},
    {"roberta-base", 124645632},
    {"roberta-large", 355359744},
    {"gpt2", 124439808},
    {"gpt2-medium", 354823168},
    {"gpt2-large", 774030080},
    {"gpt2-xl", 1557611200},
    {"distilgpt2", 81912576},
    {"whisper-tiny", 37760640},
    {"whisper-base", 72593920},
    {"whisper-small", 241734912},
    {"whisper-medium", 763857920},
    {"whisper-large-v2", 1543304960},
    {"whisper-large-v3", 1543490560},
    {"whisper-large-v3-turbo", 808878080},
    {"lstm-text", 4810857},
    {"stable-diffusion-1.5-unet", 859520964},
    {"stable-diffusion-1.5-vae", 83653863},
    {"stable-diffusion-1.5-vae-encoder", 34163664},
    {"stable-diffusion-1.5-vae-decoder", 49490199},
    {"stable-diffusion-1.5-text-encoder", 123060480},
    {"yolov8n", 3157200},
    {"yolov8s", 11166560},
    {"yolov8m", 25902640},
    {"yolov8l", 43691520},
    {"yolov8x", 68229648},
};

static void test_parameters_match_published_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof PARAMETERS / sizeof *PARAMETERS; i++) {
        struct graph graph = build(PARAMETERS[i].name, (struct graph_options){0});
        if (graph_parameters(&graph) != PARAMETERS[i].parameters)
            print_error("%s:\n", PARAMETERS[i].name);
        assert_near(graph_parameters(&graph), PARAMETERS[i].parameters, 0);
        graph_release(&graph);
    }
}

/* Neither batch, input size nor phase changes the parameters. */
static void test_parameters_do_not_depend_on_options(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct graph_options options;
    } OTHERS[] = {
        {"resnet50", {.batch = 7, .image = 320}},
        {"vgg11", {.batch = 2, .image = 300}},
        {"vit_b_16", {.image = 384}},
        {"bert-base-uncased", {.tokens = 512}},
        {"gpt2", {.phase = GRAPH_DECODE, .context = 1000}},
        {"whisper-base", {.phase = GRAPH_DECODE, .context = 20}},
        {"stable-diffusion-1.5-unet", {.batch = 2, .image = 768}},
        {"yolov8n", {.image = 320}},
        {"lstm-text", {.tokens = 9}},
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct graph usual = build(OTHERS[i].name, (struct graph_options){0});
        struct graph other = build(OTHERS[i].name, OTHERS[i].options);
        assert_near(graph_parameters(&other), graph_parameters(&usual), 0);
        graph_release(&usual);
        graph_release(&other);
    }
}

/* ---- MACs ---- */

/* torchvision prints "GFLOPS" with three decimals: they are GMACs of convolutions, linear layers
 * and both matmuls of attention. Ultralytics prints GFLOPs (of the fused model), two per MAC, with
 * one decimal. All at the default image size: a wrong default fails here. */
static const struct {
    const char *name;
    double giga, within;
} MACS[] = {
    {"resnet18", 1.814, 0.0005},
    {"resnet34", 3.664, 0.0005},
    {"resnet50", 4.089, 0.0005},
    {"resnet101", 7.801, 0.0005},
    {"resnet152", 11.514, 0.0005},
    {"resnext50_32x4d", 4.230, 0.0006},
    {"resnext101_32x8d", 16.414, 0.0005},
    {"resnext101_64x4d", 15.460, 0.0005},
    {"wide_resnet50_2", 11.398, 0.0005},
    {"wide_resnet101_2", 22.753, 0.0005},
    {"mobilenet_v2", 0.301, 0.0005},
    {"mobilenet_v3_small", 0.057, 0.0005},
    {"mobilenet_v3_large", 0.217, 0.0005},
    {"efficientnet_b0", 0.386, 0.0005},
    {"efficientnet_b1", 0.687, 0.0005},
    {"efficientnet_b2", 1.088, 0.0005},
    {"efficientnet_b3", 1.827, 0.0005},
    {"efficientnet_b4", 4.394, 0.0005},
    {"efficientnet_b5", 10.266, 0.0005},
    {"efficientnet_b6", 19.068, 0.0005},
    {"efficientnet_b7", 37.746, 0.0005},
    {"efficientnet_v2_s", 8.366, 0.0005},
    {"efficientnet_v2_m", 24.582, 0.0005},
    {"efficientnet_v2_l", 56.080, 0.0005},
    {"googlenet", 1.498, 0.0005},
    {"inception_v3", 5.713, 0.0005},
    {"convnext_tiny", 4.456, 0.0005},
    {"convnext_small", 8.684, 0.0005},
    {"convnext_base", 15.355, 0.0005},
    {"convnext_large", 34.361, 0.0005},
    {"shufflenet_v2_x0_5", 0.040, 0.0006},
    {"shufflenet_v2_x1_0", 0.145, 0.0005},
    {"shufflenet_v2_x1_5", 0.296, 0.0005},
    {"shufflenet_v2_x2_0", 0.583, 0.0005},
    {"mnasnet0_5", 0.104, 0.0005},
    {"mnasnet0_75", 0.215, 0.0005},
    {"mnasnet1_0", 0.314, 0.0005},
    {"mnasnet1_3", 0.526, 0.0005},
    {"regnet_x_400mf", 0.414, 0.0005},
    {"regnet_x_800mf", 0.800, 0.0005},
    {"regnet_x_1_6gf", 1.603, 0.0005},
    {"regnet_x_3_2gf", 3.177, 0.0005},
    {"regnet_x_8gf", 7.995, 0.0005},
    {"regnet_x_16gf", 15.941, 0.0005},
    {"regnet_x_32gf", 31.736, 0.0005},
    {"regnet_y_400mf", 0.402, 0.0005},
    {"regnet_y_800mf", 0.834, 0.0005},
    {"regnet_y_1_6gf", 1.612, 0.0005},
    {"regnet_y_3_2gf", 3.176, 0.0005},
    {"regnet_y_8gf", 8.473, 0.0005},
    {"regnet_y_16gf", 15.912, 0.0005},
    {"regnet_y_32gf", 32.280, 0.0005},
    {"regnet_y_128gf", 127.518, 0.0005},
    {"vgg11", 7.609, 0.0005},
    {"vgg11_bn", 7.609, 0.0005},
    {"vgg13", 11.308, 0.0005},
    {"vgg13_bn", 11.308, 0.0005},
    {"vgg16", 15.470, 0.0005},
    {"vgg16_bn", 15.470, 0.0005},
    {"vgg19", 19.632, 0.0005},
    {"vgg19_bn", 19.632, 0.0005},
    {"alexnet", 0.714, 0.0005},
    {"densenet121", 2.834, 0.0005},
    {"densenet161", 7.728, 0.0005},
    {"densenet169", 3.360, 0.0005},
    {"densenet201", 4.291, 0.0005},
    {"squeezenet1_0", 0.819, 0.0005},
    {"squeezenet1_1", 0.349, 0.0005},
    {"vit_b_16", 17.564, 0.0005},
    {"vit_b_32", 4.409, 0.0005},
    {"vit_l_16", 61.555, 0.0005},
    {"vit_l_32", 15.378, 0.0005},
    {"vit_h_14", 167.295, 0.0005},
    {"swin_t", 4.491, 0.0005},
    {"swin_s", 8.741, 0.0005},
    {"swin_b", 15.431, 0.0005},
    {"swin_v2_t", 5.940, 0.0005},
    {"swin_v2_s", 11.546, 0.0005},
    {"swin_v2_b", 20.325, 0.0005},
    {"maxvit_t", 5.558, 0.0005},
    {"fcn_resnet50", 152.717, 0.0006},
    {"fcn_resnet101", 232.738, 0.0005},
    {"deeplabv3_resnet50", 178.722, 0.0005},
    {"deeplabv3_resnet101", 258.743, 0.0005},
    {"bert-base-uncased", 11.174, 0.0005},
    {"yolov8n", 8.7 / 2, 0.03},
    {"yolov8s", 28.6 / 2, 0.03},
    {"yolov8m", 78.9 / 2, 0.03},
    {"yolov8l", 165.2 / 2, 0.03},
    {"yolov8x", 257.8 / 2, 0.03},
    {"deeplabv3_mobilenet_v3_large", 10.452, 0.0005},
    {"lraspp_mobilenet_v3_large", 2.086, 0.0005},
};

static void test_macs_match_published_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MACS / sizeof *MACS; i++) {
        double macs = macs_of(MACS[i].name, (struct graph_options){0}) / 1e9;
        if (!(macs >= MACS[i].giga - MACS[i].within && macs <= MACS[i].giga + MACS[i].within))
            print_error("%s:\n", MACS[i].name);
        assert_near(macs, MACS[i].giga, MACS[i].within);
    }
}

static double outputs_of(const struct graph *graph, enum graph_op op, double *macs)
{
    double numbers = 0;
    *macs = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == op) {
            numbers += graph_elements(graph_output(graph, &graph->nodes[i], 0));
            *macs += graph_node_cost(graph, &graph->nodes[i]).macs;
        }
    return numbers;
}

/* Published counts by operation. */
static void test_resnet18_counts_by_operation(void **state)
{
    (void)state;
    struct graph graph = build("resnet18", (struct graph_options){0});
    double of_convs, of_linear, none;
    (void)outputs_of(&graph, GRAPH_CONV, &of_convs);
    (void)outputs_of(&graph, GRAPH_LINEAR, &of_linear);
    assert_near(of_convs + of_linear, 1814073344, 0);
    assert_near(of_linear, 512000, 0);
    assert_near(outputs_of(&graph, GRAPH_BATCH_NORM, &none), 2483712, 0);
    assert_near(outputs_of(&graph, GRAPH_RELU, &none), 2308096, 0);
    assert_near(outputs_of(&graph, GRAPH_ADD, &none), 752640, 0);
    graph_release(&graph);
}

/* A published count of the UNet for 64 x 64 latents has 339 GMACs of convolutions and linear
 * layers, without the matmuls of attention. */
static void test_unet_macs_without_attention(void **state)
{
    (void)state;
    struct graph graph = build("stable-diffusion-1.5-unet", (struct graph_options){0});
    double of_convs, of_linear;
    (void)outputs_of(&graph, GRAPH_CONV, &of_convs);
    (void)outputs_of(&graph, GRAPH_LINEAR, &of_linear);
    assert_near((of_convs + of_linear) / 1e9, 339, 0.5);
    graph_release(&graph);
}

/* Steps x directions x layers, 4 gates from input and state. */
static void test_lstm_macs_by_hand(void **state)
{
    (void)state;
    double first = 2.0 * 4 * 256 * (100 + 256), second = 2.0 * 4 * 256 * (512 + 256);
    assert_near(macs_of("lstm-text", (struct graph_options){.tokens = 10, .batch = 3}),
                3 * (10 * (first + second) + 512), 0);
}

/* ---- decoders ---- */

/* Prefill is the sum of its tokens one by one, except that each pass has one row of logits. */
static void test_prefill_is_the_sum_of_its_tokens(void **state)
{
    (void)state;
    enum { TOKENS = 21 };
    double head = 50257.0 * 768;
    double one_by_one = 0;
    for (int64_t seen = 1; seen <= TOKENS; seen++)
        one_by_one +=
            macs_of("gpt2", (struct graph_options){.phase = GRAPH_DECODE, .context = seen});
    double at_once =
        macs_of("gpt2", (struct graph_options){.phase = GRAPH_PREFILL, .tokens = TOKENS});
    assert_near(at_once, one_by_one - (TOKENS - 1) * head, 0);
}

/* Twelve layers of K and V of 768: a token with a context of 101 reads those of the 100 before it,
 * and appends one of each. */
static void test_decode_reads_and_fills_the_cache(void **state)
{
    (void)state;
    struct graph graph =
        build("gpt2", (struct graph_options){.phase = GRAPH_DECODE, .context = 101, .batch = 3});
    struct graph_cost cost = graph_cost_total(&graph);
    assert_near(cost.in.cached, 3.0 * 100 * 12 * 2 * 768, 0);
    assert_near(cost.out.cached, 3.0 * 12 * 2 * 768, 0);
    assert_near(graph.tokens, 3, 0);
    assert_near(graph.batch, 3, 0);
    graph_release(&graph);
    graph = build("gpt2", (struct graph_options){.phase = GRAPH_PREFILL, .tokens = 50});
    cost = graph_cost_total(&graph);
    assert_near(cost.in.cached, 0, 0);
    assert_near(cost.out.cached, 50.0 * 12 * 2 * 768, 0);
    assert_near(graph.tokens, 50, 0);
    graph_release(&graph);
}

/* The audio is encoded once: a token attends to 1500 states through the KV cache, in each of six layers. */
static void test_whisper_decode_does_not_run_the_encoder(void **state)
{
    (void)state;
    struct graph graph =
        build("whisper-base", (struct graph_options){.phase = GRAPH_DECODE, .context = 31});
    struct graph_cost cost = graph_cost_total(&graph);
    double cross = 1500.0 * 6 * 2 * 512;
    assert_near(cost.in.cached, cross + 30.0 * 6 * 2 * 512, 0);
    assert_near(cost.out.cached, 6.0 * 2 * 512, 0);
    graph_release(&graph);
    graph = build("whisper-base", (struct graph_options){.tokens = 4});
    assert_near(graph_cost_total(&graph).out.cached, cross + 4.0 * 6 * 2 * 512, 0);
    graph_release(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_match_published_counts),
        cmocka_unit_test(test_parameters_do_not_depend_on_options),
        cmocka_unit_test(test_macs_match_published_counts),
        cmocka_unit_test(test_resnet18_counts_by_operation),
        cmocka_unit_test(test_unet_macs_without_attention),
        cmocka_unit_test(test_lstm_macs_by_hand),
        cmocka_unit_test(test_prefill_is_the_sum_of_its_tokens),
        cmocka_unit_test(test_decode_reads_and_fills_the_cache),
        cmocka_unit_test(test_whisper_decode_does_not_run_the_encoder),
    };
    return RUN_TESTS(tests);
}
