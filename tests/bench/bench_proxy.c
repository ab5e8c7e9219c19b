/* The overhead of `ipw proxy` on a request, compared with nginx as a reverse proxy in the same run,
 * both with one thread: the time to first token and the delay of chunks of 64 concurrent streams,
 * short requests per second, and the memory of 1,000 open streams. Many short rounds measure each
 * way in turn; figures are medians over the rounds, and ratios are ratios of these medians: a single
 * round's added latency is a small difference that scatters. Delays beyond p99.9 are so few
 * that they are those of all rounds together. Chunks carry the time at which the
 * server sent them. Without nginx only our own figures are reported. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/clock.h"

enum {
    STREAMS = 64,
    MANY = 1000,
    TOKENS = 40,
    ROUNDS = 15,
    REQUESTS = 2, /* of a connection, per round */
    BUFFER = 16 * 1024,
    SAMPLES = 1 << 20,
    OPEN_MAX_FD = 8192,
};
#define TOKEN_PERIOD (10 * NS_PER_MS)
#define SHORT_LENGTH (NS_PER_S / 2)

static char folder[] = "/tmp/ipw-bench-proxy-XXXXXX", program[PATH_MAX];

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_proxy: %s (%s)\n", what, strerror(errno));
    fprintf(stderr, "bench_proxy: messages of the proxies are in %s/log\n", folder);
    exit(1);
}

static int open_socket(unsigned port, bool listens)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int failed = listens ? bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096)
                         : connect(fd, (struct sockaddr *)&address, sizeof address);
    if (!failed)
        return fd;
    close(fd);
    return -1;
}

static unsigned port_of(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &size))
        die("cannot listen");
    return ntohs(address.sin_port);
}

/* ---- the server: a separate process ---- */

static struct served {
    size_t length;
    int left;   /* tokens of the stream; 0: no stream is open */
    bool holds; /* after the first token the stream stays open */
    nanos next;
    char request[BUFFER];
} *served[OPEN_MAX_FD];

static void send_bytes(int fd, const char *bytes, size_t length)
{
    if (send(fd, bytes, length, MSG_NOSIGNAL) < 0)
        return; /* the client has closed the connection, which the next read reports */
}

static void send_token(int fd, struct served *stream)
{
    char event[256], piece[320];
    bool is_last = --stream->left == 0;
    snprintf(
        event, sizeof event,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":%s}],"
        "\"t\":%lld}\n\n%s",
        is_last ? "\"stop\"" : "null", (long long)clock_now(), is_last ? "data: [DONE]\n\n" : "");
    snprintf(piece, sizeof piece, "%zx\r\n%s\r\n%s", strlen(event), event,
             is_last ? "0\r\n\r\n" : "");
    send_bytes(fd, piece, strlen(piece));
    stream->next += TOKEN_PERIOD;
    if (stream->holds)
        stream->next = INT64_MAX;
}

static void answer(int fd, struct served *stream)
{
    static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    static const char SHORT[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Content-Length: 39\r\n\r\n{\"data\":[],\"usage\":{\"prompt_tokens\":4}}";
    if (!strstr(stream->request, "/chat/")) {
        send_bytes(fd, SHORT, strlen(SHORT));
        return;
    }
    send_bytes(fd, HEAD, strlen(HEAD));
    stream->holds = strstr(stream->request, "hold");
    stream->left = TOKENS;
    stream->next = clock_now();
    send_token(fd, stream);
}

static void serve_ready(int fd)
{
    struct served *stream = served[fd];
    ssize_t got = recv(fd, stream->request + stream->length, BUFFER - 1 - stream->length, 0);
    if (got <= 0) {
        free(stream);
        served[fd] = NULL;
        close(fd);
        return;
    }
    stream->length += (size_t)got;
    stream->request[stream->length] = '\0';
    const char *end = strstr(stream->request, "\r\n\r\n");
    const char *length = strcasestr(stream->request, "content-length:");
    if (!end || stream->length < (size_t)(end + 4 - stream->request) +
                                     (length ? strtoul(length + 15, NULL, 10) : 0))
        return;
    answer(fd, stream);
    stream->length = 0;
}

static int accept_client(int listener)
{
    const int on = 1;
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 || fd >= OPEN_MAX_FD || !(served[fd] = calloc(1, sizeof *served[fd])))
        die("the server has too many connections");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void serve(int listener)
{
    int set = epoll_create1(0), highest = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        nanos now = clock_now(), next = now + NS_PER_S;
        for (int fd = 0; fd <= highest; fd++) {
            struct served *stream = served[fd];
            if (stream && stream->left > 0 && stream->next <= now)
                send_token(fd, stream);
            if (stream && stream->left > 0 && stream->next < next)
                next = stream->next;
        }
        nanos wait = next - clock_now();
        const struct timespec left = {.tv_sec = 0,
                                      .tv_nsec = wait > 0 && wait < NS_PER_S ? wait : 0};
        int count = epoll_pwait2(set, events, 256, &left, NULL);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                serve_ready(fd);
                continue;
            }
            fd = accept_client(listener);
            event.data.fd = fd;
            epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
            highest = fd > highest ? fd : highest;
        }
    }
}

