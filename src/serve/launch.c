/* Runs started through the API: one `ipw profile` at a time, as a child process that writes into the served folder.
 *
 * A request may contain only settings of a fixed list; each is validated here and passed as one argument of the child:
 * no shell, no file paths, no other options.  All functions are called by the thread of the event loop. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "port/event_loop.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/url.h"
#include "runner/profile/profile.h"
#include "serve/api.h"
#include "serve/runs.h"

#define END_TIMEOUT (10 * NS_PER_S)
#define POLL_PERIOD (50 * NS_PER_MS)
enum { LOG_MAX = 4096, NAME_BYTES_MAX = 200, URL_BYTES_MAX = 500, WORD_MAX = 1024, WORDS_MAX = 16 };

enum launch_state { IDLE, RUNNING, STOPPING, DONE, STOPPED, FAILED };
static const char *const STATES[] = {"idle", "running", "stopping", "done", "stopped", "failed"};

struct launch {
    const struct serve_options *options;
    struct event_loop *loop;
    struct runs *runs;
    struct event_watch output; /* stderr of the child */
    struct child child;
    enum launch_state state;
    char id[FILE_NAME_MAX]; /* "": none was started */
    nanos started_at;       /* wall time */
    int exit_code;
    char log[LOG_MAX]; /* tail of its output */
    size_t log_length;
    bool log_is_truncated;
};

static bool is_alive(const struct launch *launch)
{
    return launch->state == RUNNING || launch->state == STOPPING;
}

/* ---- output and exit of the child ---- */

static void append_log(struct launch *launch, const char *bytes, size_t length)
{
    if (length > LOG_MAX) {
        bytes += length - LOG_MAX;
        length = LOG_MAX;
        launch->log_is_truncated = true;
    }
    size_t kept = LOG_MAX - length; /* maximum length of old output to keep */
    if (launch->log_length > kept) {
        memmove(launch->log, launch->log + launch->log_length - kept, kept);
        launch->log_length = kept;
        launch->log_is_truncated = true;
    }
    memcpy(launch->log + launch->log_length, bytes, length);
    launch->log_length += length;
}

