#include "core/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static memory_ending *end_program; /* NULL in libipw */

void memory_end_with(memory_ending *ending)
{
    end_program = ending;
}

static atomic_uint failures;

void memory_failed(void)
{
    atomic_fetch_add(&failures, 1);
}

static void *checked(void *block, size_t size)
{
    if (!block && end_program)
        end_program(size);
    if (!block)
        memory_failed();
    return block;
}

unsigned memory_failures(void)
{
    return atomic_load(&failures);
}

void memory_free_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

void *memory_need(void *allocated)
{
    return checked(allocated, 0);
}

void *memory_resize(void *block, size_t size)
{
    size_t wanted = size ? size : 1;
    return checked(realloc(block, wanted), wanted);
}

void *memory_zeroed(size_t count, size_t size)
{
    size_t wanted = count ? count : 1;
    size_t total = size > SIZE_MAX / wanted ? SIZE_MAX : wanted * size;
    return checked(calloc(wanted, size ? size : 1), total);
}

char *memory_string(const char *string)
{
    return memory_bytes(string, strlen(string));
}

char *memory_bytes(const char *bytes, size_t length)
{
    char *copy = memory_resize(NULL, length < PTRDIFF_MAX ? length + 1 : length);
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}
