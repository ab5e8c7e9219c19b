/* The script of the fake NVML library: its language, its state, and the physics that it simulates.
 *
 * The script is the file named by IPW_FAKE_NVML, read again at every call, so a test changes the
 * machine by replacing the file (atomically: write another, rename).  One directive per line, # to
 * the end of the line is a comment, D is a device number or * for all, S are seconds since the
 * library was loaded.  An invalid line aborts the process: a test must not pass because of
 * a typing error.
 *
 *   devices N                      number of GPUs (default 1)
 *   driver TEXT                    driver version (580.95.05)
 *   init CODE                      nvmlInit_v2 fails with CODE
 *   name D TEXT / uuid D TEXT      (NVIDIA H200 / GPU-0000000D-...)
 *   power D constant W             power over time; the counter integrates it
 *   power D square LOW HIGH S [DUTY]   HIGH first, for DUTY (0.5) of the period S
 *   power D steps S:W S:W ...      W from S on; the first W also before it
 *   power D clocked IDLE BUSY N    IDLE + (BUSY - IDLE) (f / fmax)^N at the locked clock f, fmax being clock_sm_max, and
 *                                  at most the limit; it changes when the process sets either
 *   memory_share D X               power of scope "memory" as a share of the whole (0.2)
 *   module D yes|no                power of scope "module" and its samples exist (no)
 *   tick D S                       the energy counter is updated every S (0.1)
 *   energy_start D MJ              the counter's value at 0 (0)
 *   energy_reset D S               the counter restarts from 0 at S
 *   spacing D S / depth D N        of the sample buffer (0.02 / 119)
 *   pad D N                        N empty entries after the samples of every result (0)
 *   value KEY D X                  a raw value, nan and inf allowed; KEY is one of: energy_mj
 *                                  power_mw memory_power_mw samples_mw temperature utilisation
 *                                  utilisation_memory clock_sm clock_memory limit_mw limit_min_mw
 *                                  limit_max_mw limit_default_mw clock_sm_max clock_memory_max memory_used memory_reserved memory_total throttle
 *                                  tensor persistence architecture compute sm_util sm_occupancy
 *                                  dram_bandwidth fp64_util fp32_util fp16_util
 *   type fields|samples T          value type: double uint ulong ulonglong longlong int ushort
 *   process D PID MEMORY [PCT]     has the card open, with MEMORY bytes (nan: not available) and,
 *                                  recently, PCT utilization; without PCT it is idle
 *   clocks D MEM HIGH:LOW:STEP     supported graphics clocks at memory clock MEM, rounded down; one line for
 *                                  each memory clock
 *   clocks D MEM A,B,C ...         the same as a list
 *   mig D N                        MIG on, with N instances
 *   mig_instance D I SLICES SM PROFILE
 *                                  of instance I (from 0): its slices of 7, SM activity in percent (nan: GPM has none)
 *                                  and profile (1, that of the card, "1g.18gb")
 *   gpm D yes|no                   GPM is supported (yes)
 *   fail F D CODE [after K] [for K] [from S] [to S]
 *                                  calls of function F fail: all, all after the first K, K of
 *                                  them, or those in a range of time.  F is a function's name, or
 *                                  field:ID, field:ID:SCOPE, samples:TYPE, or * for every function
 *                                  that takes a device (a lost card: fail * 0 15 from 2 to 4)
 *   block F D MS [after K] [for K] [from S] [to S]     the call takes MS milliseconds longer
 *   time S                         the time is S and stopped (default: it runs)
 *   wall S                         wall clock at time 0 (default: the machine's)
 *   wall_step X S                  timestamps of samples after S are X seconds off
 *
 * Settings persist across processes, as in a card, when IPW_FAKE_NVML_STATE names a file: one line per device,
 * "D graphics MIN MAX memory MIN MAX limit MW", with 0 for what is not set.  A locked clock is reached.
 *
 * Calls cost CPU time, as with a real card, when IPW_FAKE_NVML_COSTS says how much: "NAME=US,...", with "field"
 * for each field of nvmlDeviceGetFieldValues and "*" for every other function that takes a device.  At exit the calls
 * of each function are written to the file named by IPW_FAKE_NVML_CALLS, as lines "NAME COUNT"; "repeated COUNT" are
 * reads of a card's energy counter that found the same update as the previous one, from LEARNED_S on: before that a
 * caller may determine its update period.  "zero S" is time 0 by the wall clock.
 * IPW_FAKE_NVML_CALLS_RANGE, "FROM TO" in seconds, excludes the calls that only start and end need.
 */
