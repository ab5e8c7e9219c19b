/* The cost of `ipw analyze` on a million records, with every analysis: time, memory, and how both
 * grow; and the cost of plotting them. The records go through the schema and the writer of our own
 * store. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/random.h"
#include "core/text.h"
#include "port/arrow.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "rundir/store.h"
#include "stats/bootstrap.h"

/* Distinct records, each written repeatedly: generating a million from JSON would take minutes. */
enum { DIFFERENT = 997, MANY = 1000000, FEW = 100000, ROUNDS = 3 };

static char program[PATH_MAX], folder[] = "/tmp/ipw-bench-XXXXXX";

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_analyze: %s\n", what);
    exit(1);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void remove_all(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- records as of a run on a machine with a GPU and a CPU ---- */

static void put_metrics(struct json *json, double in, double out, double s, double joules)
{
    json_object(json, "model_metrics");
    json_object(json, "bench");
    json_object(json, "energy_metrics");
    json_number(json, "per_query_joules", 0.8 * joules);
    json_number(json, "cpu_per_query_joules", 0.2 * joules);
    json_string(json, "basis", "gpu");
    json_object_end(json);
    json_object(json, "latency_metrics");
    json_number(json, "time_to_first_token_seconds", 0.1 * s);
    json_number(json, "total_query_seconds", s);
    json_number(json, "median_itl_ms", 8 + s);
    json_number(json, "p95_itl_ms", 12 + s);
    json_number(json, "p99_itl_ms", 20 + s);
    json_object_end(json);
    json_object(json, "power_metrics");
    json_object(json, "gpu");
    json_object(json, "per_query_watts");
    json_number(json, "avg", 0.8 * joules / s);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
    json_object(json, "temperature_metrics");
    json_number(json, "avg", 50 + s);
    json_object_end(json);
    json_object(json, "token_metrics");
    json_number(json, "input", in);
    json_number(json, "output", out);
    json_number(json, "total", in + out);
    json_object_end(json);
    json_object(json, "phase_metrics");
    json_number(json, "prefill_energy_j", 0.1 * joules);
    json_number(json, "decode_energy_j", 0.9 * joules);
    json_object_end(json);
    json_object(json, "evaluation");
    json_bool(json, "is_correct", fmod(in, 3) != 0);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
}

static struct jv *make_record(unsigned number, struct random *draws)
{
    struct text text = {0};
    struct json json;
    struct jv *record;
    double in = floor(exp(4 + random_normal(draws))),
           out = floor(exp(5 + random_normal(draws))) + 1;
    double s = 0.1 + 0.01 * out + 0.001 * in, joules = fabs(20 + 0.9 * out + 0.05 * in);
    json_init(&json, &text, false);
    json_object(&json, NULL);
    json_string(&json, "problem", "What is it that is asked here, and why?");
    json_string(&json, "answer", "42");
    json_string(&json, "subject",
                (const char *[]){"algebra", "law", "physics", "logic"}[number % 4]);
    json_object(&json, "dataset_metadata");
    json_integer(&json, "level", number % 5);
    json_object_end(&json);
    put_metrics(&json, in, out, s, joules);
    json_object(&json, "ipw");
    json_integer(&json, "index", number);
    json_integer(&json, "start", 1);
    json_string(&json, "status", "completed");
    json_string(&json, "finish_reason", "stop");
    json_integer(&json, "attempts", 1);
    json_number(&json, "prefill_s", 0.1 * s);
    json_number(&json, "decode_s", 0.9 * s);
    json_object(&json, "energy");
    json_number(&json, "joules", joules);
    json_number(&json, "plus_minus", 0.03 * joules);
    json_number(&json, "coverage", 1);
    json_number(&json, "idle_joules", 0.2 * joules);
    json_number(&json, "active_joules", 0.8 * joules);
    json_string(&json, "method", "counter");
    json_string(&json, "source", "nvml:gpu0 energy + rapl:package-0 package");
    json_bool(&json, "low_confidence", false);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    if (jv_parse(text_get(&text), text.length, &record, NULL))
        die("a record that is no JSON");
    text_release(&text);
    return record;
}

static void make_run(const char *directory, unsigned count)
{
    static const char SUMMARY[] = "{\"model\": \"bench\", \"hardware_label\": \"X1\", \"ipw\": "
                                  "{\"busy_watts\": 120, \"output_tokens_per_s\": 100}}\n";
    static const char METADATA[] = "{\"level\": 1}";
    struct error why = {0};
    struct store store;
    struct jv *metadata, *records[DIFFERENT];
    struct random draws = random_seeded(1);
    char path[PATH_MAX];
    const struct store_driver *const *driver = STORE_DRIVERS;
    while (*driver && strcmp((*driver)->name, "arrow") != 0)
        driver++;
    if (mkdir(directory, 0777) || jv_parse(METADATA, strlen(METADATA), &metadata, NULL))
        die("no directory");
    struct store_run run = {directory, "bench", metadata};
    if (!*driver || store_open(*driver, &run, &store, &why))
        die(why.text);
    for (unsigned i = 0; i < DIFFERENT; i++)
        records[i] = make_record(i, &draws);
    for (unsigned i = 0; i < count; i++)
        if (store.driver->put(&store, records[i % DIFFERENT], &why))
            die(why.text);
    if (store.driver->finish(&store, NULL, &why))
        die(why.text);
    store_close(&store);
    for (unsigned i = 0; i < DIFFERENT; i++)
        jv_free(records[i]);
    jv_free(metadata);
    snprintf(path, sizeof path, "%s/summary.json", directory);
    FILE *file = fopen(path, "we");
    if (!file || fputs(SUMMARY, file) < 0 || fclose(file))
        die("no summary");
}

/* ---- ipw analyze, ipw plot ---- */

struct cost {
    double wall_s, cpu_s, peak_mb; /* including child processes */
};

static struct cost measure(const char *const words[])
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    pid_t process;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    nanos began = clock_now();
    if (posix_spawn(&process, program, &actions, NULL, (char *const *)words, environ) ||
        wait4(process, &status, 0, &usage) < 0 || status)
        die("ipw failed");
    posix_spawn_file_actions_destroy(&actions);
    double user_s = (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
    double system_s = (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
    return (struct cost){seconds(clock_now() - began), user_s + system_s,
                         (double)usage.ru_maxrss / 1024};
}

static struct cost analyze(const char *directory)
{
    return measure((const char *const[]){program, "analyze", directory, "--json", NULL});
}

/* Points are aggregated before plotting: a million must not take gnuplot a thousand times as long. */
static void measure_plot(const char *directory, double analyze_s)
{
    const char *const words[] = {program, "plot", directory, "--plot", "energy", NULL};
    double cpu_s[ROUNDS], wall_s = INFINITY;
    char *gnuplot = proc_find("gnuplot");
    bool is_found = gnuplot;
    free(gnuplot);
    if (!is_found) {
        printf("bench_analyze: ipw plot skipped: no gnuplot\n");
        return;
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct cost cost = measure(words);
        cpu_s[i] = cost.cpu_s;
        wall_s = fmin(wall_s, cost.wall_s);
    }
    bench_report("ipw plot of 10^6 records, one plot, best of 3", wall_s, "s");
    bench_at_most("ipw plot of 10^6 records, one plot, CPU of that of all analyses",
                  bench_median(cpu_s, ROUNDS) / analyze_s, "ratio", 0.7);
}

int main(int argc, char **argv)
{
    (void)argc;
    char few[64], many[64], *slash = strrchr(argv[0], '/');
    double few_s[ROUNDS], many_s[ROUNDS], wall_s = INFINITY, peak_mb = 0;
    snprintf(program, sizeof program, "%.*s/../ipw", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    if (!mkdtemp(folder) || atexit(remove_all))
        die("no folder");
    snprintf(few, sizeof few, "%s/few", folder);
    snprintf(many, sizeof many, "%s/many", folder);
    make_run(few, FEW);
    make_run(many, MANY);
    for (int i = 0; i < ROUNDS; i++) {
        struct cost cost = analyze(many);
        few_s[i] = analyze(few).cpu_s;
        many_s[i] = cost.cpu_s;
        wall_s = fmin(wall_s, cost.wall_s);
        peak_mb = fmax(peak_mb, cost.peak_mb);
    }
    double cpu_s = bench_median(many_s, ROUNDS);
    bench_report("ipw analyze of 10^6 records, all analyses, best of 3", wall_s, "s");
    bench_report("ipw analyze of 10^6 records, all analyses, CPU", cpu_s, "s");
    bench_at_most("ipw analyze of 10^6 records, peak memory", peak_mb, "MB", 300);
    bench_at_most("ipw analyze for ten times the records", cpu_s / bench_median(few_s, ROUNDS),
                  "ratio", 12);
    measure_plot(many, cpu_s);
    return 0;
}
