#include "port/csv_read.h"

#include "port/file.h"

enum err csv_read(const char *path, size_t max, struct text *bytes, struct csv_grid *out,
                  struct error *why)
{
    struct error inner = {0};
    *out = (struct csv_grid){0};
    enum err err = file_read(path, max, bytes, why);
    if (err)
        return err;
    if (!bytes->length)
        return err_set(why, ERR_BAD_VALUE, "%.200s: empty", path);
    err = csv_grid_read(bytes->bytes, bytes->length, out, &inner);
    return err ? err_set(why, err, "%.200s: %s", path, inner.text) : ERR_OK;
}
