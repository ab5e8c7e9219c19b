/* Allocation that does not fail, and what ends a program without memory. */
#include "support/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/grow.h"
#include "core/memory.h"
#include "core/text.h"
#include "core/xalloc.h"

enum { ENDED = 42 };

/* The sanitizers' allocators end the process themselves otherwise. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void end_process(size_t size)
{
    _exit(size >= PTRDIFF_MAX ? ENDED : 1);
}

/* Exit status of a process that needs more memory than there can be. */
static int status_of(void (*need)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        memory_end_with(end_process);
        need();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void need_block(void)
{
    free(xmalloc(PTRDIFF_MAX));
}

static void need_array(void)
{
    free(xreallocarray(NULL, SIZE_MAX / 2, 4));
}

static void need_zeroed(void)
{
    free(xcalloc(SIZE_MAX / 2, 4));
}

static void need_string(void)
{
    struct arena arena = {0};
    arena_string(&arena, "", PTRDIFF_MAX);
}

static void lack_of_memory_calls_the_ending_with_the_size(void **state)
{
    (void)state;
    static void (*const NEEDS[])(void) = {need_block, need_array, need_zeroed, need_string};
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++)
        assert_int_equal(status_of(NEEDS[i]), ENDED);
}

static void without_an_ending_the_shared_functions_return_null(void **state)
{
    (void)state;
    struct text text = {0};
    assert_null(memory_resize(NULL, PTRDIFF_MAX));
    assert_null(memory_zeroed(SIZE_MAX / 2, 4));
    assert_null(text_space(&text, SIZE_MAX / 4));
    assert_true(text.failed);
    text_release(&text);
}

static void empty_blocks_are_blocks(void **state)
{
    (void)state;
    char *nothing = xmalloc(0);
    char *none = xcalloc(0, 8);
    char *empty = xstrndup("", 0);
    assert_true(nothing && none);
    assert_string_equal(empty, "");
    free(nothing);
    free(none);
    free(empty);
}

static void an_array_grows_and_keeps_its_elements(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        items = xgrow(items, &capacity, (size_t)i, sizeof *items);
        items[i] = i;
    }
    assert_true(capacity >= 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    free(items);
}

static void strings_and_paths_are_joined_whole(void **state)
{
    (void)state;
    static const struct {
        const char *directory, *name, *path;
    } CASES[] = {
        {"runs", "a", "runs/a"}, {"runs/", "a", "runs/a"}, {"/", "a", "/a"},
        {"", "a", "a"},          {"runs", "/b", "/b"},     {"runs", "a/b", "runs/a/b"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char *path = path_join(CASES[i].directory, CASES[i].name);
        assert_string_equal(path, CASES[i].path);
        free(path);
    }
    char name[5000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    char *path = path_join(name, name);
    assert_int_equal(strlen(path), 2 * (sizeof name - 1) + 1);
    free(path);
    char *formatted = xformat("%d of %s", 3, "four");
    assert_string_equal(formatted, "3 of four");
    free(formatted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lack_of_memory_calls_the_ending_with_the_size),
        cmocka_unit_test(without_an_ending_the_shared_functions_return_null),
        cmocka_unit_test(empty_blocks_are_blocks),
        cmocka_unit_test(an_array_grows_and_keeps_its_elements),
        cmocka_unit_test(strings_and_paths_are_joined_whole),
    };
    return RUN_TESTS(tests);
}
