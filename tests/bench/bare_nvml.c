/* What the CPU time of sampling a GPU is compared with: a loop that makes the NVML calls of one reading of `ipw energy`,
 * and nothing else.
 *
 *   bare_nvml SECONDS    time between readings; runs until a signal ends it */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SAMPLES_MAX = 256, CLOCKS = 2 };

/* As in the library's interface. */
struct sample {
    unsigned long long time;
    unsigned long long value;
};
struct field {
    unsigned id, scope;
    long long timestamp, latency_us;
    int value_type, code;
    unsigned long long value;
};
struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

static int (*get_energy)(void *, unsigned long long *);
static int (*get_samples)(void *, int, unsigned long long, int *, unsigned *, struct sample *);
static int (*get_fields)(void *, int, struct field *);
static int (*get_temperature)(void *, int, unsigned *);
static int (*get_memory)(void *, struct memory *);
static int (*get_utilization)(void *, unsigned *);
static int (*get_clock)(void *, int, unsigned *);
static int (*get_limit)(void *, unsigned *);
static int (*get_reasons)(void *, unsigned long long *);

static void load(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    if (!*(void **)function) {
        fprintf(stderr, "bare_nvml: no %s\n", name);
        exit(EXIT_FAILURE);
    }
}

static void *open_device(void)
{
    const char *path = getenv("IPW_NVML");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*init)(void);
    int (*get_handle)(unsigned, void **);
    void *device;
    if (!library) {
        fprintf(stderr, "bare_nvml: IPW_NVML names no library\n");
        exit(EXIT_FAILURE);
    }
    load(library, "nvmlInit_v2", &init);
    load(library, "nvmlDeviceGetHandleByIndex_v2", &get_handle);
    load(library, "nvmlDeviceGetTotalEnergyConsumption", &get_energy);
    load(library, "nvmlDeviceGetSamples", &get_samples);
    load(library, "nvmlDeviceGetFieldValues", &get_fields);
    load(library, "nvmlDeviceGetTemperature", &get_temperature);
    load(library, "nvmlDeviceGetMemoryInfo_v2", &get_memory);
    load(library, "nvmlDeviceGetUtilizationRates", &get_utilization);
    load(library, "nvmlDeviceGetClockInfo", &get_clock);
    load(library, "nvmlDeviceGetEnforcedPowerLimit", &get_limit);
    load(library, "nvmlDeviceGetCurrentClocksEventReasons", &get_reasons);
    if (init() || get_handle(0, &device))
        exit(EXIT_FAILURE);
    return device;
}

static void read_once(void *device)
{
    static struct sample samples[SAMPLES_MAX];
    static unsigned long long newest;
    struct field field = {.id = 186};
    struct memory memory = {.version = (unsigned)sizeof memory | 2U << 24};
    unsigned count = SAMPLES_MAX, numbers[2];
    unsigned long long reasons;
    int type;
    if (!get_samples(device, 0, newest, &type, &count, samples) && count)
        newest = samples[count - 1].time;
    get_fields(device, 1, &field);
    get_temperature(device, 0, numbers);
    get_memory(device, &memory);
    get_utilization(device, numbers);
    for (int i = 0; i < CLOCKS; i++)
        get_clock(device, i, numbers);
    get_limit(device, numbers);
    get_reasons(device, &reasons);
}

int main(int argc, char **argv)
{
    static const double COUNTER_S = 32; /* the energy counter, whose call is expensive */
    double interval_s = argc > 1 ? atof(argv[1]) : 1, since_s = COUNTER_S;
    void *device = open_device();
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        long ns = next.tv_nsec + (long)(interval_s * 1e9);
        unsigned long long mj;
        next.tv_sec += ns / 1000000000;
        next.tv_nsec = ns % 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        read_once(device);
        since_s += interval_s;
        if (since_s >= COUNTER_S) {
            get_energy(device, &mj);
            since_s = 0;
        }
    }
}
