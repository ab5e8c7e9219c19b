/* ipw demo: the embedded default.  What can be measured here, then a measured load: everything a
 * newcomer needs to see, with nothing but this program. */
#include <stdio.h>
#include <unistd.h>

#include "cli/common.h"

extern const struct command command_doctor;
extern const struct command command_run;

static int demo_run(int argc, char **argv);

const struct command command_demo = {
    .name = "demo",
    .summary = "a first look: doctor, then a measured load",
    .usage = "",
    .details = "Runs `ipw doctor`, then `ipw run` on the built-in load: three runs of a second on\n"
               "every CPU, after watching the machine at rest for a second.",
    .run = demo_run,
};

static int show_step(const struct command *command, int argc, char **argv)
{
    printf("$ ipw");
    for (int i = 0; i < argc; i++)
        printf(" %s", argv[i]);
    printf("\n\n");
    fflush(stdout);
    return command->run(argc, argv);
}

static int demo_run(int argc, char **argv)
{
    const struct option_row rows[] = {{0}};
    int rest, code = parse_or_help(&command_demo, rows, argc, argv, false, &rest);
    if (code >= 0)
        return code;
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return complain("demo", EXIT_FAILED, "cannot find this program's own file: %m");
    self[length] = '\0';
    char *doctor[] = {"doctor", NULL};
    char *run[] = {"run", "-r", "3", "--idle", "1", "--", self, "load", "--seconds", "1", NULL};
    code = show_step(&command_doctor, 1, doctor);
    if (code)
        return code;
    printf("\n");
    code = show_step(&command_run, 10, run);
    if (!code)
        printf("Next: ipw energy (live), ipw run -- YOUR COMMAND, ipw COMMAND --help\n");
    return code;
}
