#include "port/proc_tree.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/text.h"
#include "core/units.h"
#include "port/fs.h"

/* ---- listeners ---- */

enum { SOCKETS_MAX = 64, STATE_LISTEN = 0x0A };

struct sockets {
    unsigned long inodes[SOCKETS_MAX];
    size_t count;
};

/* The listening sockets of one table: "  0: 0100007F:1F90 00000000:0000 0A ... inode". */
static void find_sockets(const char *table, unsigned port, struct sockets *out)
{
    char line[512];
    int fd;
    FILE *file = fs_open(table, &fd) ? NULL : fdopen(fd, "r");
    if (!file) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while (out->count < SOCKETS_MAX && fgets(line, sizeof line, file)) {
        unsigned local = 0, state = 0;
        unsigned long inode = 0;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*d %lu",
                   &local, &state, &inode) == 3 &&
            local == port && state == STATE_LISTEN && inode)
            out->inodes[out->count++] = inode;
    }
    fclose(file);
}

static bool holds_socket(const char *pid, const struct sockets *sockets)
{
    char path[FS_PATH_MAX], link[96];
    struct fs_names files;
    bool found = false;
    chars_format(path, "/proc/%s/fd", pid);
    if (fs_list(path, &files) != ERR_OK)
        return false;
    for (size_t i = 0; i < files.count && !found; i++) {
        unsigned long inode = 0;
        chars_format(path, "/proc/%s/fd/%s", pid, files.items[i]);
        if (fs_read_link(path, link, sizeof link) <= 0)
            continue;
        if (sscanf(link, "socket:[%lu]", &inode) != 1)
            continue;
        for (size_t s = 0; s < sockets->count; s++)
            found = found || sockets->inodes[s] == inode;
    }
    fs_names_release(&files);
    return found;
}

static bool only_forwards(const char *pid)
{
    static const char *const NAMES[] = {"docker-proxy", "rootlessport", "slirp4netns", "pasta",
                                        "ssh",          "sshd",         "kubectl",     "socat"};
    char name[64];
    proc_name((int)strtol(pid, NULL, 10), name, sizeof name);
    return str_is_listed(name, NAMES, COUNT_OF(NAMES));
}

static bool is_pid(const char *name)
{
    return name[strspn(name, "0123456789")] == '\0';
}

size_t proc_listeners(unsigned port, int pids[static PROC_LISTENERS_MAX])
{
    struct sockets sockets = {.count = 0};
    struct fs_names names;
    size_t count = 0;
    find_sockets("/proc/net/tcp", port, &sockets);
    find_sockets("/proc/net/tcp6", port, &sockets);
    if (!sockets.count || fs_list("/proc", &names) != ERR_OK)
        return 0;
    for (size_t i = 0; i < names.count && count < PROC_LISTENERS_MAX; i++) {
        if (!is_pid(names.items[i]) || !holds_socket(names.items[i], &sockets))
            continue;
        if (only_forwards(names.items[i])) {
            count = 0;
            break;
        }
        pids[count++] = (int)strtol(names.items[i], NULL, 10);
    }
    fs_names_release(&names);
    return count;
}

/* ---- CPU time ---- */

struct process {
    int pid, parent;
    struct proc_time own;
    uint64_t ticks; /* its own and those of children it has waited for */
    bool belongs, settled;
};

struct processes {
    struct process *items;
    size_t count;
};

/* The name, in parentheses, may contain any byte: fields are counted from its end. */
static bool read_process(const char *pid, struct process *out)
{
    char path[64], text[1024];
    unsigned long long user, system, started;
    long long waited_user, waited_system;
    chars_format(path, "/proc/%s/stat", pid);
    if (fs_read_text(path, text, sizeof text) != ERR_OK)
        return false;
    const char *fields = strrchr(text, ')');
    if (!fields ||
        sscanf(fields + 1,
               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld "
               "%*d %*d %*d %*d %llu",
               &out->parent, &user, &system, &waited_user, &waited_system, &started) != 6)
        return false;
    out->pid = (int)strtol(pid, NULL, 10);
    out->own = (struct proc_time){out->pid, started, user + system};
    out->ticks = user + system + (uint64_t)waited_user + (uint64_t)waited_system;
    return true;
}

