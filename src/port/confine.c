/* A seccomp filter denies sockets (and io_uring, which could open them undetected) and system calls that inspect
 * other processes of the same user.  A Landlock ruleset restricts file access; processes under it cannot read the
 * environment or memory of others nor, from Linux 6.12 on, signal them.  Capabilities are dropped, so processes of
 * root are restricted in the same way.  Landlock's declarations are repeated here because the headers of older
 * systems lack them. */
#define _GNU_SOURCE
#include "port/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* ---- system calls ---- */

#if defined __x86_64__
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef OUR_ARCHITECTURE
/* System calls that fail with EPERM.  socketpair is allowed: it connects to no other process. */
#define REFUSED(X)                                                                                 \
    X(SYS_socket)                                                                                  \
    X(SYS_io_uring_setup)                                                                          \
    X(SYS_ptrace)                                                                                  \
    X(SYS_process_vm_readv)                                                                        \
    X(SYS_process_vm_writev)                                                                       \
    X(SYS_pidfd_getfd)

/* Numbers that older headers lack; they are the same on every architecture. */
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

enum { X32_CALLS = 0x40000000 }; /* the other ABI of x86-64, with its own numbers */

#define REFUSE(number)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),

static struct sock_filter FILTER[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCHITECTURE, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    REFUSED(REFUSE) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static bool filter_calls(void)
{
    struct sock_fprog program = {.len = sizeof FILTER / sizeof *FILTER, .filter = FILTER};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum err confine_available(struct error *why)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0)
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED, "this kernel has no seccomp: sockets cannot be denied");
}
#else
static bool filter_calls(void)
{
    errno = ENOSYS;
    return false;
}

enum err confine_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED, "no seccomp filter for this architecture");
}
#endif

/* ---- files ---- */

/* Numbers that are the same on every architecture. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD_RULE = 445, LANDLOCK_RESTRICT = 446 };
enum { LANDLOCK_VERSION = 1 << 0, LANDLOCK_PATH_BENEATH = 1 };

#define FS_EXECUTE    (UINT64_C(1) << 0)
#define FS_WRITE_FILE (UINT64_C(1) << 1)
#define FS_READ_FILE  (UINT64_C(1) << 2)
#define FS_READ_DIR   (UINT64_C(1) << 3)
#define FS_REFER      (UINT64_C(1) << 13) /* version 2: renames between directories */
#define FS_TRUNCATE   (UINT64_C(1) << 14) /* version 3 */
#define FS_IOCTL_DEV  (UINT64_C(1) << 15) /* version 5 */
#define FS_OF_FILES   (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define SCOPE_SIGNAL  (UINT64_C(1) << 1) /* version 6 */

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

enum err confine_files(int directory, const char *const *readable, int *out, struct error *why)
{
    int version = landlock_version();
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
    return err_set(why, err_from_errno(number), "cannot confine files: %s", strerror(number));
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

bool confine_self(int files)
{
    return drop_capabilities() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           (files < 0 || syscall(LANDLOCK_RESTRICT, files, 0U) == 0) && filter_calls();
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
