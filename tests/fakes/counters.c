/* Counters of a fake machine that advance like hardware, however busy the test machine is: the contents of a file are
 * computed when it is read.  LD_PRELOAD puts this between the program and read and pread.
 *
 * A file that begins with ~fake: is returned without that, and with a count in place of each
 *
 *   {START RATE BEGAN TICK MODULUS WIDTH CPU}
 *
 * START plus RATE per second since BEGAN, in seconds of CLOCK_MONOTONIC, in steps of TICK seconds (0: none); CPU for each
 * second of CPU time of the reading process; modulo MODULUS (0: none); at least WIDTH digits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { MARK_LENGTH = 6, FILE_LIMIT = 4096 };

static bool is_marked(const void *bytes, ssize_t n)
{
    return n >= MARK_LENGTH && memcmp(bytes, "~fake:", MARK_LENGTH) == 0;
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Writes the count of the law at `law` at a time; returns the length of the law, 0 if it is not one. */
static size_t format_count(const char *law, double now, char *to, size_t size)
{
    uint64_t start, modulus;
    double rate, began, tick, cpu;
    int width;
    if (sscanf(law, "{%" SCNu64 " %lf %lf %lf %" SCNu64 " %d %lf", &start, &rate, &began, &tick,
               &modulus, &width, &cpu) != 7)
        return 0;
    double elapsed = now - began;
    if (tick > 0)
        elapsed = tick * floor(elapsed / tick);
    double gained = rate * elapsed;
    if (cpu > 0)
        gained += cpu * seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t count = start + (gained > 0 ? (uint64_t)gained : 0);
    int n = snprintf(to, size, "%0*" PRIu64, width, modulus ? count % modulus : count);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

/* All counts are of one time: a stall between two of them does not change them. */
static size_t format_counts(const char *from, char *to, size_t size)
{
    double now = seconds_of(CLOCK_MONOTONIC);
    size_t length = 0;
    while (*from && length + 1 < size) {
        const char *end = *from == '{' ? strchr(from, '}') : NULL;
        if (end) {
            length += format_count(from, now, to + length, size - length);
            from = end + 1;
        } else {
            to[length++] = *from++;
        }
    }
    return length;
}

/* Bytes read from the start of a file: n bytes, or those that its laws produce. */
static ssize_t apply_laws(int fd, void *to, size_t size, ssize_t n)
{
    char file[FILE_LIMIT], text[FILE_LIMIT];
    if (!is_marked(to, n))
        return n;
    size_t count = 0;
    flock(fd, LOCK_SH); /* a law that is just being rewritten is ignored */
    ssize_t length = syscall(SYS_pread64, fd, file, sizeof file - 1, (off_t)0);
    bool has_laws = is_marked(file, length); /* otherwise a pipe, or the middle of a file */
    if (has_laws) {
        file[length] = '\0';
        count = format_counts(file + MARK_LENGTH, text, sizeof text);
    }
    flock(fd, LOCK_UN);
    if (!has_laws)
        return n;
    count = count < size ? count : size;
    memcpy(to, text, count);
    return (ssize_t)count;
}

EXPORT ssize_t pread64(int fd, void *to, size_t size, off64_t offset)
{
    ssize_t n = syscall(SYS_pread64, fd, to, size, offset);
    return offset == 0 ? apply_laws(fd, to, size, n) : n;
}

EXPORT ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
    return pread64(fd, to, size, offset);
}

/* All of such a file in one read: the next read is at its end. */
EXPORT ssize_t read(int fd, void *to, size_t size)
{
    ssize_t n = syscall(SYS_read, fd, to, size);
    if (!is_marked(to, n) || lseek(fd, 0, SEEK_CUR) != n)
        return n;
    ssize_t count = apply_laws(fd, to, size, n);
    lseek(fd, 0, SEEK_END);
    return count;
}
