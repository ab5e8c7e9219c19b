/* Journals, and reading the records of a run: from the journal, else from Arrow files. */
#define _GNU_SOURCE
#include "rundir/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/arrow.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/record.h"

enum {
    BLOCK = 1 << 16,
    WAITING_MAX = 1 << 16,  /* bytes of a batch that wait */
    WAITING_KEPT = 1 << 20, /* bytes of the buffer that are kept for the next lines */
};

static enum err failed(const struct journal *journal, const char *what, int problem,
                       struct error *why)
{
    return err_set(why, err_from_errno(problem), "cannot %s %s: %s", what, journal->path,
                   problem == EFBIG ? "the file would be too large (ulimit -f)"
                                    : strerror(problem));
}

/* End of the last complete line: 0 if there is none. */
static enum err complete_length(const struct journal *journal, off_t size, off_t *out,
                                struct error *why)
{
    char block[BLOCK];
    for (off_t end = size; end > 0;) {
        off_t start = end > BLOCK ? end - BLOCK : 0;
        ssize_t n = pread(journal->fd, block, (size_t)(end - start), start);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != end - start)
            return failed(journal, "read", n < 0 ? errno : EIO, why);
        const char *newline = memrchr(block, '\n', (size_t)n);
        if (newline) {
            *out = start + (newline - block) + 1;
            return ERR_OK;
        }
        end = start;
    }
    *out = 0;
    return ERR_OK;
}

static enum err truncate_partial_line(struct journal *journal, struct error *why)
{
    struct stat status;
    off_t whole;
    if (fstat(journal->fd, &status))
        return failed(journal, "look at", errno, why);
    enum err err = complete_length(journal, status.st_size, &whole, why);
    if (!err && whole < status.st_size && ftruncate(journal->fd, whole))
        err = failed(journal, "cut", errno, why);
    journal->size = whole;
    return err;
}

/* Writes what is waiting at once.  What remains of a short write are complete lines. */
static enum err write_waiting(struct journal *journal, struct error *why)
{
    struct text *waiting = &journal->waiting;
    ssize_t n, length = (ssize_t)waiting->length;
    if (!length)
        return ERR_OK;
    do
        n = write(journal->fd, waiting->bytes, waiting->length);
    while (n < 0 && errno == EINTR);
    int problem = errno;
    const char *last = n > 0 ? memrchr(waiting->bytes, '\n', (size_t)n) : NULL;
    if (n == length)
        journal->size += n;
    else if (last)
        journal->size += last + 1 - waiting->bytes;
    journal->dirty = journal->dirty || n > 0;
    if (waiting->capacity > WAITING_KEPT)
        text_release(waiting);
    else
        text_clear(waiting);
    if (n == length)
        return ERR_OK;
    if (n >= 0) /* short write: the next byte fails with the reason */
        problem = write(journal->fd, "\n", 1) < 0 ? errno : ENOSPC;
    if (n >= 0 && ftruncate(journal->fd, journal->size))
        problem = errno;
    journal->allocated_end = 0;
    return failed(journal, "write", problem, why);
}

/* Without the lock if the thread that is out of memory may hold it; then lines that wait are lost. */
static void flush_at_last(void *context)
{
    struct journal *journal = context;
    if (pthread_mutex_trylock(&journal->lock) == 0) {
        (void)!write_waiting(journal, NULL);
        pthread_mutex_unlock(&journal->lock);
    }
    (void)fdatasync(journal->fd);
}

enum err journal_open(struct journal *journal, const char *path, struct error *why)
{
    *journal = (struct journal){.fd = -1};
    enum err err = file_open_own(path, O_RDWR | O_CREAT | O_APPEND, &journal->fd, why);
    if (err)
        return err;
    journal->path = xstrdup(path);
    err = truncate_partial_line(journal, why);
    if (err) {
        close(journal->fd);
        free(journal->path);
        *journal = (struct journal){.fd = -1};
        return err;
    }
    pthread_mutex_init(&journal->lock, NULL);
    journal->flush = (struct last_action){.run = flush_at_last, .context = journal};
    last_action_add(&journal->flush);
    return ERR_OK;
}

/* ---- space for lines to come ---- */

/* Allocates ahead, so that this is rare. */
enum { AHEAD = 1 << 16 };

