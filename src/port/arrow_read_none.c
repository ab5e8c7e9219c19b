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

bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_place *out)
{
    (void)reader, (void)names, (void)count;
    *out = (struct arrow_place){0};
    return false;
}

const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_place *place,
                               size_t i)
{
    (void)reader, (void)place, (void)i;
    return NULL;
}

enum err arrow_reader_batch(struct arrow_reader *reader, size_t *rows, struct error *why)
{
    (void)reader;
    *rows = 0;
    return arrow_read_available(why);
}

/* Nobody has a reader, so nobody has rows to ask for. */
void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_place *place,
                          double *out, uint64_t *not_finite)
{
    (void)reader, (void)place, (void)out, (void)not_finite;
}

void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_place *place,
                        struct arrow_text *out)
{
    (void)reader, (void)place, (void)out;
}

void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_place *place,
                        bool *out)
{
    (void)reader, (void)place, (void)out;
}
