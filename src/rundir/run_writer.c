#include "rundir/run_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "rundir/record.h"
#include "rundir/run_dir.h"
#include "rundir/run_index.h"
#include "rundir/spans.h"
#include "rundir/summary.h"

enum { SAME_SECOND_MAX = 1000 };

/* A name of its own: two runs may begin in the same second. */
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
            str_format(number, sizeof number, "-%u", again);
        if (!str_format(writer->directory, sizeof writer->directory, "%s/%s%s", parent, name,
                        number))
            return err_set(why, ERR_BAD_VALUE, "path too long: %.100s/%.100s", parent, name);
        if (mkdir(writer->directory, 0777) == 0)
            return ERR_OK;
        if (errno != EEXIST)
            err = err_set(why, err_from_errno(errno), "cannot create the directory %s: %s",
                          writer->directory, strerror(errno));
    }
    return err ? err : err_set(why, ERR_BUSY, "too many runs with the same name in %s", parent);
}

static enum err open_journal(const struct run_writer *writer, enum run_file file,
                             struct journal *out, struct error *why)
{
    char path[600];
    run_path_file(writer->directory, file, path, sizeof path);
    return journal_open(out, path, why);
}

static void init(struct run_writer *writer, const char *subject)
{
    *writer = (struct run_writer){.lock_fd = -1, .records = {.fd = -1}, .spans = {.fd = -1}};
    str_copy(writer->subject, sizeof writer->subject, subject);
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
    if (err)
        run_writer_close(writer);
    return err;
}

enum err run_writer_open(struct run_writer *writer, const char *parent, const char *subject,
                         const struct journal_header *header, struct error *why)
{
    init(writer, subject);
    enum err err = make_directory(writer, parent ? parent : "runs", header, why);
    return err ? err : start(writer, header, why);
}

enum err run_writer_reopen(struct run_writer *writer, const char *directory, const char *subject,
                           const struct journal_header *header, struct error *why)
{
    init(writer, subject);
    if (!str_copy(writer->directory, sizeof writer->directory, directory))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    enum err err = run_dir_check_links(directory, why);
    return err ? err : start(writer, header, why);
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
    /* The index can be made again from the directories: a run is not lost for it. */
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
}
