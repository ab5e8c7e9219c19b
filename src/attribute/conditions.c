/* The difference of the CPU times of the host (/proc/stat) and of the measured processes over a window is the load
 * of other processes; for GPUs, the sampler records the processes.  Everything else comes from readings that the
 * sampler makes anyway. */
#include "attribute/conditions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/finding.h"
#include "core/text.h"
#include "port/proc.h"
#include "port/thread.h"
#include "port/url.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "sensors/system/host_info.h"

/* Load of other processes that is reported: a share of the CPUs, of a GPU, or of the energy. */
#define SHARE_WARNING 0.05
#define SHARE_INVALID 0.25
/* Background activity of an idle machine, in CPUs. */
#define IDLE_CPUS_MIN 0.1
/* A change of idle power that is reported: at least this large, and larger than its uncertainty explains. */
#define IDLE_CHANGE_NOTE    0.1
#define IDLE_CHANGE_WARNING 0.25
#define IDLE_SIGMAS         3
/* Scheduler ticks and CPU times of processes are counted differently. */
#define OWN_ACCURACY 0.02

enum { IDLE_TRIES = 3 };

/* ---- CPU time ---- */

static double cpu_seconds(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static double own_cpu_s(const struct conditions *c)
{
    int self = (int)getpid();
    /* The kernel adds a child's time to ours when it is reaped: until then only /proc has it. */
    double own = c->has_orphans ? proc_tree_cpu_s(&self, 1) : UNKNOWN;
    if (!is_known(own))
        own = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
    if (c->is_hidden)
        return UNKNOWN;
    if (!c->server_count)
        return own;
    return proc_tree_cpu_s(c->servers, c->server_count) + (c->is_inside ? 0 : own);
}

void conditions_init(struct conditions *c, struct session *session)
{
    struct host_info host;
    *c = (struct conditions){.session = session};
    summary_conditions_init(&c->figures);
    host_info_read(&host);
    if (host.cpu_count)
        c->figures.cpus = host.cpu_count;
}

void conditions_serve(struct conditions *c, const char *base_url)
{
    struct url url;
    if (!base_url || !base_url[0])
        return;
    if (url_read(base_url, &url, NULL) == ERR_OK &&
        (url_is_loopback(&url) || str_equal(url.host, "localhost")))
        c->server_count = proc_listeners((unsigned)strtoul(url.port, NULL, 10), c->servers);
    c->is_hidden = c->server_count == 0;
    c->is_inside = proc_tree_has(c->servers, c->server_count, (int)getpid());
}

void conditions_mark(const struct conditions *c, struct conditions_mark *out)
{
    *out = (struct conditions_mark){
        .own_s = own_cpu_s(c), .host_s = proc_stat_busy_s(), .t = clock_now()};
}

void conditions_begin(struct conditions *c)
{
    sampler_watch_begin(c->session->sampler);
    conditions_mark(c, &c->begin);
}

static double tick_error_s(const struct conditions *c)
{
    double cpus = c->figures.cpus > 0 ? (double)c->figures.cpus : 1;
    return (cpus + 1) / (double)sysconf(_SC_CLK_TCK);
}

/* In a window shorter than the kernel's ticks these may exceed the available CPU time. */
static double background_cpus(const struct conditions *c, double busy_s, double window_s)
{
    double busy = fmax(busy_s, 0) / window_s;
    return c->figures.cpus > 0 ? fmin(busy, (double)c->figures.cpus) : busy;
}

static struct conditions_use use_since(const struct conditions *c,
                                       const struct conditions_mark *mark)
{
    struct conditions_use use = {.seconds = seconds(clock_now() - mark->t),
                                 .host_s = proc_stat_busy_s() - mark->host_s,
                                 .own_s = own_cpu_s(c) - mark->own_s,
                                 .background = UNKNOWN};
    if (!(use.host_s >= 0)) /* a CPU went offline */
        use.host_s = UNKNOWN;
    if (is_known(use.host_s - use.own_s))
        use.background = background_cpus(c, use.host_s - use.own_s, use.seconds);
    double own_error = is_known(use.own_s) ? OWN_ACCURACY * use.own_s : 0;
    use.plus_minus = (tick_error_s(c) + own_error) / use.seconds;
    return use;
}

void conditions_stop(struct conditions *c)
{
    c->use = use_since(c, &c->begin);
    sampler_watch_end(c->session->sampler);
}

/* ---- findings ---- */

static double share_of_cpus(const struct conditions *c, double busy)
{
    return c->figures.cpus > 0 ? busy / (double)c->figures.cpus : UNKNOWN;
}

static void find_background_cpu(const struct conditions *c, struct findings *out)
{
    const struct summary_conditions *figures = &c->figures;
    double joules_share = ratio(figures->background_joules, c->joules);
    double share = fmax(share_of_cpus(c, figures->background_cpus), joules_share);
    char joules[96] = "their energy is unknown without an idle baseline";
    if (is_known(joules_share))
        chars_format(joules, "about %.2g %% of the energy is theirs", 100 * joules_share);
    if (c->is_hidden && is_known(figures->cpu_busy_s))
        finding_raise(
            out, FINDING_BACKGROUND_UNKNOWN,
            "background load not determined: the server's CPU time is unknown, since its process "
            "is not on this machine or may not be inspected");
    if (share > SHARE_WARNING && figures->background_cpus > figures->background_cpus_plus_minus)
        finding_raise_as(out, FINDING_BACKGROUND_CPU,
                         share > SHARE_INVALID ? FINDING_INVALID : FINDING_WARNING,
                         "other processes used %.2g of %lld CPU%s: %s", figures->background_cpus,
                         (long long)figures->cpus, figures->cpus == 1 ? "" : "s", joules);
}

static void find_idle_change(const struct conditions *c, struct findings *out)
{
    const struct summary_conditions *f = &c->figures;
    double change = fabs(f->idle_after_w - f->idle_w);
    double error = hypot(f->idle_plus_minus, f->idle_after_plus_minus);
    if (c->refused[0] && f->idle_tries > 0)
        finding_raise(
            out, FINDING_BASELINE_REFUSED,
            "idle power not measured, since the machine was not idle in %lld attempts (%s): idle "
            "and active energy are unknown",
            (long long)f->idle_tries, c->refused);
    else if (c->refused[0])
        finding_raise(out, FINDING_BASELINE_REFUSED,
                      "idle power not measured, since %s: idle and active energy are unknown",
                      c->refused);
    if (c->refused_after[0])
        finding_raise(
            out, FINDING_IDLE_UNCHECKED,
            "idle power was not measured again at the end, since the machine was not idle (%s): "
            "it may have changed",
            c->refused_after);
    if (change > IDLE_CHANGE_NOTE * f->idle_w && change > IDLE_SIGMAS * error)
        finding_raise_as(
            out, FINDING_IDLE_CHANGED,
            change > IDLE_CHANGE_WARNING * f->idle_w ? FINDING_WARNING : FINDING_NOTE,
            "idle power was %.3g W before and %.3g W after: active energy is uncertain by as much",
            f->idle_w, f->idle_after_w);
}

static void find_unrecorded(const struct conditions *c, struct findings *out)
{
    if (c->unrecorded)
        finding_raise_as(
            out, FINDING_UNRECORDED_INFERENCE,
            c->unrecorded_share > SHARE_WARNING ? FINDING_WARNING : FINDING_NOTE,
            "%llu inference request%s not recorded, with %.0f %% of the requests' energy: unknown "
            "endpoint%s POST %s",
            (unsigned long long)c->unrecorded, c->unrecorded == 1 ? " was" : "s were",
            100 * c->unrecorded_share, c->unrecorded == 1 ? "" : "s, such as", c->unrecorded_path);
}

static void find_throttling(const struct conditions *c, struct findings *out)
{
    for (size_t i = 0; i < c->figures.device_count; i++) {
        const struct summary_condition *device = &c->figures.devices[i];
        if (device->throttled_share > SHARE_WARNING)
            finding_raise(out, FINDING_THROTTLED,
                          "%s was throttled by temperature or a power brake %.0f %% of the time",
                          device->id, 100 * device->throttled_share);
    }
}

/* ---- devices ---- */

/* The device's row; NULL when there are too many. */
static struct summary_condition *condition_of(struct conditions *c, const char *id)
{
    struct summary_conditions *figures = &c->figures;
    for (size_t i = 0; i < figures->device_count; i++)
        if (str_equal(figures->devices[i].id, id))
            return &figures->devices[i];
    if (figures->device_count == SUMMARY_CONDITIONS_MAX)
        return NULL;
    struct summary_condition *device = &figures->devices[figures->device_count++];
    *device = (struct summary_condition){.idle_w = UNKNOWN,
                                         .idle_after_w = UNKNOWN,
                                         .temperature_begin_c = UNKNOWN,
                                         .temperature_end_c = UNKNOWN,
                                         .clock_mhz = UNKNOWN,
                                         .throttled_share = UNKNOWN};
    for (size_t i = 0; i < SUMMARY_ACTIVITIES; i++)
        device->activity[i] = UNKNOWN;
    chars_copy(device->id, id);
    return device;
}

struct throttle_sum {
    nanos from, to, last;
    double held_s, seen_s;
    bool held;
};

static bool take_throttle(const struct timeline_point *points, size_t count, void *context)
{
    struct throttle_sum *sum = context;
    for (size_t i = 0; i < count; i++) {
        nanos t = points[i].t < sum->to ? points[i].t : sum->to;
        if (sum->last && t > sum->from) {
            double passed = seconds(t - (sum->last > sum->from ? sum->last : sum->from));
            sum->seen_s += passed;
            sum->held_s += sum->held ? passed : 0;
        }
        unsigned bits = is_known(points[i].value) ? (unsigned)points[i].value : 0;
        sum->held = bits & (THROTTLE_THERMAL | THROTTLE_BRAKE);
        sum->last = points[i].t;
    }
    return sum->last < sum->to;
}

/* The channel of a quantity of the device; false if it has none. */
static bool find_channel(struct conditions *c, const char *device, enum quantity quantity,
                         size_t *source, size_t *channel)
{
    struct sampler *sampler = c->session->sampler;
    for (*source = 0; *source < sampler_count(sampler); ++*source) {
        const struct sensor *sensor = sampler_sensor(sampler, *source);
        for (*channel = 0; *channel < sensor->channel_count; ++*channel)
            if (sensor->channels[*channel].quantity == quantity &&
                str_equal(sensor->channels[*channel].device, device))
                return true;
    }
    return false;
}

static double throttled_share(struct conditions *c, const char *device, nanos from, nanos to)
{
    struct throttle_sum sum = {.from = from, .to = to};
    size_t source, channel;
    if (!find_channel(c, device, QTY_THROTTLE, &source, &channel) ||
        sampler_points(c->session->sampler, source, channel, from - 2 * NS_PER_S, take_throttle,
                       &sum) != ERR_OK)
        return UNKNOWN;
    return ratio(sum.held_s, sum.seen_s);
}

/* Reads the temperature at the start from the preceding seconds. */
static double temperature_before(struct conditions *c, const char *device, nanos from)
{
    struct value_stats values;
    size_t source, channel;
    if (!find_channel(c, device, QTY_TEMPERATURE, &source, &channel) ||
        sampler_values(c->session->sampler, source, channel, from - 2 * NS_PER_S, from, &values) !=
            ERR_OK)
        return UNKNOWN;
    return values.avg;
}

static void take_activity(const struct ledger_device *device, struct summary_condition *row)
{
    static const enum quantity QUANTITIES[SUMMARY_ACTIVITIES] = {
        [SUMMARY_SM_ACTIVE] = QTY_SM_ACTIVE,     [SUMMARY_SM_OCCUPANCY] = QTY_SM_OCCUPANCY,
        [SUMMARY_DRAM_ACTIVE] = QTY_DRAM_ACTIVE, [SUMMARY_TENSOR_ACTIVE] = QTY_TENSOR_UTILIZATION,
        [SUMMARY_FP64_ACTIVE] = QTY_FP64_ACTIVE, [SUMMARY_FP32_ACTIVE] = QTY_FP32_ACTIVE,
        [SUMMARY_FP16_ACTIVE] = QTY_FP16_ACTIVE, [SUMMARY_UTILIZATION] = QTY_UTILIZATION,
    };
    const char *source = ledger_activity_source(device);
    if (!source)
        return;
    chars_copy(row->activity_source, source);
    for (size_t i = 0; i < SUMMARY_ACTIVITIES; i++) {
        const struct ledger_gauge *gauge = &device->gauges[QUANTITIES[i]];
        if (gauge->present)
            row->activity[i] = gauge->mean / 100;
    }
}

static void take_device(struct conditions *c, const struct ledger *ledger,
                        const struct ledger_device *device)
{
    struct summary_condition *row = condition_of(c, device->id);
    if (!row)
        return;
    if (!is_known(row->temperature_begin_c))
        row->temperature_begin_c = temperature_before(c, device->id, ledger->from);
    const struct ledger_gauge *temperature = &device->gauges[QTY_TEMPERATURE];
    if (temperature->present)
        row->temperature_end_c = temperature->last;
    const struct ledger_gauge *clock = &device->gauges[QTY_CLOCK];
    if (clock->present)
        row->clock_mhz = clock->mean;
    take_activity(device, row);
    double throttled = throttled_share(c, device->id, ledger->from, ledger->to);
    if (is_known(throttled))
        row->throttled_share =
            is_known(row->throttled_share) ? fmax(row->throttled_share, throttled) : throttled;
}

/* ---- GPU load of other processes ---- */

static bool is_measured(const struct conditions *c, const struct process_use *process)
{
    for (size_t i = 0; i < process->depth; i++) {
        bool is_ours = process->ancestry[i] == (int)getpid();
        for (size_t s = 0; s < c->server_count; s++)
            is_ours = is_ours || process->ancestry[i] == c->servers[s];
        if (is_ours)
            return true;
    }
    /* A busy process that has ended may have been our child. */
    return process->depth == 0 && !process->was_open;
}

/* NULL when there are too many. */
static struct summary_gpu_process *gpu_process(struct summary_conditions *figures,
                                               const char *device, int pid)
{
    for (size_t i = 0; i < figures->gpu_process_count; i++)
        if (figures->gpu_processes[i].pid == pid &&
            str_equal(figures->gpu_processes[i].device, device))
            return &figures->gpu_processes[i];
    if (figures->gpu_process_count == SUMMARY_GPU_PROCESSES_MAX)
        return NULL;
    struct summary_gpu_process *row = &figures->gpu_processes[figures->gpu_process_count++];
    *row = (struct summary_gpu_process){.pid = pid, .memory_bytes = UNKNOWN};
    chars_copy(row->device, device);
    return row;
}

/* weight: share of this window in all measured time. */
static void take_gpu(struct conditions *c, size_t source, double weight)
{
    const struct sensor *sensor = sampler_sensor(c->session->sampler, source);
    struct process_use seen[SENSOR_PROCESSES_MAX];
    size_t count;
    double watched_s;
    enum err err = sampler_processes(c->session->sampler, source, seen, &count, &watched_s);
    if (err) {
        chars_format(c->gpu_unknown, "the processes on %s are unknown: %s", sensor->id,
                     err_text(err));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct summary_gpu_process *row =
            is_measured(c, &seen[i])
                ? NULL
                : gpu_process(&c->figures, sensor->channels[0].device, seen[i].pid);
        if (!row)
            continue;
        chars_copy(row->name, seen[i].name);
        if (is_known(seen[i].memory_bytes) && !(row->memory_bytes > seen[i].memory_bytes))
            row->memory_bytes = seen[i].memory_bytes;
        row->utilization_pct += weight * 100 * ratio(seen[i].busy_s, watched_s);
    }
}

/* After take_use: the window is included in the measured time. */
static void take_gpus(struct conditions *c)
{
    struct summary_conditions *figures = &c->figures;
    double weight = c->use.seconds / figures->seconds;
    bool has_gpu = false, is_elsewhere = false;
    for (size_t i = 0; i < figures->gpu_process_count; i++)
        figures->gpu_processes[i].utilization_pct *= 1 - weight;
    for (size_t i = 0; i < sampler_count(c->session->sampler); i++) {
        const struct sensor *sensor = sampler_sensor(c->session->sampler, i);
        has_gpu |= sensor->kind == SENSOR_GPU;
        is_elsewhere |= sensor->kind == SENSOR_GPU && sensor->channels[0].host != 0;
    }
    if (!has_gpu)
        return;
    if (c->is_hidden)
        chars_copy(c->gpu_unknown, "the server's process cannot be seen");
    else if (is_elsewhere)
        chars_copy(c->gpu_unknown, "GPUs of another host are measured");
    else if (!proc_sees_host_pids())
        chars_copy(c->gpu_unknown,
                   "drivers report process ids of the host, which are not visible in a container");
    for (size_t i = 0; !c->gpu_unknown[0] && i < sampler_count(c->session->sampler); i++)
        if (sampler_sensor(c->session->sampler, i)->kind == SENSOR_GPU)
            take_gpu(c, i, weight);
    if (!c->gpu_unknown[0])
        figures->background_gpu_processes = (int64_t)figures->gpu_process_count;
}

/* The load of other processes on the GPU where it is largest; its id in *device. */
static double background_gpu_pct(const struct summary_conditions *figures, const char **device)
{
    double max = 0;
    for (size_t i = 0; i < figures->gpu_process_count; i++) {
        double sum = 0;
        const char *id = figures->gpu_processes[i].device;
        for (size_t j = 0; j < figures->gpu_process_count; j++)
            if (str_equal(figures->gpu_processes[j].device, id))
                sum += figures->gpu_processes[j].utilization_pct;
        if (!(sum <= max)) { /* unknown for one device: unknown for all */
            max = sum;
            *device = id;
        }
        if (!is_known(max))
            break;
    }
    return max;
}

static void describe_gpu_processes(const struct summary_conditions *figures, const char *device,
                                   char *to, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < figures->gpu_process_count; i++) {
        const struct summary_gpu_process *row = &figures->gpu_processes[i];
        char memory[24] = "";
        if (!str_equal(row->device, device) || row->utilization_pct == 0 || used + 1 >= size)
            continue;
        if (is_known(row->memory_bytes))
            chars_format(memory, ", %.3g GB", row->memory_bytes * 1e-9);
        str_format(to + used, size - used, "%s%s (PID %lld%s)", used ? ", " : "",
                   row->name[0] ? row->name : "unknown", (long long)row->pid, memory);
        used += strlen(to + used);
    }
}

