/* energy-monitor: the gRPC service energy.EnergyMonitor (energy.proto), for clients of the Python program `ipw`.
 *
 *   $ energy-monitor --port 50053 --bind-address 127.0.0.1 --collection-interval-ms 50
 *
 * It measures nothing.  Readings come through a pipe from `ipw monitor`, which either started this program (--feed) or
 * is started by it; so each sensor is read by one process only, and ipw itself is not linked to gRPC and the 50
 * libraries behind it.
 *
 * Two threads: the main one serves the completion queue, the other one receives readings and sends each to every
 * stream. For a slow client only one message is in flight, and the next one is the newest reading: nothing queues
 * up. */
#include <errno.h>
#include <getopt.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/status.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <energy.pb-c.h>
#include "monitor/telemetry.h"

enum { DEFAULT_PORT = 50053, DEFAULT_INTERVAL_MS = 50, RESTART_MS = 1000, FAILED = 1, USAGE = 2 };

/* ---- messages ---- */

static double or_minus_one(double value)
{
    return isnan(value) ? -1 : value;
}

static grpc_slice pack_message(const ProtobufCMessage *message)
{
    grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
    protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    return slice;
}

/* protobuf-c declares strings as non-const char *, but packing does not modify them. */
static grpc_slice reading_message(struct telemetry *from)
{
    Energy__SystemInfo system = ENERGY__SYSTEM_INFO__INIT;
    system.os_name = from->os_name;
    system.os_version = from->os_version;
    system.kernel_version = from->kernel_version;
    system.host_name = from->host_name;
    system.cpu_count = from->cpu_count;
    system.cpu_brand = from->cpu_brand;
    Energy__GpuInfo gpu = ENERGY__GPU_INFO__INIT;
    gpu.name = from->gpu_name;
    gpu.vendor = from->gpu_vendor;
    gpu.device_id = from->gpu_id;
    gpu.device_type = from->gpu_type;
    gpu.backend = from->gpu_backend;
    Energy__TelemetryReading reading = ENERGY__TELEMETRY_READING__INIT;
    reading.power_watts = or_minus_one(from->power_w);
    reading.energy_joules = or_minus_one(from->energy_j);
    reading.temperature_celsius = or_minus_one(from->temperature_c);
    reading.gpu_memory_usage_mb = or_minus_one(from->gpu_memory_mib);
    reading.cpu_memory_usage_mb = or_minus_one(from->cpu_memory_mib);
    reading.platform = from->platform;
    reading.timestamp_nanos = from->unix_ns;
    reading.system_info = &system;
    reading.gpu_info = &gpu;
    reading.cpu_power_watts = or_minus_one(from->cpu_power_w);
    reading.cpu_energy_joules = or_minus_one(from->cpu_energy_j);
    reading.ane_power_watts = or_minus_one(from->ane_power_w);
    reading.ane_energy_joules = or_minus_one(from->ane_energy_j);
    reading.gpu_compute_utilization_pct = or_minus_one(from->gpu_utilization_pct);
    reading.gpu_memory_bandwidth_utilization_pct = or_minus_one(from->gpu_memory_utilization_pct);
    reading.gpu_tensor_core_utilization_pct = or_minus_one(from->gpu_tensor_pct);
    reading.gpu_memory_total_mb = or_minus_one(from->gpu_memory_total_mib);
    return pack_message(&reading.base);
}

static grpc_slice health_message(bool healthy, char *platform)
{
    Energy__HealthResponse response = ENERGY__HEALTH_RESPONSE__INIT;
    response.healthy = healthy;
    response.platform = platform;
    return pack_message(&response.base);
}

/* ---- the service ---- */

struct call;

/* Completion queue tag: which operation of which call has completed. */
struct tag {
    enum { EVENT_REQUEST, EVENT_ANSWERED, EVENT_SENT, EVENT_CLOSED, EVENT_DOWN } kind;
    struct call *call;
};