#ifndef TESTS_FAKES_NVML_SCRIPT_H
#define TESTS_FAKES_NVML_SCRIPT_H

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DEVICES_MAX = 16,
    RULES_MAX = 64,
    STEPS_MAX = 32,
    CHANGES_MAX = 512,
    SCRIPT_MAX = 16384,
    MIG_MAX = 7,
    PROCESSES_MAX = 80,
    CLOCK_SETS_MAX = 4,
    CLOCKS_MAX = 256
};

enum key {
    KEY_ENERGY_MJ,
    KEY_POWER_MW,
    KEY_MEMORY_POWER_MW,
    KEY_SAMPLES_MW,
    KEY_TEMPERATURE,
    KEY_UTILIZATION,
    KEY_UTILIZATION_MEMORY,
    KEY_CLOCK_SM,
    KEY_CLOCK_MEMORY,
    KEY_LIMIT_MW,
    KEY_LIMIT_MIN_MW,
    KEY_LIMIT_MAX_MW,
    KEY_LIMIT_DEFAULT_MW,
    KEY_CLOCK_SM_MAX,
    KEY_CLOCK_MEMORY_MAX,
    KEY_MEMORY_USED,
    KEY_MEMORY_RESERVED,
    KEY_MEMORY_TOTAL,
    KEY_THROTTLE,
    KEY_TENSOR,
    KEY_PERSISTENCE,
    KEY_ARCHITECTURE,
    KEY_COMPUTE,
    KEY_SM_UTIL,
    KEY_SM_OCCUPANCY,
    KEY_DRAM_BANDWIDTH,
    KEY_FP64_UTIL,
    KEY_FP32_UTIL,
    KEY_FP16_UTIL,
    KEY_COUNT
};

/* The first four follow the power profile unless the script sets them. */
static const struct {
    const char *name;
    double preset;
} KEYS[KEY_COUNT] = {
    {"energy_mj", 0},
    {"power_mw", 0},
    {"memory_power_mw", 0},
    {"samples_mw", 0},
    {"temperature", 45},
    {"utilisation", 50},
    {"utilisation_memory", 20},
    {"clock_sm", 1980},
    {"clock_memory", 3201},
    {"limit_mw", 700000},
    {"limit_min_mw", 200000},
    {"limit_max_mw", 700000},
    {"limit_default_mw", 700000},
    {"clock_sm_max", 1980},
    {"clock_memory_max", 3201},
    {"memory_used", 2e9},
    {"memory_reserved", 5e8},
    {"memory_total", 150e9},
    {"throttle", 1},
    {"tensor", 30},
    {"persistence", 1},
    {"architecture", 9},
    {"compute", 9.0},
    {"sm_util", 60},
    {"sm_occupancy", 40},
    {"dram_bandwidth", 25},
    {"fp64_util", 0},
    {"fp32_util", 12},
    {"fp16_util", 6},
};

struct fake_process {
    unsigned pid;
    double memory, pct; /* pct < 0: none */
};

/* Supported graphics clocks at one memory clock. */
struct clock_set {
    unsigned memory_mhz;
    double high, low, step;
    unsigned list[CLOCKS_MAX], count; /* in place of a range */
};

/* Values of setters; 0 is not set. */
struct settings {
    unsigned graphics[2], memory[2], limit_mw;
};