static void find_background_gpu(struct conditions *c, struct findings *out)
{
    struct summary_conditions *figures = &c->figures;
    const char *device = NULL;
    char who[120] = "";
    if (c->gpu_unknown[0]) {
        figures->gpu_process_count = 0;
        figures->background_gpu_processes = INTEGER_UNKNOWN;
    }
    if (c->gpu_unknown[0] && !c->is_hidden) /* for a hidden server background_unknown reports it */
        finding_raise(out, FINDING_BACKGROUND_GPU_UNKNOWN,
                      "GPU load of other processes not determined: %s", c->gpu_unknown);
    if (figures->background_gpu_processes == INTEGER_UNKNOWN)
        return;
    double pct = figures->background_gpu_pct = background_gpu_pct(figures, &device);
    if (device)
        describe_gpu_processes(figures, device, who, sizeof who);
    if (device && !is_known(pct))
        finding_raise(out, FINDING_BACKGROUND_GPU,
                      "other processes use %s, and their utilization is not reported: %s", device,
                      who);
    if (pct > 100 * SHARE_WARNING)
        finding_raise_as(out, FINDING_BACKGROUND_GPU,
                         pct > 100 * SHARE_INVALID ? FINDING_INVALID : FINDING_WARNING,
                         "other processes used %.0f %% of %s: %s", pct, device, who);
}

