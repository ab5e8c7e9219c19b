/* A build without nanoarrow: nothing can be read, and that is told. */
#include "port/arrow_read.h"

#include <stddef.h>

enum err arrow_read_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without nanoarrow, which reads Arrow files: set it up and build again");
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
    (void)reader, (void)row, (void)end;
    return arrow_read_available(why);
}

void arrow_reader_close(struct arrow_reader *reader)
{
    (void)reader;
}
