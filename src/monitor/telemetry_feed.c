/* The state of the monitor as readings for energy-monitor, through a pipe.
 *
 * Clients subtract the energies of two messages, whatever the distance, so the energy of a message is that of its own
 * time: the joules measured so far and, from the newest reading to now, its power.  What the next readings correct is
 * made up without the energy ever decreasing.
 *
 * energy-monitor is looked up next to this program, and restarted when it exits: a monitor that runs for weeks does not
 * lose its gRPC clients permanently. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/xalloc.h"
#include "monitor/parts.h"
#include "monitor/telemetry.h"
#include "port/proc.h"
#include "sampler/session.h"
#include "sensors/system/host_info.h"

#define RESTART_AFTER (5 * NS_PER_S)

/* After power fell, energy that was sent too early is made up by sending at least this share of the current power. */
#define CATCH_UP_SHARE 0.5

/* The energy of one field of the messages. */
struct total {
    double measured, sent; /* J so far; sent may be ahead of measured */
    nanos t;               /* of the last message */
};

struct telemetry_feed {
    int fd; /* write end; -1 while there is no reader */
    /* energy-monitor, if we start it */
    char *program; /* owned; NULL: we do not */
    char address[256], port[8];
    struct child child; /* pid 0: not running */
    nanos started;
    struct total gpus, cpus;
    struct telemetry reading;
};

/* ---- readings ---- */

struct sum {
    double gained_j, ahead_j, watts, newest_w;
    size_t count;
};

/* Adds joules since the last update, so that the total never decreases when a device is lost; the total power is
 * unknown if one device's is. */
static void add_domain(struct sum *sum, const struct domain *domain, nanos now)
{
    sum->gained_j += domain->gained_j;
    sum->ahead_j += domain_ahead(domain, now);
    sum->watts += domain->watts;
    sum->newest_w += domain->newest_w;
    sum->count++;
}

static void add_up(const struct sum *sum, nanos now, struct total *total, double *joules,
                   double *watts)
{
    total->measured += sum->gained_j;
    double slowest = CATCH_UP_SHARE * sum->newest_w * seconds(min_nanos(now - total->t, NS_PER_S));
    double least = total->t > 0 && slowest > 0 ? total->sent + slowest : total->sent;
    total->sent = fmax(total->measured + sum->ahead_j, least);
    total->t = now;
    *joules = sum->count ? total->sent : UNKNOWN;
    *watts = sum->count ? sum->watts : UNKNOWN;
}

static void fill_energy(struct telemetry_feed *feed, struct state *state, nanos now)
{
    struct telemetry *to = &feed->reading;
    size_t count;
    const struct domain *domains = state_domains(state, &count);
    struct sum gpu = {0}, cpu = {0}, board = {0};
    for (size_t i = 0; i < count; i++) {
        if (!domains[i].is_up)
            continue;
        if (domains[i].kind == DOMAIN_GPU && domains[i].scope == SCOPE_GPU)
            add_domain(&gpu, &domains[i], now);
        else if (domains[i].kind == DOMAIN_CPU && domains[i].is_counted)
            add_domain(&cpu, &domains[i], now);
        else if (domains[i].kind == DOMAIN_PLATFORM && domains[i].is_counted)
            add_domain(&board, &domains[i], now);
    }
    /* On a single-board computer the input rail is the best measurement of its GPU. */
    add_up(gpu.count ? &gpu : &board, now, &feed->gpus, &to->energy_j, &to->power_w);
    add_up(&cpu, now, &feed->cpus, &to->cpu_energy_j, &to->cpu_power_w);
    to->ane_power_w = to->ane_energy_j = UNKNOWN;
}

static double family_mean(const struct state *state, enum family family)
{
    size_t count;
    double sum = state_sum(state, family, &count);
    return count ? sum / (double)count : UNKNOWN;
}

static double mebibytes(const struct state *state, enum family family)
{
    size_t count;
    return state_sum(state, family, &count) / (1024 * 1024);
}

static void fill_gauges(struct telemetry *to, const struct state *state)
{
    to->temperature_c = family_mean(state, FAMILY_GPU_TEMPERATURE);
    to->gpu_utilization_pct = 100 * family_mean(state, FAMILY_GPU_UTILIZATION);
    to->gpu_memory_utilization_pct = 100 * family_mean(state, FAMILY_GPU_MEMORY_UTILIZATION);
    to->gpu_tensor_pct = 100 * family_mean(state, FAMILY_GPU_TENSOR_UTILIZATION);
    to->gpu_memory_mib = mebibytes(state, FAMILY_GPU_MEMORY_USED);
    to->gpu_memory_total_mib = mebibytes(state, FAMILY_GPU_MEMORY_TOTAL);
    to->cpu_memory_mib = mebibytes(state, FAMILY_HOST_MEMORY_USED);
}

/* Platform names of the Python program. */
static const struct platform {
    const char *driver, *platform, *vendor, *type, *backend;
} PLATFORMS[] = {
    {"nvml", "nvidia", "NVIDIA", "GPU", "NVML"},
    {"amdsmi", "amd", "AMD", "GPU", "AMDSMI"},
    {"jetson", "jetson", "NVIDIA", "SoC", "sysfs/ina3221"},
    {"rapl", "rapl", "", "", ""},
};

static size_t count_devices(const struct session *session, const struct platform *platform,
                            const char **name, bool *same)
{
    size_t count = 0;
    *same = true;
    for (size_t i = 0; i < session->findings.count; i++) {
        const struct sensor_finding *finding = &session->findings.items[i];
        if (session->source_of[i] < 0 || !str_equal(finding->driver->name, platform->driver))
            continue;
        *same = *same && (!count || str_equal(*name, finding->name));
        *name = finding->name;
        count++;
    }
    return count;
}