enum profile { CONSTANT, SQUARE, STEPS, CLOCKED };

struct gpu {
    char name[96], uuid[96];
    enum profile profile;
    double low_w, high_w, period_s, duty, exponent;
    double step_s[STEPS_MAX], step_w[STEPS_MAX];
    int steps;
    double memory_share, tick_s, start_mj, reset_s, spacing_s;
    bool module, gpm;
    int depth, pad, mig;
    struct {
        unsigned slices;
        double sm;
        char profile[24];
    } instances[MIG_MAX];
    double value[KEY_COUNT];
    bool is_set[KEY_COUNT];
    struct fake_process processes[PROCESSES_MAX];
    unsigned process_count;
    struct clock_set clocks[CLOCK_SETS_MAX];
    unsigned clock_sets;
};

struct rule {
    char function[72];
    int device; /* -1: any */
    int code;
    double block_ms, from_s, to_s;
    long after, count, calls;
};

static struct {
    char text[SCRIPT_MAX]; /* as read last */
    int devices, init, fields_type, samples_type;
    char driver[64];
    struct gpu gpus[DEVICES_MAX];
    struct rule rules[RULES_MAX];
    int rule_count;
    double time_s, wall_s, step_s, step_at; /* time_s < 0: the time runs; the same for wall_s */
} script;

static pthread_mutex_t script_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- reading the script ---- */

static void bad_line(const char *line)
{
    fprintf(stderr, "fake nvml: invalid line: %s\n", line);
    abort();
}

static void script_defaults(void)
{
    script.devices = 1;
    script.init = 0;
    script.fields_type = script.samples_type = 1;
    snprintf(script.driver, sizeof script.driver, "580.95.05");
    script.rule_count = 0;
    script.time_s = script.wall_s = -1;
    script.step_s = script.step_at = 0;
    for (int d = 0; d < DEVICES_MAX; d++) {
        struct gpu *gpu = &script.gpus[d];
        *gpu = (struct gpu){.low_w = 100,
                            .memory_share = 0.2,
                            .tick_s = 0.1,
                            .reset_s = -1,
                            .spacing_s = 0.02,
                            .gpm = true,
                            .depth = 119,
                            .mig = -1};
        snprintf(gpu->name, sizeof gpu->name, "NVIDIA H200");
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%08x-1111-2222-3333-444444444444", (unsigned)d);
        for (int k = 0; k < KEY_COUNT; k++)
            gpu->value[k] = KEYS[k].preset;
    }
}

static void parse_power(struct gpu *gpu, const char *rest, const char *line)
{
    char kind[16];
    int used = 0;
    if (sscanf(rest, "%15s %n", kind, &used) != 1)
        bad_line(line);
    rest += used;
    gpu->duty = 0.5;
    if (!strcmp(kind, "constant") && sscanf(rest, "%lf", &gpu->low_w) == 1) {
        gpu->profile = CONSTANT;
    } else if (!strcmp(kind, "square") && sscanf(rest, "%lf %lf %lf %lf", &gpu->low_w, &gpu->high_w,
                                                 &gpu->period_s, &gpu->duty) >= 3) {
        gpu->profile = SQUARE;
    } else if (!strcmp(kind, "clocked") &&
               sscanf(rest, "%lf %lf %lf", &gpu->low_w, &gpu->high_w, &gpu->exponent) == 3) {
        gpu->profile = CLOCKED;
    } else if (!strcmp(kind, "steps")) {
        gpu->profile = STEPS;
        gpu->steps = 0;
        while (gpu->steps < STEPS_MAX && sscanf(rest, "%lf:%lf %n", &gpu->step_s[gpu->steps],
                                                &gpu->step_w[gpu->steps], &used) == 2) {
            gpu->steps++;
            rest += used;
        }
        if (!gpu->steps || *rest)
            bad_line(line);
    } else {
        bad_line(line);
    }
}

