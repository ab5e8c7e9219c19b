/* Models on synthetic curves: known values, saved and loaded models that predict the same, intervals that cover. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/random.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"
#include "power/freq_model.h"
#include "power/freq_validate.h"

enum { CLOCKS = 60, APPLICATIONS = 6 };
#define FMAX 1395.0

struct world {
    struct freq_curve items[APPLICATIONS];
    struct freq_sample samples[APPLICATIONS][CLOCKS];
    struct freq_curves curves;
};

/* Applications with different compute intensity: power and knee follow from it. */
static void make_world(struct world *w, double noise, uint64_t seed)
{
    struct random random = random_seeded(seed);
    for (size_t a = 0; a < APPLICATIONS; a++) {
        double fp = 0.1 + 0.12 * (double)a, dram = 0.7 - 0.1 * (double)a + 0.08 * (double)(a % 2),
               knee = 1.1 + 0.2 * dram;
        w->items[a] = (struct freq_curve){.fmax_mhz = FMAX, .idle_w = 30, .count = CLOCKS};
        w->items[a].samples = w->samples[a]; /* cppcheck-suppress uninitvar ; an array's address */
        (void)str_copy(w->items[a].gpu, sizeof w->items[a].gpu, "V100");
        (void)str_format(w->items[a].application, sizeof w->items[a].application, "app%zu", a);
        for (size_t i = 0; i < CLOCKS; i++) {
            struct freq_sample *s = &w->samples[a][i];
            double mhz = 510 + 15.0 * (double)i, x = mhz / FMAX;
            *s = (struct freq_sample){.freq_mhz = mhz};
            s->power_w = (40 + 60 * dram * x + (80 + 120 * fp) * x * x * x) *
                         (1 + noise * random_normal(&random));
            s->time_s = (5 + (double)a) * (1 + fp * fmax(0, 1 / x - knee)) *
                        (1 + noise * random_normal(&random));
            s->window_s = s->time_s;
            s->energy_j = s->power_w * s->window_s;
            s->activity[FREQ_FP] = fp;
            s->activity[FREQ_DRAM] = dram;
            s->activity[FREQ_SM] = s->activity[FREQ_UTIL] = 0.95;
            s->runs = 1;
        }
    }
    w->curves = (struct freq_curves){w->items, APPLICATIONS};
}

/* The published formula at fp 0.3, dram 0.15, T(fmax) = 1 s on a V100, computed independently. */
static void fgcs_reproduces_its_published_values(void **state)
{
    (void)state;
    static const struct {
        double mhz, watts, seconds;
    } KNOWN[] = {{510, 55.812640, 5.053680},
                 {1000, 94.348230, 2.057966},
                 {1200, 108.706222, 1.873568},
                 {1380, 121.161938, 1.838651},
                 {1400, 122.522059, 1.840039}};
    struct world w;
    struct freq_model model;
    struct error why;
    make_world(&w, 0, 1);
    const struct freq_model_options options = {.is_published = true, .without_interval = true};
    assert_int_equal(freq_model_fit(&model, "fgcs", &w.curves, &options, &why), ERR_OK);
    struct freq_target target = {.fmax_mhz = 1380, .fmax_time_s = 1, .fmax_window_s = 1};
    target.activity[FREQ_FP] = 0.3;
    target.activity[FREQ_DRAM] = 0.15;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        struct freq_prediction out;
        assert_int_equal(freq_model_predict(&model, &target, &KNOWN[i].mhz, 1, &out, &why), ERR_OK);
        assert_near(out.figures[FREQ_POWER_W].value, KNOWN[i].watts, 5e-7 * KNOWN[i].watts);
        assert_near(out.figures[FREQ_TIME_S].value, KNOWN[i].seconds, 5e-7 * KNOWN[i].seconds);
        assert_near(out.figures[FREQ_ENERGY_J].value, KNOWN[i].watts * KNOWN[i].seconds,
                    1e-6 * KNOWN[i].watts * KNOWN[i].seconds);
    }
    freq_model_release(&model);
}

