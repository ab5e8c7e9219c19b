/* A narrower precision costs no more energy and time than a wider one of its family: real models on
 * every device of the catalog. */
#include "estimate/workload_estimate.h"

#include "port/json_read.h"
#include "support/unit.h"
#include "support/hardware_paths.h"

/* The order of widths, by definition: values of the narrower precision are (nearly) values of the
 * wider one. */
static const struct {
    enum precision wide, narrow;
} FAMILIES[] = {
    {PRECISION_FP64, PRECISION_FP32}, {PRECISION_FP32, PRECISION_TF32},
    {PRECISION_TF32, PRECISION_FP16}, {PRECISION_TF32, PRECISION_BF16},
    {PRECISION_FP32, PRECISION_FP16}, {PRECISION_FP32, PRECISION_BF16},
    {PRECISION_FP16, PRECISION_FP8},  {PRECISION_BF16, PRECISION_FP8},
    {PRECISION_FP16, PRECISION_INT8}, {PRECISION_BF16, PRECISION_INT8},
    {PRECISION_FP16, PRECISION_FP4},  {PRECISION_BF16, PRECISION_FP4},
    {PRECISION_FP16, PRECISION_INT4}, {PRECISION_BF16, PRECISION_INT4},
};

/* Narrower weights, the same activations: only rows whose traffic does not grow are compared. */
static const struct {
    enum precision wide, narrow;
} OF_WEIGHTS[] = {
    {PRECISION_FP8, PRECISION_FP4},
    {PRECISION_INT8, PRECISION_INT4},
};

static const struct {
    const char *model;
    enum graph_phase phase;
    int64_t tokens, context, batch;
} WORKS[] = {
    {"resnet50", GRAPH_PREFILL, 0, 0, 1},
    {"resnet50", GRAPH_PREFILL, 0, 0, 16},
    {"mobilenet_v2", GRAPH_PREFILL, 0, 0, 1},
    {"mobilenet_v2", GRAPH_PREFILL, 0, 0, 16},
    {"bert-base-uncased", GRAPH_PREFILL, 128, 0, 1},
    {"bert-base-uncased", GRAPH_PREFILL, 128, 0, 16},
    {"llama-3.2-1b", GRAPH_PREFILL, 512, 0, 1},
    {"llama-3.2-1b", GRAPH_PREFILL, 512, 0, 16},
    {"llama-3.2-1b", GRAPH_DECODE, 0, 512, 1},
    {"llama-3.2-1b", GRAPH_DECODE, 0, 512, 16},
};

/* Number of comparisons, and of those that differed. */
static size_t compared, apart, rows_compared, rows_on_own_units;

static bool is_not_above(double narrow, double wide)
{
    return narrow <= wide * (1 + 1e-9);
}

static void check_total(const struct hardware *hardware, const char *model,
                        const struct pass_estimate *wide, const struct pass_estimate *narrow)
{
    const struct estimate_joules *a = &wide->total.joules, *b = &narrow->total.joules;
    if (!is_not_above(b->total, a->total) || !is_not_above(b->compute, a->compute) ||
        !is_not_above(b->memory, a->memory) ||
        !is_not_above(narrow->total.latency_s, wide->total.latency_s))
        fail_msg("%s on %s: %s %g J %g s, %s %g J %g s", model, hardware->id,
                 precision_name(wide->config.precision), a->total, wide->total.latency_s,
                 precision_name(narrow->config.precision), b->total, narrow->total.latency_s);
    compared++;
    apart += b->total < 0.99 * a->total;
}

/* A kernel whose narrow weights outweigh its 16-bit activations, and whose elementwise operations
 * on them are no slower or more expensive than in 8 bits. */
static void check_rows(const struct hardware *hardware, const struct pass_estimate *wide,
                       const struct pass_estimate *narrow)
{
    enum precision w = wide->config.precision, n = narrow->config.precision;
    bool others = elementwise_flops(hardware, n) >= elementwise_flops(hardware, w) &&
                  elementwise_joules(hardware, n) <= elementwise_joules(hardware, w);
    for (size_t i = 0; i < wide->partition->count; i++) {
        const struct subgraph_estimate *a = &wide->rows[i], *b = &narrow->rows[i];
        bool is_product_alone = wide->partition->subgraphs[i].cost.elementwise <= 0;
        if (!is_not_above(b->bytes, a->bytes) || (!others && !is_product_alone))
            continue;
        if (!is_not_above(b->joules.total, a->joules.total) ||
            !is_not_above(b->latency_s, a->latency_s))
            fail_msg("%s on %s: %s %g J, %s %g J", wide->partition->subgraphs[i].name, hardware->id,
                     precision_name(w), a->joules.total, precision_name(n), b->joules.total);
        rows_compared++;
        rows_on_own_units += narrow->used == n;
    }
}

static bool make_estimate(const struct partition *partition, const struct hardware *hardware,
                          enum precision precision, struct pass_estimate *out)
{
    struct error why = {0};
    struct estimate_config setting = {.precision = precision};
    if (pass_estimate_make(partition, hardware, &setting, NULL, true, out, &why))
        return false; /* no unit can represent the precision */
    if (is_known(out->total.joules.total))
        return true;
    pass_estimate_release(out);
    return false;
}

static void check_device(const struct partition *partition, const char *model, const char *id)
{
    struct pass_estimate all[PRECISION_COUNT];
    bool known[PRECISION_COUNT];
    struct hardware hardware;
    struct error why = {0};
    assert_int_equal(hardware_find(id, &hardware, &why), ERR_OK);
    for (int i = 0; i < PRECISION_COUNT; i++)
        known[i] = make_estimate(partition, &hardware, (enum precision)i, &all[i]);
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++)
        if (known[FAMILIES[i].wide] && known[FAMILIES[i].narrow])
            check_total(&hardware, model, &all[FAMILIES[i].wide], &all[FAMILIES[i].narrow]);
    for (size_t i = 0; i < sizeof OF_WEIGHTS / sizeof *OF_WEIGHTS; i++)
        if (known[OF_WEIGHTS[i].wide] && known[OF_WEIGHTS[i].narrow])
            check_rows(&hardware, &all[OF_WEIGHTS[i].wide], &all[OF_WEIGHTS[i].narrow]);
    for (int i = 0; i < PRECISION_COUNT; i++)
        if (known[i])
            pass_estimate_release(&all[i]);
    hardware_release(&hardware);
}

static void a_narrower_precision_is_never_worse(void **state)
{
    (void)state;
    struct error why = {0};
    for (size_t i = 0; i < sizeof WORKS / sizeof *WORKS; i++) {
        struct model model;
        struct estimate_workload work;
        assert_int_equal(model_open(WORKS[i].model, &model, &why), ERR_OK);
        struct workload_spec question = {.model = &model,
                                         .setting = {.phase = WORKS[i].phase,
                                                     .tokens = WORKS[i].tokens,
                                                     .context = WORKS[i].context,
                                                     .batch = WORKS[i].batch}};
        if (workload_make(&question, &work, &why))
            fail_msg("%s: %s", WORKS[i].model, why.text);
        for (size_t d = 0; d < hardware_count(); d++)
            check_device(&work.passes[0].partition, WORKS[i].model, hardware_at(d)->id);
        workload_release(&work);
        model_close(&model);
    }
    assert_true(compared > 5000);
    assert_true(apart > 2000); /* the comparison is not vacuous */
    assert_true(rows_compared > 5000);
    assert_true(rows_on_own_units > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_narrower_precision_is_never_worse),
    };
    return RUN_TESTS(tests);
}
