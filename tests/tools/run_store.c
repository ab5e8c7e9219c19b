/* Stores and run directories, for tests in Python:
 *   run_store store NAME DIRECTORY MODEL METADATA SUMMARY   the directory's journal into a store
 *   run_store records DIRECTORY                             its records, as JSON lines
 *   run_store name HARDWARE MODEL DATASET                   the slug and the directory's name
 * METADATA and SUMMARY are JSON.  Exit 1 with the reason when something fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/store.h"
#include "rundir/summary.h"

struct giving {
    struct store store;
    struct error *why;
    uint64_t count;
};

static enum err put_record(void *context, const struct jv *record)
{
    struct giving *giving = context;
    giving->count++;
    return store_put(&giving->store, record, giving->why);
}

static enum err print(void *context, const struct jv *record)
{
    struct text *text = context;
    text_clear(text);
    enum err err = jv_print(record, text);
    puts(text_get(text));
    return err;
}

static const struct store_driver *find_driver(const char *name)
{
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++)
        if (!strcmp((*d)->name, name))
            return *d;
    return NULL;
}

static enum err fill_store(char **argv, const char *journal, struct error *why)
{
    struct giving giving = {.why = why};
    struct jv *metadata = NULL, *tree = NULL;
    struct summary summary;
    uint64_t damaged = 0;
    const struct store_driver *driver = find_driver(argv[2]);
    if (!driver)
        return err_set(why, ERR_USAGE, "no such store");
    enum err err = jv_parse(argv[5], strlen(argv[5]), &metadata, why);
    if (!err)
        err = jv_parse(argv[6], strlen(argv[6]), &tree, why);
    summary_init(&summary);
    if (!err)
        err = summary_from_json(tree, &summary, why);
    struct store_run run = {.directory = argv[3], .model = argv[4], .metadata = metadata};
    if (!err)
        err = store_open(driver, &run, &giving.store, why);
    if (!err)
        err = journal_records(journal, put_record, &giving, &damaged, why);
    if (!err)
        err = store_finish(&giving.store, &summary, why);
    store_close(&giving.store);
    jv_free(metadata);
    summary_release(&summary);
    if (!err)
        printf("%llu %llu\n", (unsigned long long)giving.count, (unsigned long long)damaged);
    return err;
}

int main(int argc, char **argv)
{
    struct error why = {0};
    struct text text = {0};
    uint64_t damaged;
    char journal[1024], slug[256], name[1024];
    enum err err = ERR_USAGE;
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "store") && argc == 7) {
        snprintf(journal, sizeof journal, "%s/records.jsonl", argv[3]);
        err = fill_store(argv, journal, &why);
    } else if (!strcmp(what, "records") && argc == 3) {
        snprintf(journal, sizeof journal, "%s/records.jsonl", argv[2]);
        err = journal_records(journal, print, &text, &damaged, &why);
    } else if (!strcmp(what, "name") && argc == 5) {
        model_slug(argv[3], slug, sizeof slug);
        run_dir_name(argv[2], argv[3], argv[4], name, sizeof name);
        printf("%s\n%s\n", slug, name);
        err = ERR_OK;
    }
    text_release(&text);
    if (err)
        fprintf(stderr, "run_store: %s\n", why.text[0] ? why.text : err_text(err));
    return err ? 1 : 0;
}
