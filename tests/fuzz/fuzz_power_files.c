/* Files of fitted power models, of every kind: what is loaded predicts, or says why not, and is saved and loaded
 * again. */
#include "fuzz/fuzz.h"

#include "power/freq_model.h"

enum { CLOCKS = 8, APPLICATIONS = 4 };

static void predict(const struct freq_model *model)
{
    static const double MHZ[] = {600, 1380};
    struct freq_sample probes[3];
    struct freq_prediction out[2];
    struct error why = {0};
    struct freq_target target = {.gpu = "V100",
                                 .application = "app0",
                                 .fmax_mhz = 1380,
                                 .idle_w = 40,
                                 .activity = {0.5, 0.4, 0.9, 0.9},
                                 .fmax_time_s = 10,
                                 .fmax_window_s = 10,
                                 .probes = probes,
                                 .probe_count = 3};
    for (int i = 0; i < 3; i++)
        probes[i] = (struct freq_sample){.freq_mhz = 1380 - 300 * i,
                                         .power_w = 200 - 40 * i,
                                         .time_s = 10 + i,
                                         .window_s = 10 + i,
                                         .energy_j = (200 - 40 * i) * (10 + i),
                                         .runs = 1,
                                         .activity = {0.5, 0.4, 0.9, 0.9}};
    fuzz_check_error(freq_model_predict(model, &target, MHZ, 2, out, &why), &why);
    target.probe_count = 0;
    fuzz_check_error(freq_model_predict(model, &target, MHZ, 2, out, &why), &why);
}

static void run(const char *bytes, size_t length)
{
    struct freq_model model = {0}, again = {0};
    struct error why = {0};
    struct text saved = {0};
    enum err err = freq_model_load(&model, fuzz_file("model.json", bytes, length), &why);
    fuzz_check_error(err, &why);
    if (err)
        return;
    predict(&model);
    freq_model_save(&model, &saved);
    err = freq_model_load(&again, fuzz_file("again.json", saved.bytes, saved.length), &why);
    if (err)
        fuzz_fail(why.text);
    freq_model_release(&again);
    freq_model_release(&model);
    text_release(&saved);
}

static void make_curves(struct freq_curves *out)
{
    struct freq_points points = {0};
    for (int app = 0; app < APPLICATIONS; app++)
        for (int i = 0; i < CLOCKS; i++) {
            struct freq_point point = freq_point_unknown();
            double f = 600 + 111.4 * i, share = 0.3 + 0.15 * app;
            str_copy(point.gpu, sizeof point.gpu, "V100");
            str_format(point.application, sizeof point.application, "app%d", app);
            point.freq_mhz = f;
            point.time_s = 10 * (share * 1380 / f + 1 - share);
            point.power_w = 60 + 150 * share * (f / 1380) * (f / 1380) * (f / 1380);
            point.idle_w = 40;
            for (int k = 0; k < FREQ_ACTIVITIES; k++)
                point.activity[k] = share;
            freq_points_add(&points, &point);
        }
    freq_curves_of(&points, out);
    freq_points_release(&points);
}

static void seeds(void)
{
    struct freq_curves curves;
    make_curves(&curves);
    for (size_t i = 0; FREQ_MODELS[i]; i++) {
        struct freq_model model = {0};
        struct text saved = {0};
        struct error why = {0};
        struct freq_model_options options = {.trees = 2, .without_interval = true};
        options.is_published = !strcmp(FREQ_MODELS[i]->name, "fgcs");
        enum err err = freq_model_fit(&model, FREQ_MODELS[i]->name, &curves, &options, &why);
        if (err == ERR_ABSENT) /* without the library of this kind */
            continue;
        if (err)
            fuzz_fail(why.text);
        freq_model_save(&model, &saved);
        fuzz_seed_bytes(-1, saved.bytes, saved.length);
        freq_model_release(&model);
        text_release(&saved);
    }
    freq_curves_release(&curves);
}

static const char *const WORDS[] = {"null",      "[]",       "[1]",       "{}",
                                    "-1",        "1e308",    "\"state\"", "\"members\"",
                                    "\"trees\"", "\"kind\"", NULL};

const struct fuzz_target fuzz_power_files = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
