/* CSV files of measurements and loads given by the user: what is read has usable figures. */
#include "fuzz/fuzz.h"

#include "catalog/hardware.h"
#include "core/params.h"
#include "core/units.h"
#include "estimate/calibrate_rows.h"
#include "estimate/serving.h"
#include "estimate/validate.h"
#include "power/clock_list.h"
#include "power/data_checks.h"
#include "power/freq_points.h"
#include "power/optimize.h"
#include "runner/sweep.h"

static enum err read_load(const char *path, struct error *why)
{
    struct serving_load load = {0};
    enum err err = serving_load_read(path, &load, why);
    if (!err)
        serving_load_release(&load);
    return err;
}

static enum err read_windows(const char *path, struct error *why)
{
    struct calibrate_rows rows = {0};
    enum err err = calibrate_rows_read(path, &rows, why);
    for (size_t i = 0; !err && i < rows.count; i++)
        fuzz_check(!(rows.items[i].latency_s < 0 || rows.items[i].energy_j < 0));
    calibrate_rows_release(&rows);
    return err;
}

static enum err read_validation(const char *path, struct error *why)
{
    struct validation validation = {0};
    struct predictor predictor;
    static struct hardware hardware;
    if (!hardware.id[0] && hardware_find("h200", &hardware, why))
        fuzz_fail(why->text);
    predictor_init(&predictor, &hardware);
    enum err err = validation_read(&validation, path, &(struct params){0}, &predictor, why);
    if (!err)
        (void)validate_verdict(&validation, 0.2);
    predictor_release(&predictor);
    validation_release(&validation);
    return err;
}

static enum err read_clocks(const char *path, struct error *why)
{
    struct clock_list list = {0};
    enum err err = clock_list_read(&list, path, why);
    double out[8];
    for (size_t i = 0; !err && i < list.count; i++)
        (void)clock_list_usable(&list, list.items[i].gpu, 300, out, 8);
    clock_list_release(&list);
    return err;
}

static enum err read_points(const char *path, struct error *why)
{
    struct freq_points points = {0};
    struct freq_curves curves = {0};
    struct freq_source source = {.path = path};
    enum err err = freq_points_is_log(path) ? freq_points_import(&points, &source, why)
                                            : freq_points_read(&points, &source, why);
    if (!err) {
        freq_curves_of(&points, &curves);
        for (size_t i = 0; i < curves.count; i++)
            (void)freq_curve_activity(&curves.items[i], FREQ_SM);
    }
    freq_curves_release(&curves);
    freq_points_release(&points);
    return err;
}

static enum err read_settings(const char *path, struct error *why)
{
    struct setting_points points = {0};
    enum err err = setting_points_read(
        &(struct setting_source){.path = path, .settings = "batch", .quality = "quality"}, &points,
        why);
    if (!err)
        err = setting_points_add_quality(path, &points, why);
    free(points.items);
    return err;
}

static enum err read_list(const char *path, struct error *why)
{
    struct sweep sweep = {0};
    enum err err = sweep_read_list(path, &sweep, why);
    sweep_release(&sweep);
    return err;
}

static enum err (*const READERS[])(const char *path, struct error *why) = {
    read_load, read_windows, read_validation, read_clocks, read_points, read_settings, read_list};

static void run(const char *bytes, size_t length)
{
    struct error why = {0};
    unsigned choice = fuzz_choose(&bytes, &length, sizeof READERS / sizeof *READERS);
    fuzz_check_error(READERS[choice](fuzz_file("table.csv", bytes, length), &why), &why);
}

static void seeds(void)
{
    fuzz_seed(0, "arrival_s,input_tokens,output_tokens\n0,100,20\n0.5,7,1\n");
    fuzz_seed(1, "op,dtype,flops,bytes,latency_s,energy_j,window_s,updates,hardware\n"
                 "matmul,fp16,1e9,1e6,0.001,0.5,1,20,x\nidle,,,,1,50,1,20,x\n");
    fuzz_seed_file(1, IPW_FIXTURES "/estimate/h200_kernels.csv", 1500);
    fuzz_seed_file(2, IPW_FIXTURES "/estimate/h200.csv", 1200);
    fuzz_seed_file(2, IPW_FIXTURES "/estimate/published_llm.csv", 1200);
    fuzz_seed(3, "gpu,mem_mhz,mhz\nV100,877,1380\nV100,877,1372\n");
    fuzz_seed(4, "gpu,application,freq_mhz,time_s,power_w,energy_j,run\nV100,a,1380,10,200,2000,1\n"
                 "V100,a,1200,11,170,1870,1\n");
    fuzz_seed_file(4, IPW_FIXTURES "/gpu_logs/GV100-dvfs-lstm-perf.csv", 1500);
    fuzz_seed_file(4, IPW_FIXTURES "/gpu_logs/GV100-dvfs-LSTM-1380-0.45d9bf4", 1500);
    fuzz_seed_file(4, IPW_FIXTURES "/gpu_logs/sort_1380MHz.csv", 1500);
    fuzz_seed(5, "batch,energy_j,time_s,quality\n1,10,2,0.5\n8,40,3,0.6\n");
    fuzz_seed(5, "setting,value\nbatch=1,0.5\n");
    fuzz_seed(6, "threads,gpu-clock\n1,1200\n2,default\n");
}

static const char *const WORDS[] = {"nan",  "inf",   "-1",        "1e308",    "1e-320",   ",,",
                                    "\"\"", "model", "latency_s", "energy_j", "freq_mhz", NULL};

const struct fuzz_target fuzz_tables = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