static int parse_type(const char *name)
{
    static const char *const NAMES[] = {"double",   "uint", "ulong", "ulonglong",
                                        "longlong", "int",  "ushort"};
    for (int i = 0; i < 7; i++)
        if (!strcmp(NAMES[i], name))
            return i;
    return -1;
}

static void parse_rule(const char *verb, const char *rest, const char *line)
{
    struct rule rule = {.from_s = -1, .to_s = INFINITY};
    char device[16], word[16];
    double number;
    int used = 0;
    if (sscanf(rest, "%71s %15s %lf %n", rule.function, device, &number, &used) != 3 ||
        script.rule_count == RULES_MAX)
        bad_line(line);
    rule.device = device[0] == '*' ? -1 : atoi(device);
    if (!strcmp(verb, "fail"))
        rule.code = (int)number;
    else
        rule.block_ms = number;
    for (rest += used; sscanf(rest, "%15s %lf %n", word, &number, &used) == 2; rest += used) {
        if (!strcmp(word, "after"))
            rule.after = (long)number;
        else if (!strcmp(word, "for"))
            rule.count = (long)number;
        else if (!strcmp(word, "from"))
            rule.from_s = number;
        else if (!strcmp(word, "to"))
            rule.to_s = number;
        else
            bad_line(line);
    }
    if (*rest)
        bad_line(line);
    script.rules[script.rule_count++] = rule;
}

static bool parse_value(struct gpu *gpu, const char *key, double number)
{
    for (int k = 0; k < KEY_COUNT; k++) {
        if (strcmp(KEYS[k].name, key) != 0)
            continue;
        gpu->value[k] = number;
        gpu->is_set[k] = true;
        return true;
    }
    return false;
}

static void parse_process(struct gpu *gpu, const char *rest, const char *line)
{
    struct fake_process process = {.pct = -1};
    if (gpu->process_count == PROCESSES_MAX ||
        sscanf(rest, "%u %lf %lf", &process.pid, &process.memory, &process.pct) < 2)
        bad_line(line);
    gpu->processes[gpu->process_count++] = process;
}

static void parse_instance(struct gpu *gpu, const char *rest, const char *line)
{
    unsigned i, slices;
    double sm;
    char profile[24];
    if (sscanf(rest, "%u %u %lf %23s", &i, &slices, &sm, profile) != 4 || i >= MIG_MAX)
        bad_line(line);
    gpu->instances[i].slices = slices;
    gpu->instances[i].sm = sm;
    memcpy(gpu->instances[i].profile, profile, sizeof profile);
}

static void parse_clocks(struct gpu *gpu, const char *rest, const char *line)
{
    struct clock_set set = {0};
    int used = 0;
    if (gpu->clock_sets < CLOCK_SETS_MAX && sscanf(rest, "%u %n", &set.memory_mhz, &used) == 1 &&
        strchr(rest, ',')) {
        for (char *at = (char *)rest + used; *at && set.count < CLOCKS_MAX; at += *at == ',')
            set.list[set.count++] = (unsigned)strtoul(at, &at, 10);
        gpu->clocks[gpu->clock_sets++] = set;
        return;
    }
    if (gpu->clock_sets == CLOCK_SETS_MAX ||
        sscanf(rest, "%u %lf:%lf:%lf", &set.memory_mhz, &set.high, &set.low, &set.step) != 4 ||
        !(set.step > 0 && set.low <= set.high))
        bad_line(line);
    gpu->clocks[gpu->clock_sets++] = set;
}