/* ---- measured windows ---- */

/* Energy of the processors and their memory above idle; UNKNOWN if that of one is. */
static double active_cpu_joules(const struct ledger *ledger)
{
    double sum = UNKNOWN;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        const struct sensor_channel *channel = &device->sensor->channels[device->channel];
        if (!device->has_energy || !is_known(device->energy.joules) ||
            (channel->scope != SCOPE_PACKAGE && channel->scope != SCOPE_DRAM &&
             channel->scope != SCOPE_GRACE_CPU))
            continue;
        double active = device->energy.active_joules;
        double covered_s = seconds(ledger->to - ledger->from) * device->energy.coverage;
        if (!is_known(active) && channel->watts_idle > 0) /* of a power model */
            active = device->energy.joules - channel->watts_idle * covered_s;
        if (!is_known(active))
            return UNKNOWN;
        add_known(&sum, fmax(active, 0));
    }
    return sum;
}

/* One unknown window makes the sum unknown. */
static void add_to(double *sum, double value, bool is_first)
{
    *sum = is_first ? value : *sum + value;
}

static void take_use(struct conditions *c, bool is_first)
{
    struct summary_conditions *figures = &c->figures;
    add_to(&figures->seconds, c->use.seconds, is_first);
    add_to(&figures->cpu_busy_s, c->use.host_s, is_first);
    add_to(&figures->cpu_own_s, c->use.own_s, is_first);
    c->error_s += tick_error_s(c);
    double background_s = figures->cpu_busy_s - figures->cpu_own_s;
    if (!is_known(background_s)) {
        figures->background_cpus = figures->background_cpus_plus_minus = UNKNOWN;
        return;
    }
    figures->background_cpus = background_cpus(c, background_s, figures->seconds);
    figures->background_cpus_plus_minus =
        (c->error_s + OWN_ACCURACY * figures->cpu_own_s) / figures->seconds;
}

