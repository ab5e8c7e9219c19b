/* A seccomp filter (port/syscall_filter.h) allows a list of system calls.  A Landlock ruleset restricts file access;
 * processes under it cannot read the environment or memory of others nor, from Linux 6.12 on, signal them.  A mount
 * namespace, where one can be created, has all other files read-only, since Landlock does not restrict changes of mode,
 * owner, times and attributes, and its own /dev/shm, so that POSIX semaphores work without access to those of others.
 * Capabilities are dropped, so processes of root are restricted in the same way.  Landlock's declarations are repeated
 * here because the headers of older systems lack them. */
#define _GNU_SOURCE
#include "port/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

#include "port/subtree.h"

/* ---- files ---- */

/* Numbers that are the same on every architecture. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD_RULE = 445, LANDLOCK_RESTRICT = 446 };
enum { LANDLOCK_VERSION = 1 << 0, LANDLOCK_PATH_BENEATH = 1 };

#define FS_EXECUTE     (UINT64_C(1) << 0)
#define FS_WRITE_FILE  (UINT64_C(1) << 1)
#define FS_READ_FILE   (UINT64_C(1) << 2)
#define FS_READ_DIR    (UINT64_C(1) << 3)
#define FS_REMOVE_FILE (UINT64_C(1) << 5)
#define FS_MAKE_REG    (UINT64_C(1) << 8)
#define FS_REFER       (UINT64_C(1) << 13) /* version 2: renames between directories */
#define FS_TRUNCATE    (UINT64_C(1) << 14) /* version 3 */
#define FS_IOCTL_DEV   (UINT64_C(1) << 15) /* version 5 */
#define FS_OF_FILES    (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define SCOPE_SIGNAL   (UINT64_C(1) << 1) /* version 6 */

struct ruleset {
    uint64_t handled_fs, handled_net, scoped;
};

struct path_rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

/* Landlock ABI version of the running kernel; 0 without Landlock. */
static int landlock_version(void)
{
    long version = syscall(LANDLOCK_CREATE, NULL, 0UL, (unsigned)LANDLOCK_VERSION);
    return version > 0 ? (int)version : 0;
}

static uint64_t rights_of(int version)
{
    uint64_t rights = FS_REFER - 1;
    rights |= version >= 2 ? FS_REFER : 0;
    rights |= version >= 3 ? FS_TRUNCATE : 0;
    return rights | (version >= 5 ? FS_IOCTL_DEV : 0);
}

enum err confine_files_available(struct error *why)
{
    if (landlock_version())
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED,
                   "this kernel has no Landlock (Linux 5.13 or later, with landlock in the boot "
                   "parameter lsm=)");
}

/* Files that programs need to run, as glob(3) patterns.  Only parts of /etc: it may contain keys. */
/* clang-format off */
static const char *const SYSTEM[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store",
    "/proc", "/sys/devices/system", "/sys/fs/cgroup", "/dev/random", "/dev/urandom",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/services",
    "/etc/protocols", "/etc/localtime", "/etc/timezone", "/etc/os-release", "/etc/lsb-release",
    "/etc/locale.alias", "/etc/mime.types", "/etc/magic", "/etc/terminfo", "/etc/fonts", "/etc/inputrc",
    "/etc/alternatives", "/etc/bash.bashrc", "/etc/gitconfig", "/etc/perl", "/etc/python*", "/etc/java*",
    "/etc/R", "/etc/ssl/openssl.cnf", "/etc/ssl/certs", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies",
    NULL,
};
/* clang-format on */
static const char *const SINKS[] = {"/dev/null", "/dev/zero", "/dev/full", NULL};

/* `parent` is a descriptor; a file has fewer rights than a directory. */
static bool allow(int ruleset, int parent, uint64_t rights)
{
    struct stat file;
    struct path_rule rule = {.allowed = rights, .parent = parent};
    if (fstat(parent, &file) != 0)
        return false;
    if (!S_ISDIR(file.st_mode))
        rule.allowed &= FS_OF_FILES;
    return syscall(LANDLOCK_ADD_RULE, ruleset, (unsigned)LANDLOCK_PATH_BENEATH, &rule, 0U) == 0;
}

static bool allow_path(int ruleset, const char *path, uint64_t rights)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    bool fine = fd < 0 || allow(ruleset, fd, rights);
    if (fd >= 0)
        close(fd);
    return fine;
}

static bool allow_paths(int ruleset, const char *const *paths, uint64_t rights)
{
    bool fine = true;
    for (; paths && *paths && fine; paths++)
        fine = allow_path(ruleset, *paths, rights);
    return fine;
}

static bool allow_system(int ruleset, uint64_t rights)
{
    bool fine = true;
    for (const char *const *pattern = SYSTEM; *pattern && fine; pattern++) {
        glob_t found;
        if (!strchr(*pattern, '*')) {
            fine = allow_path(ruleset, *pattern, rights);
        } else if (glob(*pattern, GLOB_NOSORT, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc && fine; i++)
                fine = allow_path(ruleset, found.gl_pathv[i], rights);
            globfree(&found);
        }
    }
    return fine;
}

