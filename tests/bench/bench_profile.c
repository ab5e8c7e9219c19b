/* The overhead of `ipw profile`: queries per second through a client that answers immediately and
 * over HTTP to a stub server (the two share this machine's cores), its addition to the time to
 * first token, and whether its memory grows with the number of queries. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/stub_server.h"
#include "bench/bench.h"
#include "core/clock.h"
#include "port/http.h"
#include "port/json_read.h"

enum {
    ROUNDS = 3,
    NULL_QUERIES = 20000,
    HTTP_QUERIES = 5000,
    FIRST_TOKENS = 200, /* per round and way: few enough for exact quantiles */
    TOKEN_ROUNDS = 5,
    FEW = 1000,
    MANY = 100000,
};

#define FIRST_TOKEN_DELAY (5 * NS_PER_MS)

static char program[PATH_MAX], folder[] = "/tmp/ipw-bench-XXXXXX";

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_profile: %s\n", what);
    exit(1);
}

/* ---- one run of ipw profile ---- */

struct figures {
    double completed, seconds; /* of the queries, from the report */
    double wall_s;             /* of the process, including start-up and writing */
    double peak_mb;            /* of the process, including writing */
    double own_mb;             /* from its own summary, before writing */
    double first_token_s;      /* p50 */
};

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void remove_runs(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* summary.json is in the only directory that the run has created. */
static void read_summary(struct figures *out)
{
    static char text[1 << 16];
    char pattern[128];
    glob_t found;
    struct jv *summary;
    snprintf(pattern, sizeof pattern, "%s/*/summary.json", folder);
    if (glob(pattern, 0, NULL, &found))
        die("ipw profile wrote no summary");
    int fd = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (length <= 0 || jv_parse(text, (size_t)length, &summary, NULL))
        die("a summary that cannot be read");
    const struct jv *own = jv_get(summary, "ipw");
    out->completed = jv_number(jv_get(own, "completed"));
    out->seconds = jv_number(jv_get(own, "seconds"));
    out->first_token_s = jv_number(jv_path(own, "time_to_first_token_s.p50"));
    out->own_mb = jv_number(jv_path(own, "own.rss_mb"));
    jv_free(summary);
    close(fd);
    globfree(&found);
}

static struct figures profile(const char *client, const char *url, unsigned queries,
                              const char *concurrency)
{
    char count[32];
    snprintf(count, sizeof count, "count=%u", queries);
    const char *words[] = {program,
                           "profile",
                           "--client",
                           client,
                           "--model",
                           "bench",
                           "--dataset",
                           "null",
                           "-c",
                           concurrency,
                           "--dataset-param",
                           count,
                           "--idle",
                           "0",
                           "--warmup-queries",
                           "0",
                           "--quiet",
                           "--output-dir",
                           folder,
                           "--client-base-url",
                           url,
                           NULL};
    struct figures figures;
    struct rusage usage;
    pid_t process;
    int status;
    remove_runs();
    nanos began = clock_now();
    if (posix_spawn(&process, program, NULL, NULL, (char *const *)words, environ) ||
        wait4(process, &status, 0, &usage) != process || status != 0)
        die("ipw profile failed");
    figures.wall_s = seconds(clock_now() - began);
    figures.peak_mb = (double)usage.ru_maxrss / 1024;
    read_summary(&figures);
    remove_runs();
    if (figures.completed != queries)
        die("not every query was completed");
    return figures;
}

/* ---- queries per second ---- */

struct rate {
    double asking, all; /* queries per second, without and with start and writing */
};

/* The best of the rounds: other load on the machine only ever slows it down. */
static struct rate best_rate(const char *client, const char *url, unsigned queries)
{
    struct rate best = {0};
    for (int round = 0; round < ROUNDS; round++) {
        struct figures figures = profile(client, url, queries, "64");
        best.asking = fmax(best.asking, figures.completed / figures.seconds);
        best.all = fmax(best.all, figures.completed / figures.wall_s);
    }
    return best;
}

/* ---- time to first token ---- */

static int connect_to(unsigned short port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        die("cannot call the server");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* From before the request is sent until the bytes with the first token have arrived; then the rest. */
static double bare_first_token(int fd, const char *request)
{
    static char answer[1 << 14];
    size_t length = 0;
    nanos began = clock_now(), first = 0;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        die("cannot ask the server");
    do {
        ssize_t n = recv(fd, answer + length, sizeof answer - 1 - length, 0);
        nanos now = clock_now();
        if (n <= 0)
            die("the server hung up");
        length += (size_t)n;
        answer[length] = '\0';
        if (!first && strstr(answer, STUB_SERVER_TOKEN))
            first = now;
    } while (!strstr(answer, "\r\n0\r\n\r\n"));
    return seconds(first - began);
}

/* The request as ipw sends it, over a plain socket. */
static double bare_median(unsigned short port)
{
    static const char BODY[] = "{\"model\":\"bench\",\"messages\":[{\"role\":\"user\",\"content\":"
                               "\"Hello.\"}],\"stream\":true,\"stream_options\":"
                               "{\"include_usage\":true}}";
    char request[1024];
    double values[FIRST_TOKENS];
    int fd = connect_to(port);
    snprintf(request, sizeof request,
             "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: bare\r\n"
             "Accept: */*\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             port, sizeof BODY - 1, BODY);
    for (unsigned i = 0; i < FIRST_TOKENS; i++)
        values[i] = bare_first_token(fd, request);
    close(fd);
    return bench_median(values, FIRST_TOKENS);
}

/* Both ways in each round, so that a busy machine delays both equally. */
static void bench_first_token(void)
{
    struct stub_server server;
    char url[64];
    double more[TOKEN_ROUNDS], bare[TOKEN_ROUNDS], ratio[TOKEN_ROUNDS];
    stub_server_start(&server, FIRST_TOKEN_DELAY);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1", server.port);
    for (int round = 0; round < TOKEN_ROUNDS; round++) {
        bare[round] = 1e3 * bare_median(server.port);
        more[round] = 1e3 * profile("openai", url, FIRST_TOKENS, "1").first_token_s - bare[round];
        ratio[round] = 1 + more[round] / bare[round];
    }
    stub_server_stop(&server);
    bench_report("time to the first token over a bare socket, p50",
                 bench_median(bare, TOKEN_ROUNDS), "ms");
    bench_report("ipw profile, added to the time to first token at p50",
                 bench_median(more, TOKEN_ROUNDS), "ms");
    bench_at_most("time to first token of ipw profile, against a bare socket, p50",
                  bench_median(ratio, TOKEN_ROUNDS), "ratio", 1.04);
}

/* ---- all of it ---- */

static void bench_over_http(struct rate null_client)
{
    struct stub_server server;
    struct error why;
    char url[64];
    if (http_available(&why)) {
        printf("skipped, queries over HTTP: %s\n", why.text);
        return;
    }
    stub_server_start(&server, 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1", server.port);
    struct rate rate = best_rate("openai", url, HTTP_QUERIES);
    bench_report("ipw profile over HTTP, 64 at a time", rate.asking, "queries/s");
    bench_at_least("queries/s over HTTP, of those of the null client",
                   rate.asking / null_client.asking, "ratio", 0.3);
    bench_at_least("the same, start and writing included", rate.all / null_client.all, "ratio",
                   0.3);
    stub_server_stop(&server);
    bench_first_token();
}

/* The peak is that of the whole process, including what writing needs. */
static void bench_memory(void)
{
    struct figures few = profile("null", "", FEW, "64"), many = profile("null", "", MANY, "64");
    bench_report("memory of ipw profile, peak with 1000 queries", few.peak_mb, "MB");
    bench_at_most("memory growth from 10^3 to 10^5 queries, while asking", many.own_mb - few.own_mb,
                  "MB", 20);
    bench_at_most("memory growth from 10^3 to 10^5 queries, in all", many.peak_mb - few.peak_mb,
                  "MB", 20);
}

static void find_program(void)
{
    char self[PATH_MAX - 16];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash || !mkdtemp(folder))
        die("cannot begin");
    *slash = '\0';
    snprintf(program, sizeof program, "%s/../ipw", self);
}

int main(void)
{
    find_program();
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct rate rate = best_rate("null", "", NULL_QUERIES);
    bench_report("ipw profile, null client, 64 at a time", rate.asking, "queries/s");
    bench_report("ipw profile, null client, start and writing included", rate.all, "queries/s");
    /* Before libcurl is loaded here: a process's peak RSS starts at its parent's. */
    bench_memory();
    bench_over_http(rate);
    return 0;
}
