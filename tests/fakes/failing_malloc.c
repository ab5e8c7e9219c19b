/* An allocator that fails on demand, before that of the C library (LD_PRELOAD).
 *
 * From another process: IPW_FAIL_MALLOC names a file with the number of a process, in binary; while it is that of this
 * process, every allocation of the program fails, as on a machine without any memory left; those of libraries, which
 * may be other fakes, do not.
 *
 * From this process: fail_allocation(n) makes the nth allocation from now fail, once, in any thread; 0: none.  Those of
 * the dynamic loader do not count, since it ends the process when it cannot allocate a library's thread-local data.
 * allocations_live is the number of blocks that were not freed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

EXPORT void fail_allocation(long number);
EXPORT bool fail_allocation_reached(void);
EXPORT long allocations_live(void);

static const atomic_int nobody;
static const atomic_int *victim = &nobody; /* process */
static atomic_long left;                   /* allocations until one fails; 0: none fails */
static atomic_bool has_failed;
static atomic_long live;

__attribute__((constructor)) static void map_switch(void)
{
    const char *path = getenv("IPW_FAIL_MALLOC");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *victim, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED)
        victim = page;
    if (fd >= 0)
        close(fd);
}

void fail_allocation(long number)
{
    atomic_store(&has_failed, false);
    atomic_store(&left, number);
}

bool fail_allocation_reached(void)
{
    return atomic_load(&has_failed);
}

long allocations_live(void)
{
    return atomic_load(&live);
}

static bool is_loader(const void *caller)
{
    Dl_info found;
    return dladdr(caller, &found) && strstr(found.dli_fname, "/ld-linux");
}

static bool is_program(const void *caller)
{
    Dl_info found, program;
    return dladdr(caller, &found) && dladdr((void *)getauxval(AT_PHDR), &program) &&
           found.dli_fbase == program.dli_fbase;
}

static bool is_next(const void *caller)
{
    long now = atomic_load(&left);
    if (now > 0 && is_loader(caller))
        return false;
    while (now > 0)
        if (atomic_compare_exchange_weak(&left, &now, now - 1))
            return now == 1;
    return false;
}

static bool must_fail(const void *caller)
{
    int process = atomic_load_explicit(victim, memory_order_relaxed);
    bool is_victim = process && process == (int)getpid() && is_program(caller);
    if (!is_victim && !is_next(caller))
        return false;
    atomic_store(&has_failed, true);
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add(&live, 1);
    return block;
}

EXPORT void *malloc(size_t size)
{
    return must_fail(__builtin_return_address(0)) ? NULL : counted(__libc_malloc(size));
}

EXPORT void *calloc(size_t count, size_t size)
{
    return must_fail(__builtin_return_address(0)) ? NULL : counted(__libc_calloc(count, size));
}

EXPORT void *realloc(void *block, size_t size)
{
    if (must_fail(__builtin_return_address(0)))
        return NULL;
    void *moved = __libc_realloc(block, size);
    return block ? moved : counted(moved);
}

EXPORT void free(void *block)
{
    if (block)
        atomic_fetch_sub(&live, 1);
    __libc_free(block);
}