/* Allocates this many bytes after the end of the file, which does not move.  The kernel does not apply the limit on
 * file sizes to such space. */
static int allocate_bytes(const struct journal *journal, off_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (rlim_t)(journal->size + bytes) > limit.rlim_cur)
        return EFBIG;
    return fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, journal->size, bytes) ? errno : 0;
}

/* Whether the file can grow by this much, in addition to the lines that wait. */
static enum err allocate(struct journal *journal, size_t bytes, struct error *why)
{
    bytes += journal->waiting.length;
    off_t end = journal->size + (off_t)bytes, ahead = AHEAD + (off_t)bytes / 2;
    if (end <= journal->allocated_end)
        return ERR_OK;
    if (allocate_bytes(journal, (off_t)bytes + ahead) == 0) {
        end += ahead;
    } else {
        int problem = allocate_bytes(journal, (off_t)bytes);
        if (problem == ENOSPC || problem == EDQUOT || problem == EFBIG)
            return failed(journal, "write", problem, why);
    }
    journal->allocated_end = end;
    return ERR_OK;
}

/* Frees allocated space that is not used. */
static void trim(struct journal *journal)
{
    if (journal->allocated_end && !journal->reserved && !journal->waiting.length &&
        ftruncate(journal->fd, journal->size) == 0)
        journal->allocated_end = 0;
}

enum err journal_reserve(struct journal *journal, size_t bytes, struct error *why)
{
    pthread_mutex_lock(&journal->lock);
    enum err err = allocate(journal, journal->reserved + bytes, why);
    journal->reserved += err ? 0 : bytes;
    pthread_mutex_unlock(&journal->lock);
    return err;
}

static void release_bytes(struct journal *journal, size_t bytes)
{
    journal->reserved -= bytes < journal->reserved ? bytes : journal->reserved;
    trim(journal);
}

void journal_unreserve(struct journal *journal, size_t bytes)
{
    pthread_mutex_lock(&journal->lock);
    release_bytes(journal, bytes);
    pthread_mutex_unlock(&journal->lock);
}

/* ---- lines ---- */

static enum err append(struct journal *journal, const struct text *line, bool has_space,
                       size_t bytes, struct error *why)
{
    struct text hidden = {0};
    if (line->length >= JOURNAL_LINE_MAX)
        return err_set(why, ERR_BAD_VALUE, "a journal line of %zu MiB is too long",
                       line->length >> 20);
    if (line->length == 0 || memchr(line->bytes, '\n', line->length))
        return err_set(why, ERR_BAD_VALUE, "a journal line must not contain line breaks");
    if (secret_in_json(line)) {
        text_add_bytes(&hidden, line->bytes, line->length);
        secret_hide_json(&hidden);
        line = &hidden;
    }
    pthread_mutex_lock(&journal->lock);
    enum err err = ERR_OK;
    if (journal->reserved && !has_space)
        err = allocate(journal, line->length + 1 + journal->reserved, why);
    if (!err) {
        text_add_bytes(&journal->waiting, line->bytes, line->length);
        text_add_bytes(&journal->waiting, "\n", 1);
        if (!journal->batches || journal->waiting.length >= WAITING_MAX)
            err = write_waiting(journal, why);
    }
    if (has_space)
        release_bytes(journal, bytes);
    pthread_mutex_unlock(&journal->lock);
    text_release(&hidden);
    return err;
}

enum err journal_append(struct journal *journal, const struct text *line, struct error *why)
{
    return append(journal, line, false, 0, why);
}

enum err journal_append_reserved(struct journal *journal, const struct text *line, size_t bytes,
                                 struct error *why)
{
    return append(journal, line, true, bytes, why);
}

void journal_batch_begin(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    journal->batches++;
    pthread_mutex_unlock(&journal->lock);
}

enum err journal_batch_end(struct journal *journal, struct error *why)
{
    pthread_mutex_lock(&journal->lock);
    journal->batches--;
    enum err err = write_waiting(journal, why);
    trim(journal);
    pthread_mutex_unlock(&journal->lock);
    return err;
}