/* A directive about one device; rest is what follows the device. */
static void parse_device(struct gpu *gpu, const char *verb, const char *rest, const char *line)
{
    double number = strtod(rest, NULL);
    bool yes = !strcmp(rest, "yes");
    if (!strcmp(verb, "name"))
        snprintf(gpu->name, sizeof gpu->name, "%.95s", rest);
    else if (!strcmp(verb, "uuid"))
        snprintf(gpu->uuid, sizeof gpu->uuid, "%.95s", rest);
    else if (!strcmp(verb, "power"))
        parse_power(gpu, rest, line);
    else if (!strcmp(verb, "memory_share"))
        gpu->memory_share = number;
    else if (!strcmp(verb, "module"))
        gpu->module = yes;
    else if (!strcmp(verb, "gpm"))
        gpu->gpm = yes;
    else if (!strcmp(verb, "tick"))
        gpu->tick_s = number;
    else if (!strcmp(verb, "energy_start"))
        gpu->start_mj = number;
    else if (!strcmp(verb, "energy_reset"))
        gpu->reset_s = number;
    else if (!strcmp(verb, "spacing"))
        gpu->spacing_s = number;
    else if (!strcmp(verb, "depth"))
        gpu->depth = (int)number;
    else if (!strcmp(verb, "pad"))
        gpu->pad = (int)number;
    else if (!strcmp(verb, "process"))
        parse_process(gpu, rest, line);
    else if (!strcmp(verb, "clocks"))
        parse_clocks(gpu, rest, line);
    else if (!strcmp(verb, "mig_instance"))
        parse_instance(gpu, rest, line);
    else if (!strcmp(verb, "mig"))
        gpu->mig = number < MIG_MAX ? (int)number : MIG_MAX;
    else
        bad_line(line);
}

/* A directive about the whole machine; false if it is not one. */
static bool parse_machine(const char *verb, const char *rest, const char *line)
{
    char which[16], type[16];
    if (!strcmp(verb, "devices"))
        script.devices = atoi(rest) < DEVICES_MAX ? atoi(rest) : DEVICES_MAX;
    else if (!strcmp(verb, "driver"))
        snprintf(script.driver, sizeof script.driver, "%.63s", rest);
    else if (!strcmp(verb, "init"))
        script.init = atoi(rest);
    else if (!strcmp(verb, "time"))
        script.time_s = strtod(rest, NULL);
    else if (!strcmp(verb, "wall"))
        script.wall_s = strtod(rest, NULL);
    else if (!strcmp(verb, "fail") || !strcmp(verb, "block"))
        parse_rule(verb, rest, line);
    else if (!strcmp(verb, "wall_step")) {
        if (sscanf(rest, "%lf %lf", &script.step_s, &script.step_at) != 2)
            bad_line(line);
    } else if (!strcmp(verb, "type")) {
        if (sscanf(rest, "%15s %15s", which, type) != 2 || parse_type(type) < 0)
            bad_line(line);
        *(strcmp(which, "fields") ? &script.samples_type : &script.fields_type) = parse_type(type);
    } else {
        return false;
    }
    return true;
}

static void parse_line(const char *line)
{
    char verb[32], key[32] = "", device[16], number[40];
    int used = 0;
    if (sscanf(line, "%31s %n", verb, &used) != 1 || verb[0] == '#')
        return;
    const char *rest = line + used;
    if (parse_machine(verb, rest, line))
        return;
    bool is_value = !strcmp(verb, "value");
    if (is_value ? sscanf(rest, "%31s %15s %39s %n", key, device, number, &used) != 3
                 : sscanf(rest, "%15s %n", device, &used) != 1)
        bad_line(line);
    for (int d = 0; d < DEVICES_MAX; d++) {
        if (device[0] != '*' && atoi(device) != d)
            continue;
        if (!is_value)
            parse_device(&script.gpus[d], verb, rest + used, line);
        else if (!parse_value(&script.gpus[d], key, strtod(number, NULL)))
            bad_line(line);
    }
}

static double now_s(void);
static double counted_mj(const struct gpu *gpu, double t);

/* Reads the file and, if it changed, parses it. Comparing the bytes is safer than timestamps, whose
 * resolution is coarser than a test's changes. Counters continue from where they are, as those of a
 * card whose load changes, unless the new script says where they start. */
