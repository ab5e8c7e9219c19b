#define _GNU_SOURCE
#include "port/perf_event.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/text.h"
#include "port/fs.h"

static enum err open_scripted(uint32_t pmu_type, uint64_t config, int cpu, int *fd)
{
    char path[FS_PATH_MAX];
    str_format(path, sizeof path, "/dev/perf/%" PRIu32 "/%" PRIx64 "/cpu%d", pmu_type, config, cpu);
    return fs_open(path, fd);
}

enum err perf_event_open_counter(uint32_t pmu_type, uint64_t config, int cpu, int *fd)
{
    if (fs_root()[0])
        return open_scripted(pmu_type, config, cpu, fd);
    struct perf_event_attr attr = {
        .type = pmu_type,
        .size = sizeof attr,
        .config = config,
    };
    long result = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (result < 0) {
        *fd = -1;
        return err_from_errno(errno);
    }
    *fd = (int)result;
    return ERR_OK;
}

enum err perf_event_read(int fd, uint64_t *out)
{
    if (fs_root()[0])
        return fs_pread_u64(fd, out);
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);
    if (n < 0)
        return err_from_errno(errno);
    if (n != (ssize_t)sizeof count)
        return ERR_LOST; /* end of file: the event went into an error state */
    *out = count;
    return ERR_OK;
}
