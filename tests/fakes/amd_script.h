/* Shared by the fake AMD SMI and the fake ROCm SMI: a scripted set of GPUs.
 *
 * The script is the text file named by IPW_FAKE_AMD.  It is read again at every call, so a test
 * changes the machine by rewriting it.  One directive per line, '#' starts a comment; D is a device
 * index, or * for all:
 *
 *   version N            first word of the library's version; picks its struct layouts
 *   devices N            number of GPUs (first, before directives about them)
 *   name D TEXT          marketing name
 *   unique D HEX         unique id (AMD SMI: as HIP's UUID, from version 25 on)
 *   pci D DDDD:BB:DD.F   PCI address, hexadecimal
 *   hip D N              HIP's index (AMD SMI from version 25 on)
 *   type D N             processor type (AMD SMI): 1 is a GPU, 2 a CPU
 *   energy D COUNTS      the accumulator
 *   moving D             the accumulator grows by the watts and the monotonic clock
 *   backwards D COUNTS   every energy call returns that many counts less than the previous one
 *   resolution UJ        microjoules per count; default 15.3
 *   watts D W            power, in the field that newer cards fill
 *   average D W          power, in the field that older cards fill (watts then unset)
 *   cap D RAW            power limit in the library's raw unit
 *   edge D RAW           temperature in the library's raw unit; unset: not supported
 *   junction D RAW
 *   memory D USED TOTAL  bytes
 *   busy D GFX MEMORY    percent
 *   clock D GFX MEMORY   MHz
 *   mi250                odd devices report neither joules nor watts
 *   error FUNCTION D STATUS   that function fails with the vendor's status code; FUNCTION without
 *                        the library's prefix, e.g. "get_energy_count" or "init"
 *
 * Like the real libraries these are not thread-safe: a call during another one makes the accumulator
 * jump back, and is counted. */
#ifndef TESTS_FAKES_AMD_SCRIPT_H
#define TESTS_FAKES_AMD_SCRIPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GPUS_MAX = 16, FAULTS_MAX = 32, NOT_SET = -1 };

struct gpu {
    char name[128];
    uint64_t unique;
    unsigned pci[4];
    long hip;
    unsigned type;
    uint64_t energy;
    bool moving;
    uint64_t backwards;
    double watts, average;
    uint64_t cap;
    long edge, junction;
    unsigned long long used, total;
    unsigned busy, memory_busy;
    unsigned clock, memory_clock;
};

struct fault {
    char function[48];
    int device; /* -1 for all */
    unsigned status;
};

static struct script {
    unsigned version;
    unsigned devices;
    double resolution;
    bool mi250;
    struct gpu gpus[GPUS_MAX];
    struct fault faults[FAULTS_MAX];
    unsigned fault_count;
} script;

/* Persists when the script is read again. */
static uint64_t energy_calls[GPUS_MAX];
static struct timespec born;
static atomic_int inside;
static atomic_int races;
static atomic_int live;

static void set_defaults(void)
{
    script = (struct script){.version = 26, .resolution = 15.3};
    for (unsigned i = 0; i < GPUS_MAX; i++)
        script.gpus[i] = (struct gpu){
            .name = "AMD Instinct MI300X",
            .pci = {0, 0x10 + i, 0, 0},
            .hip = NOT_SET,
            .type = 1,
            .watts = NOT_SET,
            .average = NOT_SET,
            .edge = NOT_SET,
            .junction = NOT_SET,
        };
}