void conditions_take(struct conditions *c, const struct ledger *ledger)
{
    const struct conditions_use *use = &c->use;
    bool is_first = !is_known(c->figures.seconds);
    take_use(c, is_first);
    take_gpus(c);
    double share = UNKNOWN;
    if (is_known(use->background)) /* no busy time: no background load */
        share = use->host_s > 0 ? use->background * use->seconds / use->host_s : 0;
    add_to(&c->figures.background_joules, share * active_cpu_joules(ledger), is_first);
    add_to(&c->joules, ledger->total.joules, is_first);
    for (size_t i = 0; i < ledger->count; i++)
        take_device(c, ledger, &ledger->devices[i]);
}

/* ---- idle power ---- */

static double busiest_gpu(const struct ledger *ledger, const char **id)
{
    double max = UNKNOWN;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        const struct ledger_gauge *gauge = &device->gauges[QTY_UTILIZATION];
        if (device->sensor->kind != SENSOR_GPU || !gauge->present || !is_known(gauge->mean) ||
            gauge->mean <= max)
            continue;
        max = gauge->mean;
        *id = device->id;
    }
    return max;
}

/* ---- dedicated hardware ---- */

#define DEDICATED_GPU_PCT   5
#define DEDICATED_CPU_SHARE 0.1

static enum err check_dedicated(const struct conditions *c, const struct ledger *ledger,
                                struct error *why)
{
    const struct summary_conditions *figures = &c->figures;
    const struct summary_gpu_process *other = figures->gpu_processes;
    const char *gpu = "";
    double gpu_pct = busiest_gpu(ledger, &gpu);
    /* A hidden server has not received requests yet either. */
    double busy = is_known(c->use.background) ? c->use.background : c->use.host_s / c->use.seconds;
    double share = share_of_cpus(c, busy);
    if (figures->gpu_process_count)
        return err_set(why, ERR_BUSY,
                       "the hardware is not dedicated: %zu other process%s on a GPU, the first is "
                       "%s (pid %lld) on %s",
                       figures->gpu_process_count, figures->gpu_process_count == 1 ? "" : "es",
                       other->name[0] ? other->name : "unknown", (long long)other->pid,
                       other->device);
    if (gpu_pct > DEDICATED_GPU_PCT)
        return err_set(why, ERR_BUSY,
                       "the hardware is not dedicated: %s was busy %.0f %% of the time before the "
                       "run (limit: %d %%)",
                       gpu, gpu_pct, DEDICATED_GPU_PCT);
    if (share > DEDICATED_CPU_SHARE)
        return err_set(why, ERR_BUSY,
                       "the hardware is not dedicated: other processes used %.0f %% of the CPUs "
                       "before the run (limit: %.0f %%)",
                       100 * share, 100 * DEDICATED_CPU_SHARE);
    return ERR_OK;
}

