/* Writes the items of a dataset as JSON lines, for tests in Python: dump_items [--quiet] NAME
 * [key=value]... An unusable row becomes {"error": ...}. --quiet writes the last line only: the
 * number of items, and peak memory. */
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/log.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "port/fs.h"

static void warn(enum log_level level, const char *line)
{
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static void put_line(struct text *line)
{
    puts(text_get(line));
    text_clear(line);
}

static void put_error(struct text *line, const struct error *why)
{
    struct json json;
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "error", why->text);
    json_object_end(&json);
    put_line(line);
}

static void put_item(struct text *line, const struct item *item)
{
    struct json json;
    struct text metadata = {0};
    if (jv_print(item->metadata, &metadata))
        metadata.failed = true;
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "id", item->id);
    json_string(&json, "problem", item->problem);
    json_string(&json, "answer", item->answer);
    json_string(&json, "subject", item->subject);
    json_string(&json, "metadata", text_get(&metadata));
    json_string(&json, "grader", item->grader);
    json_object_end(&json);
    text_release(&metadata);
    put_line(line);
}

/* Peak memory; getrusage would include that of the parent process. */
static long peak_kb(void)
{
    char status[4096];
    const char *line = NULL;
    long kb = -1;
    if (fs_read_text("/proc/self/status", status, sizeof status) == ERR_OK)
        line = strstr(status, "VmHWM:");
    return line && sscanf(line, "VmHWM: %ld", &kb) == 1 ? kb : -1;
}

static void put_summary(struct text *line, const struct dataset *dataset, long items)
{
    struct json json;
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "name", dataset->name);
    json_string(&json, "driver", dataset->driver->name);
    json_string(&json, "grader", dataset->grader);
    json_integer(&json, "count", dataset->count);
    json_integer(&json, "items", items);
    json_integer(&json, "rss_kb", peak_kb());
    json_object_end(&json);
    put_line(line);
}

static int dump(struct dataset *dataset, int quiet)
{
    struct text line = {0};
    long items = 0;
    enum err err;
    for (;;) {
        struct item item;
        struct error why = {0};
        bool end;
        err = dataset_next(dataset, &item, &end, &why);
        if (err)
            put_error(&line, &why);
        if (end || (err && err != ERR_BAD_VALUE))
            break;
        if (!err && !quiet)
            put_item(&line, &item);
        items += !err;
        item_release(&item);
    }
    put_summary(&line, dataset, items);
    text_release(&line);
    return err != ERR_OK;
}

int main(int argc, char **argv)
{
    struct params params = {0};
    struct dataset dataset;
    struct error why = {0};
    int quiet = argc > 1 && strcmp(argv[1], "--quiet") == 0;
    if (argc < 2 + quiet)
        return 2;
    log_to(warn, LOG_INFO);
    for (int i = 2 + quiet; i < argc; i++)
        if (params_add(&params, argv[i]) != ERR_OK)
            return 2;
    struct dataset_config config = {.params = &params};
    int code = 1;
    if (dataset_open(argv[1 + quiet], &config, &dataset, &why) == ERR_OK) {
        code = dump(&dataset, quiet);
        dataset_close(&dataset);
    } else {
        fprintf(stderr, "%s\n", why.text);
    }
    params_release(&params);
    return code;
}
