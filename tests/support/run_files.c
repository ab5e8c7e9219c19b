#define _GNU_SOURCE
#include "support/run_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "analysis/compare_set.h"
#include "core/json.h"
#include "core/log.h"
#include "core/result.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "report/html/html.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/compare_report.h"
#include "report/print/print.h"
#include "report/text/reports.h"
#include "support/rng.h"

static const char *const NAMES[] = {"records.jsonl", "summary.json", "samples.csv", "spans.jsonl"};
enum { NAMES_COUNT = sizeof NAMES / sizeof *NAMES, LINES_MAX = 14 };

/* ---- from a directory ---- */

bool run_files_add(struct text *out, const char *name)
{
    for (size_t i = 0; i < NAMES_COUNT; i++) {
        char path[512], line[1 << 14];
        snprintf(path, sizeof path, IPW_FIXTURES "/runs/%s/%s", name, NAMES[i]);
        FILE *file = fopen(path, "r");
        if (!file)
            return false;
        for (int n = 0; n < LINES_MAX && fgets(line, sizeof line, file); n++)
            text_add(out, line);
        fclose(file);
        text_add_bytes(out, &(char){RUN_FILES_BREAK}, 1);
    }
    return true;
}

/* ---- damage ---- */

static size_t replace(char *bytes, size_t length, size_t from, size_t to, const char *with,
                      size_t with_length)
{
    if (length - (to - from) + with_length > RUN_FILES_MAX)
        return length;
    memmove(bytes + from + with_length, bytes + to, length - to);
    memcpy(bytes + from, with, with_length);
    return length - (to - from) + with_length;
}

/* Replaces the value after the next colon or comma. */
static size_t replace_value(char *bytes, size_t length, size_t at, uint64_t *seed)
{
    static const char *const VALUES[] = {
        "0",
        "-1",
        "-0.0",
        "1e308",
        "-1e308",
        "1e-320",
        "1e999",
        "1e19",
        "9e9",
        "8.9e9",
        "1e18",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "null",
        "true",
        "\"\"",
        "\"x\"",
        "[]",
        "{}",
        "[1]",
        "[[{}]]",
        "nan",
        "",
        "{\"joules\":{\"joules\":1}}",
        "\"\\u0000\"",
        "\"\xff\"",
    };
    const char *value = VALUES[rng_bits(seed) % (sizeof VALUES / sizeof *VALUES)];
    while (at < length && bytes[at] != ':' && bytes[at] != ',')
        at++;
    if (at == length)
        return length;
    size_t from = at + 1, to = from, depth = 0;
    while (to < length && bytes[to] != '\n' && bytes[to] != RUN_FILES_BREAK &&
           (depth || !strchr(",}]", bytes[to]))) {
        depth += bytes[to] == '{' || bytes[to] == '[';
        depth -= depth && (bytes[to] == '}' || bytes[to] == ']');
        to++;
    }
    return replace(bytes, length, from, to, value, strlen(value));
}

static size_t replace_line(char *bytes, size_t length, size_t at, uint64_t *seed)
{
    char line[1 << 12];
    size_t from = at, to = at;
    while (from > 0 && bytes[from - 1] != '\n' && bytes[from - 1] != RUN_FILES_BREAK)
        from--;
    while (to < length && bytes[to] != '\n' && bytes[to] != RUN_FILES_BREAK)
        to++;
    switch (rng_bits(seed) % 3) {
    case 0: /* none */
        return replace(bytes, length, from, to, "", 0);
    case 1: /* half of it */
        return replace(bytes, length, at, to, "", 0);
    default: /* twice */
        if (to == length || to - from >= sizeof line)
            return length;
        memcpy(line, bytes + from, to - from + 1);
        return replace(bytes, length, from, from, line, to - from + 1);
    }
}

size_t run_files_damage(char *bytes, size_t length, uint64_t seed)
{
    for (uint64_t count = 1 + rng_bits(&seed) % 8; count && length; count--) {
        size_t at = rng_bits(&seed) % length;
        uint64_t kind = rng_bits(&seed) % 16;
        if (kind < 12)
            length = replace_value(bytes, length, at, &seed);
        else if (kind < 15)
            length = replace_line(bytes, length, at, &seed);
        else
            bytes[at] = (char)rng_bits(&seed);
    }
    return length;
}

/* ---- the commands ---- */

static char directory[64];

static void remove_directory(void)
{
    for (size_t i = 0; i < NAMES_COUNT; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", directory, NAMES[i]);
        unlink(path);
    }
    rmdir(directory);
}

static const char *make_directory(void)
{
    const char *shm = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    if (directory[0])
        return NULL;
    snprintf(directory, sizeof directory, "%s/ipw-run-files-XXXXXX", shm);
    if (!mkdtemp(directory))
        return "no directory";
    atexit(remove_directory);
    log_to(NULL, LOG_ERROR);
    return NULL;
}

