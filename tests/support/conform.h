/* What the conformance tests share: an assertion that names its driver, and what holds for every driver. */
#ifndef TESTS_SUPPORT_CONFORM_H
#define TESTS_SUPPORT_CONFORM_H

#include <ctype.h>
#include <dirent.h>

#include "support/unit.h"

/* cmocka stops at a failed assertion; this says which driver it was about. */
#define HOLD(condition, subject)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s: broken: %s\n", (subject), #condition);                                \
            _fail(__FILE__, __LINE__);                                                             \
            abort(); /* not reached, which linters do not know */                                  \
        }                                                                                          \
    } while (0)

/* Users type it: lowercase letters, digits and underscores. */
static inline void hold_driver_name(const char *name)
{
    HOLD(name && name[0], "a driver without a name");
    for (const char *c = name; *c; c++)
        HOLD(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_', name);
}

/* Of this process; a driver that leaves one open shows in it. */
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