static void fill_devices(struct telemetry *to, const struct session *session)
{
    chars_copy(to->platform, "null");
    for (size_t i = 0; i < COUNT_OF(PLATFORMS); i++) {
        const struct platform *platform = &PLATFORMS[i];
        const char *name = "";
        bool same;
        size_t count = count_devices(session, platform, &name, &same);
        if (!count)
            continue;
        chars_copy(to->platform, platform->platform);
        chars_copy(to->gpu_vendor, platform->vendor);
        chars_copy(to->gpu_type, platform->type);
        chars_copy(to->gpu_backend, platform->backend);
        if (count == 1 && platform->vendor[0])
            chars_copy(to->gpu_name, name);
        else if (same && platform->vendor[0])
            chars_format(to->gpu_name, "%s x%zu", name, count);
        else if (platform->vendor[0])
            chars_format(to->gpu_name, "%s (%zu GPUs)", platform->vendor, count);
        return;
    }
}

static void fill_host(struct telemetry *to)
{
    struct host_info host;
    host_info_read(&host);
    chars_copy(to->os_name, host.os_name);
    chars_copy(to->os_version, host.os_version);
    chars_copy(to->kernel_version, host.kernel);
    chars_copy(to->host_name, host.host_name);
    chars_copy(to->cpu_brand, host.cpu_brand);
    to->cpu_count = host.cpu_count;
}

/* ---- energy-monitor ---- */

static enum err start_energy_monitor(struct telemetry_feed *feed, struct error *why)
{
    int ends[2], code;
    char descriptor[16];
    if (pipe2(ends, O_CLOEXEC))
        return err_set(why, err_from_errno(errno), "cannot create a pipe to energy-monitor");
    chars_format(descriptor, "%d", ends[0]);
    char *argv[] = {feed->program, "--bind-address", feed->address, "--port",
                    feed->port,    "--feed",         descriptor,    NULL};
    feed->started = clock_now();
    fcntl(ends[0], F_SETFD, 0); /* inherited by the child */
    enum err err = child_prepare(&feed->child, argv, why);
    if (!err)
        err = child_go(&feed->child, &code, why);
    close(ends[0]);
    if (err) {
        close(ends[1]);
        feed->child.pid = 0;
        return err;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    feed->fd = ends[1];
    return ERR_OK;
}

static void close_reader(struct telemetry_feed *feed)
{
    close(feed->fd);
    feed->fd = -1;
    if (feed->child.pid > 0)
        waitpid(feed->child.pid, NULL, 0); /* it exits when the pipe is closed */
    feed->child.pid = 0;
}

static void restart_energy_monitor(struct telemetry_feed *feed, nanos now)
{
    struct error why;
    if (now - feed->started < RESTART_AFTER)
        return;
    if (start_energy_monitor(feed, &why))
        log_warn("%s", why.text);
}

/* ---- the feed ---- */

/* The one beside this program, else the one in PATH; NULL: none. */
static char *find_energy_monitor(void)
{
    char self[PATH_MAX]; /* the kernel returns no longer one */
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) {
        *slash = '\0';
        char *beside = xformat("%s/energy-monitor", self);
        if (!access(beside, X_OK))
            return beside;
        free(beside);
    }
    return proc_find("energy-monitor");
}

enum err telemetry_feed_open(int fd, const char *address, unsigned port,
                             struct telemetry_feed **out, struct error *why)
{
    struct telemetry_feed *feed = *out = XNEW(feed);
    feed->fd = fd;
    feed->reading = (struct telemetry){.size = sizeof feed->reading, .version = TELEMETRY_VERSION};
    fill_host(&feed->reading);
    if (!address) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        return ERR_OK;
    }
    feed->fd = -1;
    chars_copy(feed->address, address);
    chars_format(feed->port, "%u", port);
    enum err err = ERR_OK;
    feed->program = find_energy_monitor();
    if (!feed->program)
        err = err_set(why, ERR_NOT_FOUND,
                      "energy-monitor is not installed: it is built if libgrpc-dev, "
                      "libprotobuf-c-dev and protobuf-c-compiler are installed");
    else
        err = start_energy_monitor(feed, why);
    if (err) {
        telemetry_feed_close(feed);
        *out = NULL;
    }
    return err;
}

enum err telemetry_feed_write(struct telemetry_feed *feed, struct state *state,
                              const struct session *session, nanos now)
{
    struct telemetry *reading = &feed->reading;
    nanos t = clock_now();
    fill_energy(feed, state, t); /* also for updates without a reader */
    if (feed->fd < 0)
        restart_energy_monitor(feed, now);
    if (feed->fd < 0)
        return ERR_OK;
    fill_gauges(reading, state);
    fill_devices(reading, session);
    reading->healthy = state_is_up(state);
    reading->unix_ns = t + clock_wall_offset();
    if (write(feed->fd, reading, sizeof *reading) == (ssize_t)sizeof *reading || errno == EAGAIN)
        return ERR_OK; /* a slow reader gets a later reading */
    if (!feed->program)
        return ERR_LOST;
    log_warn("energy-monitor ended; restarting it");
    close_reader(feed);
    return ERR_OK;
}

void telemetry_feed_close(struct telemetry_feed *feed)
{
    if (feed && feed->fd >= 0)
        close_reader(feed);
    if (feed)
        free(feed->program);
    free(feed);
}