/* Its own coefficients are recovered. */
static void fgcs_coefficients_are_recovered(void **state)
{
    (void)state;
    struct world w;
    struct freq_model model;
    struct error why;
    make_world(&w, 0, 1);
    for (size_t a = 0; a < APPLICATIONS; a++)
        for (size_t i = 0; i < CLOCKS; i++) {
            struct freq_sample *s = &w.samples[a][i];
            s->power_w = expm1(-1 + 0.8 * s->activity[FREQ_FP] + 0.1 * s->activity[FREQ_DRAM] +
                               0.75 * log1p(s->freq_mhz));
        }
    const struct freq_model_options options = {.without_interval = true};
    assert_int_equal(freq_model_fit(&model, "fgcs", &w.curves, &options, &why), ERR_OK);
    struct text saved = {0};
    freq_model_save(&model, &saved);
    struct jv *object = NULL;
    assert_int_equal(jv_parse(text_get(&saved), saved.length, &object, &why), ERR_OK);
    double found[4];
    assert_true(jv_numbers(jv_path(object, "state.power"), found, 4));
    assert_near(found[0], -1, 1e-7);
    assert_near(found[1], 0.8, 1e-7);
    assert_near(found[2], 0.1, 1e-7);
    assert_near(found[3], 0.75, 1e-8);
    jv_free(object);
    text_release(&saved);
    freq_model_release(&model);
}

/* A model kind is skipped if its library is missing. */
static bool is_fitted(struct freq_model *model, const char *name, const struct freq_curves *curves)
{
    struct error why = {0};
    const struct freq_model_options options = {.seed = 3, .trees = test_is_instrumented() ? 5 : 20};
    enum err err = freq_model_fit(model, name, curves, &options, &why);
    if (err == ERR_ABSENT)
        printf("%s: %s\n", name, why.text);
    else
        assert_int_equal(err, ERR_OK);
    return err == ERR_OK;
}

static void saved_models_predict_the_same(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 0.01, 2);
    char path[] = "/tmp/ipw-power-model-XXXXXX";
    close(mkstemp(path));
    for (size_t m = 0; FREQ_MODELS[m]; m++) {
        struct freq_model model, loaded;
        struct text saved = {0};
        struct error why = {0};
        struct freq_sample probes[3];
        size_t count = freq_curve_probes(&w.items[2], 3, 5, probes);
        struct freq_target target = freq_target_of(&w.items[2], probes, count);
        if (!is_fitted(&model, FREQ_MODELS[m]->name, &w.curves))
            continue;
        freq_model_save(&model, &saved);
        assert_int_equal(output_put(path, text_get(&saved), saved.length, &why), ERR_OK);
        assert_int_equal(freq_model_load(&loaded, path, &why), ERR_OK);
        for (int whole = 510; whole < FMAX; whole += 90) {
            double mhz = whole;
            struct freq_prediction a, b;
            assert_int_equal(freq_model_predict(&model, &target, &mhz, 1, &a, &why), ERR_OK);
            assert_int_equal(freq_model_predict(&loaded, &target, &mhz, 1, &b, &why), ERR_OK);
            for (size_t k = 0; k < FREQ_FIGURES; k++) {
                assert_near(b.figures[k].value, a.figures[k].value, 1e-6 * a.figures[k].value);
                assert_near(b.figures[k].high, a.figures[k].high, 1e-6 * a.figures[k].high);
                assert_true(a.figures[k].low < a.figures[k].value);
            }
        }
        text_release(&saved);
        freq_model_release(&model);
        freq_model_release(&loaded);
    }
    unlink(path);
}

static void damaged_files_are_rejected(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 0.01, 2);
    char path[] = "/tmp/ipw-power-model-XXXXXX";
    close(mkstemp(path));
    for (size_t m = 0; FREQ_MODELS[m]; m++) {
        struct freq_model loaded;
        struct error why = {0};
        struct text text = {0};
        text_addf(&text,
                  "{\"format\":\"ipw-power-model\",\"version\":1,\"model\":\"%s\",\"state\":{"
                  "\"power\":[1]}}",
                  FREQ_MODELS[m]->name);
        assert_int_equal(output_put(path, text_get(&text), text.length, &why), ERR_OK);
        assert_int_equal(freq_model_load(&loaded, path, &why), ERR_BAD_VALUE);
        assert_null(loaded.state);
        text_release(&text);
    }
    unlink(path);
}

