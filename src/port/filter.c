#define _GNU_SOURCE
#include "port/filter.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "port/scratch.h"

static bool may_run(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

enum err program_find(const char *name, char *to, size_t size)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        /* An empty entry would mean the working directory: nobody asks for that on purpose. */
        if (length && str_format(to, size, "%.*s/%s", (int)length, path, name) && may_run(to))
            return ERR_OK;
        path += length;
        path += *path == ':';
    }
    return ERR_NOT_FOUND;
}

/* Signals that we block or ignore are its own again. */
static void free_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGPIPE);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(const char *const argv[], int input, int output, int said, pid_t *process)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        free_signals(&attributes);
        failed = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
        if (!failed)
            failed =
                posix_spawn(process, argv[0], &actions, &attributes, (char *const *)argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* The first line with something on it, of what it said. */
static void first_line(int said, char *to, size_t size)
{
    char bytes[2048];
    ssize_t length = pread(said, bytes, sizeof bytes - 1, 0);
    bytes[length > 0 ? length : 0] = '\0';
    char *line = bytes + strspn(bytes, " \t\r\n");
    line[strcspn(line, "\r\n")] = '\0';
    str_copy(to, size, *line ? line : "it does not say why");
}

static enum err run(const char *const argv[], int input, int output, int said, struct error *why)
{
    pid_t process;
    int status = 0;
    char line[200];
    int failed = spawn(argv, input, output, said, &process);
    if (failed)
        return err_set(why, err_from_errno(failed), "cannot run %s: %s", argv[0], strerror(failed));
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(why, ERR_IO, "cannot wait for %s: %s", argv[0], strerror(errno));
    if (WIFSIGNALED(status))
        return err_set(why, ERR_IO, "%s was ended by signal %d", argv[0], WTERMSIG(status));
    if (WEXITSTATUS(status) == 0)
        return ERR_OK;
    first_line(said, line, sizeof line);
    /* Where spawning cannot tell that there is no program (under valgrind), this is how it ends. */
    if (WEXITSTATUS(status) == 127)
        return err_set(why, ERR_NOT_FOUND, "%s cannot be run: %s", argv[0], line);
    return err_set(why, ERR_IO, "%s failed (%d): %s", argv[0], WEXITSTATUS(status), line);
}

enum err filter_run(const char *const argv[], const struct text *input, int output,
                    struct error *why)
{
    int in = -1, said = -1;
    enum err err = scratch_open(&in, why);
    if (err)
        return err;
    err = scratch_open(&said, why);
    if (!err) {
        err = scratch_write(in, text_get(input), input->length, 0);
        if (err)
            err_set(why, err, "cannot write what %s is to read: %s", argv[0], err_text(err));
        else
            err = run(argv, in, output, said, why);
        close(said);
    }
    close(in);
    return err;
}
