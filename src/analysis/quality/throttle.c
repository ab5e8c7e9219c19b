/* Throttling, as the devices told it while the run went on: samples*.csv has it among all else. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/quality/checks.h"
#include "rundir/run_table.h"
#include "core/quantity.h"
#include "core/text.h"

/* Looking through more would take longer than all the rest: of a larger file so many pieces are looked
 * at, from its beginning to its end. */
#define BYTES_MOST ((off_t)64 << 20)
enum { PIECES = 256 };

struct seen {
    size_t files, samples, held; /* held: some cause was told */
    unsigned causes;
    bool in_part;
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

/* The lines that begin there; at the beginning of a piece may be the end of one. */
static void look_at_piece(FILE *file, off_t from, int64_t length, struct seen *seen)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t got = 0;
    bool whole = from == 0;
    if (fseeko(file, from, SEEK_SET) != 0)
        return;
    while (length > 0 && (got = getline(&line, &capacity, file)) > 0) {
        if (whole)
            look_at_line(line, seen);
        whole = true;
        length -= got;
    }
    free(line);
}

static void look_at_file(const char *path, struct seen *seen)
{
    struct stat status;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    seen->files++;
    if (fstat(fileno(file), &status) == 0 && status.st_size > BYTES_MOST) {
        seen->in_part = true;
        for (off_t i = 0; i < PIECES; i++)
            look_at_piece(file, status.st_size / PIECES * i, BYTES_MOST / PIECES, seen);
    } else {
        look_at_piece(file, 0, INT64_MAX, seen);
    }
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
    const char *picked = seen.in_part ? ", evenly picked" : "";
    name_causes(seen.causes, causes, sizeof causes);
    if (seen.held)
        check_put(checks, "throttling", CHECK_WARNING,
                  "clocks were held down in %.1f %% of %zu samples%s, by%s",
                  100.0 * (double)seen.held / (double)seen.samples, seen.samples, picked, causes);
    else if (seen.samples)
        check_put(checks, "throttling", CHECK_GOOD, "none in %zu samples%s", seen.samples, picked);
    else
        check_put(checks, "throttling", CHECK_UNKNOWN,
                  seen.files ? "no device told of it" : "there are no samples");
    return ERR_OK;
}
