#include "graders/item_features.h"

#include <stdlib.h>

#include "core/params.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graders/fold.h"
#include "port/file.h"

char *path_param(struct params_reader *read, const char *key)
{
    const char *path = params_get(read->params, key);
    if (!path || read->err)
        return NULL;
    if (!file_exists(path)) {
        read->err = err_set(read->why, ERR_USAGE, "%s=%.200s: no such file or directory", key,
                            plain_text(path).text);
        return NULL;
    }
    return xstrdup(path);
}

void item_features_release(struct item_features *features)
{
    features_release(&features->rows);
    free(features->items);
    features->items = NULL;
}

static void leave_out(struct item_features *out, const struct error *why)
{
    if (!out->left_out++)
        char_one_line(out->reason, sizeof out->reason, slice_of(why->text));
}

static enum err encode(const struct item_source *source, const struct grading *items, size_t count,
                       struct item_features *out, struct error *why)
{
    struct image_encoder *encoder;
    enum err err = image_encoder_open(source->encoder, &source->input, 1, &encoder, why);
    for (size_t i = 0; i < count && !err; i++) {
        struct error cause = {0};
        size_t rows = out->rows.count;
        if (image_encoder_add(encoder, &items[i].answer, &out->rows, &cause))
            leave_out(out, &cause);
        else
            out->items[rows] = i;
    }
    image_encoder_close(encoder);
    return err;
}

static enum err take_rows(const struct item_source *source, const struct grading *items,
                          size_t count, struct item_features *out, struct error *why)
{
    struct features file;
    enum err err = features_read(source->file, &file, why);
    for (size_t i = 0; i < count && !err; i++) {
        struct error cause = {0};
        size_t rows = out->rows.count;
        bool has_row = items[i].index >= 0 && (uint64_t)items[i].index < file.count;
        if (has_row)
            err = features_add(&out->rows, &file.values[(size_t)items[i].index * file.width],
                               file.width, why);
        else
            err_set(&cause, ERR_BAD_VALUE, "%s has %zu rows, and none for item %lld", source->file,
                    file.count, (long long)items[i].index);
        if (!has_row)
            leave_out(out, &cause);
        else
            out->items[rows] = i;
    }
    if (file.count)
        features_release(&file);
    return err;
}

enum err item_features_read(const struct item_source *source, const struct grading *items,
                            size_t count, struct item_features *out, struct error *why)
{
    *out = (struct item_features){.items = xcalloc(count + 1, sizeof *out->items)};
    enum err err = source->encoder ? encode(source, items, count, out, why)
                                   : take_rows(source, items, count, out, why);
    if (err)
        item_features_release(out);
    return err;
}

void item_features_note(const struct item_features *features, struct grader_quality *out)
{
    char note[2 * sizeof out->reason + 64];
    if (!features->left_out)
        return;
    chars_format(note, "%s%s%zu of %zu left out: %s", out->reason, out->reason[0] ? "; " : "",
                 features->left_out, features->left_out + features->rows.count, features->reason);
    char_one_line(out->reason, sizeof out->reason, slice_of(note));
}
