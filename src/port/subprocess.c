/* Our child is a supervisor (a fork without exec), and the program is its child.  The supervisor is a subreaper: it
 * adopts every process that the program leaves behind, in whichever group or session, kills them when the program or
 * we end (the pipe `life` is closed, however we end), and reports how the program ended with the CPU time of all.
 * Where the kernel does not limit the number of its processes, the supervisor does (port/subtree.h).
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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/confine.h"
#include "port/subtree.h"
#include "port/syscall_filter.h"

enum {
    WATCH_MS = 50,        /* how often cancellation is checked */
    REAP_MS = 1000,       /* how often a supervisor reaps adopted processes */
    NO_PIDFD_MS = 5,      /* and polls for the program's end where the kernel has no pidfd */
    TASKS_MS = 10,        /* and checks the number of tasks */
    ENFORCED_MS = 100,    /* the same where the kernel limits it */
    PRIORITY = -20,       /* of a supervisor that enforces it */
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
    bool has_reached_tasks;
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
    for (size_t i = 0; i < COUNT_OF(CHANGED); i++)
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
 * a failed exec is closed on execve in any case.  It has its own session, so that it cannot join a process group with
 * others, and no terminal. */
static _Noreturn void exec_program(const struct subprocess_options *options,
                                   const struct pipes *pipes, const struct confinement *confinement,
                                   int channel, pid_t supervisor)
{
    char *const *environment = options->environment ? (char *const *)options->environment : environ;
    bool ready = (confinement ? setsid() >= 0 : setpgid(0, 0) == 0) &&
                 dup2(pipes->input[0], STDIN_FILENO) >= 0 &&
                 dup2(pipes->output[1], STDOUT_FILENO) >= 0 &&
                 dup2(pipes->messages[1], STDERR_FILENO) >= 0 &&
                 (options->directory < 0 || fchdir(options->directory) == 0);
    default_signals();
    if (ready && confinement)
        ready = close_between(STDERR_FILENO + 1, ~0U, true) &&
                (!confinement->filter.traces_forks || subtree_trace_me()) &&
                confine_self(confinement, channel);
    /* Limits are last: beyond that on memory, which we may exceed ourselves, not even the stack can grow. */
    if (ready && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == supervisor &&
        limit_resources(options))
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
    for (size_t i = 0; i < COUNT_OF(IGNORED); i++)
        signal(IGNORED[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "ipw-supervisor", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (confined)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* its memory is a copy of ours */
}

static void close_all_but(const int *kept, size_t count)
{
    unsigned from = STDERR_FILENO + 1;
    for (unsigned next = from; next; from = next + 1) {
        next = 0; /* the first one that is kept from here on */
        for (size_t i = 0; i < count; i++)
            if (kept[i] >= 0 && (unsigned)kept[i] >= from && (!next || (unsigned)kept[i] < next))
                next = (unsigned)kept[i];
        close_between(from, next ? next - 1 : ~0U, false);
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    if (null > STDERR_FILENO)
        close(null);
}

/* The program, as its supervisor sees it. */
struct watched {
    pid_t program;
    int listener; /* for the system calls about which it asks; -1: none */
    int changes;  /* readable when a traced process has stopped; -1: none is traced */
    const struct confinement *confinement;
    struct subtree_limit limit;
    unsigned on_machine; /* tasks of the machine at the start */
    nanos counted;       /* when those of the program were, last */
    struct ending ending;
};

/* Reaps ended processes, and answers those that are traced; false when there are no children left. */
static bool reap(struct watched *watched)
{
    pid_t waited;
    int status;
    while ((waited = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        subtree_limit_handle(&watched->limit, waited, status);
        if (waited == watched->program && !WIFSTOPPED(status)) {
            watched->ending.has_ended = true;
            watched->ending.status = status;
        }
    }
    return waited == 0 || errno != ECHILD;
}

/* Kills each process as it is found; children of a killed one are reparented to us, and killed next if they were
 * missed. */
static void kill_all(struct watched *watched)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    struct subtree killed;
    for (nanos until = clock_now() + KILL_MS * NS_PER_MS; clock_now() < until;) {
        /* Until it is reaped no other group can have its PID. */
        if (!watched->ending.has_ended)
            kill(-watched->program, SIGKILL);
        if (!reap(watched))
            return;
        if (!subtree_find(&killed, SUBTREE_MAX, SIGKILL))
            kill(-watched->program, SIGKILL);
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

/* A descriptor that is readable after a signal about a child. */
static int watch_children(void)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    return signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
}

static double cpu_of_children(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
        return UNKNOWN;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Starts the program.  False with errno. */
static bool start_program(struct watched *watched, const struct subprocess_options *options,
                          const struct pipes *pipes)
{
    pid_t self = getpid();
    int channel[2] = {-1, -1};
    const struct confinement *confinement = watched->confinement;
    bool asks = confinement && confinement->filter.signals == SIGNALS_ASKED;
    if (asks && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0)
        return false;
    pid_t program = watched->program = fork();
    if (program == 0)
        exec_program(options, pipes, confinement, channel[1], self);
    /* In parent and child: killing the group must work at once.  But the leader of a group cannot create a session. */
    if (program > 0 && !confinement)
        (void)setpgid(program, program);
    close_end(&channel[1]);
    if (program > 0 && asks)
        watched->listener = syscall_filter_receive(channel[0]);
    close_end(&channel[0]);
    return program > 0;
}

static unsigned tasks_on_machine(void)
{
    struct sysinfo machine;
    return sysinfo(&machine) == 0 ? machine.procs : UINT16_MAX;
}

/* Where nobody reports an excess.  Counts often only while the machine has so many more tasks than at the start that
 * the program may have too many: a count reads a file for each process. */
static void count_tasks(struct watched *watched)
{
    struct subtree found;
    nanos now = clock_now();
    unsigned most = watched->limit.most;
    if (!most || watched->confinement->limit == TASKS_BY_TRACER ||
        (tasks_on_machine() < watched->on_machine + most / 2 &&
         now - watched->counted < REAP_MS * NS_PER_MS))
        return;
    watched->counted = now;
    unsigned excess = watched->confinement->limit == TASKS_BY_KERNEL ? most : most + 1;
    if (subtree_find(&found, excess, 0) && found.tasks >= excess)
        watched->limit.is_exceeded = true;
}

static int waiting_ms(const struct watched *watched, int pidfd)
{
    if (watched->limit.most && watched->confinement->limit == TASKS_BY_COUNT)
        return TASKS_MS;
    if (pidfd < 0)
        return NO_PIDFD_MS;
    return watched->limit.most && watched->confinement->limit == TASKS_BY_KERNEL ? ENFORCED_MS
                                                                                 : REAP_MS;
}

/* Whether it must be killed, since nothing else keeps it from growing. */
static bool is_over_limit(const struct watched *watched)
{
    return watched->limit.is_exceeded && watched->confinement->limit == TASKS_BY_COUNT;
}

/* A confined program has its own session, so a process group is below us as a whole or not at all. */
static bool may_signal(pid_t receiver)
{
    return receiver > 0 ? subtree_has(receiver) : subtree_has_group(-receiver);
}

/* Until the program or we end. */
static void watch_program(struct watched *watched, int life)
{
    struct pollfd polled[] = {{.fd = life, .events = POLLIN},
                              {.fd = open_pidfd(watched->program), .events = POLLIN},
                              {.fd = watched->listener, .events = POLLIN},
                              {.fd = watched->changes, .events = POLLIN}};
    struct signalfd_siginfo signal;
    do {
        poll(polled, 4, waiting_ms(watched, polled[1].fd));
        if (polled[3].revents & POLLIN)
            (void)!read(watched->changes, &signal, sizeof signal);
        reap(watched);
        if (polled[2].revents & POLLIN)
            syscall_filter_answer(watched->listener, may_signal);
        count_tasks(watched);
    } while (!watched->ending.has_ended && !polled[0].revents && !is_over_limit(watched));
}

static _Noreturn void supervise(const struct subprocess_options *options, const struct pipes *pipes,
                                const struct confinement *confinement)
{
    struct watched watched = {
        .listener = -1,
        .changes = -1,
        .confinement = confinement,
        .limit = {.most = confinement ? confinement->tasks_max : 0, .bound = 1},
        .on_machine = tasks_on_machine(),
        .counted = clock_now()};
    isolate(options->confined);
    if (!start_program(&watched, options, pipes))
        fail(pipes);
    bool traces = confinement && confinement->filter.traces_forks;
    if (traces) {
        setpriority(PRIO_PROCESS, 0, PRIORITY); /* where permitted: forks wait for us */
        watched.changes = watch_children();
        if (!subtree_trace(watched.program))
            kill(watched.program,
                 SIGKILL); /* unless it has failed to start, which it reports itself */
    }
    const int kept[] = {pipes->life[0], pipes->report[1], watched.listener, watched.changes};
    close_all_but(kept, COUNT_OF(kept));
    watch_program(&watched, pipes->life[0]);
    kill_all(&watched);
    watched.ending.has_reached_tasks = watched.limit.is_exceeded;
    watched.ending.cpu_s = cpu_of_children();
    ssize_t n = write(pipes->report[1], &watched.ending, sizeof watched.ending);
    _exit(n == (ssize_t)sizeof watched.ending ? 0 : 1);
}

/* ---- start ---- */

static const struct subprocess NONE = {0, -1, -1, -1, -1, -1};

static enum err start_failed(struct subprocess *process, const char *program, int number,
                             struct error *why)
{
    *process = NONE;
    return err_errno(why, number, "cannot run %s", program);
}

static enum err start(struct subprocess *process, const struct subprocess_options *options,
                      const struct confinement *confinement, struct error *why)
{
    struct pipes pipes;
    const char *program = options->argv[0];
    pid_t pid = open_pipes(&pipes) ? fork() : -1;
    if (pid == 0)
        supervise(options, &pipes, confinement);
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
    struct confinement confinement = {.files = -1};
    enum err err = options->confined ? confine_available(why) : ERR_OK;
    *process = NONE;
    if (!err && options->confined)
        err = confine_prepare(options->directory, options->readable, options->tasks_max,
                              &confinement, why);
    if (!err)
        err = start(process, options, options->confined ? &confinement : NULL, why);
    confine_release(&confinement);
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
        end->has_reached_tasks = ending.has_reached_tasks;
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
        size_t space = max - *kept;
        size_t length = (size_t)n < space ? (size_t)n : space;
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
    return ERR_OK;
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
