#include "rundir/run_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/record.h"
#include "rundir/run_dir.h"
#include "rundir/run_index.h"
#include "rundir/run_path.h"
#include "rundir/spans.h"
#include "rundir/summary.h"

enum { SAME_SECOND_MAX = 1000 };

/* A unique name: two runs may start in the same second. */
static enum err make_directory(struct run_writer *writer, const char *parent,
                               const struct journal_header *header, struct error *why)
{
    char name[256];
    bool repeated = header->repeat.number > 0;
    run_path_name(header->kind, header->hardware_label, writer->subject,
                  repeated ? header->repeat.began : header->started_at, name, sizeof name);
    if (repeated && !run_repeat_name(&header->repeat, name, sizeof name))
        return err_set(why, ERR_BAD_VALUE, "name too long: %.100s", name);
    enum err err = run_dir_make(parent, why);
    for (unsigned again = 1; !err && again < SAME_SECOND_MAX; again++) {
        char number[16] = "";
        if (again > 1)
            chars_format(number, "-%u", again);
        free(writer->directory);
        writer->directory = xformat("%s/%s%s", parent, name, number);
        if (mkdir(writer->directory, 0777) == 0)
            return ERR_OK;
        if (errno != EEXIST)
            err = err_errno(why, errno, "cannot create the directory %s", writer->directory);
    }
    return err ? err : err_set(why, ERR_BUSY, "too many runs with the same name in %s", parent);
}

static enum err open_journal(const struct run_writer *writer, enum run_file file,
                             struct journal *out, struct error *why)
{
    char *path = run_path_file(writer->directory, file);
    enum err err = journal_open(out, path, why);
    free(path);
    return err;
}

static void init(struct run_writer *writer, const char *subject)
{
    *writer = (struct run_writer){.lock_fd = -1, .records = {.fd = -1}, .spans = {.fd = -1}};
    chars_copy(writer->subject, subject);
}

static enum err start(struct run_writer *writer, const struct journal_header *header,
                      struct error *why)
{
    struct text line = {0};
    enum err err = run_dir_lock(writer->directory, &writer->lock_fd, why);
    if (!err)
        err = open_journal(writer, RUN_FILE_RECORDS, &writer->records, why);
    if (!err)
        err = open_journal(writer, RUN_FILE_SPANS, &writer->spans, why);
    journal_header_line(header, &line);
    if (!err)
        err = journal_append(&writer->records, &line, why);
    text_release(&line);
    return err;
}

enum err run_writer_open(struct run_writer *writer, const char *parent, const char *subject,
                         const struct journal_header *header, struct error *why)
{
    init(writer, subject);
    enum err err = make_directory(writer, parent ? parent : "runs", header, why);
    if (!err)
        err = start(writer, header, why);
    if (err)
        run_writer_close(writer);
    return err;
}

enum err run_writer_reopen(struct run_writer *writer, const char *directory, const char *subject,
                           const struct journal_header *header, struct error *why)
{
    init(writer, subject);
    writer->directory = xstrdup(directory);
    enum err err = run_dir_check_links(directory, why);
    if (!err)
        err = start(writer, header, why);
    if (err)
        run_writer_close(writer);
    return err;
}

enum err run_writer_add(struct run_writer *writer, const struct record *record, struct error *why)
{
    struct text line = {0};
    record_line(record, writer->subject, "query", record->key, &line);
    enum err err = journal_append(&writer->records, &line, why);
    text_release(&line);
    return err;
}

enum err run_writer_add_span(struct run_writer *writer, const struct span_line *span,
                             struct error *why)
{
    struct text line = {0};
    span_to_json(span, &line);
    enum err err = journal_append(&writer->spans, &line, why);
    text_release(&line);
    return err;
}

enum err run_writer_finish(struct run_writer *writer, const struct summary *summary,
                           struct error *why)
{
    struct error reason = {0};
    enum err err = journal_sync(&writer->records, why);
    if (!err)
        err = summary_save(writer->directory, summary, why);
    if (err)
        return err;
    /* The index can be rebuilt from the directories: a failure does not lose the run. */
    enum err indexed = run_index_put(writer->directory, summary, &reason);
    if (indexed && indexed != ERR_UNSUPPORTED)
        log_warn("the run is not in the index: %s", reason.text);
    return ERR_OK;
}

void run_writer_close(struct run_writer *writer)
{
    journal_close(&writer->records);
    journal_close(&writer->spans);
    if (writer->lock_fd >= 0)
        close(writer->lock_fd);
    writer->lock_fd = -1;
    free(writer->directory);
    writer->directory = NULL;
}

/* ---- a run out of its parts ---- */

/* ---- reading ---- */

/* The settings of the first start. */
struct first {
    struct run_part part;
    struct text settings; /* without the part */
    bool taken;
};

static enum err take_first(void *context, const struct jv *line)
{
    struct first *first = context;
    const struct jv *settings = jv_get(line, "settings");
    if (journal_line_kind(line) != JOURNAL_RUN)
        return ERR_OK;
    const char *part = jv_get_text(settings, RUN_PART_KEY);
    if (part && !run_part_parse(part, &first->part))
        first->part = (struct run_part){0};
    JV_EACH (item, jv_first_member(settings)) {
        if (str_equal(jv_key(item), RUN_PART_KEY))
            continue;
        text_addf(&first->settings, "%s=", jv_key(item));
        jv_print(item, &first->settings);
        text_add(&first->settings, "\n");
    }
    first->taken = true;
    return ERR_INTERRUPTED; /* only the first line is needed */
}