/* An open call: a telemetry stream, or a unary call whose response is being sent. */
struct call {
    struct call *next, **link; /* list of streams; `link` is NULL for a call that is not in it */
    grpc_call *grpc;
    struct tag answered, sent, closed;
    unsigned pending_batches; /* batches that have not completed */
    unsigned long last_sent;  /* sequence number of the last reading sent */
    int canceled;             /* set by gRPC when the call is closed */
    bool sending;             /* a message or the headers are being sent */
};

static struct service {
    grpc_server *server;
    grpc_completion_queue *queue;
    struct tag request, down;
    /* of the next incoming call */
    grpc_call *requested;
    grpc_call_details details;
    grpc_metadata_array metadata;

    pthread_mutex_t lock; /* guards everything below, which the reader thread also uses */
    struct call *streams;
    grpc_slice reading;
    unsigned long readings; /* number received so far; 0: `reading` is not set */
    bool healthy, ending;
    char platform[TELEMETRY_TEXT];
} service = {
    .request = {.kind = EVENT_REQUEST},
    .down = {.kind = EVENT_DOWN},
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .platform = "null",
};

static void request_next_call(void)
{
    grpc_call_details_init(&service.details);
    grpc_metadata_array_init(&service.metadata);
    grpc_server_request_call(service.server, &service.requested, &service.details,
                             &service.metadata, service.queue, service.queue, &service.request);
}

/* Consumes the reference to `message`. */
static grpc_op send_op(grpc_slice message)
{
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&message, 1);
    grpc_slice_unref(message);
    return (grpc_op){.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer};
}

static void start_batch(struct call *call, grpc_op *ops, size_t count, struct tag *tag)
{
    if (grpc_call_start_batch(call->grpc, ops, count, tag, NULL) == GRPC_CALL_OK)
        call->pending_batches++;
    for (size_t i = 0; i < count; i++)
        if (ops[i].op == GRPC_OP_SEND_MESSAGE)
            grpc_byte_buffer_destroy(ops[i].data.send_message.send_message);
}

/* Sends a unary response and ends the call; without a message the response is an error. */
static void reply(struct call *call, const grpc_slice *message, grpc_status_code code,
                  const char *text)
{
    grpc_slice details = grpc_slice_from_static_string(text);
    grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_RECV_CLOSE_ON_SERVER},
                      {.op = GRPC_OP_SEND_STATUS_FROM_SERVER}};
    ops[1].data.recv_close_on_server.cancelled = &call->canceled;
    ops[2].data.send_status_from_server.status = code;
    ops[2].data.send_status_from_server.status_details = &details;
    size_t count = 3;
    if (message)
        ops[count++] = send_op(*message);
    start_batch(call, ops, count, &call->answered);
}

/* Sends the newest reading, unless it was sent already or a send is pending.  Caller holds the lock. */
static void send_newest(struct call *call)
{
    if (call->sending || call->last_sent == service.readings)
        return;
    grpc_op op = send_op(grpc_slice_ref(service.reading));
    call->sending = true;
    call->last_sent = service.readings;
    start_batch(call, &op, 1, &call->sent);
}

static void open_stream(struct call *call)
{
    grpc_op close = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    close.data.recv_close_on_server.cancelled = &call->canceled;
    grpc_op headers = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    start_batch(call, &close, 1, &call->closed);
    call->sending = true; /* the first reading is sent once the headers are */
    start_batch(call, &headers, 1, &call->sent);
    call->next = service.streams;
    call->link = &service.streams;
    if (call->next)
        call->next->link = &call->next;
    service.streams = call;
}

static void remove_stream(struct call *call)
{
    if (!call->link)
        return;
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    call->link = NULL;
}