static void script_refresh(void)
{
    static char text[SCRIPT_MAX];
    const char *path = getenv("IPW_FAKE_NVML");
    size_t length = 0;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        ssize_t got;
        while ((got = read(fd, text + length, sizeof text - 1 - length)) > 0)
            length += (size_t)got;
        close(fd);
    } else if (path) {
        bad_line(path);
    }
    text[length] = '\0';
    if (script.driver[0] && !strcmp(text, script.text))
        return;
    double t = 0, counted[DEVICES_MAX] = {0};
    bool is_first = !script.driver[0];
    if (!is_first)
        t = now_s();
    for (int i = 0; i < DEVICES_MAX && !is_first; i++)
        counted[i] = script.gpus[i].start_mj + counted_mj(&script.gpus[i], t);
    memcpy(script.text, text, length + 1);
    script_defaults();
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        line[strcspn(line, "#")] = '\0';
        parse_line(line);
        line = end ? end + 1 : NULL;
    }
    for (int i = 0; i < DEVICES_MAX && !is_first; i++)
        if (script.gpus[i].start_mj == 0 && script.gpus[i].reset_s < 0)
            script.gpus[i].start_mj = counted[i] - counted_mj(&script.gpus[i], t);
}

/* ---- settings ---- */

static struct settings settings[DEVICES_MAX];

