/* What every cmocka test file includes: cmocka needs these headers first, in this order. */
#ifndef TESTS_SUPPORT_UNIT_H
#define TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/err.h"

/* It jumps to the next test, which cmocka does not declare; the static analyzer needs it.
 * NOLINTNEXTLINE(readability-redundant-declaration): the attribute is new. */
__attribute__((noreturn)) void _fail(const char *file, int line);

#define RUN_TESTS(tests) cmocka_run_group_tests((tests), NULL, NULL)

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define TEST_IS_SANITIZED 1
#elif defined __has_feature
#define TEST_IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TEST_IS_SANITIZED 0
#endif

#if defined __SANITIZE_THREAD__
#define TEST_SANITIZES_THREADS 1
#else
#define TEST_SANITIZES_THREADS 0
#endif

/* Sanitizers and valgrind need extra address space, and much time. */
static inline bool test_is_instrumented(void)
{
    return TEST_IS_SANITIZED || getenv("IPW_SLOW");
}

/* Of rounds with random input: fewer where one pass through each path is enough. */
static inline int test_rounds(int all)
{
    return test_is_instrumented() ? all / 10 : all;
}

/* For a file whose tests need a library that a build may lack: without it they are skipped, which
 * 77 reports to ctest. */
#define RUN_TESTS_WITH(available, tests) (skipped_without(available) ? 77 : RUN_TESTS(tests))

static inline int skipped_without(enum err (*available)(struct error *why))
{
    struct error why = {0};
    if (available(&why) == ERR_OK)
        return 0;
    printf("skipped: %s\n", why.text);
    return 1;
}

/* The same for one test. */
#define SKIP_WITHOUT(available)                                                                    \
    do {                                                                                           \
        if (skipped_without(available))                                                            \
            skip();                                                                                \
    } while (0)

/* For any other reason, which is printed. */
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        print_message("skipped: " __VA_ARGS__);                                                    \
        print_message("\n");                                                                       \
        skip();                                                                                    \
    } while (0)

/* |a - b| <= tolerance, printing both: cmocka 1.1.5's own check works on floats. */
#define assert_near(a, b, tolerance)                                                               \
    do {                                                                                           \
        double near_a_ = (a), near_b_ = (b);                                                       \
        if (!(near_a_ - near_b_ <= (tolerance) && near_b_ - near_a_ <= (tolerance))) {             \
            print_error("%s = %.9g, expected %.9g (tolerance %g)\n", #a, near_a_, near_b_,         \
                        (double)(tolerance));                                                      \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        const char *contains_text_ = (text), *contains_part_ = (part);                             \
        if (!strstr(contains_text_, contains_part_)) {                                             \
            print_error("\"%s\" does not contain \"%s\"\n", contains_text_, contains_part_);       \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

#endif
