#define _GNU_SOURCE
#include "stubs/arrow_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/arrow.h"
#include "port/json_read.h"

struct arrow_reader {
    FILE *file;
};

static int open_count;

int arrow_fake_open_count(void)
{
    return open_count;
}

enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = NULL;
    return fd < 0 ? err_set(why, err_from_errno(errno), "cannot open %s: %s", path, strerror(errno))
                  : arrow_reader_take(fd, path, out, why);
}

enum err arrow_reader_take(int fd, const char *path, struct arrow_reader **out, struct error *why)
{
    (void)path;
    FILE *file = fdopen(fd, "r");
    *out = NULL;
    if (!file)
        return err_no_memory(why);
    *out = malloc(sizeof **out);
    (*out)->file = file;
    open_count++;
    return ERR_OK;
}

enum err arrow_reader_next(struct arrow_reader *reader, struct jv **row, struct error *why)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length = getline(&line, &size, reader->file);
    enum err err = ERR_OK;
    *row = NULL;
    if (length > 0 && strcmp(line, "broken\n") == 0)
        err = err_set(why, ERR_BAD_VALUE, "the file breaks off");
    else if (length > 0)
        err = jv_parse_repaired(line, (size_t)length, row, why);
    free(line);
    return err;
}

void arrow_reader_close(struct arrow_reader *reader)
{
    fclose(reader->file);
    free(reader);
    open_count--;
}
