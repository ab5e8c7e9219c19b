/* Our child is a supervisor (a fork without exec), and the program is its child.  The supervisor is a subreaper: it
 * adopts every process that the program leaves behind, in whichever group or session, kills them when the program or
 * we end (the pipe `life` is closed, however we end), and reports how the program ended with the CPU time of all.
 * Both forks make async-signal-safe calls only, since other threads may hold locks. */
#define _GNU_SOURCE
#include "port/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/confine.h"

enum {
    WATCH_MS = 50,        /* how often cancellation is checked */
    REAP_MS = 1000,       /* how often a supervisor reaps adopted processes */
    NO_PIDFD_MS = 5,      /* and polls for the program's end where the kernel has no pidfd */
    KILL_MS = 2000,       /* processes that survive this long (they changed user) are left alone */
    SUPERVISOR_MS = 5000, /* then the supervisor itself is killed */
};

/* ---- the program ---- */

struct pipes {
    int input[2], output[2], messages[2], failure[2], life[2], report[2];
};

/* The report of a supervisor. */
struct ending {
    bool has_ended; /* the program exited by itself; otherwise it was killed */
    int status;
    double cpu_s;
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_pipes(struct pipes *pipes)
{
    int *ends = pipes->input; /* the struct is twelve descriptors */
    for (size_t i = 0; i < sizeof *pipes / sizeof *ends; i++)
        close_end(&ends[i]);
}

static bool open_pipes(struct pipes *pipes)
{
    memset(pipes, -1, sizeof *pipes);
    return pipe2(pipes->input, O_CLOEXEC) == 0 && pipe2(pipes->output, O_CLOEXEC) == 0 &&
           pipe2(pipes->messages, O_CLOEXEC) == 0 && pipe2(pipes->failure, O_CLOEXEC) == 0 &&
           pipe2(pipes->life, O_CLOEXEC) == 0 && pipe2(pipes->report, O_CLOEXEC) == 0;
}

static bool limit(int resource, uint64_t max)
{
    struct rlimit limits = {.rlim_cur = (rlim_t)max, .rlim_max = (rlim_t)max};
    return max == 0 || setrlimit((__rlimit_resource_t)resource, &limits) == 0;
}

static bool limit_resources(const struct subprocess_options *options)
{
    struct rlimit none = {0};
    return limit(RLIMIT_AS, options->memory_bytes) && limit(RLIMIT_FSIZE, options->file_bytes) &&
           limit(RLIMIT_CPU, options->cpu_s) && setrlimit(RLIMIT_CORE, &none) == 0;
}

/* The child starts with default signal handling. */
static void default_signals(void)
{
    static const int CHANGED[] = {SIGPIPE, SIGXFSZ, SIGCHLD, SIGINT,  SIGTERM,
                                  SIGHUP,  SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2};
    sigset_t none;
    for (size_t i = 0; i < sizeof CHANGED / sizeof *CHANGED; i++)
        signal(CHANGED[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Closes a range of descriptors, immediately or on execve. */
static bool close_between(unsigned first, unsigned last, bool at_execve)
{
    enum { DESCRIPTORS_MAX = 1 << 20 };
    struct rlimit open_files;
    if (first > last)
        return true;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, last, at_execve ? 1U << 2 /* CLOSE_RANGE_CLOEXEC */ : 0U) ==
        0)
        return true;
#endif
    /* Linux before 5.11. */
    if (getrlimit(RLIMIT_NOFILE, &open_files) != 0)
        return false;
    for (unsigned fd = first; fd <= last && fd < DESCRIPTORS_MAX && fd < open_files.rlim_max; fd++)
        if ((at_execve ? fcntl((int)fd, F_SETFD, FD_CLOEXEC) : close((int)fd)) != 0 &&
            errno != EBADF)
            return false;
    return true;
}

static _Noreturn void fail(const struct pipes *pipes)
{
    int number = errno;
    ssize_t n = write(pipes->failure[1], &number, sizeof number);
    _exit(n == (ssize_t)sizeof number ? 127 : 126);
}

/* A confined program does not inherit descriptors that we were started with, such as sockets; the pipe that reports
 * a failed exec is closed on execve in any case. */
static _Noreturn void exec_program(const struct subprocess_options *options,
                                   const struct pipes *pipes, int files, pid_t supervisor)
{
    char *const *environment = options->environment ? (char *const *)options->environment : environ;
    bool ready =
        setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == supervisor &&
        dup2(pipes->input[0], STDIN_FILENO) >= 0 && dup2(pipes->output[1], STDOUT_FILENO) >= 0 &&
        dup2(pipes->messages[1], STDERR_FILENO) >= 0 &&
        (options->directory < 0 || fchdir(options->directory) == 0) && limit_resources(options);
    default_signals();
    if (ready && (!options->confined ||
                  (close_between(STDERR_FILENO + 1, ~0U, true) && confine_self(files))))
        execve(options->argv[0], (char *const *)options->argv, environment);
    fail(pipes);
}

/* ---- the supervisor ---- */

/* Terminal signals and signals of the program do not end it; it keeps none of our descriptors. */
static void isolate(bool confined)
{
    static const int IGNORED[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGPIPE, SIGTSTP, SIGUSR1, SIGUSR2};
    setpgid(0, 0);
    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++)
        signal(IGNORED[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "ipw-supervisor", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (confined)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* its memory is a copy of ours */
}

static void close_all_but(int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);
    close_between(STDERR_FILENO + 1, low - 1, false);
    close_between(low + 1, high - 1, false);
    close_between(high + 1, ~0U, false);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    if (null > STDERR_FILENO)
        close(null);
}

/* Reaps ended processes; false when there are no children left. */
static bool reap(pid_t program, struct ending *ending)
{
    pid_t waited;
    int status;
    while ((waited = waitpid(-1, &status, WNOHANG)) > 0)
        if (waited == program) {
            ending->has_ended = true;
            ending->status = status;
        }
    return waited == 0 || errno != ECHILD;
}

/* Reads a space-separated list of PIDs; false where the kernel lacks CONFIG_PROC_CHILDREN. */
static bool kill_children(void)
{
    char bytes[4096];
    ssize_t n;
    pid_t pid = 0;
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < n; i++)
            if (bytes[i] >= '0' && bytes[i] <= '9') {
                pid = 10 * pid + (bytes[i] - '0');
            } else {
                if (pid > 1)
                    kill(pid, SIGKILL);
                pid = 0;
            }
    close(fd);
    return true;
}

/* Children of a killed process are reparented to us and killed next. */
static void kill_all(pid_t program, struct ending *ending)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    for (int i = 0; i < KILL_MS; i++) {
        /* Until it is reaped no other group can have its PID. */
        if (!kill_children() || !ending->has_ended)
            kill(-program, SIGKILL);
        if (!reap(program, ending))
            return;
        nanosleep(&pause, NULL);
    }
}