static void read_output(struct launch *launch)
{
    char bytes[1024];
    ssize_t n = -1;
    while (launch->output.fd >= 0 &&
           ((n = read(launch->output.fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            append_log(launch, bytes, (size_t)n);
    if (n == 0 && launch->output.events)
        event_loop_unwatch(launch->loop, &launch->output);
}

static void close_output(struct launch *launch)
{
    if (launch->output.events)
        event_loop_unwatch(launch->loop, &launch->output);
    if (launch->output.fd >= 0)
        close(launch->output.fd);
    launch->output = (struct event_watch){.fd = -1};
}

void launch_poll(struct launch *launch)
{
    struct child_end end;
    if (!is_alive(launch))
        return;
    bool has_ended = child_poll(&launch->child, &end);
    read_output(launch);
    if (!has_ended)
        return;
    close_output(launch);
    launch->exit_code = end.exit_code;
    bool was_stopped = launch->state == STOPPING || end.exit_code == 128 + SIGINT;
    launch->state = was_stopped ? STOPPED : FAILED;
    if (end.exit_code == 0)
        launch->state = DONE;
    runs_expire(launch->runs); /* a client that sees the end must also see the results */
}

static void on_output(void *context, unsigned events)
{
    (void)events;
    launch_poll(context);
}

/* Same as Ctrl-C: the first signal waits for the queries in flight, the second aborts them; the results are written
 * either way.  Not SIGINT: a process started in the background of a shell ignores it, and so does its child. */
static void interrupt(struct launch *launch)
{
    launch->state = STOPPING;
    kill(launch->child.pid, SIGTERM);
}

struct launch *launch_new(const struct serve_options *options, struct event_loop *loop,
                          struct runs *runs)
{
    struct launch *launch = xmalloc(sizeof *launch);
    *launch = (struct launch){.options = options, .loop = loop, .runs = runs, .output = {.fd = -1}};
    return launch;
}

/* A signal received while waiting skips to the next, harder step. */
void launch_close(struct launch *launch)
{
    if (!launch)
        return;
    for (int i = 0; i < 3 && is_alive(launch); i++) {
        nanos until = clock_now() + END_TIMEOUT;
        if (i < 2)
            interrupt(launch);
        else
            kill(launch->child.pid, SIGKILL);
        do
            launch_poll(launch);
        while (is_alive(launch) && clock_now() < until && !proc_poll_signal(POLL_PERIOD));
    }
    close_output(launch);
    free(launch);
}

/* ---- allowed settings ---- */

/* Without llama: its model is a file of this machine. */
static const char *const CLIENTS[] = {"openai", "ollama", "null"};

static const char *client_at(size_t i)
{
    return i < COUNT_OF(CLIENTS) ? CLIENTS[i] : NULL;
}

static const struct setting {
    const char *key, *option;
    const char *(*choice)(size_t i); /* allowed values; NULL: any */
    unsigned max;                    /* maximum of a whole number from 1; 0: a string */
    bool is_url, is_needed;
} SETTINGS[] = {
    {.key = "client", .option = "--client=", .choice = client_at, .is_needed = true},
    {.key = "model", .option = "--model=", .is_needed = true},
    {.key = "dataset", .option = "--dataset=", .choice = profile_dataset_at},
    {.key = "base_url", .option = "--client-base-url=", .is_url = true},
    {.key = "max_queries", .option = "--max-queries=", .max = 10000},
    {.key = "concurrency", .option = "--concurrency=", .max = 256},
    {.key = "max_tokens", .option = "--param=max_tokens=", .max = 1000000},
};
enum { SETTINGS_COUNT = COUNT_OF(SETTINGS) };

static enum err check_url(const struct setting *setting, const char *given, struct error *why)
{
    struct url url;
    struct error inner = {0};
    if (strlen(given) > URL_BYTES_MAX || !str_is_plain(given))
        return err_set(why, ERR_USAGE, "%s: too long, or not plain text", setting->key);
    enum err err = url_read(given, &url, &inner);
    if (err)
        return err_set(why, err, "%s: %s", setting->key, inner.text);
    if (url.has_login) /* command lines are visible to all users of this machine */
        return err_set(why, ERR_USAGE, "%s: expected an address without user name and password",
                       setting->key);
    return ERR_OK;
}

static enum err check_text(const struct setting *setting, const char *given, struct error *why)
{
    const char *choice = "";
    if (!given)
        return err_set(why, ERR_USAGE, "%s: expected a string", setting->key);
    if (setting->is_url)
        return check_url(setting, given, why);
    if (!setting->choice)
        return given[0] && strlen(given) <= NAME_BYTES_MAX && str_is_plain(given)
                   ? ERR_OK
                   : err_set(why, ERR_USAGE, "%s: expected plain text of 1 to %d bytes",
                             setting->key, NAME_BYTES_MAX);
    for (size_t i = 0; choice; i++)
        if ((choice = setting->choice(i)) && str_equal(choice, given))
            return ERR_OK;
    return err_set(why, ERR_USAGE, "%s: unknown name '%.60s'; see choices in /api/v1/current",
                   setting->key, given);
}

/* Makes one argument of the child: "--model=NAME". */
static enum err read_setting(const struct setting *setting, const struct jv *value,
                             char word[static WORD_MAX], struct error *why)
{
    int64_t number;
    if (setting->max) {
        if (!jv_integer(value, &number) || number < 1 || number > (int64_t)setting->max)
            return err_set(why, ERR_USAGE, "%s: expected a whole number from 1 to %u", setting->key,
                           setting->max);
        str_format(word, WORD_MAX, "%s%lld", setting->option, (long long)number);
        return ERR_OK;
    }
    enum err err = check_text(setting, jv_text(value), why);
    if (!err)
        str_format(word, WORD_MAX, "%s%s", setting->option, jv_text(value));
    return err;
}

static enum err check_keys(const struct jv *settings, struct error *why)
{
    size_t known = 0;
    JV_EACH (member, jv_first_member(settings)) {
        bool is_known = false;
        for (size_t i = 0; i < SETTINGS_COUNT; i++)
            is_known |= str_equal(SETTINGS[i].key, jv_key(member));
        if (!is_known)
            return err_set(why, ERR_USAGE, "unknown key '%.60s'", jv_key(member));
        if (jv_get(settings, jv_key(member)) != member)
            return err_set(why, ERR_USAGE, "key '%.60s' given more than once", jv_key(member));
        known++;
    }
    return known ? ERR_OK : err_set(why, ERR_USAGE, "client: missing");
}

static enum err read_settings(const struct jv *settings,
                              char words[static SETTINGS_COUNT][WORD_MAX], size_t *count,
                              struct error *why)
{
    enum err err = check_keys(settings, why);
    for (size_t i = 0; !err && i < SETTINGS_COUNT; i++) {
        const struct jv *value = jv_get(settings, SETTINGS[i].key);
        if (value)
            err = read_setting(&SETTINGS[i], value, words[(*count)++], why);
        else if (SETTINGS[i].is_needed)
            err = err_set(why, ERR_USAGE, "%s: missing", SETTINGS[i].key);
    }
    return err;
}

/* ---- start ---- */

/* "profile_llama-3_gsm8k_2026-11-16T17-00-00.000Z": fixed before the run starts. */
static void name_run(struct launch *launch, const struct jv *settings)
{
    char when[CLOCK_TEXT_MAX];
    const char *dataset = jv_get_text(settings, "dataset");
    launch->started_at = clock_wall();
    chars_format(launch->id, "profile_%.80s_%s_%s", str_last_part(jv_get_text(settings, "model")),
                 dataset ? dataset : "builtin", clock_text(when, launch->started_at));
    for (char *at = launch->id; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", *at))
            *at = '-';
}

/* Between prepare and go the child waits: it gets its own process group before Ctrl-C in the terminal, which is meant
 * for us, could reach it. */
static enum err start_child(struct launch *launch, char *const argv[], struct error *why)
{
    int ends[2], exit_code;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(why, err_from_errno(errno), "cannot create a pipe: %s", strerror(errno));
    enum err err = child_prepare_helper(&launch->child, argv, ends[1], why);
    close(ends[1]);
    if (!err) {
        setpgid(launch->child.pid, launch->child.pid);
        err = child_go(&launch->child, &exit_code, why);
    }
    if (err) {
        close(ends[0]);
        return err;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    launch->output = (struct event_watch){.fd = ends[0], .ready = on_output, .context = launch};
    launch->state = RUNNING;
    launch->log_length = 0;
    launch->log_is_truncated = false;
    /* Without the watch, output is read on each iteration of the loop. */
    (void)!event_loop_watch(launch->loop, &launch->output, EPOLLIN);
    return ERR_OK;
}

static enum err start_run(struct launch *launch, const struct jv *settings, struct error *why)
{
    static char self[] = "/proc/self/exe", profile[] = "profile", quiet[] = "--quiet";
    char options[SETTINGS_COUNT][WORD_MAX], name[WORD_MAX];
    size_t count = 0;
    enum err err = read_settings(settings, options, &count, why);
    if (err)
        return err;
    name_run(launch, settings);
    chars_format(name, "--name=%s", launch->id);
    char *folder = xformat("--output-dir=%s", launch->options->runs);
    char *argv[WORDS_MAX] = {self, profile, quiet, folder, name};
    for (size_t i = 0, words = 5; i < count; i++)
        argv[words++] = options[i];
    err = start_child(launch, argv, why);
    free(folder);
    if (err) {
        launch->state = FAILED;
        launch->exit_code = 126;
        launch->log_length = 0;
        append_log(launch, why->text, strlen(why->text));
    }
    return err;
}

/* ---- the API ---- */

/* The last complete lines. */
static void put_message(const struct launch *launch, struct json *json)
{
    struct text lines = {0};
    const char *from = launch->log, *end = launch->log + launch->log_length;
    const char *line = launch->log_is_truncated ? memchr(from, '\n', launch->log_length) : NULL;
    from = line ? line + 1 : from;
    while (end > from && end[-1] == '\n')
        end--;
    text_add_lines(&lines, from, (size_t)(end - from), false);
    json_string(json, "message", str_or_null(text_get(&lines)));
    text_release(&lines);
}

static void put_choices(struct json *json, const char *key, const char *(*choice)(size_t i))
{
    json_array(json, key);
    for (size_t i = 0; choice(i); i++)
        json_string(json, NULL, choice(i));
    json_array_end(json);
}

static void put_state(struct launch *launch, struct api_response *answer)
{
    struct json json;
    char when[CLOCK_TEXT_MAX];
    bool was_started = launch->id[0] != '\0', has_ended = was_started && !is_alive(launch);
    response_object(answer, &json);
    json_string(&json, "state", STATES[launch->state]);
    json_string(&json, "id", str_or_null(launch->id));
    json_string(&json, "started_at", was_started ? clock_text(when, launch->started_at) : NULL);
    json_number(&json, "exit_code", has_ended ? (double)launch->exit_code : UNKNOWN);
    if (launch->state == FAILED)
        put_message(launch, &json);
    else
        json_null(&json, "message");
    json_object(&json, "choices");
    put_choices(&json, "client", client_at);
    put_choices(&json, "dataset", profile_dataset_at);
    json_object_end(&json);
    json_object_end(&json);
}

enum err api_current(const struct api *api, const struct request *request,
                     struct api_response *answer, struct error *why)
{
    (void)request, (void)why;
    launch_poll(api->launch);
    put_state(api->launch, answer);
    return ERR_OK;
}

static void respond_started(struct launch *launch, struct api_response *answer)
{
    struct text location = {0};
    text_add(&location, "/api/v1/runs/");
    request_encode(&location, launch->id);
    chars_copy(answer->location, text_get(&location));
    text_release(&location);
    put_state(launch, answer);
    answer->status = 202;
}

enum err api_start(const struct api *api, const struct request *request,
                   struct api_response *answer, struct error *why)
{
    struct launch *launch = api->launch;
    struct jv *settings = NULL;
    char message[FILE_NAME_MAX + 64];
    enum err err = ERR_OK;
    launch_poll(launch);
    if (is_alive(launch)) {
        chars_format(message, "%s is still running", launch->id);
        response_set_status(answer, 409, "running", message);
        return ERR_OK;
    }
    if (jv_parse(text_get(&request->body), request->body.length, &settings, why) ||
        !jv_is_object(settings))
        err = err_set(why, ERR_USAGE, "the body is not a JSON object");
    if (!err)
        err = start_run(launch, settings, why);
    jv_free(settings);
    if (!err)
        respond_started(launch, answer);
    return err;
}

enum err api_stop(const struct api *api, const struct request *request, struct api_response *answer,
                  struct error *why)
{
    (void)request, (void)why;
    launch_poll(api->launch);
    if (!is_alive(api->launch)) {
        response_set_status(answer, 409, "not_running", "no run started by this server is running");
        return ERR_OK;
    }
    interrupt(api->launch);
    put_state(api->launch, answer);
    answer->status = 202;
    return ERR_OK;
}