enum err conditions_dedicated(struct conditions *c, double length_s, struct error *why)
{
    struct ledger ledger;
    nanos from = clock_now(), to = from + from_seconds(length_s);
    conditions_begin(c);
    while (clock_now() < to)
        thread_sleep(to - clock_now());
    conditions_stop(c);
    sampler_settle(c->session->sampler, to);
    ledger_take(c->session->sampler, from, to, NULL, &ledger);
    conditions_take(c, &ledger);
    enum err err = check_dedicated(c, &ledger, why);
    ledger_release(&ledger);
    return err;
}

static bool was_idle(struct conditions *c, const struct conditions_use *use,
                     const struct ledger *ledger)
{
    struct summary_conditions *figures = &c->figures;
    const char *gpu = NULL;
    double gpu_pct = busiest_gpu(ledger, &gpu);
    double max = fmax(SHARE_WARNING * (double)figures->cpus, IDLE_CPUS_MIN);
    figures->idle_tries = figures->idle_tries > 0 ? figures->idle_tries + 1 : 1;
    /* A hidden server should be idle too. */
    double busy = is_known(use->background) ? use->background : use->host_s / use->seconds;
    figures->idle_cpus = busy;
    c->refused[0] = '\0';
    if (busy > max && busy > use->plus_minus)
        chars_format(c->refused, "other processes used %.2g of %lld CPUs", busy,
                     (long long)figures->cpus);
    else if (gpu_pct > 100 * SHARE_WARNING)
        chars_format(c->refused, "%s was %.0f %% busy", gpu, gpu_pct);
    return !c->refused[0];
}