/* Reads what an earlier call, of this or another process, has set. */
static void settings_load(void)
{
    const char *path = getenv("IPW_FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!path)
        return;
    memset(settings, 0, sizeof settings);
    unsigned device;
    struct settings one;
    while (file &&
           fscanf(file, "%u graphics %u %u memory %u %u limit %u\n", &device, &one.graphics[0],
                  &one.graphics[1], &one.memory[0], &one.memory[1], &one.limit_mw) == 6)
        if (device < DEVICES_MAX)
            settings[device] = one;
    if (file)
        fclose(file);
}

/* Replaces the file atomically. */
static void settings_save(void)
{
    const char *path = getenv("IPW_FAKE_NVML_STATE");
    char temporary[600];
    if (!path)
        return;
    snprintf(temporary, sizeof temporary, "%.500s.%ld", path, (long)getpid());
    FILE *file = fopen(temporary, "we");
    for (int d = 0; file && d < script.devices; d++)
        fprintf(file, "%d graphics %u %u memory %u %u limit %u\n", d, settings[d].graphics[0],
                settings[d].graphics[1], settings[d].memory[0], settings[d].memory[1],
                settings[d].limit_mw);
    if (!file || fclose(file) || rename(temporary, path))
        bad_line(path);
}

/* ---- time and physics ---- */

static double clock_seconds(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Time 0 is the first call in the process: the library stays loaded, like a kernel driver. */
static double time_zero(void)
{
    static double zero;
    if (zero == 0)
        zero = clock_seconds(CLOCK_MONOTONIC);
    return zero;
}

static double now_s(void)
{
    return script.time_s >= 0 ? script.time_s : clock_seconds(CLOCK_MONOTONIC) - time_zero();
}

/* Wall time minus monotonic time: the pair of reads with the least time in between, as the thread may be preempted. */
static double wall_offset(void)
{
    double offset = 0, min = INFINITY;
    for (int i = 0; i < 20 && min > 1e-4; i++) {
        double before = clock_seconds(CLOCK_MONOTONIC), wall = clock_seconds(CLOCK_REALTIME);
        double between = clock_seconds(CLOCK_MONOTONIC) - before;
        if (between < min) {
            offset = wall - before - between / 2;
            min = between;
        }
    }
    return offset;
}

/* A driver stamps with the machine's wall clock, which may be set while the process runs: timestamps from then on are
 * by the new setting. */
static double machine_wall(double t)
{
    enum { EPOCHS_MAX = 64 };
    static struct {
        double from, offset;
    } epochs[EPOCHS_MAX];
    static int count;
    double offset = wall_offset();
    bool is_set = count == 0 || fabs(offset - epochs[count - 1].offset) > 2e-3;
    if (is_set && count < EPOCHS_MAX) {
        epochs[count].from = count ? now_s() : -INFINITY;
        epochs[count++].offset = offset;
    }
    int i = count - 1;
    while (i > 0 && t < epochs[i].from)
        i--;
    return epochs[i].offset + time_zero() + t;
}

static unsigned long long wall_us(double t)
{
    double wall = script.wall_s >= 0 ? script.wall_s + t : machine_wall(t);
    if (script.step_s != 0 && t > script.step_at)
        wall += script.step_s;
    return (unsigned long long)llround(wall * 1e6);
}

/* The power of a clocked GPU: watts[i] from second[i] on. It persists across scripts, as settings do. */
static struct changes {
    double second[CHANGES_MAX], watts[CHANGES_MAX];
    int count;
} changes[DEVICES_MAX];

static void record_change(const struct gpu *gpu, double t)
{
    const struct settings *set = &settings[gpu - script.gpus];
    struct changes *past = &changes[gpu - script.gpus];
    double fmax_mhz = gpu->value[KEY_CLOCK_SM_MAX];
    double mhz = set->graphics[1] ? set->graphics[1] : fmax_mhz;
    double limit_w = (set->limit_mw ? set->limit_mw : gpu->value[KEY_LIMIT_MW]) / 1e3;
    double busy_w = (gpu->high_w - gpu->low_w) * pow(mhz / fmax_mhz, gpu->exponent);
    if (gpu->profile != CLOCKED)
        return;
    if (past->count == CHANGES_MAX)
        bad_line("too many changes of a clocked GPU");
    past->second[past->count] = t;
    past->watts[past->count++] = fmin(limit_w, gpu->low_w + busy_w);
}

static double stepped_joules(const double *second, const double *watts, int count, double t)
{
    double sum = watts[0] * fmin(t, second[0]);
    for (int i = 0; i < count && second[i] < t; i++) {
        double end = i + 1 < count ? fmin(second[i + 1], t) : t;
        sum += watts[i] * (end - second[i]);
    }
    return sum;
}

/* Joules drawn from 0 to t. */
static double joules(const struct gpu *gpu, double t)
{
    struct changes *past = &changes[gpu - script.gpus];
    if (t <= 0)
        return 0;
    if (gpu->profile == CLOCKED) {
        if (!past->count) {
            settings_load();
            record_change(gpu, 0);
        }
        return stepped_joules(past->second, past->watts, past->count, t);
    }
    if (gpu->profile == CONSTANT)
        return gpu->low_w * t;
    if (gpu->profile == SQUARE) {
        double whole = floor(t / gpu->period_s), on = gpu->duty * gpu->period_s;
        double high_s = whole * on + fmin(t - whole * gpu->period_s, on);
        return gpu->high_w * high_s + gpu->low_w * (t - high_s);
    }
    return stepped_joules(gpu->step_s, gpu->step_w, gpu->steps, t);
}

/* Mean watts of the s seconds up to t. */
static double mean_watts(const struct gpu *gpu, double t, double s)
{
    if (t < s)
        t = s; /* before the start it was as at the start */
    return (joules(gpu, t) - joules(gpu, t - s)) / s;
}

static double tick_before(const struct gpu *gpu, double t)
{
    return floor(t / gpu->tick_s + 1e-9) * gpu->tick_s;
}

/* The counter since 0, without resets: it changes at ticks only. */
static double counted_mj(const struct gpu *gpu, double t)
{
    return floor(joules(gpu, tick_before(gpu, t)) * 1e3 + 1e-6);
}

static double counter_mj(const struct gpu *gpu, double t)
{
    if (gpu->is_set[KEY_ENERGY_MJ])
        return gpu->value[KEY_ENERGY_MJ];
    double tick = tick_before(gpu, t);
    if (gpu->reset_s >= 0 && tick >= gpu->reset_s)
        return floor((joules(gpu, tick) - joules(gpu, gpu->reset_s)) * 1e3 + 1e-6);
    return gpu->start_mj + counted_mj(gpu, t);
}

static double sample_mw(const struct gpu *gpu, double t)
{
    return gpu->is_set[KEY_SAMPLES_MW] ? gpu->value[KEY_SAMPLES_MW]
                                       : mean_watts(gpu, t, gpu->spacing_s) * 1e3;
}

/* Fields are published every 100 ms: instant over the last 25 ms, average over a second. */
static double field_mw(const struct gpu *gpu, double t, double window_s)
{
    return gpu->is_set[KEY_POWER_MW] ? gpu->value[KEY_POWER_MW]
                                     : mean_watts(gpu, floor(t * 10 + 1e-9) / 10, window_s) * 1e3;
}

/* ---- costs and counts of calls ---- */

enum { FUNCTIONS_MAX = 64, LEARNED_S = 4 };

static struct {
    const char *names[FUNCTIONS_MAX]; /* literals */
    long counts[FUNCTIONS_MAX];
    long repeated;
    int length;
    double counted[DEVICES_MAX]; /* update that the last reading of the counter found */
} calls;

static _Thread_local struct {
    const char *function;
    double began;
    int fields;
} current;

static bool is_counted(double t)
{
    const char *range = getenv("IPW_FAKE_NVML_CALLS_RANGE");
    double from = 0, to = INFINITY;
    if (range && sscanf(range, "%lf %lf", &from, &to) != 2)
        bad_line(range);
    return t >= from && t < to;
}

static void count_call(const char *function)
{
    int i = 0;
    current.function = function;
    current.began = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    current.fields = 0;
    while (i < calls.length && strcmp(calls.names[i], function) != 0)
        i++;
    if (i == FUNCTIONS_MAX || !is_counted(now_s()))
        return;
    calls.names[i] = function;
    calls.length += i == calls.length;
    calls.counts[i]++;
}

/* The cost of `name` in microseconds; -1 without one. */
static double cost_us(const char *name)
{
    const char *at = getenv("IPW_FAKE_NVML_COSTS");
    size_t length = strlen(name);
    for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, length) && at[length] == '=')
            return strtod(at + length + 1, NULL);
    return -1;
}

