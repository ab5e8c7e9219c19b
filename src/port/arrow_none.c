/* A build without nanoarrow: Arrow files can be neither read nor written, and every call returns an error. */
#include <stddef.h>
#include <unistd.h>

#include "port/arrow.h"

enum err arrow_read_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without nanoarrow: run tools/setup build and build again");
}

enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why)
{
    *out = NULL;
    return arrow_read_available(why);
}

enum err arrow_reader_take(int fd, const char *path, struct arrow_reader **out, struct error *why)
{
    close(fd);
    *out = NULL;
    return arrow_read_available(why);
}

enum err arrow_reader_next(struct arrow_reader *reader, struct jv **row, struct error *why)
{
    *row = NULL;
    return arrow_read_available(why);
}

void arrow_reader_close(struct arrow_reader *reader)
{
}

bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_path *out)
{
    *out = (struct arrow_path){0};
    return false;
}

const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_path *path,
                               size_t i)
{
    return NULL;
}

enum err arrow_reader_batch(struct arrow_reader *reader, size_t *rows, struct error *why)
{
    *rows = 0;
    return arrow_read_available(why);
}

/* No reader was ever opened, so these have nothing to fill. */
void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_path *path,
                          double *out, uint64_t *not_finite)
{
}

void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_path *path,
                        struct arrow_text *out)
{
}

void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_path *path, bool *out)
{
}

enum err arrow_write_available(struct error *why)
{
    return arrow_read_available(why);
}

enum err arrow_writer_open(const char *directory, const char *name, const struct arrow_field *root,
                           const char *key, const char *value, struct arrow_writer **out,
                           struct error *why)
{
    *out = NULL;
    return arrow_write_available(why);
}

enum err arrow_writer_add(struct arrow_writer *writer, const struct jv *row, struct error *why)
{
    return arrow_write_available(why);
}

enum err arrow_writer_finish(struct arrow_writer *writer, uint64_t *fingerprint, struct error *why)
{
    *fingerprint = 0;
    return arrow_write_available(why);
}

void arrow_writer_close(struct arrow_writer *writer)
{
}
