/* A text file split into passages, in the order of the file, for `ipw profile --task perplexity`.  A passage ends after
 * white space in its second half, if any, else between two characters, so that a tokenizer gets whole words. A client
 * that has the model's tokenizer uses windows of tokens instead (client_driver.split). */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"
#include "port/file.h"

struct passages {
    FILE *file;
    char *bytes; /* buffer; the first `count` bytes are read but not returned yet */
    size_t size, count;
    uint64_t given;
};

static void text_close(struct dataset *dataset)
{
    struct passages *passages = dataset->state;
    if (passages->file)
        (void)fclose(passages->file);
    free(passages->bytes);
    free(passages);
}

static enum err fill(struct passages *passages, const char *name, struct error *why)
{
    passages->count += fread(passages->bytes + passages->count, 1, passages->size - passages->count,
                             passages->file);
    return ferror(passages->file)
               ? err_set(why, ERR_IO, "%.200s: %s", plain_text(name).text, strerror(errno))
               : ERR_OK;
}

static enum err open_file(struct passages *passages, const char *path, struct error *why)
{
    const char *shown = plain_text(path).text;
    if (file_is_directory(path) || !(passages->file = fopen(path, "rbe")))
        return err_set(why, ERR_NOT_FOUND, "%.200s: %s", shown,
                       file_is_directory(path) ? "a directory, not a text file" : strerror(errno));
    passages->bytes = xmalloc(passages->size);
    enum err err = fill(passages, path, why);
    if (!err && passages->count == 0)
        err = err_set(why, ERR_NO_DATA, "%.200s is empty", shown);
    return err;
}

enum err dataset_text_window(const struct params *params, uint64_t *out, struct error *why)
{
    enum { LEAST = 16, MOST = 1 << 20 };
    struct params_reader read = {params, why, ERR_OK};
    *out = params_count(&read, "window", DATASET_TEXT_WINDOW, LEAST, MOST);
    return read.err;
}

static enum err text_open(const struct dataset_config *config, struct dataset *out,
                          struct error *why)
{
    const char *path = params_get(config->params, "path");
    uint64_t window;
    if (!path || !*path)
        return err_set(why, ERR_USAGE, "dataset text needs path=FILE");
    enum err err = dataset_text_window(config->params, &window, why);
    if (err)
        return err;
    struct passages *passages = XNEW(passages);
    out->state = passages;
    passages->size = (size_t)window * DATASET_TEXT_TOKEN_BYTES;
    err = open_file(passages, path, why);
    if (err)
        text_close(out);
    return err;
}

/* Number of bytes of the next passage. */
static size_t passage_end(const struct passages *passages)
{
    const char *bytes = passages->bytes;
    size_t end = passages->count;
    if (end < passages->size)
        return end; /* the last passage */
    while (end > passages->size / 2 && !isspace((unsigned char)bytes[end - 1]))
        end--;
    if (end > passages->size / 2)
        return end;
    end = passages->count;
    while (end > passages->count - UTF8_BYTES_MAX && utf8_is_continuation(bytes[end - 1]))
        end--;
    /* The first byte of a truncated character belongs to the next passage. */
    return utf8_length(bytes + end - 1, passages->count - end + 1) ? passages->count : end - 1;
}

static enum err text_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
{
    struct passages *passages = dataset->state;
    struct text problem = {0};
    char id[24];
    enum err err = fill(passages, dataset->name, why);
    *end = !err && passages->count == 0;
    if (err || *end)
        return err;
    size_t length = passage_end(passages);
    for (char *nul; (nul = memchr(passages->bytes, '\0', length));)
        *nul = '\xFF'; /* NUL is valid UTF-8, but not in a C string */
    text_add_repaired(&problem, passages->bytes, length);
    passages->count -= length;
    memmove(passages->bytes, passages->bytes + length, passages->count);
    chars_format(id, "%" PRIu64, passages->given++);
    str_set(&out->id, id);
    str_take(&out->problem, &problem);
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"path", "FILE", "the text file"},
    {"window", "TOKENS", "tokens per window; a passage has 4 bytes for each (512)"},
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_text = {
    .name = "text",
    .summary = "a text file in windows, for --task perplexity",
    .params = PARAMS,
    .open = text_open,
    .next = text_next,
    .close = text_close,
};