/* ---- processes ---- */

static pid_t start(char *const *words)
{
    pid_t child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/log", folder);
    int nothing = open("/dev/null", O_RDWR), log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int fd = 0; nothing >= 0 && fd < STDERR_FILENO; fd++)
        dup2(nothing, fd);
    if (log >= 0)
        dup2(log, STDERR_FILENO);
    execvp(words[0], words);
    _exit(127);
}

static pid_t start_server(unsigned *port)
{
    int listener = open_socket(0, true);
    *port = port_of(listener);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(listener);
    }
    close(listener);
    return child;
}

static unsigned free_port(void)
{
    int fd = open_socket(0, true);
    unsigned port = port_of(fd);
    close(fd);
    return port;
}

static bool await_port(unsigned port, pid_t child)
{
    for (int i = 0; i < 400; i++) {
        int fd = open_socket(port, false);
        if (fd >= 0) {
            close(fd);
            return true;
        }
        if (waitpid(child, NULL, WNOHANG) == child)
            return false;
        usleep(25000);
    }
    return false;
}

static pid_t start_nginx(unsigned upstream, unsigned *port)
{
    char path[PATH_MAX];
    *port = free_port();
    snprintf(path, sizeof path, "%s/nginx.conf", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        die("cannot write nginx's configuration");
    fprintf(
        file,
        "daemon off; master_process off; worker_processes 1; pid %s/pid; error_log /dev/null;\n"
        "worker_rlimit_nofile 16384; events { worker_connections 8192; }\n"
        "http { access_log off; client_body_temp_path %s/b; proxy_temp_path %s/p;\n"
        "fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
        "keepalive_requests 1000000; tcp_nodelay on;\n"
        "upstream u { server 127.0.0.1:%u; keepalive 1024; keepalive_requests 1000000; }\n"
        "server { listen 127.0.0.1:%u backlog=4096; location / { proxy_pass http://u;\n"
        "proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; } } }\n",
        folder, folder, folder, folder, folder, folder, upstream, *port);
    fclose(file);
    pid_t child = start((char *[]){"nginx", "-c", path, "-p", folder, NULL});
    return await_port(*port, child) ? child : -1;
}

static pid_t start_proxy(unsigned upstream, unsigned *port)
{
    char url[64], listen[64], runs[PATH_MAX];
    *port = free_port();
    snprintf(url, sizeof url, "http://127.0.0.1:%u", upstream);
    snprintf(listen, sizeof listen, "127.0.0.1:%u", *port);
    snprintf(runs, sizeof runs, "%s/runs", folder);
    pid_t child =
        start((char *[]){program, "proxy", "--upstream", url, "--listen", listen, "--idle", "0",
                         "-q", "--overwrite", "--name", "bench", "--output-dir", runs, NULL});
    if (!await_port(*port, child))
        die("ipw proxy does not start");
    return child;
}

/* ---- the load ---- */

struct samples {
    double *values;
    size_t count;
};

static void add_sample(struct samples *samples, double value)
{
    if (!samples->values)
        samples->values = malloc(SAMPLES * sizeof *samples->values);
    if (samples->values && samples->count < SAMPLES)
        samples->values[samples->count++] = value;
}

static double quantile(struct samples *samples, double p)
{
    if (!samples->count)
        die("nothing was measured");
    qsort(samples->values, samples->count, sizeof *samples->values, bench_by_value);
    return samples->values[(size_t)(p * (double)(samples->count - 1))];
}

struct client {
    int fd, left;
    nanos sent;
    bool has_token;
    size_t length;
    char buffer[BUFFER];
};

static void send_request(struct client *client, const char *path, const char *body)
{
    char request[512];
    int length =
        snprintf(request, sizeof request,
                 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 path, strlen(body), body);
    client->has_token = false;
    client->length = 0;
    client->sent = clock_now();
    if (send(client->fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        die("cannot send a request");
}

/* Complete lines are read, and dropped; true at the end of the stream. */
static bool read_lines(struct client *client, nanos now, struct samples *ttft,
                       struct samples *delay)
{
    char *at = client->buffer, *end;
    bool is_done = false;
    client->buffer[client->length] = '\0';
    while ((end = strchr(at, '\n'))) {
        *end = '\0';
        const char *time = strstr(at, "\"t\":");
        if (time && !client->has_token)
            add_sample(ttft, seconds(now - client->sent));
        else if (time)
            add_sample(delay, seconds(now - strtoll(time + 4, NULL, 10)));
        client->has_token = client->has_token || time;
        is_done = is_done || strcmp(at, "0\r") == 0;
        at = end + 1;
    }
    client->length -= (size_t)(at - client->buffer);
    memmove(client->buffer, at, client->length);
    return is_done;
}

static struct client *connect_all(unsigned port, int count, int set)
{
    struct client *clients = calloc((size_t)count, sizeof *clients);
    for (int i = 0; clients && i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
        clients[i].fd = open_socket(port, false);
        if (clients[i].fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, clients[i].fd, &event))
            die("cannot connect");
    }
    return clients;
}

static void disconnect(struct client *clients, int count, int set)
{
    for (int i = 0; i < count; i++)
        close(clients[i].fd);
    free(clients);
    close(set);
}

static size_t receive(struct client *client)
{
    ssize_t got = recv(client->fd, client->buffer + client->length, BUFFER - 1 - client->length, 0);
    if (got <= 0)
        die("a connection was closed");
    client->length += (size_t)got;
    return (size_t)got;
}

/* Waits for events, at most until a time. */
static int wait_until(int set, struct epoll_event *events, nanos until)
{
    nanos wait = until - clock_now();
    const struct timespec left = {.tv_sec = 0, .tv_nsec = wait > 0 ? wait : 0};
    int count = epoll_pwait2(set, events, STREAMS, &left, NULL);
    return count < 0 ? 0 : count;
}

/* The first requests are staggered over one token's period, while answers are read: a client that
 * sleeps between them would measure its own sleep as time to first token. */
static void load_streams(unsigned port, struct samples *ttft, struct samples *delay)
{
    static const char BODY[] = "{\"model\":\"m\",\"stream\":true}";
    int set = epoll_create1(0), open = STREAMS, started = 0;
    struct client *clients = connect_all(port, STREAMS, set);
    struct epoll_event events[STREAMS];
    nanos began = clock_now();
    while (open) {
        nanos now = clock_now(), due = began + started * (TOKEN_PERIOD / STREAMS);
        if (started < STREAMS && now >= due) {
            clients[started].left = REQUESTS;
            send_request(&clients[started++], "/v1/chat/completions", BODY);
            continue;
        }
        int count = wait_until(set, events, started < STREAMS ? due : now + NS_PER_S / 2);
        now = clock_now();
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            receive(client);
            if (!read_lines(client, now, ttft, delay))
                continue;
            if (--client->left)
                send_request(client, "/v1/chat/completions", BODY);
            else
                open--;
        }
    }
    disconnect(clients, STREAMS, set);
}

static double load_short(unsigned port)
{
    int set = epoll_create1(0);
    struct client *clients = connect_all(port, STREAMS, set);
    struct epoll_event events[STREAMS];
    size_t done = 0;
    for (int i = 0; i < STREAMS; i++)
        send_request(&clients[i], "/v1/embeddings", "{\"model\":\"m\"}");
    nanos began = clock_now();
    while (clock_now() - began < SHORT_LENGTH) {
        int count = epoll_wait(set, events, STREAMS, 1000);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            receive(client);
            client->buffer[client->length] = '\0';
            if (!strstr(client->buffer, ":4}}"))
                continue;
            done++;
            send_request(client, "/v1/embeddings", "{\"model\":\"m\"}");
        }
    }
    double rate = (double)done / seconds(clock_now() - began);
    disconnect(clients, STREAMS, set);
    return rate;
}

