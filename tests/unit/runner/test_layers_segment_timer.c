#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/clock.h"
#include "graph/decoder.h"
#include "runner/layers/segment_timer.h"

/* An engine that computes nodes of known durations like llama.cpp: it asks for each node, and
 * computes the nodes so far at the first yes, and at the end. */
enum { LAYERS = 4 };

static nanos now_ns;

static nanos fake_now(void)
{
    return now_ns;
}

static const struct clock_source FAKE = {fake_now, fake_now, fake_now};

struct node {
    const char *name;
    double us;
};

/* Of one layer; %d is its number. */
static const struct node LAYER[] = {
    {"norm-%d", 1},     {"attn_norm-%d", 1}, {"Qcur-%d", 30},     {"Qcur-%d (view) (permuted)", 0},
    {"node", 20},       {"kqv_out-%d", 0},   {"attn_out-%d", 10}, {"norm-%d", 2},
    {"ffn_norm-%d", 1}, {"ffn_gate-%d", 40}, {"ffn_out-%d", 25},
};
enum { LAYER_NODES = sizeof LAYER / sizeof *LAYER };

static unsigned stops;

static void compute(struct segment_timer *watch, const struct node *nodes, size_t count,
                    double slower)
{
    const struct engine_watch *w = &watch->watch;
    nanos due = 0;
    for (size_t i = 0; i < count; i++) {
        bool yes = w->wants(w->context, nodes[i].name);
        due += (nanos)llround(nodes[i].us * slower * 1e3);
        if (!yes)
            continue;
        now_ns += due;
        due = 0;
        stops++;
        w->reached(w->context, nodes[i].name);
    }
    now_ns += due;
}

/* The whole graph: embedding, layers, head. `first` distinguishes kinds of graphs. */
static size_t make_graph(struct node *out, const char *first, char (*names)[48])
{
    size_t count = 0;
    out[count++] = (struct node){first, 3};
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < LAYER_NODES; i++) {
            char *name = names[count];
            const char *mark = strstr(LAYER[i].name, "%d");
            if (mark)
                snprintf(name, 48, "%.*s%d%s", (int)(mark - LAYER[i].name), LAYER[i].name, layer,
                         mark + 2);
            else
                snprintf(name, 48, "%s", LAYER[i].name);
            out[count++] = (struct node){name, LAYER[i].us * (layer + 1)};
        }
    out[count++] = (struct node){"result_norm", 1};
    out[count++] = (struct node){"result_output", 50};
    return count;
}

struct scene {
    struct segment_timer watch;
    struct slot_times *slots;
    struct node nodes[LAYERS * LAYER_NODES + 8];
    char names[LAYERS * LAYER_NODES + 8][48];
    size_t count;
};

static void begin(struct scene *scene, enum layers_granularity granularity)
{
    now_ns = 1000000;
    clock_replace(&FAKE);
    segment_timer_init(&scene->watch, LAYERS, granularity);
    scene->slots = calloc(scene->watch.slot_count, sizeof *scene->slots);
    scene->count = make_graph(scene->nodes, "embd", scene->names);
    segment_timer_record(&scene->watch);
    compute(&scene->watch, scene->nodes, scene->count, 1);
    segment_timer_record_end(&scene->watch);
    segment_timer_reset(&scene->watch, scene->slots);
    stops = 0;
}

static void end(struct scene *scene)
{
    segment_timer_release(&scene->watch);
    free(scene->slots);
    clock_replace(NULL);
}

static double micros(const struct scene *scene, int layer, unsigned component)
{
    double sigma;
    return 1e6 * slot_times_seconds(&scene->slots[layer_slot(layer, component)], &sigma);
}

static void expect_times(const struct scene *scene)
{
    for (int layer = 0; layer < LAYERS; layer++) {
        double k = layer + 1;
        assert_near(micros(scene, layer, DECODER_NORM), 5 * k, 1e-3);
        assert_near(micros(scene, layer, DECODER_ATTN_QKV), 30 * k, 1e-3);
        assert_near(micros(scene, layer, DECODER_ATTN_SCORES), 20 * k, 1e-3);
        assert_near(micros(scene, layer, DECODER_ATTN_OUT), 10 * k, 1e-3);
        assert_near(micros(scene, layer, DECODER_FFN_GATE_UP), 40 * k, 1e-3);
        assert_near(micros(scene, layer, DECODER_FFN_DOWN), 25 * k, 1e-3);
    }
    assert_near(micros(scene, DECODER_OUTSIDE, DECODER_EMBEDDING), 3, 1e-3);
    assert_near(micros(scene, DECODER_OUTSIDE, DECODER_NORM), 1, 1e-3);
    assert_near(micros(scene, DECODER_OUTSIDE, DECODER_HEAD), 50, 1e-3);
}

