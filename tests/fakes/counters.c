/* Counters of a fake machine that run as hardware does, whether or not the computer that tests is busy: what a file
 * shows is worked out when it is read.  LD_PRELOAD puts this between the program and read and pread.
 *
 * A file that begins with ~fake: is shown without that, and with a count in place of each
 *
 *   {START RATE BEGAN TICK MODULUS WIDTH CPU}
 *
 * START and RATE a second since BEGAN, in seconds of CLOCK_MONOTONIC, in steps of TICK seconds (0: none); CPU for each
 * second of processor time of the process that reads; modulo MODULUS (0: none); at least WIDTH digits. */
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

/* The count of the law at `law`, as text, at a time; how long that is, 0 for what is no law. */
static size_t show_count(const char *law, double now, char *to, size_t size)
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

/* All counts of one time: a stall between two of them changes neither. */
static size_t show(const char *from, char *to, size_t size)
{
    double now = seconds_of(CLOCK_MONOTONIC);
    size_t length = 0;
    while (*from && length + 1 < size) {
        const char *end = *from == '{' ? strchr(from, '}') : NULL;
        if (end) {
            length += show_count(from, now, to + length, size - length);
            from = end + 1;
        } else {
            to[length++] = *from++;
        }
    }
    return length;
}

/* What was read from the start of a file: n bytes, or those that its laws make of it. */
static ssize_t shown(int fd, void *to, size_t size, ssize_t n)
{
    char file[FILE_LIMIT], text[FILE_LIMIT];
    if (!is_marked(to, n))
        return n;
    size_t count = 0;
    flock(fd, LOCK_SH); /* a law that is being changed is not gone by */
    ssize_t length = syscall(SYS_pread64, fd, file, sizeof file - 1, (off_t)0);
    bool has_laws = is_marked(file, length); /* else a pipe, or the middle of something */
    if (has_laws) {
        file[length] = '\0';
        count = show(file + MARK_LENGTH, text, sizeof text);
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
    return offset == 0 ? shown(fd, to, size, n) : n;
}

EXPORT ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
    return pread64(fd, to, size, offset);
}

/* All of such a file at once: the next read finds its end. */
EXPORT ssize_t read(int fd, void *to, size_t size)
{
    ssize_t n = syscall(SYS_read, fd, to, size);
    if (!is_marked(to, n) || lseek(fd, 0, SEEK_CUR) != n)
        return n;
    ssize_t count = shown(fd, to, size, n);
    lseek(fd, 0, SEEK_END);
    return count;
}