/* Burns the CPU time that the call costs, minus what the fake itself has used. */
static void spend(void)
{
    double us = current.fields ? current.fields * cost_us("field") : cost_us(current.function);
    if (us < 0 && !current.fields && !strncmp(current.function, "nvmlDevice", 10))
        us = cost_us("*");
    while (us > 0 && (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - current.began) * 1e6 < us)
        ;
}

__attribute__((destructor)) static void write_calls(void)
{
    const char *path = getenv("IPW_FAKE_NVML_CALLS");
    FILE *file = path && calls.length ? fopen(path, "we") : NULL;
    for (int i = 0; file && i < calls.length; i++)
        fprintf(file, "%s %ld\n", calls.names[i], calls.counts[i]);
    if (file)
        fprintf(file, "repeated %ld\nzero %.6f\n", calls.repeated, (double)wall_us(0) * 1e-6);
    if (file)
        fclose(file);
}

/* ---- faults ---- */

/* The effect of the rules on a call: its code, and how long it blocks. */
static int apply_rules(const char *function, int device, double *block_ms)
{
    int code = 0;
    double t = now_s();
    for (int i = 0; i < script.rule_count; i++) {
        struct rule *rule = &script.rules[i];
        bool any = !strcmp(rule->function, "*") && device >= 0 && !strchr(function, ':');
        if ((!any && strcmp(rule->function, function) != 0) ||
            (rule->device >= 0 && rule->device != device) || t < rule->from_s || t >= rule->to_s)
            continue;
        long call = ++rule->calls;
        if (call <= rule->after || (rule->count && call > rule->after + rule->count))
            continue;
        *block_ms += rule->block_ms;
        if (!code)
            code = rule->code;
    }
    return code;
}

#endif