/* Sleeps, and takes the ledger of that time. */
static enum err idle_window(struct conditions *c, double idle_s, struct ledger *out,
                            int *signal_number)
{
    sampler_mark(c->session->sampler);
    conditions_begin(c);
    nanos from = clock_now();
    *signal_number = proc_poll_signal(from_seconds(idle_s));
    nanos to = clock_now();
    conditions_stop(c);
    if (*signal_number)
        return ERR_INTERRUPTED;
    sampler_settle(c->session->sampler, to);
    ledger_take(c->session->sampler, from, to, NULL, out);
    return ERR_OK;
}

/* Sum over the counted devices. */
static void sum_idle(const struct ledger *ledger, double *watts, double *plus_minus)
{
    double length = seconds(ledger->to - ledger->from) * ledger->total.coverage;
    *watts = ratio(ledger->total.joules, length);
    *plus_minus = ratio(ledger->total.statistical, length);
}

static void check_idle(struct conditions *c, const struct conditions_use *use,
                       const struct ledger *ledger, struct baseline *out)
{
    baseline_release(out);
    c->has_idle = was_idle(c, use, ledger);
    if (!c->has_idle)
        return;
    sum_idle(ledger, &c->figures.idle_w, &c->figures.idle_plus_minus);
    baseline_from(ledger, out);
    for (size_t i = 0; i < out->count; i++) {
        struct summary_condition *row = condition_of(c, out->rows[i].device);
        if (row)
            row->idle_w = out->rows[i].watts;
    }
}

