/* ipw-reader: serves energy counters that only root may read to the members of a group.
 *
 *   # ipw-reader --group ipw
 *
 * It opens the counters, then drops all privileges; an open counter stays readable.  Users connect to a Unix socket,
 * one connection per counter: the counter's path first, then one byte per reading wanted, answered by the counter's
 * value.  There are no other requests, and no file descriptor is passed to clients.
 *
 * The kernel restricts these counters because frequent readings leak what another program computes (CVE-2020-8694): a
 * counter is read at most once per --interval-ms; requests in between get the cached value. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { COUNTERS_MAX = 256, CLIENTS_MAX = 512, GROUPS_MAX = 256, PATH_LIMIT = 256 };
enum { NOBODY = 65534, HELP_SHOWN = -1 };

static const char *const PATTERNS[] = {
    "/sys/class/powercap/*/energy_uj",
    "/sys/class/hwmon/hwmon*/energy*_input",
    "/sys/class/hwmon/hwmon*/power*_input",
    "/sys/class/hwmon/hwmon*/power*_average",
};

static struct counter {
    char path[PATH_LIMIT]; /* path on the real machine, without --root */
    int fd;
    int64_t read_ms;
    char text[24]; /* cached response: digits and a newline, or E and an errno */
} counters[COUNTERS_MAX];
static size_t counter_count;

static struct counter *client_counters[CLIENTS_MAX]; /* NULL until the client has sent a path */
static struct pollfd poll_fds[CLIENTS_MAX + 1];      /* the listening socket, then the clients */
static size_t client_count;

static struct options {
    const char *socket, *root;
    gid_t group;
    bool has_group;
    unsigned interval_ms;
} options = {.socket = "/run/ipw/reader.sock", .root = "", .interval_ms = 10};

static int fail(const char *what, const char *detail)
{
    dprintf(STDERR_FILENO, "ipw-reader: %s: %s\n", what, detail);
    return 1;
}

/* ---- counters ---- */

/* Follows links inside /sys to the device's directory.  The file must be on sysfs, unless --root is given for tests. */
static void open_counter(const char *full)
{
    struct statfs where;
    struct counter *counter = &counters[counter_count];
    const char *path = full + strlen(options.root);
    int fd = open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    bool real = options.root[0] || (!fstatfs(fd, &where) && where.f_type == SYSFS_MAGIC);
    if (!real || strlen(path) >= sizeof counter->path || counter_count == COUNTERS_MAX) {
        close(fd);
        return;
    }
    memcpy(counter->path, path, strlen(path) + 1);
    counter->fd = fd;
    counter->read_ms = INT64_MIN / 2;
    counter_count++;
}