/* A model that was saved and then damaged is reported with the key. */
static void damage_is_reported_with_its_key(void **state)
{
    (void)state;
    static const char *const DAMAGE[][4] = {
        {"roofline", "\"fmax_mhz\": ", "\"fmax_mhz\": -",
         "state.applications.0.fmax_mhz: must be a number above 0"},
        {"roofline", "\"knee\"", "\"Knee\"", "state.applications.0.time.knee: is missing"},
        {"roofline", "\"mean\": [", "\"mean\": [1,", "state.prior.mean: must be an array of 5"},
        {"poly2", "\"degree\": 2", "\"degree\": 7", "state.degree: must be a whole number, 1 to 3"},
        {"poly2", "\"degree\": 2", "\"degree\": 3", "state.degree: 3 needs 20 numbers"},
        {"poly2", "\"scale\": [", "\"scale\": [0, \"x\",", "state.scale: must be an array of"},
        {"fgcs", "\"time\": [", "\"time\": [1,", "state.time: must be an array of 0"},
        {"ensemble", "\"weight\": ", "\"weight\": -",
         "state.members.0.weight: must be a number above 0"},
        {"ensemble", "\"model\": \"poly2\"", "\"model\": \"ensemble\"",
         "state.members.1.model: unknown model 'ensemble'"},
    };
    struct world w;
    make_world(&w, 0.01, 2);
    char path[] = "/tmp/ipw-power-model-XXXXXX";
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof DAMAGE / sizeof *DAMAGE; i++) {
        struct freq_model model, loaded;
        struct text saved = {0}, damaged = {0};
        struct error why = {0};
        if (!is_fitted(&model, DAMAGE[i][0], &w.curves))
            continue;
        freq_model_save(&model, &saved);
        const char *at = strstr(saved.bytes, DAMAGE[i][1]);
        assert_non_null(at);
        text_add_bytes(&damaged, saved.bytes, (size_t)(at - saved.bytes));
        text_addf(&damaged, "%s%s", DAMAGE[i][2], at + strlen(DAMAGE[i][1]));
        assert_int_equal(output_put(path, damaged.bytes, damaged.length, &why), ERR_OK);
        assert_int_equal(freq_model_load(&loaded, path, &why), ERR_BAD_VALUE);
        assert_contains(why.text, ": damaged model: ");
        assert_contains(why.text, DAMAGE[i][3]);
        text_release(&saved);
        text_release(&damaged);
        freq_model_release(&model);
    }
    unlink(path);
}

/* The library that has fitted them would follow such links and indices to the end of its memory. */
static void damaged_trees_are_rejected(void **state)
{
    (void)state;
    static const char *const DAMAGE[][2] = {
        {"\\\"left_children\\\":[1,", "\\\"left_children\\\":[999999,"},
        {"\\\"right_children\\\":[2,", "\\\"right_children\\\":[1,"},
        {"\\\"parents\\\":[2147483647,0,", "\\\"parents\\\":[2147483647,7,"},
        {"\\\"split_indices\\\":[", "\\\"split_indices\\\":[9"},
        {"\\\"base_weights\\\":[", "\\\"base_weights\\\":[1,"},
        {"\\\"categories_nodes\\\":[]", "\\\"categories_nodes\\\":[1]"},
        {"\\\"tree_info\\\":[0,", "\\\"tree_info\\\":[9,"},
        {"\\\"id\\\":1,", "\\\"id\\\":0,"},
        {"\\\"num_feature\\\":\\\"3\\\"", "\\\"num_feature\\\":\\\"300\\\""},
    };
    struct world w;
    make_world(&w, 0.01, 2);
    struct freq_model model, loaded;
    if (!is_fitted(&model, "gbt", &w.curves))
        return;
    char path[] = "/tmp/ipw-power-model-XXXXXX";
    close(mkstemp(path));
    struct text saved = {0}, damaged = {0};
    struct error why = {0};
    freq_model_save(&model, &saved);
    for (size_t i = 0; i < sizeof DAMAGE / sizeof *DAMAGE; i++) {
        const char *at = strstr(saved.bytes, DAMAGE[i][0]);
        assert_non_null(at);
        text_clear(&damaged);
        text_add_bytes(&damaged, saved.bytes, (size_t)(at - saved.bytes));
        text_addf(&damaged, "%s%s", DAMAGE[i][1], at + strlen(DAMAGE[i][0]));
        assert_int_equal(output_put(path, damaged.bytes, damaged.length, &why), ERR_OK);
        assert_int_equal(freq_model_load(&loaded, path, &why), ERR_BAD_VALUE);
        assert_contains(why.text, "damaged state of a model of trees");
    }
    unlink(path);
    text_release(&saved);
    text_release(&damaged);
    freq_model_release(&model);
}