static void every_component_gets_its_time(void **state)
{
    (void)state;
    static struct scene scene;
    begin(&scene, LAYERS_BY_COMPONENT);
    segment_timer_begin(&scene.watch, 1);
    compute(&scene.watch, scene.nodes, scene.count, 1);
    assert_int_equal(scene.watch.graphs, 1);
    expect_times(&scene);
    assert_near(scene.watch.graph_s, 3e-6 + 130e-6 * 10 + 51e-6, 1e-9);
    end(&scene);
}

static void a_stride_instruments_all_layers_in_rotation(void **state)
{
    (void)state;
    static struct scene scene;
    begin(&scene, LAYERS_BY_COMPONENT);
    segment_timer_begin(&scene.watch, 1);
    compute(&scene.watch, scene.nodes, scene.count, 1);
    unsigned all = stops;
    memset(scene.slots, 0, scene.watch.slot_count * sizeof *scene.slots);
    stops = 0;
    for (int i = 0; i < 3; i++) { /* graphs of one computation are consecutive */
        if (i != 2)
            segment_timer_begin(&scene.watch, 3);
        compute(&scene.watch, scene.nodes, scene.count, 1);
    }
    assert_true(stops < 2 * all);
    expect_times(&scene);
    for (int layer = 0; layer < LAYERS; layer++)
        assert_int_equal(scene.slots[layer_slot(layer, DECODER_ATTN_QKV)].graphs, 1);
    end(&scene);
}

static void occasional_interruptions_are_excluded(void **state)
{
    (void)state;
    static struct scene scene;
    begin(&scene, LAYERS_BY_COMPONENT);
    for (int i = 0; i < 200; i++) {
        segment_timer_begin(&scene.watch, 1);
        compute(&scene.watch, scene.nodes, scene.count, i % 9 == 4 ? 100 : 1);
    }
    expect_times(&scene);
    end(&scene);
}

static void different_graphs_are_distinguished(void **state)
{
    (void)state;
    static struct scene scene;
    static struct node other[LAYERS * LAYER_NODES + 8];
    begin(&scene, LAYERS_BY_COMPONENT);
    memcpy(other, scene.nodes, sizeof other);
    other[scene.count - 1].name = "result_embd"; /* differs at its very end */
    segment_timer_begin(&scene.watch, 1);
    compute(&scene.watch, other, scene.count, 1);
    assert_int_equal(scene.watch.unknown_graphs, 1);
    assert_int_equal(scene.watch.graphs, 0);
    segment_timer_record(&scene.watch);
    compute(&scene.watch, other, scene.count, 1);
    segment_timer_record_end(&scene.watch);
    assert_int_equal(scene.watch.plan_count, 2);
    segment_timer_reset(&scene.watch, scene.slots);
    for (int i = 0; i < 4; i++) {
        segment_timer_begin(&scene.watch, 1);
        compute(&scene.watch, i % 2 ? other : scene.nodes, scene.count, 1);
    }
    assert_int_equal(scene.watch.unknown_graphs, 0);
    assert_int_equal(scene.watch.graphs, 4);
    assert_near(micros(&scene, 2, DECODER_ATTN_QKV), 90, 1e-3);
    end(&scene);
}

static void by_phase_only_the_end_is_timed(void **state)
{
    (void)state;
    static struct scene scene;
    begin(&scene, LAYERS_BY_PHASE);
    segment_timer_begin(&scene.watch, 1);
    compute(&scene.watch, scene.nodes, scene.count, 1);
    assert_int_equal(stops, 1);
    assert_near(micros(&scene, DECODER_OUTSIDE, LAYERS_WHOLE), 3 + 1300 + 51, 1e-2);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_component_gets_its_time),
        cmocka_unit_test(a_stride_instruments_all_layers_in_rotation),
        cmocka_unit_test(occasional_interruptions_are_excluded),
        cmocka_unit_test(different_graphs_are_distinguished),
        cmocka_unit_test(by_phase_only_the_end_is_timed),
    };
    return RUN_TESTS(tests);
}