static void accept_call(void)
{
    struct call *call = gpr_zalloc(sizeof *call); /* does not fail: it ends the program */
    call->grpc = service.requested;
    call->answered = (struct tag){EVENT_ANSWERED, call};
    call->sent = (struct tag){EVENT_SENT, call};
    call->closed = (struct tag){EVENT_CLOSED, call};
    if (!grpc_slice_str_cmp(service.details.method, "/energy.EnergyMonitor/StreamTelemetry")) {
        open_stream(call);
    } else if (!grpc_slice_str_cmp(service.details.method, "/energy.EnergyMonitor/Health")) {
        grpc_slice message = health_message(service.healthy, service.platform);
        reply(call, &message, GRPC_STATUS_OK, "");
    } else {
        reply(call, NULL, GRPC_STATUS_UNIMPLEMENTED,
              "energy.EnergyMonitor has Health and StreamTelemetry");
    }
}

/* Caller holds the lock. */
static void handle_event(const struct tag *tag, bool success)
{
    struct call *call = tag->call;
    call->pending_batches--;
    if (tag->kind == EVENT_SENT) {
        call->sending = false;
        if (success && call->link)
            send_newest(call);
    } else { /* response sent, or stream closed by the client */
        remove_stream(call);
    }
    if (!call->pending_batches && !call->link) {
        grpc_call_unref(call->grpc);
        gpr_free(call);
    }
}