void conditions_check_idle(struct conditions *c, const struct ledger *ledger, struct baseline *out)
{
    check_idle(c, &c->use, ledger, out);
}

void conditions_check_idle_since(struct conditions *c, const struct conditions_mark *mark,
                                 const struct ledger *ledger, struct baseline *out)
{
    const struct conditions_use use = use_since(c, mark);
    check_idle(c, &use, ledger, out);
}

void conditions_refuse_idle(struct conditions *c, const char *why)
{
    if (!c->has_idle && !c->refused[0])
        chars_copy(c->refused, why);
}

enum err conditions_idle(struct conditions *c, double idle_s, struct baseline *out,
                         int *signal_number)
{
    struct ledger ledger;
    *out = (struct baseline){0};
    for (int i = 0; i < IDLE_TRIES && !c->has_idle; i++) {
        enum err err = idle_window(c, idle_s, &ledger, signal_number);
        if (err)
            return err;
        conditions_check_idle(c, &ledger, out);
        ledger_release(&ledger);
    }
    return ERR_OK;
}

void conditions_idle_after(struct conditions *c, double idle_s)
{
    static const double LONGEST_S = 1;
    struct ledger ledger;
    int signal_number;
    if (!c->has_idle || idle_window(c, fmin(idle_s, LONGEST_S), &ledger, &signal_number) != ERR_OK)
        return;
    double cpus = c->figures.idle_cpus;
    int64_t tries = c->figures.idle_tries;
    if (was_idle(c, &c->use, &ledger)) {
        sum_idle(&ledger, &c->figures.idle_after_w, &c->figures.idle_after_plus_minus);
        for (size_t i = 0; i < ledger.count; i++) {
            struct summary_condition *row = condition_of(c, ledger.devices[i].id);
            if (row && ledger.devices[i].has_energy)
                row->idle_after_w = ledger.devices[i].power_mean;
        }
    }
    c->figures.idle_cpus = cpus; /* background load during the baseline */
    c->figures.idle_tries = tries;
    chars_copy(c->refused_after, c->refused);
    c->refused[0] = '\0';
    ledger_release(&ledger);
}