enum err journal_sync(struct journal *journal, struct error *why)
{
    pthread_mutex_lock(&journal->lock);
    bool dirty = journal->dirty;
    journal->dirty = false;
    pthread_mutex_unlock(&journal->lock);
    /* Without the lock: syncing takes time, and lines may be appended meanwhile. */
    if (!dirty || fdatasync(journal->fd) == 0)
        return ERR_OK;
    int problem = errno;
    pthread_mutex_lock(&journal->lock);
    journal->dirty = true;
    pthread_mutex_unlock(&journal->lock);
    return failed(journal, "sync", problem, why);
}

void journal_close(struct journal *journal)
{
    if (journal->fd < 0)
        return;
    last_action_remove(&journal->flush);
    journal->reserved = 0;
    trim(journal);
    close(journal->fd);
    text_release(&journal->waiting);
    free(journal->path);
    journal->path = NULL;
    journal->fd = -1;
    pthread_mutex_destroy(&journal->lock);
}

/* ---- the header of a start ---- */

static void series_to_json(const struct run_repeat *repeat, struct json *json)
{
    if (!repeat->series[0])
        return;
    const char side[] = {repeat->side, '\0'};
    json_string(json, "series", repeat->series);
    json_string(json, "series_side", side);
    if (repeat->until_decided)
        json_integer(json, "series_until_decided", repeat->until_decided);
}

void journal_header_line(const struct journal_header *header, struct text *line)
{
    struct json json;
    text_clear(line);
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "kind", "run");
    json_integer(&json, "format", JOURNAL_FORMAT);
    json_string(&json, "run_kind", run_kind_name(header->kind));
    json_string(&json, "ipw", IPW_VERSION);
    json_integer(&json, "start", header->start);
    json_number(&json, "started_at", header->started_at);
    json_string(&json, "hardware_label", header->hardware_label);
    if (header->repeat.group[0]) {
        json_string(&json, "repeat_group", header->repeat.group);
        json_integer(&json, "repeat_number", header->repeat.number);
    }
    series_to_json(&header->repeat, &json);
    if (header->settings)
        jv_to_json(header->settings, "settings", &json);
    if (header->measuring)
        jv_to_json(header->measuring, "measuring", &json);
    json_object_end(&json);
}

static struct energy energy_from_json(const struct jv *value)
{
    struct record_energy read;
    struct energy energy;
    record_energy_from_json(value, &read);
    record_energy_get(&read, &energy);
    return energy;
}

static void write_energy(struct json *json, const char *key, const struct json_field *field,
                         const void *object)
{
    energy_to_json(json, key, json_field_member(field, object));
}

static const struct json_custom ENERGY = {.write = write_energy};

static const struct json_field END_FIELDS[] = {
    BIND_CONSTANT("end", "kind"),
    BIND_INTEGER(journal_end, start, "start", .flags = FIELD_DEFAULT),
    BIND_NUMBER(journal_end, ended_at, "ended_at"),
    BIND_CUSTOM(journal_end, energy, ENERGY, "energy"),
    BIND_NUMBER(journal_end, accounted_joules, "accounted_joules"),
    BIND_NUMBER(journal_end, idle_joules, "idle_joules"),
    BIND_NUMBER(journal_end, unattributed_joules, "unattributed_joules"),
    BIND_NUMBER(journal_end, busy_joules, "busy_joules"),
    BIND_NUMBER(journal_end, busy_s, "busy_s"),
    BIND_NUMBER(journal_end, busy_covered_s, "busy_covered_s"),
    BIND_INTEGER(journal_end, unrecorded_requests, "unrecorded_requests",
                 .flags = FIELD_OMIT | FIELD_DEFAULT, .otherwise = -1),
    {0},
};
/* Of a proxy. */
static const struct json_field UNKNOWN_FIELDS[] = {
    BIND_INTEGER(journal_end, unknown_inference, "unrecorded_inference", .flags = FIELD_DEFAULT,
                 .otherwise = -1),
    BIND_NUMBER(journal_end, unknown_joules, "unrecorded_inference_joules"),
    BIND_TEXT(journal_end, unknown_path, "unrecorded_inference_path"),
    {0},
};

void journal_end_line(const struct journal_end *end, struct text *line)
{
    struct json json;
    text_clear(line);
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_fields_write(&json, END_FIELDS, end);
    if (end->unknown_inference >= 0)
        json_fields_write(&json, UNKNOWN_FIELDS, end);
    json_object_end(&json);
}