static bool read_processes(struct processes *out)
{
    struct fs_names names;
    *out = (struct processes){0};
    if (fs_list("/proc", &names) != ERR_OK)
        return false;
    out->items = memory_zeroed(names.count + 1, sizeof *out->items);
    for (size_t i = 0; out->items && i < names.count; i++)
        if (is_pid(names.items[i]))
            out->count += read_process(names.items[i], &out->items[out->count]);
    fs_names_release(&names);
    return out->items != NULL;
}

size_t proc_times(struct proc_time **out)
{
    struct processes all;
    *out = NULL;
    if (!read_processes(&all))
        return 0;
    *out = memory_resize(NULL, (all.count + 1) * sizeof **out);
    for (size_t i = 0; *out && i < all.count; i++)
        (*out)[i] = all.items[i].own;
    free(all.items);
    return *out ? all.count : 0;
}

static int by_pid(const void *left, const void *right)
{
    const struct proc_time *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

const struct proc_time *proc_time_find(const struct proc_time *times, size_t count, int pid,
                                       uint64_t started)
{
    const struct proc_time wanted = {.pid = pid};
    const struct proc_time *found =
        count ? bsearch(&wanted, times, count, sizeof wanted, by_pid) : NULL;
    return found && found->started == started ? found : NULL;
}

static bool is_one_of(const int *pids, size_t count, int pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* Parents may come after their children in the list: repeated until nothing changes. */
static size_t mark_tree(struct processes *all, const int *pids, size_t count)
{
    size_t roots = 0;
    for (size_t i = 0; i < all->count; i++) {
        all->items[i].belongs = is_one_of(pids, count, all->items[i].pid);
        roots += all->items[i].belongs;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < all->count; i++) {
            struct process *parent = &all->items[i];
            if (!parent->belongs || parent->settled)
                continue;
            parent->settled = changed = true;
            for (size_t j = 0; j < all->count; j++)
                if (all->items[j].parent == parent->pid)
                    all->items[j].belongs = true;
        }
    }
    return roots;
}

double proc_tree_cpu_s(const int *pids, size_t count)
{
    struct processes all;
    if (!count || !read_processes(&all))
        return UNKNOWN;
    double ticks = 0;
    bool complete = mark_tree(&all, pids, count) == count;
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i].belongs)
            ticks += (double)all.items[i].ticks;
    free(all.items);
    return complete ? ticks / (double)sysconf(_SC_CLK_TCK) : UNKNOWN;
}

size_t proc_ancestry(int pid, int out[static PROC_ANCESTRY_MAX])
{
    size_t count = 0;
    struct process process = {.parent = pid};
    char name[16];
    while (process.parent > 0 && count < PROC_ANCESTRY_MAX) {
        chars_format(name, "%d", process.parent);
        if (!read_process(name, &process))
            break;
        out[count++] = process.pid;
    }
    return count;
}

bool proc_tree_has(const int *pids, size_t count, int pid)
{
    int ancestry[PROC_ANCESTRY_MAX];
    size_t depth = proc_ancestry(pid, ancestry);
    for (size_t i = 0; i < depth; i++)
        if (is_one_of(pids, count, ancestry[i]))
            return true;
    return false;
}

void proc_name(int pid, char *to, size_t size)
{
    char path[64], name[64]; /* with its newline it may not fit into the caller's buffer */
    chars_format(path, "/proc/%d/comm", pid);
    str_copy(to, size, fs_read_text(path, name, sizeof name) == ERR_OK ? name : "");
}

void proc_cgroup(int pid, char *to, size_t size)
{
    char path[48], text[4096];
    to[0] = '\0';
    chars_format(path, "/proc/%d/cgroup", pid);
    if (fs_read_text(path, text, sizeof text) != ERR_OK)
        return;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *names = strchr(line, ':');
        const char *group = names ? strchr(names + 1, ':') : NULL;
        const char *end = line + strcspn(line, "\n");
        if (!group || group >= end)
            continue;
        bool is_unified = group == names + 1, is_cpu = str_starts(names + 1, "cpu");
        if (is_cpu || (is_unified && !to[0]))
            str_format(to, size, "%.*s", (int)(end - group - 1), group + 1);
    }
}

bool proc_sees_host_pids(void)
{
    static const char HOST[] = "pid:[4026531836]"; /* the kernel's constant PROC_PID_INIT_INO */
    char link[64];
    return fs_read_link("/proc/self/ns/pid", link, sizeof link) > 0 && str_equal(link, HOST);
}