void conditions_share_idle_after(const struct conditions *from, struct conditions *to)
{
    to->figures.idle_after_w = from->figures.idle_after_w;
    to->figures.idle_after_plus_minus = from->figures.idle_after_plus_minus;
    chars_copy(to->refused_after, from->refused_after);
    for (size_t i = 0; i < from->figures.device_count; i++) {
        struct summary_condition *row = condition_of(to, from->figures.devices[i].id);
        if (row)
            row->idle_after_w = from->figures.devices[i].idle_after_w;
    }
}

/* ---- at the end ---- */

static void drop_empty_devices(struct summary_conditions *figures)
{
    size_t kept = 0;
    for (size_t i = 0; i < figures->device_count; i++) {
        const struct summary_condition *device = &figures->devices[i];
        if (is_known(device->idle_w) || is_known(device->idle_after_w) ||
            is_known(device->temperature_begin_c) || is_known(device->temperature_end_c) ||
            is_known(device->clock_mhz) || is_known(device->throttled_share) ||
            device->activity_source[0])
            figures->devices[kept++] = *device;
    }
    figures->device_count = kept;
}

void conditions_conclude(struct conditions *c)
{
    struct summary_conditions *figures = &c->figures;
    struct findings found = {0};
    drop_empty_devices(figures);
    find_unrecorded(c, &found);
    find_background_cpu(c, &found);
    find_background_gpu(c, &found);
    find_idle_change(c, &found);
    find_throttling(c, &found);
    summary_conditions_find(figures, &found);
    findings_release(&found);
}