static double resident_mb(pid_t process)
{
    char path[64], line[256];
    double kb = NAN;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtod(line + 6, NULL);
    if (file)
        fclose(file);
    return kb / 1024;
}

/* All of them have received their first token. */
static double many_streams_mb(unsigned port, pid_t process)
{
    int set = epoll_create1(0), left = MANY;
    struct client *clients = connect_all(port, MANY, set);
    struct epoll_event events[256];
    struct samples ttft = {0}, delay = {0};
    for (int i = 0; i < MANY; i++)
        send_request(&clients[i], "/v1/chat/completions", "{\"stream\":true,\"hold\":1}");
    while (left) {
        int count = epoll_wait(set, events, 256, -1);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            bool had = client->has_token;
            receive(client);
            read_lines(client, clock_now(), &ttft, &delay);
            left -= client->has_token && !had;
        }
    }
    double mb = resident_mb(process);
    disconnect(clients, MANY, set);
    free(ttft.values);
    free(delay.values);
    return mb;
}

/* Deferred work of requests, records and their energies, must not disturb the next measurement. */
static void await_quiet(pid_t process)
{
    char path[64], line[512];
    unsigned long before = 0, now = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    for (int i = 0; i < 100; i++) {
        FILE *file = fopen(path, "r");
        unsigned long user = 0, kernel = 0;
        if (file && fgets(line, sizeof line, file))
            sscanf(strrchr(line, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                   &user, &kernel);
        if (file)
            fclose(file);
        now = user + kernel;
        if (i && now - before <= 1) /* ticks of 10 ms in 100 ms */
            return;
        before = now;
        usleep(100000);
    }
}

/* ---- all of it ---- */

enum way { DIRECT, NGINX, OURS, WAYS };
enum figure { TTFT_P50, TTFT_P99, DELAY_P50, RATE, FIGURES };

/* Each round measures all ways, each time in another order: other load of the machine affects all of them. */
static double figures[FIGURES][WAYS][ROUNDS];

/* Of all rounds: one has only five delays beyond p99.9. */
static struct samples delays[WAYS];

static void measure(unsigned port, enum way way, int round)
{
    struct samples ttft = {0}, delay = {0};
    load_streams(port, &ttft, &delay);
    figures[TTFT_P50][way][round] = quantile(&ttft, 0.5);
    figures[TTFT_P99][way][round] = quantile(&ttft, 0.99);
    figures[DELAY_P50][way][round] = quantile(&delay, 0.5);
    for (size_t i = 0; i < delay.count; i++)
        add_sample(&delays[way], delay.values[i]);
    figures[RATE][way][round] = load_short(port);
    free(ttft.values);
    free(delay.values);
}

static double median(enum figure figure, enum way way)
{
    double values[ROUNDS];
    memcpy(values, figures[figure][way], sizeof values);
    return bench_median(values, ROUNDS);
}

static double added_to_nginx(enum figure figure)
{
    const double min = 1e-6; /* a negative overhead is noise */
    double base = median(figure, DIRECT);
    return (median(figure, OURS) - base) / fmax(min, median(figure, NGINX) - base);
}

static double delay_p999(enum way way)
{
    return quantile(&delays[way], 0.999);
}

int main(int argc, char **argv)
{
    static const char *const NAMES[WAYS] = {"direct", "nginx", "ipw proxy"};
    unsigned ports[WAYS];
    (void)argc;
    struct rlimit files = {OPEN_MAX_FD, OPEN_MAX_FD};
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    if (!realpath(argv[0], program) || !mkdtemp(folder))
        die("cannot start");
    char *name = strrchr(program, '/');
    snprintf(name, sizeof program - (size_t)(name - program), "/../ipw");
    pid_t server = start_server(&ports[DIRECT]);
    pid_t nginx = start_nginx(ports[DIRECT], &ports[NGINX]);
    pid_t ours = start_proxy(ports[DIRECT], &ports[OURS]);
    for (int i = 0; i < ROUNDS * WAYS; i++) {
        int round = i / WAYS, way = (i + round) % WAYS;
        if (way == NGINX && nginx < 0)
            continue;
        measure(ports[way], (enum way)way, round);
        if (way == OURS)
            await_quiet(ours);
    }
    for (int way = 0; way < WAYS; way++)
        if (way != NGINX || nginx > 0)
            printf("for comparison: %s: TTFT p50 %.0f us, p99 %.0f us; chunk delay p50 %.0f us, "
                   "p99.9 %.0f us; %.0f short requests/s\n",
                   NAMES[way], 1e6 * median(TTFT_P50, way), 1e6 * median(TTFT_P99, way),
                   1e6 * median(DELAY_P50, way), 1e6 * delay_p999((enum way)way),
                   median(RATE, way));
    if (nginx > 0) {
        bench_at_most("proxy: added TTFT p50, of nginx's", added_to_nginx(TTFT_P50), "x", 1.5);
        /* Not what is added: for nginx that is within the noise of its p99, and the ratio says nothing. */
        bench_at_most("proxy: TTFT p99, of nginx's",
                      median(TTFT_P99, OURS) / median(TTFT_P99, NGINX), "x", 2);
        bench_at_most("proxy: chunk delay p99.9, of nginx's", delay_p999(OURS) / delay_p999(NGINX),
                      "x", 2);
        bench_at_least("proxy: short requests/s, of nginx's",
                       median(RATE, OURS) / median(RATE, NGINX), "x", 0.6);
    }
    kill(ours, SIGTERM);
    waitpid(ours, NULL, 0);
    ours = start_proxy(ports[DIRECT], &ports[OURS]); /* without the memory of earlier requests */
    bench_at_most("proxy: memory of 1,000 open streams", many_streams_mb(ports[OURS], ours), "MB",
                  64);
    kill(ours, SIGTERM);
    waitpid(ours, NULL, 0);
    kill(server, SIGKILL);
    if (nginx > 0)
        kill(nginx, SIGTERM);
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) ? 1 : 0;
}