void journal_end_read(const struct jv *tree, struct journal_end *out)
{
    json_fields_clear(END_FIELDS, out);
    json_fields_clear(UNKNOWN_FIELDS, out);
    (void)json_fields_read(tree, END_FIELDS, out);
    (void)json_fields_read(tree, UNKNOWN_FIELDS, out);
    out->energy = energy_from_json(jv_get(tree, "energy"));
}

void journal_line_read(const struct jv *tree, struct journal_line *out)
{
    const struct jv *own = jv_get(tree, "ipw");
    const char *status = jv_get_text(own, "status");
    *out = (struct journal_line){
        .kind = journal_line_kind(tree),
        .key = jv_get_text(tree, "key"),
        .started_at = jv_get_number(tree, "started_at"),
        .completed = status && str_equal(status, "completed"),
        .settled = jv_get(own, "energy") != NULL,
        .judged = jv_get(own, "judge_energy") != NULL,
        .energy = energy_from_json(jv_get(own, "energy")),
        .attempt = jv_first(jv_get(own, "failed_attempts")),
    };
}

bool journal_line_attempt(struct journal_line *line, struct energy *out)
{
    if (!line->attempt)
        return false;
    *out = energy_from_json(line->attempt);
    line->attempt = jv_next(line->attempt);
    return true;
}

static enum err compare_setting(const struct jv *now, const struct jv *then,
                                journal_differs *differs, void *context)
{
    struct text a = {0}, b = {0};
    enum err err = ERR_OK;
    jv_print(now, &a);
    if (then)
        jv_print(then, &b);
    if (!str_equal(text_get(&a), then ? text_get(&b) : "null"))
        err = differs(context, jv_key(now), then ? text_get(&b) : NULL, text_get(&a));
    text_release(&a);
    text_release(&b);
    return err;
}

enum err journal_compare_settings(const struct jv *line, const struct jv *settings,
                                  journal_differs *differs, void *context)
{
    const struct jv *then = jv_get(line, "settings");
    enum err err = ERR_OK;
    for (const struct jv *now = jv_first(settings); now && !err; now = jv_next(now))
        err = compare_setting(now, jv_get(then, jv_key(now)), differs, context);
    return err;
}

struct journal_facts journal_facts(const char *path)
{
    struct jv *header = journal_header(path);
    double at = jv_get_number(header, "started_at");
    double number = jv_get_number(header, "repeat_number");
    double most = jv_get_number(header, "series_until_decided");
    struct journal_facts facts = {
        .kind = run_kind_named(jv_get_text(header, "run_kind")),
        .format = jv_get_number(header, "format"),
        .started_at = at > 0 && at < 8e9 ? at : UNKNOWN,
        .repeat.number = number >= 1 && number < 1e9 ? (unsigned)number : 0,
        .repeat.side = text_or_empty(jv_get_text(header, "series_side"))[0],
        .repeat.until_decided = most >= 1 && most < 1e9 ? (unsigned)most : 0,
    };
    chars_copy(facts.repeat.series, text_or_empty(jv_get_text(header, "series")));
    chars_copy(facts.repeat.group, text_or_empty(jv_get_text(header, "repeat_group")));
    jv_free(header);
    return facts;
}

static enum err take_start(void *context, const struct jv *line)
{
    struct journal_starts *starts = context;
    double at = jv_get_number(line, "started_at");
    int64_t number;
    if (journal_line_kind(line) != JOURNAL_RUN || !(at > 0 && at < 8e9) ||
        !jv_integer(jv_get(line, "start"), &number) || number < 1 || number > RUN_STARTS_MAX)
        return ERR_OK;
    while (starts->count < (size_t)number) {
        *XADD(starts->zero_ns, starts->count, starts->capacity) = 0;
    }
    starts->zero_ns[number - 1] = (int64_t)llround(at * 1e9);
    return ERR_OK;
}