/* An empty file does not exist. */
static const char *write_files(const char *bytes, size_t length)
{
    for (size_t i = 0; i < NAMES_COUNT; i++) {
        char path[128];
        const char *end = length ? memchr(bytes, RUN_FILES_BREAK, length) : NULL;
        size_t size = end ? (size_t)(end - bytes) : length;
        snprintf(path, sizeof path, "%s/%s", directory, NAMES[i]);
        unlink(path);
        if (size) {
            int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
                return "a file cannot be written";
            close(fd);
        }
        bytes += size + (end != NULL);
        length -= size + (end != NULL);
    }
    return NULL;
}

/* Every error must have a reason. */
static const char *missing_reason(enum err err, const struct error *why)
{
    return err && !why->text[0] ? "refused without a reason" : NULL;
}

static const char *report(void)
{
    const char *inputs[] = {directory};
    struct html_report page = {.inputs = inputs, .count = 1, .page = "page.html"};
    struct text out = {0};
    struct error why = {0};
    enum err err = html_write(&page, &out, &why);
    text_release(&out);
    return missing_reason(err, &why);
}

static const char *export_all(void)
{
    const char *wrong = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s.exported", directory);
    for (size_t i = 0; EXPORT_DRIVERS[i] && !wrong; i++) {
        struct export_request request = {.directory = directory, .output = path};
        struct export_done done;
        struct error why = {0};
        if (!EXPORT_DRIVERS[i]->makes_files)
            wrong = missing_reason(export_run(EXPORT_DRIVERS[i], &request, &done, &why), &why);
    }
    unlink(path);
    return wrong;
}

static const char *analyze(const struct run_table *table)
{
    const char *wrong = NULL;
    for (size_t i = 0; ANALYSIS_DRIVERS[i] && !wrong; i++) {
        const struct analysis_driver *driver = ANALYSIS_DRIVERS[i];
        struct analysis_input input = {.table = table};
        struct params params = {0};
        struct text bytes = {0}, text = {0};
        struct error why = {0};
        struct result result;
        struct json json;
        struct jv *tree = NULL;
        if (driver->reads_layers || (table->failed == table->rows && !driver->accepts_failed))
            continue;
        enum err err = analysis_run(driver, &input, &params, &result);
        wrong = missing_reason(err, &result.why);
        json_init(&json, &bytes, true);
        result_to_json(&result, NULL, &json);
        if (!err && jv_parse(bytes.bytes, bytes.length, &tree, &why))
            wrong = "the result of an analysis is not JSON";
        else if (!err)
            result_in_full(&result, false, &text);
        jv_free(tree);
        result_release(&result);
        text_release(&bytes);
        text_release(&text);
    }
    return wrong;
}

static const char *plot(const struct run_table *table)
{
    const char *wrong = NULL;
    for (size_t i = 0; PLOT_DRIVERS[i] && !wrong; i++) {
        struct figure figure = {0};
        struct text script = {0};
        struct error why = {0};
        if (!(PLOT_DRIVERS[i]->of & PLOT_OF_RUN))
            continue;
        enum err err =
            plot_draw(PLOT_DRIVERS[i], &(struct plot_source){.table = table}, &figure, &why);
        wrong = missing_reason(err, &why);
        if (!err)
            figure_script(&figure, (enum figure_format)0, false, NULL, &script);
        figure_release(&figure);
        text_release(&script);
    }
    return wrong;
}

static const char *compare(const struct run_table *table)
{
    const char *const runs[] = {directory, directory, "--", directory, directory};
    struct compare_groups groups;
    struct compare_set set;
    struct error why = {0};
    if (table->failed == table->rows)
        return NULL;
    compare_groups_find(runs, 5, &groups);
    enum err err =
        compare_set_load(&groups, &(struct compare_options){.model = table->model}, &set, &why);
    if (!err) {
        struct result result = {0};
        compare_result(&(struct compare_report){.groups = &groups, .set = &set}, &result);
        for (enum print_format format = PRINT_TABLE; format <= PRINT_MARKDOWN; format++) {
            struct text out = {0};
            result_print(&result, format, &COMPARE_VIEWS, false, &out);
            text_release(&out);
        }
        result_release(&result);
        compare_set_release(&set);
    }
    compare_groups_release(&groups);
    return missing_reason(err, &why);
}

const char *run_files_exercise(const char *bytes, size_t length)
{
    struct run_table table;
    struct error why = {0};
    const char *wrong = make_directory();
    if (!wrong)
        wrong = write_files(bytes, length);
    if (!wrong)
        wrong = report();
    if (!wrong)
        wrong = export_all();
    if (wrong)
        return wrong;
    enum err err =
        run_table_load(directory, NULL, (struct run_wanted){UINT64_MAX, UINT64_MAX}, &table, &why);
    if (err)
        return missing_reason(err, &why);
    wrong = analyze(&table);
    if (!wrong)
        wrong = plot(&table);
    if (!wrong)
        wrong = compare(&table);
    run_table_release(&table);
    return wrong;
}
