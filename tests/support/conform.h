/* Shared by the conformance tests: an assertion that names its driver, and checks of every driver. */
#ifndef TESTS_SUPPORT_CONFORM_H
#define TESTS_SUPPORT_CONFORM_H

#include <ctype.h>
#include <dirent.h>

#include "support/unit.h"

/* cmocka stops at a failed assertion; this prints the name of the driver. */
#define CHECK(condition, subject)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s: failed: %s\n", (subject), #condition);                                \
            _fail(__FILE__, __LINE__);                                                             \
            abort(); /* unreachable, for static analyzers */                                       \
        }                                                                                          \
    } while (0)

/* Users type names: lowercase letters, digits and underscores. */
static inline void check_driver_name(const char *name)
{
    CHECK(name && name[0], "a driver without a name");
    for (const char *c = name; *c; c++)
        CHECK(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_', name);
}

/* The number of open descriptors of this process, to detect leaks. */
static inline int open_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

#endif