/* *out is a descriptor; -1 without Landlock. */
static enum err make_rules(int version, int directory, const char *const *readable, int *out,
                           struct error *why)
{
    uint64_t all = rights_of(version), reading = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    const struct ruleset rules = {.handled_fs = all, .scoped = version >= 6 ? SCOPE_SIGNAL : 0};
    *out = -1;
    if (!version)
        return ERR_OK;
    size_t size = version >= 6 ? sizeof rules : sizeof rules.handled_fs;
    *out = (int)syscall(LANDLOCK_CREATE, &rules, size, 0U);
    if (*out >= 0 && (directory < 0 || allow(*out, directory, all)) &&
        allow_system(*out, reading) && allow_paths(*out, readable, reading) &&
        allow_paths(*out, SINKS, (reading | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV) & all))
        return ERR_OK;
    int number = errno;
    if (*out >= 0)
        close(*out);
    *out = -1;
    return err_errno(why, number, "cannot confine files");
}

/* ---- mounts ---- */

#define SHARED_MEMORY         "/dev/shm"
#define SHARED_MEMORY_OPTIONS "size=64m,mode=0700"

static bool write_file(const char *path, const char *text, size_t length)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool fine = fd >= 0 && write(fd, text, length) == (ssize_t)length;
    if (fd >= 0)
        close(fd);
    return fine;
}

/* The namespace has this user only, under the same number.  snprintf of integers makes no calls. */
static bool map_user(unsigned long user, unsigned long group)
{
    static const char DENY[] = "deny";
    char users[64], groups[64];
    int user_length = snprintf(users, sizeof users, "%lu %lu 1", user, user);
    int group_length = snprintf(groups, sizeof groups, "%lu %lu 1", group, group);
    return write_file("/proc/self/setgroups", DENY, sizeof DENY - 1) &&
           write_file("/proc/self/uid_map", users, (size_t)user_length) &&
           write_file("/proc/self/gid_map", groups, (size_t)group_length);
}

/* Without the privilege, in a user namespace.  /proc/self belongs to root while our memory is hidden: it is shown in
 * the meantime, but not to confined programs. */
static bool leave_mount_namespace(bool *is_own_user)
{
    unsigned long user = geteuid(), group = getegid();
    int was_readable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    *is_own_user = false;
    if (unshare(CLONE_NEWNS) == 0)
        return true;
    *is_own_user = unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!*is_own_user)
        return false;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    bool is_mapped = map_user(user, group);
    prctl(PR_SET_DUMPABLE, was_readable == 1, 0, 0, 0);
    return is_mapped;
}

/* Numbers that are the same on every architecture, and a struct that older headers lack. */
enum { MOUNT_SETATTR = 442, MOUNT_READ_ONLY = 1, MOUNT_RECURSIVE = 0x8000 };

struct mount_change {
    uint64_t set, clear, propagation, user_namespace;
};

static bool change_mount(const char *path, unsigned flags, struct mount_change change)
{
    return syscall(MOUNT_SETATTR, AT_FDCWD, path, flags, &change, sizeof change) == 0;
}

/* Makes the directory writable, and the current one.  Its descriptor belongs to the mounts that we have left, and would
 * lead back to them. */
static bool mount_directory(int directory)
{
    char name[64], path[PATH_MAX]; /* the kernel returns no longer one */
    struct stat expected, found;
    if (directory < 0)
        return chdir("/") == 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", directory);
    ssize_t n = readlink(name, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    if (n <= 0 || mount(path, path, NULL, MS_BIND, NULL) != 0 ||
        !change_mount(path, 0, (struct mount_change){.clear = MOUNT_READ_ONLY}) ||
        chdir(path) != 0 || fstat(directory, &expected) != 0 || stat(".", &found) != 0)
        return false;
    errno = ESTALE; /* another directory has its path now */
    return found.st_dev == expected.st_dev && found.st_ino == expected.st_ino;
}

/* All mounts read-only but the directory's, and shared memory that nobody else sees and that ends with its last
 * process. */
static bool mount_own(int directory, bool *is_own_user)
{
    return leave_mount_namespace(is_own_user) &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           change_mount("/", MOUNT_RECURSIVE, (struct mount_change){.set = MOUNT_READ_ONLY}) &&
           mount("tmpfs", SHARED_MEMORY, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 SHARED_MEMORY_OPTIONS) == 0 &&
           mount_directory(directory);
}

/* ---- what this machine supports ---- */

enum { CAN_ASK = 1, CAN_MOUNT = 2, CAN_LIMIT = 4, CAN_TRACE = 8 };

/* A version of Landlock (Linux 5.19) whose kernels count processes in each user namespace (Linux 5.14). */
enum { NPROC_PER_NAMESPACE = 2 };

static pthread_once_t tried = PTHREAD_ONCE_INIT;
static int abilities;

static bool can_trace(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(subtree_trace_me() ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* Tried out in a process of its own, since some kernels, containers and security modules refuse these calls in ways
 * that cannot be asked for. */
static void try_abilities(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int found = can_trace() ? CAN_TRACE : 0;
        int version = landlock_version();
        bool is_own_user;
        if (version && mount_own(open(".", O_PATH | O_CLOEXEC), &is_own_user))
            found |= CAN_MOUNT | (is_own_user && version >= NPROC_PER_NAMESPACE ? CAN_LIMIT : 0);
        _exit(found | (syscall_filter_can_ask() ? CAN_ASK : 0));
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return;
    if (pid > 0 && WIFEXITED(status))
        abilities = WEXITSTATUS(status);
}

enum err confine_available(struct error *why)
{
    struct syscall_filter filter = {.signals = SIGNALS_SCOPED};
    syscall_filter_build(&filter);
    if (!filter.length)
        return err_set(why, ERR_UNSUPPORTED, "no seccomp filter for this architecture");
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0)
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED, "this kernel has no seccomp: sockets cannot be denied");
}

static enum task_limit task_limit(void)
{
    if (abilities & CAN_LIMIT)
        return TASKS_BY_KERNEL;
    return abilities & CAN_TRACE ? TASKS_BY_TRACER : TASKS_BY_COUNT;
}

enum err confine_tasks_available(struct error *why)
{
    pthread_once(&tried, try_abilities);
    if (task_limit() != TASKS_BY_COUNT)
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED,
                   "no user namespace, and no ptrace, for the limit on processes");
}

