/* A build without nanoarrow: no Arrow file can be read, and that is told. */
#include <stddef.h>

#include "port/arrow_read.h"

enum err arrow_read_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without nanoarrow: run tools/setup build and build again");
}

enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why)
{
    (void)path;
    *out = NULL;
    return arrow_read_available(why);
}

enum err arrow_reader_next(struct arrow_reader *reader, struct text *row, bool *end,
                           struct error *why)
{
    (void)reader, (void)row;
    *end = true;
    return arrow_read_available(why);
}

void arrow_reader_close(struct arrow_reader *reader)
{
    (void)reader;
}
