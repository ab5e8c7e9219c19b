#include "sensors/system/proc_stat.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/units.h"
#include "port/fs.h"

/* Columns of the first line, in the kernel's order; guest times follow and are inside user. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

enum err proc_stat_open(struct proc_stat *stat)
{
    *stat = (struct proc_stat){.fd = -1};
    return fs_open("/proc/stat", &stat->fd);
}

void proc_stat_close(struct proc_stat *stat)
{
    if (stat->fd >= 0)
        close(stat->fd);
    stat->fd = -1;
}

/* Reads the numbers after "cpu "; old kernels have fewer columns, the missing ones are 0. */
static enum err parse_line(const char *line, uint64_t columns[COLUMNS])
{
    if (strncmp(line, "cpu ", 4) != 0)
        return ERR_BAD_VALUE;
    const char *c = line + 4;
    int n = 0;
    for (; n < COLUMNS; n++) {
        while (*c == ' ')
            c++;
        if (*c < '0' || *c > '9')
            break;
        uint64_t value = 0;
        for (; *c >= '0' && *c <= '9'; c++)
            value = value * 10 + (uint64_t)(*c - '0');
        columns[n] = value;
    }
    bool ended = *c == ' ' || *c == '\n';
    return n > IDLE && ended ? ERR_OK : ERR_BAD_VALUE;
}

enum err proc_stat_times(const struct proc_stat *stat, struct cpu_times *out)
{
    char text[256];
    ssize_t n;
    do
        n = pread(stat->fd, text, sizeof text - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_from_errno(errno);
    text[n] = '\0';
    uint64_t column[COLUMNS] = {0};
    enum err err = parse_line(text, column);
    if (err)
        return err;
    *out = (struct cpu_times){
        .busy = column[USER] + column[NICE] + column[SYSTEM] + column[IRQ] + column[SOFTIRQ],
        .idle = column[IDLE] + column[IOWAIT],
        .stolen = column[STEAL],
    };
    return ERR_OK;
}

enum err proc_stat_utilization(struct proc_stat *stat, double *out)
{
    struct cpu_times now;
    enum err err = proc_stat_times(stat, &now);
    if (err)
        return err;
    struct cpu_times last = stat->last;
    bool first = !stat->has_last;
    bool backwards =
        !first && (now.busy < last.busy || now.idle < last.idle || now.stolen < last.stolen);
    uint64_t busy = now.busy - last.busy;
    uint64_t all = busy + (now.idle - last.idle) + (now.stolen - last.stolen);
    if (!first && !backwards && all == 0)
        return ERR_BUSY;
    stat->last = now;
    stat->has_last = true;
    if (first || backwards)
        return ERR_NO_DATA;
    *out = (double)busy / (double)all;
    return ERR_OK;
}

double proc_stat_busy_s(void)
{
    struct proc_stat stat;
    struct cpu_times times;
    enum err err = proc_stat_open(&stat);
    if (!err)
        err = proc_stat_times(&stat, &times);
    proc_stat_close(&stat);
    return err ? UNKNOWN : (double)times.busy / (double)sysconf(_SC_CLK_TCK);
}