static void roofline_predicts_a_held_out_application(void **state)
{
    (void)state;
    struct world w;
    struct freq_validation v;
    struct error why;
    make_world(&w, 0.01, 5);
    const struct freq_validate_options options = {.protocol = FREQ_APPLICATION, .probes = -1};
    assert_int_equal(freq_validate(FREQ_MODELS[0], &w.curves, NULL, &options, &v, &why), ERR_OK);
    assert_int_equal(v.probes, 3);
    assert_int_equal(v.figures[FREQ_POWER_W].rows, APPLICATIONS * (CLOCKS - 15));
    assert_true(v.figures[FREQ_POWER_W].mape < 0.02);
    assert_true(v.figures[FREQ_TIME_S].mape < 0.03);
    assert_true(v.figures[FREQ_POWER_W].coverage > 0.8 && v.figures[FREQ_POWER_W].coverage < 0.98);
    assert_true(v.regret_mean < 0.02);
    freq_validation_release(&v);
}

/* One probe says less than three: the interval must be wider. */
static void fewer_probes_have_wider_intervals(void **state)
{
    (void)state;
    struct world w;
    struct freq_model model;
    struct error why;
    double width[4], mhz = 700;
    make_world(&w, 0.01, 5);
    assert_true(is_fitted(&model, "roofline", &w.curves));
    for (size_t probes = 1; probes <= 3; probes++) {
        struct freq_sample found[3];
        struct freq_prediction out;
        size_t count = freq_curve_probes(&w.items[1], probes, 5, found);
        struct freq_target target = freq_target_of(&w.items[1], found, count);
        assert_int_equal(freq_model_predict(&model, &target, &mhz, 1, &out, &why), ERR_OK);
        width[probes] = out.figures[FREQ_ENERGY_J].high / out.figures[FREQ_ENERGY_J].value - 1;
    }
    assert_true(width[1] > 2 * width[3]);
    assert_true(width[2] >= width[3]);
    freq_model_release(&model);
}

/* Held-out data must not leak: an application with ten times the power of the others cannot be
 * predicted from activities, which a random split hides. */
static void a_random_split_leaks_and_leave_one_out_does_not(void **state)
{
    (void)state;
    struct world w;
    struct freq_validation leaking, honest;
    struct error why;
    make_world(&w, 0, 5);
    for (size_t i = 0; i < CLOCKS; i++)
        w.samples[5][i].power_w *= 10;
    struct freq_validate_options options = {.protocol = FREQ_RANDOM, .probes = -1};
    const struct freq_model_kind *kind = freq_model_find("poly3", &why);
    assert_int_equal(freq_validate(kind, &w.curves, NULL, &options, &leaking, &why), ERR_OK);
    options.protocol = FREQ_APPLICATION;
    assert_int_equal(freq_validate(kind, &w.curves, NULL, &options, &honest, &why), ERR_OK);
    assert_true(freq_protocol_leaks(leaking.protocol) && !freq_protocol_leaks(honest.protocol));
    assert_true(leaking.curves[5].mape[FREQ_POWER_W] < 0.1);
    assert_true(honest.curves[5].mape[FREQ_POWER_W] > 0.5);
    freq_validation_release(&leaking);
    freq_validation_release(&honest);
    options.protocol = FREQ_GPU;
    assert_int_equal(freq_validate(kind, &w.curves, NULL, &options, &honest, &why), ERR_NO_DATA);
}

/* Relations that follow from the definitions. */
static void scores_are_consistent(void **state)
{
    (void)state;
    struct world w;
    struct freq_validation v;
    struct error why;
    make_world(&w, 0.01, 9);
    const struct freq_validate_options options = {.protocol = FREQ_FREQUENCY, .probes = -1};
    const struct freq_model_kind *kind = freq_model_find("linear", &why);
    assert_int_equal(freq_validate(kind, &w.curves, NULL, &options, &v, &why), ERR_OK);
    const struct freq_score *s = &v.figures[FREQ_POWER_W];
    assert_int_equal(v.folds, CLOCKS);
    assert_int_equal(s->rows, APPLICATIONS * CLOCKS);
    assert_true(s->mae <= s->rmse);
    assert_true(s->within[0] <= s->within[1] && s->within[1] <= s->within[2]);
    assert_true(s->r2 > 0.9 && s->r2 < 1);
    assert_near(s->coverage, FREQ_LEVEL, 0.03);
    freq_validation_release(&v);
}