static int open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0U);
#else
    (void)pid;
    return -1;
#endif
}

static double cpu_of_children(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
        return UNKNOWN;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static _Noreturn void supervise(const struct subprocess_options *options, const struct pipes *pipes,
                                int files)
{
    pid_t self = getpid();
    isolate(options->confined);
    pid_t program = fork();
    if (program == 0)
        exec_program(options, pipes, files, self);
    if (program < 0)
        fail(pipes);
    (void)setpgid(program, program); /* in parent and child: killing the group must work at once */
    close_all_but(pipes->life[0], pipes->report[1]);
    struct ending ending = {0};
    struct pollfd polled[] = {{.fd = pipes->life[0], .events = POLLIN},
                              {.fd = open_pidfd(program), .events = POLLIN}};
    do {
        poll(polled, 2, polled[1].fd < 0 ? NO_PIDFD_MS : REAP_MS);
        reap(program, &ending);
    } while (!ending.has_ended && !polled[0].revents);
    kill_all(program, &ending);
    ending.cpu_s = cpu_of_children();
    ssize_t n = write(pipes->report[1], &ending, sizeof ending);
    _exit(n == (ssize_t)sizeof ending ? 0 : 1);
}

/* ---- start ---- */

static const struct subprocess NONE = {0, -1, -1, -1, -1, -1};

static enum err start_failed(struct subprocess *process, const char *program, int number,
                             struct error *why)
{
    *process = NONE;
    return err_set(why, err_from_errno(number), "cannot run %s: %s", program, strerror(number));
}

static enum err start(struct subprocess *process, const struct subprocess_options *options,
                      int files, struct error *why)
{
    struct pipes pipes;
    const char *program = options->argv[0];
    pid_t pid = open_pipes(&pipes) ? fork() : -1;
    if (pid == 0)
        supervise(options, &pipes, files);
    int number = errno;
    if (pid < 0) {
        close_pipes(&pipes);
        return start_failed(process, program, number, why);
    }
    *process = (struct subprocess){
        pid, pipes.input[1], pipes.output[0], pipes.messages[0], pipes.life[1], pipes.report[0]};
    pipes.input[1] = pipes.output[0] = pipes.messages[0] = pipes.life[1] = pipes.report[0] = -1;
    close_end(&pipes.failure[1]);
    ssize_t n;
    do
        n = read(pipes.failure[0], &number, sizeof number);
    while (n < 0 && errno == EINTR);
    close_pipes(&pipes);
    if (n > 0) {
        subprocess_end(process, NULL);
        return start_failed(process, program, number, why);
    }
    fcntl(process->output, F_SETFL, O_NONBLOCK);
    fcntl(process->messages, F_SETFL, O_NONBLOCK);
    return ERR_OK;
}

enum err subprocess_start(struct subprocess *process, const struct subprocess_options *options,
                          struct error *why)
{
    int files = -1;
    enum err err = options->confined ? confine_available(why) : ERR_OK;
    *process = NONE;
    if (!err && options->confined)
        err = confine_files(options->directory, options->readable, &files, why);
    if (!err)
        err = start(process, options, files, why);
    close_end(&files);
    return err;
}

/* ---- end ---- */

/* Whether the supervisor has reported, or is gone. */
static bool await_report(const struct subprocess *process, int ms)
{
    struct pollfd polled = {.fd = process->report, .events = POLLIN};
    int n;
    do
        n = poll(&polled, 1, ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

bool subprocess_has_ended(const struct subprocess *process)
{
    return !process->pid || await_report(process, 0);
}

/* Waits until none of its processes runs. */
static void stop(struct subprocess *process)
{
    close_end(&process->life);
    kill(process->pid,
         SIGCONT); /* a program may have stopped it, where signals are not restricted */
    if (!await_report(process, SUPERVISOR_MS))
        kill(process->pid, SIGKILL);
}

void subprocess_end(struct subprocess *process, struct subprocess_end *end)
{
    struct ending ending;
    if (end)
        *end = (struct subprocess_end){.exit_code = 127, .cpu_s = UNKNOWN};
    if (!process->pid)
        return;
    stop(process);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (end && read(process->report, &ending, sizeof ending) == (ssize_t)sizeof ending) {
        int status = ending.has_ended ? ending.status : SIGKILL;
        end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        end->exit_code = end->signal ? 128 + end->signal : WEXITSTATUS(status);
        end->cpu_s = ending.cpu_s;
    }
    close_end(&process->input);
    close_end(&process->output);
    close_end(&process->messages);
    close_end(&process->report);
    *process = NONE;
}

/* ---- running to completion ---- */

/* Reads available data; closes the descriptor at end of file.  `taker` receives it instead of the output. */
static void drain(int *fd, size_t max, const struct subprocess_run *taker, struct text *output,
                  size_t *kept, size_t *dropped)
{
    char bytes[4096];
    ssize_t n;
    while (*fd >= 0 && (n = read(*fd, bytes, sizeof bytes)) != 0) {
        if (n < 0) {
            if (errno != EINTR)
                break;
            continue;
        }
        if (taker) {
            taker->take(taker->context, bytes, (size_t)n);
            continue;
        }
        size_t space = max - *kept, length = (size_t)n < space ? (size_t)n : space;
        text_add_bytes(output, bytes, length);
        *kept += length;
        *dropped += (size_t)n - length;
    }
    if (*fd >= 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        close_end(fd);
}

struct watch {
    struct subprocess process;
    const struct subprocess_run *run;
    struct text *output;
    struct subprocess_result *result;
    size_t written, kept; /* bytes of input and output */
    nanos started;
};

static void take_output(struct watch *watch)
{
    const struct subprocess_run *run = watch->run;
    errno = 0;
    drain(&watch->process.output, run->output_limit, run->take ? run : NULL, watch->output,
          &watch->kept, &watch->result->dropped);
    errno = 0;
    drain(&watch->process.messages, run->output_limit, NULL, watch->output, &watch->kept,
          &watch->result->dropped);
}

static void write_input(struct watch *watch)
{
    const struct subprocess_run *run = watch->run;
    while (watch->process.input >= 0 && watch->written < run->input_length) {
        ssize_t n = write(watch->process.input, run->input + watch->written,
                          run->input_length - watch->written);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n < 0 && errno != EINTR)
            break; /* the program closed its input */
        watch->written += n > 0 ? (size_t)n : 0;
    }
    close_end(&watch->process.input);
}

static void wait_for_change(const struct watch *watch)
{
    struct pollfd polled[5] = {
        {.fd = watch->process.input, .events = POLLOUT},
        {.fd = watch->process.output, .events = POLLIN},
        {.fd = watch->process.messages, .events = POLLIN},
        {.fd = watch->process.report, .events = POLLIN},
        {.fd = watch->run->ready ? watch->run->watched : -1, .events = POLLIN},
    };
    nanos timeout = WATCH_MS * NS_PER_MS;
    nanos left = watch->started + watch->run->timeout - clock_now();
    if (watch->run->timeout > 0 && left < timeout)
        timeout = left > 0 ? left : 0;
    poll(polled, 5, (int)((timeout + NS_PER_MS - 1) / NS_PER_MS));
    if (watch->run->ready && polled[4].revents)
        watch->run->ready(watch->run->context);
}

static void watch_until_end(struct watch *watch)
{
    const struct subprocess_run *run = watch->run;
    while (!subprocess_has_ended(&watch->process)) {
        if (run->cancel && atomic_load(run->cancel)) {
            watch->result->canceled = true;
            return;
        }
        if (run->timeout > 0 && clock_now() - watch->started >= run->timeout) {
            watch->result->timed_out = true;
            return;
        }
        wait_for_change(watch);
        write_input(watch);
        take_output(watch);
    }
}

enum err subprocess_run(const struct subprocess_options *options, const struct subprocess_run *run,
                        struct text *output, struct subprocess_result *result, struct error *why)
{
    struct watch watch = {.run = run, .output = output, .result = result, .started = clock_now()};
    *result = (struct subprocess_result){.end = {.cpu_s = UNKNOWN}};
    enum err err = subprocess_start(&watch.process, options, why);
    if (err)
        return err;
    fcntl(watch.process.input, F_SETFL, O_NONBLOCK);
    write_input(&watch);
    watch_until_end(&watch);
    stop(&watch.process); /* background processes would keep the pipes open */
    take_output(&watch);
    subprocess_end(&watch.process, &result->end);
    return output->failed ? err_no_memory(why) : ERR_OK;
}

/* ---- command templates ---- */

void subprocess_command(const char *given, const char *const *names, struct text *out)
{
    while (*given) {
        size_t i = 0, length = 0;
        for (; *given == '{' && names[i]; i++) {
            length = strlen(names[i]);
            if (!strncmp(given + 1, names[i], length) && given[length + 1] == '}')
                break;
        }
        if (*given != '{' || !names[i]) {
            text_add_bytes(out, given++, 1);
            continue;
        }
        text_add(out, "\"$IPW_");
        for (const char *c = names[i]; *c; c++)
            text_addf(out, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        text_add(out, "\"");
        given += length + 2;
    }
}