static void open_counters(void)
{
    for (size_t i = 0; i < sizeof PATTERNS / sizeof *PATTERNS; i++) {
        char pattern[2 * PATH_LIMIT];
        glob_t found;
        if (snprintf(pattern, sizeof pattern, "%s%s", options.root, PATTERNS[i]) >=
                (int)sizeof pattern ||
            glob(pattern, GLOB_NOSORT, NULL, &found))
            continue;
        for (size_t j = 0; j < found.gl_pathc; j++)
            open_counter(found.gl_pathv[j]);
        globfree(&found);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Passes on digits only, whatever the file contains. */
static void read_counter(struct counter *counter)
{
    int64_t now = now_ms();
    if (now - counter->read_ms < options.interval_ms)
        return;
    counter->read_ms = now;
    char text[sizeof counter->text];
    ssize_t length = pread(counter->fd, text, sizeof text - 1, 0);
    int failure = length < 0 ? errno : 0;
    text[length > 0 ? length : 0] = 0;
    size_t digits = strspn(text, "0123456789");
    if (!failure && (!digits || text[digits] != '\n'))
        failure = EIO;
    if (failure)
        snprintf(counter->text, sizeof counter->text, "E%d\n", failure);
    else
        snprintf(counter->text, sizeof counter->text, "%.*s\n", (int)digits, text);
}

/* ---- clients ---- */

static bool may_read(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return false;
    if (peer.uid == 0 || (options.has_group && peer.gid == options.group))
        return true;
    gid_t groups[GROUPS_MAX];
    size = sizeof groups;
    if (!options.has_group || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
        return false;
    for (size_t i = 0; i < size / sizeof *groups; i++)
        if (groups[i] == options.group)
            return true;
    return false;
}

static void accept_client(void)
{
    int fd = accept4(poll_fds[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (client_count == CLIENTS_MAX || !may_read(fd)) {
        close(fd);
        return;
    }
    client_counters[client_count] = NULL;
    poll_fds[++client_count] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* Returns false if the connection is to be closed. */
static bool serve_client(size_t i)
{
    char request[PATH_LIMIT];
    int fd = poll_fds[i + 1].fd;
    ssize_t length = recv(fd, request, sizeof request - 1, MSG_DONTWAIT);
    if (length <= 0)
        return length < 0 && (errno == EAGAIN || errno == EINTR);
    request[length] = 0;
    for (size_t j = 0; !client_counters[i] && j < counter_count; j++)
        if (!strcmp(counters[j].path, request))
            client_counters[i] = &counters[j];
    if (!client_counters[i])
        return false;
    read_counter(client_counters[i]);
    return send(fd, client_counters[i]->text, strlen(client_counters[i]->text),
                MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static void serve(void)
{
    while (poll(poll_fds, client_count + 1, -1) >= 0 || errno == EINTR) {
        for (size_t i = client_count; i-- > 0;) {
            if (!poll_fds[i + 1].revents || serve_client(i))
                continue;
            close(poll_fds[i + 1].fd);
            poll_fds[i + 1] = poll_fds[client_count];
            client_counters[i] = client_counters[--client_count];
        }
        if (poll_fds[0].revents)
            accept_client();
    }
}

/* ---- the program ---- */

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat there;
    if (!lstat(path, &there) && S_ISSOCK(there.st_mode))
        unlink(path); /* left behind by a killed instance */
    umask(0117);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 64) ||
        (options.has_group && chown(path, (uid_t)-1, options.group)))
        return -1;
    return fd;
}

/* From here on the process has no more rights than any user. */
static bool drop_privileges(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (!geteuid() && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
                       setresuid(NOBODY, NOBODY, NOBODY)))
        return false;
    return !syscall(SYS_capset, &header, none) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_DUMPABLE, 0);
}

static int read_options(int argc, char **argv)
{
    static const struct option LONG[] = {
        {"socket", required_argument, NULL, 's'},
        {"group", required_argument, NULL, 'g'},
        {"interval-ms", required_argument, NULL, 'i'},
        {"root", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int letter; (letter = getopt_long(argc, argv, "", LONG, NULL)) != -1;) {
        char *rest = "";
        const struct group *group;
        switch (letter) {
        case 's':
            options.socket = optarg;
            break;
        case 'i':
            options.interval_ms = (unsigned)strtoul(optarg, &rest, 10);
            break;
        case 'r':
            if (getauxval(AT_SECURE))
                return fail("--root", "must be run as root");
            options.root = optarg;
            break;
        case 'g':
            group = getgrnam(optarg);
            if (!group)
                return fail("no such group", optarg);
            options.group = group->gr_gid;
            options.has_group = true;
            break;
        case 'h':
            dprintf(
                STDOUT_FILENO,
                "Usage: ipw-reader [--group NAME] [--socket FILE] [--interval-ms N]\n"
                "Reads energy counters for root and the members of a group; start it as root.\n");
            return HELP_SHOWN;
        default:
            return 2;
        }
        if (*rest || options.interval_ms < 1 || options.interval_ms > 60000)
            return fail("--interval-ms", "1 to 60000");
    }
    return optind < argc ? fail("unexpected argument", argv[optind]) : 0;
}

int main(int argc, char **argv)
{
    int status = read_options(argc, argv);
    if (status)
        return status == HELP_SHOWN ? 0 : status;
    open_counters();
    if (!counter_count)
        return fail("no energy counter can be read",
                    "run it as root, on a machine with such counters");
    poll_fds[0] = (struct pollfd){.fd = listen_at(options.socket), .events = POLLIN};
    if (poll_fds[0].fd < 0)
        return fail(options.socket, strerror(errno));
    if (!drop_privileges())
        return fail("cannot drop privileges", strerror(errno));
    dprintf(STDERR_FILENO, "ipw-reader: %zu counters at %s\n", counter_count, options.socket);
    serve();
    return 0;
}
