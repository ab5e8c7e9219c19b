/* ipw monitor: energy and power of this machine as metrics, for as long as it runs.
 *
 *   $ ipw monitor &
 *   $ curl http://127.0.0.1:9860/metrics
 *
 * Messages go to stderr; nothing goes to stdout. */
#include <fcntl.h>
#include <signal.h>

#include "cli/common.h"
#include "cli/option_groups.h"
#include "core/text.h"
#include "monitor/monitor.h"

enum { DEFAULT_PORT = 9860, GRPC_PORT = 50053, DEFAULT_PROCESSES = 50, PROCESSES_MAX = 1000 };

static struct monitor_command {
    struct monitor_options monitor;
    struct listen_options http;
    struct listen_at grpc_at;
    const char *grpc, *processes;
    double interval_s, otlp_interval_s, telemetry_fd;
    bool quiet;
} command = {.interval_s = 1, .otlp_interval_s = 10, .telemetry_fd = -1};

static const struct option_row ROWS[] = {
    TEXT_ROW("listen", command.http.listen, "ADDRESS:PORT",
             "address to listen on (default: 127.0.0.1:9860; port 0: any; or none)", .letter = 'l'),
    TEXT_ROW("grpc", command.grpc, "ADDRESS:PORT",
             "serve the gRPC telemetry of the Python ipw, e.g. 127.0.0.1:50053", .letter = 'g'),
    NUMBER_ROW("interval", command.interval_s, "S",
               "time between updates, and between reads of a sensor (default: 1)", .min = 0.05,
               .max = 60, .letter = 'i'),
    TEXT_ROW("otlp", command.monitor.otlp_url, "URL",
             "push metrics to an OpenTelemetry receiver: http://127.0.0.1:4318"),
    NUMBER_ROW("otlp-interval", command.otlp_interval_s, "S", "time between pushes (default: 10)",
               .min = 0.1, .max = 3600),
    TEXT_ROW("processes", command.processes, "N|off",
             "number of processes and cgroups with series (default: 50)"),
    TEXT_ROW("devices", command.monitor.devices, "LIST",
             "GPUs by index or UUID (default: all visible)"),
    JOINED_ROW("sensors", command.monitor.drivers, "LIST",
               "only these sensor drivers, e.g. nvml,remote=HOST (default: all)"),
    TEXT_ROW("token-file", command.http.token_file, "FILE",
             "file with the token that scrapes must send"),
    FLAG_ROW("no-token", command.monitor.is_open, "allow access without a token"),
    ALLOW_HOST_OPTION_ROW(command.http.hosts),
    NUMBER_ROW("telemetry-fd", command.telemetry_fd, "FD",
               "write readings to this file descriptor; used by energy-monitor", .min = 0,
               .max = 65535),
    FLAG_ROW("quiet", command.quiet, "do not print where the monitor listens", .letter = 'q'),
    HINT_ROW("token", "use --token-file: command lines are visible to other users"),
    HINT_ROW("port", "use --listen 127.0.0.1:PORT", .letter = 'p'),
    {0},
};

static int read_processes(void)
{
    uint64_t count = DEFAULT_PROCESSES;
    const char *given = command.processes;
    if (given && str_equal(given, "off"))
        count = 0;
    else if (given && (parse_u64(given, &count) || count > PROCESSES_MAX))
        return print_error(EXIT_USAGE, "--processes %s: a number from 0 to %d, or off", given,
                           PROCESSES_MAX);
    command.monitor.processes = (unsigned)count;
    return 0;
}

static void listening(unsigned port)
{
    command.http.at.port = port;
    if (!command.quiet)
        notify("ipw monitor: listening on %s/metrics\n", listen_url(&command.http.at).text);
}

static int monitor_main(const char **words, size_t count)
{
    struct error why = {0};
    int signal = 0, code;
    (void)words, (void)count;
    if (command.http.token_file && command.monitor.is_open)
        return print_error(EXIT_USAGE, "--token-file and --no-token are mutually exclusive");
    if ((code = read_access(&command.http, DEFAULT_PORT, &command.monitor.access)) ||
        (code = read_listen(command.grpc, GRPC_PORT, &command.grpc_at)) ||
        (code = read_processes()))
        return code;
    if (command.telemetry_fd >= 0 && fcntl((int)command.telemetry_fd, F_GETFD) < 0)
        return print_error(EXIT_USAGE, "--telemetry-fd %.0f is not an open descriptor",
                           command.telemetry_fd);
    bool is_silent = command.http.listen && str_equal(command.http.listen, "none");
    if (is_silent && !command.grpc && !command.monitor.otlp_url && command.telemetry_fd < 0)
        return print_error(EXIT_USAGE, "--listen none needs --grpc or --otlp");
    command.monitor.otlp_interval = from_seconds(command.otlp_interval_s);
    if (is_silent)
        command.monitor.access.address = NULL;
    if (command.grpc) {
        command.monitor.grpc_address = command.grpc_at.address;
        command.monitor.grpc_port = command.grpc_at.port;
    }
    command.monitor.telemetry_fd = (int)command.telemetry_fd;
    command.monitor.interval = from_seconds(command.interval_s);
    command.monitor.listening = listening;
    enum err err = monitor_run(&command.monitor, &signal, &why);
    text_release(&command.http.token);
    if (err)
        return print_err(err, &why);
    return signal == SIGINT ? 128 + SIGINT : EXIT_DONE;
}

const struct command command_monitor = {
    .name = "monitor",
    .summary = "export energy and power of this machine as Prometheus metrics, continuously",
    .usage = "[OPTIONS]",
    .details =
        "Serves the energy and power of this machine at http://127.0.0.1:9860/metrics, in\n"
        "Prometheus' text format or OpenMetrics: joules and watts of each device, utilization,\n"
        "memory, temperatures, clocks, sensor health, and the joules attributed to processes and\n"
        "cgroups. docs/monitor.md lists every series.\n\n"
        "  ipw monitor\n"
        "  ipw monitor --listen 0.0.0.0:9860 --token-file /etc/ipw/token\n\n"
        "  ipw monitor --grpc 127.0.0.1:50053     for the Python ipw, in place of its "
        "energy-monitor\n\n"
        "A scrape is answered from the last update and never calls a sensor. A sensor without\n"
        "readings has no samples except ipw_energy_up 0 and ipw_sensor_up 0. /healthz and /readyz\n"
        "are for supervisors.\n\n"
        "SIGHUP reopens all sensors, without a jump in any counter; SIGTERM ends the monitor.\n"
        "Addresses other than loopback require a token, which Prometheus sends as Authorization:\n"
        "Bearer TOKEN, or --no-token.",
    .rows = ROWS,
    .words = WORDS_NONE,
    .run = monitor_main,
};