static enum signal_scope signal_scope(int version)
{
    if (version >= 6)
        return SIGNALS_SCOPED;
    return abilities & CAN_ASK ? SIGNALS_ASKED : SIGNALS_OPEN;
}

enum err confine_prepare(int directory, const char *const *readable, unsigned tasks_max,
                         struct confinement *out, struct error *why)
{
    int version = landlock_version();
    enum err err = make_rules(version, directory, readable, &out->files, why);
    if (err)
        return err;
    pthread_once(&tried, try_abilities);
    out->directory = directory;
    out->has_own_mounts = abilities & CAN_MOUNT;
    out->limit = task_limit();
    out->tasks_max = tasks_max;
    out->filter.traces_forks = tasks_max && out->limit == TASKS_BY_TRACER;
    out->filter.signals = signal_scope(version);
    syscall_filter_build(&out->filter);
    return ERR_OK;
}

void confine_release(struct confinement *confinement)
{
    if (confinement->files >= 0)
        close(confinement->files);
    confinement->files = -1;
}

/* ---- confining a process ---- */

/* Also for root, which could otherwise read data that the kernel denies to other users, such as the environment of
 * any process. */
static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    for (unsigned long i = 0; i < 64; i++)
        prctl(PR_CAPBSET_DROP, i, 0, 0,
              0); /* fails without CAP_SETPCAP, and then there is nothing to drop */
    return syscall(SYS_capset, &header, none) == 0;
}

static bool separate_mounts(const struct confinement *confinement)
{
    bool is_own_user;
    uint64_t rights = FS_WRITE_FILE | FS_READ_FILE | FS_READ_DIR | FS_REMOVE_FILE | FS_MAKE_REG;
    rights |= rights_of(landlock_version()) & FS_TRUNCATE;
    return mount_own(confinement->directory, &is_own_user) &&
           allow_path(confinement->files, SHARED_MEMORY, rights);
}

/* After the user namespace was created, which counts from 1.  Otherwise the limit is a weak one: it counts all tasks of
 * this user, of whom there are at most as many as on the machine, and none of root's. */
static bool limit_tasks(const struct confinement *confinement)
{
    struct sysinfo machine;
    rlim_t most = confinement->tasks_max;
    if (!most)
        return true;
    if (confinement->limit != TASKS_BY_KERNEL)
        most += sysinfo(&machine) == 0 ? machine.procs : UINT16_MAX;
    struct rlimit limit = {.rlim_cur = most, .rlim_max = most}, ours;
    if (getrlimit(RLIMIT_NPROC, &ours) == 0 && ours.rlim_max < most)
        return true; /* it has a lower limit already */
    return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

bool confine_self(const struct confinement *confinement, int channel)
{
    int files = confinement->files;
    return (!confinement->has_own_mounts || separate_mounts(confinement)) &&
           limit_tasks(confinement) && drop_capabilities() &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           (files < 0 || syscall(LANDLOCK_RESTRICT, files, 0U) == 0) &&
           syscall_filter_install(&confinement->filter, channel);
}

/* ---- our own memory ---- */

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned guards;   /* under the lock */
static bool was_readable; /* before the first of them */

void confine_guard(void)
{
    pthread_mutex_lock(&guard_lock);
    if (guards++ == 0) {
        was_readable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    pthread_mutex_unlock(&guard_lock);
}

void confine_unguard(void)
{
    pthread_mutex_lock(&guard_lock);
    if (--guards == 0 && was_readable)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    pthread_mutex_unlock(&guard_lock);
}
