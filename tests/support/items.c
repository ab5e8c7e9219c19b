#include "support/unit.h"

#include "support/items.h"

#include <stdlib.h>

#include "core/grow.h"
#include "core/jv.h"
#include "core/text.h"

static enum err read_all(struct items *out, struct dataset *dataset)
{
    for (;;) {
        bool end;
        struct error why = {0};
        struct item *all = grow(out->all, &out->capacity, out->count, sizeof *all);
        assert_non_null(all);
        out->all = all;
        enum err err = dataset_next(dataset, &all[out->count], &end, &why);
        if (end)
            return ERR_OK;
        if (err == ERR_BAD_VALUE) {
            assert_true(out->error_count < ITEMS_ERRORS_MAX);
            str_copy(out->errors[out->error_count++], sizeof why.text, why.text);
        } else if (err) {
            out->why = why;
            return err;
        } else {
            out->count++;
        }
    }
}

enum err items_read(struct items *out, const char *name, const char *words, ...)
{
    char given[2048];
    va_list args;
    va_start(args, words);
    vsnprintf(given, sizeof given, words, args);
    va_end(args);
    struct params params = {0};
    struct dataset dataset;
    *out = (struct items){0};
    assert_int_equal(params_add(&params, given), ERR_OK);
    struct dataset_config config = {.params = &params};
    enum err err = dataset_open(name, &config, &dataset, &out->why);
    if (!err) {
        str_copy(out->name, sizeof out->name, dataset.name);
        str_copy(out->grader, sizeof out->grader, dataset.grader);
        out->reported = dataset.count;
        err = read_all(out, &dataset);
        dataset_close(&dataset);
    }
    params_release(&params);
    return err;
}

void items_release(struct items *items)
{
    for (size_t i = 0; i < items->count; i++)
        item_release(&items->all[i]);
    free(items->all);
    *items = (struct items){0};
}

const char *item_metadata_text(const struct item *item)
{
    static char kept[4096];
    struct text text = {0};
    assert_int_equal(jv_print(item->metadata, &text), ERR_OK);
    assert_true(str_copy(kept, sizeof kept, text_get(&text)));
    text_release(&text);
    return kept;
}
