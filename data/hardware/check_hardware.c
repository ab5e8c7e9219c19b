/* Checks files of the hardware catalog, as the build does:
 *
 *     check_hardware FILE...
 *
 * Each must be read without an error and must not contradict itself, its id must be its file name, and no two may
 * share a name.  Every fault is reported; any makes it exit 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/hardware_json.h"
#include "core/text.h"

static int faults;

static void report(const char *path, const char *problem)
{
    fprintf(stderr, "%s: %s\n", path, problem);
    faults++;
}

static void check_file(const char *path, struct hardware *out)
{
    struct error why = {0};
    char expected[sizeof out->id + 8];
    const char *name = strrchr(path, '/');
    if (hardware_read(path, out, &why)) {
        fprintf(stderr, "%s\n", why.text);
        faults++;
        return;
    }
    if (hardware_check(out, &why))
        report(path, why.text);
    str_format(expected, sizeof expected, "%s.json", out->id);
    if (strcmp(name ? name + 1 : path, expected) != 0)
        report(path, "its id is not its name");
}

static bool is_called(const struct hardware *hardware, const char *name)
{
    if (str_equal_nocase(hardware->id, name))
        return true;
    for (const char *const *alias = hardware->aliases; alias && *alias; alias++)
        if (str_equal_nocase(*alias, name))
            return true;
    return false;
}

/* An alias that two devices have would lead to either. */
static void check_aliases(char *const *paths, const struct hardware *devices, int count)
{
    for (int i = 0; i < count; i++)
        for (const char *const *alias = devices[i].aliases; alias && *alias; alias++)
            for (int j = 0; j < count; j++)
                if (i != j && is_called(&devices[j], *alias)) {
                    char problem[160];
                    str_format(problem, sizeof problem, "alias '%s' is a name of %s as well",
                               *alias, devices[j].id);
                    report(paths[i], problem);
                }
}

int main(int argc, char **argv)
{
    int count = argc - 1;
    struct hardware *devices = calloc((size_t)argc, sizeof *devices);
    if (!devices)
        return 1;
    for (int i = 0; i < count; i++)
        check_file(argv[i + 1], &devices[i]);
    check_aliases(argv + 1, devices, count);
    for (int i = 0; i < count; i++)
        hardware_release(&devices[i]);
    free(devices);
    return faults ? 1 : 0;
}