static void set_gpu(struct gpu *gpu, const char *word, const char *rest)
{
    if (!strcmp(word, "name"))
        snprintf(gpu->name, sizeof gpu->name, "%s", rest);
    else if (!strcmp(word, "unique"))
        gpu->unique = strtoull(rest, NULL, 16);
    else if (!strcmp(word, "pci"))
        sscanf(rest, "%x:%x:%x.%x", &gpu->pci[0], &gpu->pci[1], &gpu->pci[2], &gpu->pci[3]);
    else if (!strcmp(word, "hip"))
        gpu->hip = atol(rest);
    else if (!strcmp(word, "type"))
        gpu->type = (unsigned)atol(rest);
    else if (!strcmp(word, "energy"))
        gpu->energy = strtoull(rest, NULL, 10);
    else if (!strcmp(word, "moving"))
        gpu->moving = true;
    else if (!strcmp(word, "backwards"))
        gpu->backwards = strtoull(rest, NULL, 10);
    else if (!strcmp(word, "watts"))
        gpu->watts = atof(rest);
    else if (!strcmp(word, "average"))
        gpu->average = atof(rest);
    else if (!strcmp(word, "cap"))
        gpu->cap = strtoull(rest, NULL, 10);
    else if (!strcmp(word, "edge"))
        gpu->edge = atol(rest);
    else if (!strcmp(word, "junction"))
        gpu->junction = atol(rest);
    else if (!strcmp(word, "memory"))
        sscanf(rest, "%llu %llu", &gpu->used, &gpu->total);
    else if (!strcmp(word, "busy"))
        sscanf(rest, "%u %u", &gpu->busy, &gpu->memory_busy);
    else if (!strcmp(word, "clock"))
        sscanf(rest, "%u %u", &gpu->clock, &gpu->memory_clock);
    else
        fprintf(stderr, "fake: unknown directive %s\n", word), abort();
}

static void set_fault(const char *rest)
{
    struct fault *fault = &script.faults[script.fault_count];
    char device[16];
    if (script.fault_count == FAULTS_MAX ||
        sscanf(rest, "%47s %15s %u", fault->function, device, &fault->status) != 3)
        abort();
    fault->device = device[0] == '*' ? -1 : atoi(device);
    script.fault_count++;
}

static void set_line(char *line)
{
    char word[32], device[16];
    int at = 0;
    line[strcspn(line, "#\n")] = '\0';
    if (sscanf(line, "%31s %n", word, &at) != 1)
        return;
    char *rest = line + at;
    if (!strcmp(word, "version"))
        script.version = (unsigned)atol(rest);
    else if (!strcmp(word, "devices"))
        script.devices = (unsigned)atol(rest);
    else if (!strcmp(word, "resolution"))
        script.resolution = atof(rest);
    else if (!strcmp(word, "mi250"))
        script.mi250 = true;
    else if (!strcmp(word, "error"))
        set_fault(rest);
    else if (sscanf(rest, "%15s %n", device, &at) == 1)
        for (unsigned i = 0; i < GPUS_MAX; i++)
            if (device[0] == '*' || (unsigned)atoi(device) == i)
                set_gpu(&script.gpus[i], word, rest + at);
}

static void read_script(void)
{
    const char *path = getenv("IPW_FAKE_AMD");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256];
    set_defaults();
    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        set_line(line);
    fclose(file);
    for (unsigned i = 1; script.mi250 && i < GPUS_MAX; i += 2) {
        script.gpus[i].energy = 0;
        script.gpus[i].moving = false;
        script.gpus[i].watts = 0;
    }
}

/* Begins a call: the scripted status of the function for the device, 0 when it works.  Every
 * enter is followed by one leave. */
static unsigned enter(const char *function, int device)
{
    if (atomic_fetch_add(&inside, 1) > 0)
        atomic_fetch_add(&races, 1);
    read_script();
    for (unsigned i = 0; i < script.fault_count; i++) {
        const struct fault *fault = &script.faults[i];
        if (!strcmp(fault->function, function) && (fault->device < 0 || fault->device == device))
            return fault->status;
    }
    return 0;
}

static int leave(unsigned status)
{
    atomic_fetch_sub(&inside, 1);
    return (int)status;
}

static uint64_t read_energy(unsigned device)
{
    const struct gpu *gpu = &script.gpus[device];
    uint64_t count = gpu->energy;
    if (gpu->moving) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        double seconds = (double)(now.tv_sec - born.tv_sec) + 1e-9 * (now.tv_nsec - born.tv_nsec);
        count += (uint64_t)(gpu->watts * seconds / (script.resolution * 1e-6));
    }
    count -= gpu->backwards * energy_calls[device]++;
    return atomic_load(&inside) > 1 ? count / 2 : count;
}

static void start(void)
{
    if (atomic_fetch_add(&live, 1) == 0)
        clock_gettime(CLOCK_MONOTONIC, &born);
}

/* For the tests: calls of init less calls of shut_down, and calls that overlapped. */
#pragma GCC visibility push(default)
int fake_live(void);
int fake_races(void);
#pragma GCC visibility pop

int fake_live(void)
{
    return atomic_load(&live);
}

int fake_races(void)
{
    return atomic_load(&races);
}

#endif