enum err journal_starts_read(const char *directory, struct journal_starts *out, struct error *why)
{
    char *path = run_path_file(directory, RUN_FILE_RECORDS);
    uint64_t damaged;
    *out = (struct journal_starts){0};
    enum err err = journal_read(path, take_start, out, &damaged, why);
    free(path);
    if (err)
        journal_starts_release(out);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

void journal_starts_release(struct journal_starts *starts)
{
    free(starts->zero_ns);
    *starts = (struct journal_starts){0};
}

/* ---- the records of a run ---- */

enum err run_records_open(const char *directory, struct run_records *out, struct error *why)
{
    char *journal = run_path_file(directory, RUN_FILE_RECORDS);
    *out = (struct run_records){.directory = directory, .format = UNKNOWN};
    enum err err = run_shards_find(directory, &out->shards, why);
    if (!err && run_has_file(journal)) {
        err = journal_index_new(&out->index, journal, why);
        out->format = journal_facts(journal).format;
    } else if (!err && !out->shards.count) {
        err = err_set(why, ERR_NOT_FOUND,
                      "%s: not a run directory: neither records.jsonl nor data-*.arrow", directory);
    }
    free(journal);
    if (err)
        run_records_close(out);
    return err;
}

void run_records_close(struct run_records *records)
{
    run_shards_release(&records->shards);
    journal_index_free(records->index);
    *records = (struct run_records){.format = UNKNOWN};
}

/* Reads one Arrow file, row by row. */
static enum err read_shard(const char *path, journal_take *take, void *context, struct error *why)
{
    struct arrow_reader *reader;
    struct jv *record = NULL;
    enum err err = run_read_arrow(path, &reader, why);
    if (err)
        return err;
    while (!(err = arrow_reader_next(reader, &record, why)) && record) {
        err = take(context, record);
        jv_free(record);
        if (err)
            break;
    }
    arrow_reader_close(reader);
    return err;
}

enum err run_records_read(struct run_records *records, journal_take *take, void *context,
                          struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !records->index && !err && i < records->shards.count; i++)
        err = read_shard(records->shards.paths[i], take, context, why);
    if (!records->index)
        return err;
    err = journal_index_read(records->index, take, context, &records->damaged, why);
    if (records->damaged && !records->first_damaged) {
        char *journal = run_path_file(records->directory, RUN_FILE_RECORDS);
        records->first_damaged = journal_first_damaged(journal);
        free(journal);
    }
    return err;
}

enum err run_records_arrow(const char *directory, size_t limit, struct text *out, struct error *why)
{
    struct run_shards shards = {0};
    enum err err = run_shards_find(directory, &shards, why);
    if (!err && shards.count != 1)
        err = err_set(why, shards.count ? ERR_NO_DATA : ERR_NOT_FOUND,
                      shards.count ? "the run has %zu Arrow files: get them by `files`"
                                   : "the run has %zu Arrow files",
                      shards.count);
    if (!err)
        err = run_read(shards.paths[0], limit, out, why);
    run_shards_release(&shards);
    return err;
}

/* ---- progress ---- */

/* Quotes inside strings are escaped, so that these bytes cannot occur in a string. */
static void take_progress(struct run_progress *progress, const char *line, size_t length)
{
    struct jv *value;
    bool is_query = str_starts(line, "{\"kind\":\"query\"");
    bool is_start = str_starts(line, "{\"kind\":\"run\"");
    if (is_query)
        progress->done++;
    if (!is_start && !(is_query && strstr(line, "\"status\":\"failed\"")))
        return;
    if (jv_parse(line, length, &value, NULL))
        return;
    const char *status = jv_text(jv_path(value, "ipw.status"));
    progress->failed += is_query && status && str_equal(status, "failed");
    if (is_start) {
        double wanted = jv_number(jv_path(value, "measuring.queries"));
        progress->started_at = jv_get_number(value, "started_at");
        progress->before = progress->done;
        progress->total = wanted > 0 ? (double)progress->done + wanted : 0;
    }
    jv_free(value);
}

enum err run_progress_read(const char *directory, struct run_progress *progress, struct error *why)
{
    char *path = run_path_file(directory, RUN_FILE_RECORDS), *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    FILE *file;
    enum err err = run_open_file(path, &file, why);
    if (!err && fseek(file, (long)progress->read, SEEK_SET)) {
        err = err_errno(why, errno, "cannot read %s", path);
        fclose(file);
    }
    free(path);
    if (err)
        return err;
    while ((length = getline(&line, &capacity, file)) > 0 && line[length - 1] == '\n') {
        take_progress(progress, line, (size_t)length);
        progress->read += length;
    }
    free(line);
    fclose(file);
    return ERR_OK;
}
