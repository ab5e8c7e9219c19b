#include "support/inference.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/http.h"
#include "port/json_read.h"
#include "support/unit.h"

extern char **environ;

static struct {
    pid_t pid;
    int stop; /* closing it ends the server */
    int port;
    char log[64];
} server;

bool inference_is_possible(void)
{
    return !http_available(NULL);
}

/* Starts the script with these pipes as its standard input and output. */
static int spawn_script(int input, int output)
{
    static char script[] = IPW_FIXTURES "/../fakes/inference_server.py";
    char python[] = "python3";
    char *argv[] = {python, script, server.log, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    int failure = posix_spawnp(&server.pid, python, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

static void make_pipe(int ends[2])
{
    if (pipe(ends))
        fail_msg("no pipe");
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
}

int inference_start(void **state)
{
    (void)state;
    if (!inference_is_possible())
        return 0; /* every test will skip */
    int to[2], from[2];
    snprintf(server.log, sizeof server.log, "/tmp/ipw-requests-XXXXXX");
    int log = mkstemp(server.log);
    if (log < 0)
        return -1;
    close(log);
    make_pipe(to);
    make_pipe(from);
    if (spawn_script(to[0], from[1]))
        return -1;
    close(to[0]);
    close(from[1]);
    server.stop = to[1];
    char line[32] = "";
    size_t length = 0;
    while (length < sizeof line - 1 && !strchr(line, '\n') &&
           read(from[0], line + length, 1) == 1) /* its line may arrive in pieces */
        length++;
    close(from[0]);
    server.port = (int)strtol(line, NULL, 10);
    return server.port > 0 ? 0 : -1;
}

int inference_stop(void **state)
{
    (void)state;
    if (!server.pid)
        return 0;
    close(server.stop);
    waitpid(server.pid, NULL, 0);
    unlink(server.log);
    server.pid = 0;
    return 0;
}

static char *next_buffer(size_t *size)
{
    static _Thread_local char buffers[4][256];
    static _Thread_local unsigned turn;
    *size = sizeof buffers[0];
    return buffers[turn++ % 4];
}

const char *inference_url(const char *scenario)
{
    size_t size;
    char *url = next_buffer(&size);
    snprintf(url, size, "http://127.0.0.1:%d/%s", server.port, scenario);
    return url;
}

const char *inference_unused_url(void)
{
    /* Bound but not listening: no other process gets the port while the test runs. */
    static int taken = -1;
    static struct sockaddr_in address = {.sin_family = AF_INET};
    if (taken < 0) {
        socklen_t length = sizeof address;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (taken < 0)
            return "http://no-socket.invalid";
        assert_int_equal(bind(taken, (struct sockaddr *)&address, length), 0);
        assert_int_equal(getsockname(taken, (struct sockaddr *)&address, &length), 0);
    }
    size_t size;
    char *url = next_buffer(&size);
    snprintf(url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return url;
}

/* The request log, and the number of its lines. */
static char *read_log(unsigned *lines)
{
    struct text text = {0};
    char block[1 << 14];
    int file = open(server.log, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    for (ssize_t got; (got = read(file, block, sizeof block)) > 0;)
        text_add_bytes(&text, block, (size_t)got);
    close(file);
    *lines = 0;
    for (size_t i = 0; i < text.length; i++)
        *lines += text.bytes[i] == '\n';
    return text.bytes; /* NULL before the first request */
}

unsigned inference_request_count(void)
{
    unsigned lines;
    free(read_log(&lines));
    return lines;
}

struct jv *inference_request(unsigned back)
{
    unsigned lines;
    char *text = read_log(&lines);
    assert_true(lines > back);
    char *line = text;
    for (unsigned i = 0; i + back + 1 < lines; i++)
        line = strchr(line, '\n') + 1;
    struct jv *request;
    assert_int_equal(jv_parse(line, strcspn(line, "\n"), &request, NULL), ERR_OK);
    free(text);
    return request;
}

void inference_client(struct client *client, const char *driver, const char *scenario,
                      const char *params)
{
    struct error why = {0};
    struct params given = {0};
    assert_int_equal(params_add(&given, params ? params : ""), ERR_OK);
    const struct client_config config = {.base_url = inference_url(scenario), .params = &given};
    const struct client_driver *found = client_driver_find(driver, &why);
    assert_non_null(found);
    if (client_open(found, &config, client, &why))
        fail_msg("%s: %s", driver, why.text);
    params_release(&given);
}