static enum err read_first(const char *directory, struct first *out, struct error *why)
{
    char *path = run_path_file(directory, RUN_FILE_RECORDS);
    uint64_t damaged;
    enum err err;
    *out = (struct first){0};
    if (!file_is_regular(path) || journal_facts(path).kind != RUN_KIND_PROFILE)
        err = err_set(why, ERR_USAGE, "%s is not a run of `ipw profile`", directory);
    else
        err = journal_read(path, take_first, out, &damaged, why);
    free(path);
    return err == ERR_INTERRUPTED ? ERR_OK : err;
}

/* Sorts the directories by part number into `sorted`, which has as many elements. */
static enum err sort_parts(const char *const *directories, size_t count, const char **sorted,
                           struct error *why)
{
    struct first known = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        struct first first;
        err = read_first(directories[i], &first, why);
        if (!err && !first.part.of)
            err = err_set(why, ERR_USAGE, "%s is not a shard of a run", directories[i]);
        else if (!err && first.part.of != count)
            err = err_set(why, ERR_USAGE, "%s is shard %u of %u, and %zu are given", directories[i],
                          first.part.number, first.part.of, count);
        else if (!err && sorted[first.part.number - 1])
            err = err_set(why, ERR_USAGE, "%s and %s are both shard %u of %u",
                          sorted[first.part.number - 1], directories[i], first.part.number,
                          first.part.of);
        else if (!err && known.taken &&
                 !str_equal(text_get(&known.settings), text_get(&first.settings)))
            err =
                err_set(why, ERR_USAGE,
                        "%s and %s are not shards of one run: model, dataset, prompt or parameters "
                        "differ",
                        directories[0], directories[i]);
        if (!err)
            sorted[first.part.number - 1] = directories[i];
        if (!err && !known.taken)
            known = first;
        else
            text_release(&first.settings);
    }
    text_release(&known.settings);
    return err;
}

/* ---- merging ---- */

struct merge_state {
    struct journal out;
    unsigned before; /* starts of earlier parts */
    unsigned starts; /* of this part */
    struct error why;
};

/* Renumbers a line for the merged run. */
static void renumber(struct jv *line, enum journal_line_kind kind, unsigned before)
{
    struct jv *owner = kind == JOURNAL_QUERY ? (struct jv *)jv_get(line, "ipw") : line;
    double start = jv_get_number(owner, "start");
    if (!(start >= 1 && start < 1e6))
        return;
    jv_put_number(owner, "start", floor(start) + before);
    if (kind != JOURNAL_RUN)
        return;
    jv_put_bool(line, JOURNAL_MERGED, true);
    jv_put_text(jv_put_object(line, "settings"), RUN_PART_KEY, NULL);
}

static enum err take_line(void *context, const struct jv *value)
{
    struct merge_state *merge = context;
    struct text line = {0};
    enum journal_line_kind kind = journal_line_kind(value);
    merge->starts += kind == JOURNAL_RUN;
    renumber((struct jv *)value, kind, merge->before);
    jv_print(value, &line);
    enum err err = journal_append(&merge->out, &line, &merge->why);
    text_release(&line);
    return err;
}

/* Merges one file of all parts; if `count_starts`, *starts is the number of `run` lines of each. */
static enum err merge_lines(const char *const *parts, size_t count, enum run_file file,
                            const char *to, unsigned *starts, bool count_starts, struct error *why)
{
    struct merge_state merge = {0};
    char *merged = run_path_file(to, file);
    enum err err = journal_open(&merge.out, merged, why);
    free(merged);
    if (err)
        return err;
    for (size_t i = 0; !err && i < count; i++) {
        char *path = run_path_file(parts[i], file);
        uint64_t damaged;
        merge.starts = 0;
        if (file_is_regular(path))
            err = journal_read(path, take_line, &merge, &damaged, &merge.why);
        free(path);
        if (count_starts)
            starts[i] = merge.starts;
        merge.before += starts[i];
    }
    if (!err)
        err = journal_sync(&merge.out, &merge.why);
    journal_close(&merge.out);
    if (err)
        err_set(why, err, "%s", merge.why.text[0] ? merge.why.text : err_text(err));
    return err;
}

static enum err copy_file(const char *from, const char *to, struct error *why)
{
    char block[1 << 16];
    ssize_t length = 0;
    int in = -1, out = -1;
    enum err err = file_open_own(from, O_RDONLY, &in, why);
    if (!err)
        err = file_open_own(to, O_WRONLY | O_CREAT | O_TRUNC, &out, why);
    while (!err && (length = read(in, block, sizeof block)) > 0)
        if (file_write_all(out, block, (size_t)length))
            err = err_errno(why, errno, "cannot write %s", to);
    if (!err && length < 0)
        err = err_errno(why, errno, "cannot read %s", from);
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) && !err)
        err = err_errno(why, errno, "cannot write %s", to);
    return err;
}

static enum err copy_samples(const char *const *parts, size_t count, const char *to,
                             const unsigned *starts, struct error *why)
{
    unsigned before = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < count; before += starts[i++])
        for (unsigned start = 1; !err && start <= starts[i]; start++) {
            char *from = run_path_samples(parts[i], start);
            char *path = run_path_samples(to, before + start);
            if (file_is_regular(from))
                err = copy_file(from, path, why);
            free(from);
            free(path);
        }
    return err;
}

enum err run_parts_merge(const char *const *directories, size_t count, const char *to,
                         struct error *why)
{
    const char **parts = xcalloc(count + 1, sizeof *parts);
    unsigned *starts = xcalloc(count + 1, sizeof *starts);
    enum err err = sort_parts(directories, count, parts, why);
    if (!err)
        err = merge_lines(parts, count, RUN_FILE_RECORDS, to, starts, true, why);
    if (!err)
        err = merge_lines(parts, count, RUN_FILE_SPANS, to, starts, false, why);
    if (!err)
        err = copy_samples(parts, count, to, starts, why);
    free(parts);
    free(starts);
    return err;
}
