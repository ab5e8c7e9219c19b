#include "rundir/starts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/journal.h"

enum { STARTS_MOST = 100000 };

static enum err take_line(void *context, const struct jv *line)
{
    struct starts *starts = context;
    const char *kind = jv_text(jv_get(line, "kind"));
    double at = jv_number(jv_get(line, "started_at"));
    int64_t number;
    if (!kind || strcmp(kind, "run") != 0 || !(at > 0 && at < 9e9) ||
        !jv_integer(jv_get(line, "start"), &number) || number < 1 || number > STARTS_MOST)
        return ERR_OK;
    while (starts->count < (size_t)number) {
        int64_t *longer =
            grow(starts->zero_ns, &starts->capacity, starts->count, sizeof *starts->zero_ns);
        if (!longer)
            return ERR_NO_MEMORY;
        starts->zero_ns = longer;
        longer[starts->count++] = 0;
    }
    starts->zero_ns[number - 1] = (int64_t)llround(at * 1e9);
    return ERR_OK;
}

enum err starts_read(const char *directory, struct starts *out, struct error *why)
{
    char path[FILE_PATH_MAX];
    uint64_t damaged;
    *out = (struct starts){0};
    if (!str_format(path, sizeof path, "%s/records.jsonl", directory) || !file_exists(path))
        return ERR_OK;
    enum err err = journal_read(path, take_line, out, &damaged, why);
    if (err)
        starts_release(out);
    return err;
}

void starts_release(struct starts *starts)
{
    free(starts->zero_ns);
    *starts = (struct starts){0};
}
