/* A build without nanoarrow: no Arrow file can be written, and that is told. */
#include <stddef.h>

#include "port/arrow_write.h"

enum err arrow_write_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without nanoarrow: run tools/setup build and build again");
}

enum err arrow_writer_open(const char *path, const struct arrow_field *root, const char *key,
                           const char *value, struct arrow_writer **out, struct error *why)
{
    (void)path, (void)root, (void)key, (void)value;
    *out = NULL;
    return arrow_write_available(why);
}

enum err arrow_writer_add(struct arrow_writer *writer, const struct jv *row, struct error *why)
{
    (void)writer, (void)row;
    return arrow_write_available(why);
}

enum err arrow_writer_finish(struct arrow_writer *writer, uint64_t *fingerprint, struct error *why)
{
    (void)writer;
    *fingerprint = 0;
    return arrow_write_available(why);
}

void arrow_writer_close(struct arrow_writer *writer)
{
    (void)writer;
}
