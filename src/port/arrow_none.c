/* A build without nanoarrow: Arrow files can be neither read nor written, and every call says so. */
#include <stddef.h>

#include "port/arrow.h"

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

bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_path *out)
{
    (void)reader, (void)names, (void)count;
    *out = (struct arrow_path){0};
    return false;
}

const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_path *path,
                               size_t i)
{
    (void)reader, (void)path, (void)i;
    return NULL;
}

enum err arrow_reader_batch(struct arrow_reader *reader, size_t *rows, struct error *why)
{
    (void)reader;
    *rows = 0;
    return arrow_read_available(why);
}

/* No reader was ever opened, so these have nothing to fill. */
void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_path *path,
                          double *out, uint64_t *not_finite)
{
    (void)reader, (void)path, (void)out, (void)not_finite;
}

void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_path *path,
                        struct arrow_text *out)
{
    (void)reader, (void)path, (void)out;
}

void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_path *path, bool *out)
{
    (void)reader, (void)path, (void)out;
}

enum err arrow_write_available(struct error *why)
{
    return arrow_read_available(why);
}

enum err arrow_writer_open(const char *directory, const char *name, const struct arrow_field *root,
                           const char *key, const char *value, struct arrow_writer **out,
                           struct error *why)
{
    (void)directory, (void)name, (void)root, (void)key, (void)value;
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