/* A file of measurements with modified bytes: an error, or curves of positive values that can be fitted. */
static void damaged_measurements_are_rejected_or_cleaned(void **state)
{
    (void)state;
    static const char BYTES[] = "0123456789999-.,";
    enum { CHANGES = 3 };
    const size_t tries = test_is_instrumented() ? 20 : 400;
    struct text good = {0};
    struct random random = random_seeded(11);
    char path[] = "/tmp/ipw-power-rows-XXXXXX";
    size_t accepted = 0;
    close(mkstemp(path));
    text_add(&good, "gpu,application,run,seq,freq_mhz,time_s,power_w,energy_j\n");
    for (int i = 0; i < 36; i++)
        text_addf(&good, "A100,a,%d,%d,%d,%.3f,%.2f,%.1f\n", 1 + i % 3, i, 1410 - 60 * (i / 3),
                  10 + 0.2 * (i / 3), 200.0 - 8 * (i / 3), 2000.0 - 40 * (i / 3));
    for (size_t try = 0; try < tries; try++) {
        struct text bad = {0};
        struct freq_data data = {0};
        struct freq_model model = {0};
        struct error why = {0};
        text_add(&bad, text_get(&good));
        for (int i = 0; i < CHANGES; i++)
            bad.bytes[random_below(&random, bad.length)] =
                BYTES[random_below(&random, sizeof BYTES - 1)];
        assert_int_equal(output_put(path, bad.bytes, bad.length, &why), ERR_OK);
        enum err err = freq_data_read(&data, &(struct freq_source){.path = path}, 1, NULL, &why);
        for (size_t c = 0; !err && c < data.curves.count; c++)
            for (size_t i = 0; i < data.curves.items[c].count; i++) {
                assert_true(data.curves.items[c].samples[i].freq_mhz > 0);
                assert_true(data.curves.items[c].samples[i].power_w > 0);
                assert_false(data.curves.items[c].samples[i].time_s <= 0);
            }
        if (!err) {
            const struct freq_model_options options = {0};
            assert_int_equal(freq_model_fit(&model, "roofline", &data.curves, &options, &why),
                             ERR_OK);
            accepted++;
        } else {
            assert_true(why.text[0]);
        }
        freq_model_release(&model);
        freq_data_release(&data);
        text_release(&bad);
    }
    assert_true(accepted > tries / 10 && accepted < tries);
    text_release(&good);
    unlink(path);
}

static void missing_inputs_are_reported(void **state)
{
    (void)state;
    struct world w;
    struct freq_model model;
    struct error why;
    struct freq_prediction out;
    double mhz = 1000;
    make_world(&w, 0, 1);
    struct freq_model_options options = {.without_interval = true};
    assert_int_equal(freq_model_fit(&model, "roofline", &(struct freq_curves){0}, &options, &why),
                     ERR_NO_DATA);
    assert_int_equal(freq_model_fit(&model, "nothing", &w.curves, &options, &why), ERR_USAGE);
    assert_int_equal(freq_model_fit(&model, "roofline", &w.curves, &options, &why), ERR_OK);
    assert_int_equal(freq_model_predict(&model, &(struct freq_target){.application = "none"}, &mhz,
                                        1, &out, &why),
                     ERR_NOT_FOUND);
    assert_contains(why.text, "give probes");
    assert_int_equal(
        freq_model_predict(&model, &(struct freq_target){.gpu = "V100"}, &mhz, 1, &out, &why),
        ERR_USAGE);
    mhz = -1;
    assert_int_equal(freq_model_predict(&model, &(struct freq_target){.application = "app1"}, &mhz,
                                        1, &out, &why),
                     ERR_BAD_VALUE);
    freq_model_release(&model);
    for (size_t a = 0; a < APPLICATIONS; a++)
        for (size_t i = 0; i < CLOCKS; i++)
            w.samples[a][i].activity[FREQ_FP] = NAN;
    assert_int_equal(freq_model_fit(&model, "poly2", &w.curves, &options, &why), ERR_NO_DATA);
    assert_contains(why.text, "activities");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fgcs_reproduces_its_published_values),
        cmocka_unit_test(fgcs_coefficients_are_recovered),
        cmocka_unit_test(saved_models_predict_the_same),
        cmocka_unit_test(damaged_files_are_rejected),
        cmocka_unit_test(damage_is_reported_with_its_key),
        cmocka_unit_test(damaged_trees_are_rejected),
        cmocka_unit_test(roofline_predicts_a_held_out_application),
        cmocka_unit_test(fewer_probes_have_wider_intervals),
        cmocka_unit_test(a_random_split_leaks_and_leave_one_out_does_not),
        cmocka_unit_test(scores_are_consistent),
        cmocka_unit_test(damaged_measurements_are_rejected_or_cleaned),
        cmocka_unit_test(missing_inputs_are_reported),
    };
    return RUN_TESTS(tests);
}