/* Serves until end_service is called. */
static void serve(void)
{
    request_next_call();
    for (bool down = false; !down;) {
        grpc_event event =
            grpc_completion_queue_next(service.queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        const struct tag *tag = event.tag;
        pthread_mutex_lock(&service.lock);
        if (tag->kind == EVENT_DOWN) {
            down = true;
        } else if (tag->kind == EVENT_REQUEST) {
            if (event.success)
                accept_call();
            grpc_call_details_destroy(&service.details);
            grpc_metadata_array_destroy(&service.metadata);
            if (event.success)
                request_next_call();
        } else {
            handle_event(tag, event.success);
        }
        pthread_mutex_unlock(&service.lock);
    }
}

static void end_service(void)
{
    pthread_mutex_lock(&service.lock);
    if (!service.ending) {
        service.ending = true;
        grpc_server_shutdown_and_notify(service.server, service.queue, &service.down);
        grpc_server_cancel_all_calls(service.server);
    }
    pthread_mutex_unlock(&service.lock);
}

static void publish(struct telemetry *reading)
{
    grpc_slice message = reading_message(reading);
    pthread_mutex_lock(&service.lock);
    if (service.readings++)
        grpc_slice_unref(service.reading);
    service.reading = message;
    service.healthy = reading->healthy;
    memcpy(service.platform, reading->platform, sizeof service.platform);
    for (struct call *call = service.streams; call && !service.ending; call = call->next)
        send_newest(call);
    pthread_mutex_unlock(&service.lock);
}

static bool open_service(const char *address)
{
    grpc_init();
    /* Disable SO_REUSEPORT: a second instance on this port must fail instead of getting a share of the connections. */
    grpc_arg single = {
        .type = GRPC_ARG_INTEGER, .key = GRPC_ARG_ALLOW_REUSEPORT, .value.integer = 0};
    grpc_channel_args arguments = {1, &single};
    service.queue = grpc_completion_queue_create_for_next(NULL);
    service.server = grpc_server_create(&arguments, NULL);
    grpc_server_register_completion_queue(service.server, service.queue, NULL);
    grpc_server_credentials *plain = grpc_insecure_server_credentials_create();
    bool bound = grpc_server_add_http2_port(service.server, address, plain) != 0;
    grpc_server_credentials_release(plain);
    if (bound)
        grpc_server_start(service.server);
    return bound;
}

static void close_service(void)
{
    grpc_server_destroy(service.server);
    grpc_completion_queue_shutdown(service.queue);
    while (
        grpc_completion_queue_next(service.queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
        GRPC_QUEUE_SHUTDOWN)
        ;
    grpc_completion_queue_destroy(service.queue);
    if (service.readings)
        grpc_slice_unref(service.reading);
    grpc_shutdown();
}

/* ---- readings ---- */

static struct feed {
    int readings;    /* read end of the pipe */
    int signals;     /* signalfd for SIGTERM and SIGINT */
    pid_t monitor;   /* child process; 0: none */
    const char *ipw; /* program to start; NULL: readings come from --feed */
    unsigned interval_ms;
    bool is_broken; /* the monitor sends no reading, or none that we can read */
} feed = {.readings = -1};

static void log_line(const char *text, const char *detail)
{
    dprintf(STDERR_FILENO, "energy-monitor: %s%s%s\n", text, detail ? ": " : "",
            detail ? detail : "");
}

static void exec_monitor(int to)
{
    char interval[32], descriptor[16];
    snprintf(interval, sizeof interval, "%u.%03u", feed.interval_ms / 1000,
             feed.interval_ms % 1000);
    snprintf(descriptor, sizeof descriptor, "%d", to);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execlp(feed.ipw, "ipw", "monitor", "--listen", "none", "--interval", interval, "--telemetry-fd",
           descriptor, (char *)NULL);
    log_line(feed.ipw, strerror(errno));
    _exit(127);
}

static bool start_monitor(void)
{
    int ends[2];
    if (pipe(ends))
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        exec_monitor(ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    feed.monitor = pid;
    feed.readings = ends[0];
    return true;
}

/* The pipe was closed.  Returns 0 to restart the monitor, -1 to exit. */
static int monitor_exited(void)
{
    close(feed.readings);
    feed.readings = -1;
    pthread_mutex_lock(&service.lock);
    service.healthy = false;
    bool never = !service.readings;
    pthread_mutex_unlock(&service.lock);
    if (!feed.ipw)
        return -1; /* our parent, the monitor, has exited */
    int status = 0;
    waitpid(feed.monitor, &status, 0);
    feed.monitor = 0;
    if (never) {
        log_line("ipw monitor sent no reading", NULL);
        feed.is_broken = true;
        return -1;
    }
    log_line("ipw monitor exited; restarting it", NULL);
    return 0;
}

/* Reads one reading; -1 if there will be no more. */
static int read_reading(void)
{
    static struct telemetry reading;
    ssize_t got = read(feed.readings, &reading, sizeof reading);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0)
        return monitor_exited();
    if (got != sizeof reading || reading.size != sizeof reading ||
        reading.version != TELEMETRY_VERSION) {
        log_line("ipw monitor has a different version", NULL);
        feed.is_broken = true;
        return -1;
    }
    publish(&reading);
    return 0;
}

static void *reader_main(void *unused)
{
    for (;;) {
        if (feed.readings < 0 && feed.ipw && !start_monitor())
            log_line("cannot start ipw monitor", strerror(errno));
        struct pollfd wait[2] = {{.fd = feed.signals, .events = POLLIN},
                                 {.fd = feed.readings, .events = POLLIN}};
        int ready = poll(wait, 2, feed.readings < 0 ? RESTART_MS : -1);
        if (ready < 0 && errno != EINTR)
            break;
        if (wait[0].revents)
            break;
        if (wait[1].revents && read_reading())
            break;
        if (feed.readings < 0) /* back off before the restart */
            poll(wait, 1, RESTART_MS);
    }
    end_service();
    return unused;
}

/* ---- the program ---- */

static const char HELP[] =
    "Usage: energy-monitor [--port N] [--bind-address A] [--collection-interval-ms N]\n"
    "Serves readings of `ipw monitor` as the gRPC service energy.EnergyMonitor.\n\n"
    "  --port N                    (default: 50053)\n"
    "  --bind-address A            (default: 127.0.0.1)\n"
    "  --collection-interval-ms N  time between readings (default: 50)\n"
    "  --ipw FILE                  ipw program to start (default: next to this one, else in "
    "PATH)\n"
    "  --feed FD                   read telemetry from this descriptor; used by `ipw monitor "
    "--grpc`\n"
    "  --help, --version\n";

struct options {
    unsigned port, interval_ms;
    const char *address, *ipw;
    int feed;
};

static bool read_number(const char *text, unsigned min, unsigned max, unsigned *number)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < min || value > max)
        return false;
    *number = (unsigned)value;
    return true;
}

