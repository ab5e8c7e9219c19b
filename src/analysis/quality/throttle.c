/* Throttling, as the devices told it while the run went on: samples*.csv has it among all else. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/quality/checks.h"
#include "analysis/run_table.h"
#include "core/quantity.h"
#include "core/text.h"

/* Looking through more would take longer than all the rest. */
#define BYTES_MOST ((off_t)64 << 20)

struct seen {
    size_t files, samples, held; /* held: some cause was told */
    unsigned causes;
    bool too_large;
};

/* t_s,sensor,device,channel,scope,quantity,unit,value,sum: the quantity is one word of ours. */
static void look_at_line(const char *line, struct seen *seen)
{
    const char *found = strstr(line, ",throttle,bits,");
    if (!found)
        return;
    unsigned causes = (unsigned)strtoul(found + strlen(",throttle,bits,"), NULL, 10);
    seen->samples++;
    seen->held += causes != 0;
    seen->causes |= causes;
}

static void look_at_file(const char *path, struct seen *seen)
{
    struct stat status;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    seen->files++;
    if (fstat(fileno(file), &status) == 0 && status.st_size > BYTES_MOST)
        seen->too_large = true;
    else
        while (getline(&line, &capacity, file) > 0)
            look_at_line(line, seen);
    free(line);
    fclose(file);
}

static struct seen look(const char *directory)
{
    struct seen seen = {0};
    char path[1024];
    const struct dirent *entry;
    DIR *dir = opendir(directory);
    while (dir && (entry = readdir(dir)))
        if (fnmatch("samples*.csv", entry->d_name, 0) == 0 &&
            str_format(path, sizeof path, "%s/%s", directory, entry->d_name))
            look_at_file(path, &seen);
    if (dir)
        closedir(dir);
    return seen;
}

static void name_causes(unsigned causes, char *to, size_t size)
{
    static const struct {
        unsigned bit;
        const char *name;
    } NAMES[] = {{THROTTLE_POWER, " power"},     {THROTTLE_THERMAL, " heat"},
                 {THROTTLE_BRAKE, " brake"},     {THROTTLE_LIMIT, " a setting"},
                 {THROTTLE_SYNC, " other GPUs"}, {THROTTLE_OTHER, " other"}};
    size_t length = 0;
    to[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (causes & NAMES[i].bit && str_copy(to + length, size - length, NAMES[i].name))
            length += strlen(NAMES[i].name);
}

enum err check_throttling(struct checks *checks)
{
    struct seen seen = look(checks->table->directory);
    char causes[128];
    name_causes(seen.causes, causes, sizeof causes);
    if (seen.held)
        check_put(checks, "throttling", CHECK_WARNING,
                  "clocks were held down in %.1f %% of %zu samples, by%s",
                  100.0 * (double)seen.held / (double)seen.samples, seen.samples, causes);
    else if (seen.too_large)
        check_put(checks, "throttling", CHECK_UNKNOWN,
                  "samples.csv is too large to be looked through");
    else if (seen.samples)
        check_put(checks, "throttling", CHECK_GOOD, "none in %zu samples", seen.samples);
    else
        check_put(checks, "throttling", CHECK_UNKNOWN,
                  seen.files ? "no device told of it" : "there are no samples");
    return ERR_OK;
}
