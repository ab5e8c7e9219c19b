// The tests of a folder in one program, which is linked, and loaded by valgrind, once for all of them: `PROGRAM NAME`
// runs those of NAME.c, and `PROGRAM` those of every file, each file in its own process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "units.h"

enum { SKIPPED = 77 };

static const struct unit {
    const char *name;
    int (*run)(void);
} units[] = {UNITS};

enum { COUNT = sizeof units / sizeof *units };

// The environment, descriptors and threads of one file do not affect the next.
static int run_forked(const struct unit *unit)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        exit(unit->run());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror(unit->name);
        return EXIT_FAILURE;
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code != EXIT_SUCCESS) {
        fprintf(stderr, "%s: %s, exit status %d\n", unit->name,
                code == SKIPPED ? "skipped" : "FAILED", code);
    }
    return code;
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        for (int i = 0; i < COUNT; i++) {
            if (!strcmp(argv[1], units[i].name)) {
                return units[i].run();
            }
        }
        fprintf(stderr, "%s: no such test file: %s\n", argv[0], argv[1]);
        return EXIT_FAILURE;
    }
    int failed = 0;
    int skipped = 0;
    for (int i = 0; i < COUNT; i++) {
        int code = run_forked(&units[i]);
        skipped += code == SKIPPED;
        failed += code != EXIT_SUCCESS && code != SKIPPED;
    }
    return failed > 0 ? EXIT_FAILURE : skipped == COUNT ? SKIPPED : EXIT_SUCCESS;
}