/* Returns -1 to continue, else the exit status. */
static int read_options(int argc, char **argv, struct options *options)
{
    static const struct option LONG[] = {
        {"port", required_argument, NULL, 'p'},
        {"bind-address", required_argument, NULL, 'b'},
        {"collection-interval-ms", required_argument, NULL, 'c'},
        {"ipw", required_argument, NULL, 'i'},
        {"feed", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    unsigned descriptor;
    for (int letter; (letter = getopt_long(argc, argv, "", LONG, NULL)) != -1;) {
        bool good = true;
        switch (letter) {
        case 'p':
            good = read_number(optarg, 1, 65535, &options->port);
            break;
        case 'c':
            good = read_number(optarg, 1, 3600000, &options->interval_ms);
            break;
        case 'b':
            options->address = optarg;
            break;
        case 'i':
            options->ipw = optarg;
            break;
        case 'f':
            good = read_number(optarg, 0, 65535, &descriptor);
            options->feed = good ? (int)descriptor : -1;
            break;
        case 'h':
            dprintf(STDOUT_FILENO, "%s", HELP);
            return 0;
        case 'v':
            dprintf(STDOUT_FILENO, "energy-monitor %s\n", IPW_VERSION);
            return 0;
        default:
            return USAGE;
        }
        if (!good) {
            log_line("not a number in range", optarg);
            return USAGE;
        }
    }
    if (optind < argc) {
        log_line("unexpected argument", argv[optind]);
        return USAGE;
    }
    return -1;
}

/* Prefers the ipw next to this program over the one in PATH. */
static const char *find_ipw(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return NULL;
    path[length] = 0;
    char *name = strrchr(path, '/');
    if (!name || (size_t)(name - path) + sizeof "/ipw" > size)
        return NULL;
    memcpy(name, "/ipw", sizeof "/ipw");
    return access(path, X_OK) ? NULL : path;
}

static int run(const struct options *options)
{
    char address[300];
    bool v6 = strchr(options->address, ':') && options->address[0] != '[';
    snprintf(address, sizeof address, v6 ? "[%s]:%u" : "%s:%u", options->address, options->port);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends,
                    NULL); /* before gRPC starts threads, which inherit the mask */
    signal(SIGPIPE, SIG_IGN);
    feed.signals = signalfd(-1, &ends, SFD_CLOEXEC);
    if (feed.signals < 0 || !open_service(address)) {
        log_line("cannot listen", address);
        return FAILED;
    }
    pthread_t readings;
    if (pthread_create(&readings, NULL, reader_main, NULL))
        return FAILED;
    log_line("listening", address);
    serve();
    pthread_join(readings, NULL);
    close_service();
    if (feed.monitor > 0) {
        kill(feed.monitor, SIGTERM);
        waitpid(feed.monitor, NULL, 0);
    }
    return feed.is_broken ? FAILED : 0;
}

int main(int argc, char **argv)
{
    static char sibling[4096];
    struct options options = {.port = DEFAULT_PORT,
                              .interval_ms = DEFAULT_INTERVAL_MS,
                              .address = "127.0.0.1",
                              .feed = -1};
    int status = read_options(argc, argv, &options);
    if (status >= 0)
        return status;
    feed.readings = options.feed;
    feed.interval_ms = options.interval_ms;
    if (options.feed < 0) {
        const char *found = options.ipw ? options.ipw : find_ipw(sibling, sizeof sibling);
        feed.ipw = found ? found : "ipw";
    }
    return run(&options);
}
