/* Running an exporter: input, selection of records, output. */
#include "report/export/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/log.h"
#include "core/slice.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/summary.h"
#include "rundir/traces.h"

enum { PIECE = 1 << 16 };

/* A receiver that is not ready is asked again, after 1, 2, 4 ... seconds or what it requests. */
enum { PUSH_TRIES = 5 };
#define PUSH_PAUSE_MAX (30 * NS_PER_S)

struct export_push {
    struct otlp_receiver receiver;
    uint64_t sent;
    int64_t rejected;
};

struct export_state {
    const struct export_driver *driver;
    const struct export_request *request;
    struct run_records records;
    struct export_run run;
    struct export export;
    struct summary summary;
    bool has_summary;
    struct jv *metadata;
    struct jv_index metadata_keys;
    struct traces traces;
    char *model, *name;
    struct output output; /* destination of the text; unused if the driver writes its own files */
    struct export_push push; /* or the receiver of it */
    uint64_t taken;
    struct error why;
};

/* ---- output ---- */

static enum err push_batch(struct export_push *push, const char *batch, size_t length,
                           struct error *why)
{
    struct otlp_reply reply;
    nanos pause = NS_PER_S;
    for (unsigned tries = 1;; tries++, pause *= 2) {
        enum otlp_outcome outcome =
            otlp_receiver_send(&push->receiver, batch, length, NULL, &reply);
        if (outcome == OTLP_SENT)
            break;
        if (outcome == OTLP_REFUSED || tries == PUSH_TRIES)
            return err_set(why, reply.why.code, "%s (batches sent before: %llu)", reply.why.text,
                           (unsigned long long)push->sent);
        nanos wanted = is_known(reply.retry_after_s) ? from_seconds(reply.retry_after_s) : pause;
        thread_sleep(wanted < PUSH_PAUSE_MAX ? wanted : PUSH_PAUSE_MAX);
    }
    push->sent++;
    push->rejected += reply.rejected;
    if (reply.rejected)
        log_warn("%s", reply.why.text);
    return ERR_OK;
}

/* Sends complete lines, each of which is a batch; the rest stays. */
static enum err push_lines(struct export *export, struct error *why)
{
    struct text *out = &export->out;
    char *start = out->bytes, *end;
    enum err err = ERR_OK;
    while (!err && (end = memchr(start, '\n', out->length - (size_t)(start - out->bytes)))) {
        err = push_batch(export->push, start, (size_t)(end - start), why);
        start = end + 1;
    }
    text_drop(out, (size_t)(start - out->bytes));
    return err;
}

static enum err flush_output(struct export *export, struct error *why)
{
    if (!export->out.length)
        return ERR_OK;
    if (export->push)
        return push_lines(export, why);
    enum err err = output_write(export->output, text_get(&export->out), export->out.length, why);
    text_clear(&export->out);
    return err;
}

enum err export_flush(struct export *export, struct error *why)
{
    return export->out.length >= PIECE ? flush_output(export, why) : ERR_OK;
}

/* ---- the run ---- */

static enum err read_summary(struct export_state *work, struct error *why)
{
    struct error reason = {0};
    enum err err = summary_load(work->request->directory, &work->summary, &reason);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    work->has_summary = !err;
    return err ? err_set(why, err, "%s", reason.text) : ERR_OK;
}

static enum err take_model(void *context, const struct jv *record)
{
    struct export_state *work = context;
    const struct jv *first = jv_first_member(record_models(record));
    if (!first)
        return ERR_OK;
    work->model = xstrdup(jv_key(first));
    return ERR_INTERRUPTED; /* only the first is needed */
}

static enum err choose_model(struct export_state *work, struct error *why)
{
    const char *model = work->request->model ? work->request->model : work->summary.model;
    enum err err = ERR_OK;
    if (model)
        work->model = xstrdup(model);
    else
        err = run_records_read(&work->records, take_model, work, why);
    if (err == ERR_INTERRUPTED)
        err = ERR_OK;
    if (!err && !work->model)
        err = err_set(why, ERR_NO_DATA, "no records in %s yet", work->request->directory);
    return err;
}

static enum err take_metadata(void *context, const struct jv *record)
{
    struct export_state *work = context;
    struct record fields;
    record_from_json(record, work->model, &fields);
    JV_EACH (child, jv_first_member(fields.dataset_metadata.value))
        if (jv_is_null(jv_index_get(&work->metadata_keys, jv_key(child))))
            jv_index_put(&work->metadata_keys, work->metadata, jv_key(child), child);
    return ERR_OK;
}

static enum err gather_metadata(struct export_state *work, struct error *why)
{
    if (!work->driver->wants_metadata)
        return ERR_OK;
    work->metadata = jv_new_object();
    jv_index_init(&work->metadata_keys, work->metadata);
    return run_records_read(&work->records, take_metadata, work, why);
}

/* ---- exporting a run ---- */

static enum err take_record(void *context, const struct jv *record)
{
    struct export_state *work = context;
    struct export_record given = {.tree = (struct jv *)record}; /* ours alone during the call */
    if (jv_is_null(jv_get(record_models(record), work->model)))
        return ERR_OK;
    work->taken++;
    record_from_json(record, work->model, &given.fields);
    given.trace = traces_find(&work->traces, given.fields.key);
    enum err err = work->driver->record(&work->export, &given, &work->why);
    return err ? err : export_flush(&work->export, &work->why);
}

/* Why a pass ended: the exporter's own reason if it has one. */
static enum err read_records(struct export_state *work, struct error *why)
{
    if (!work->driver->record)
        return ERR_OK;
    enum err err = run_records_read(&work->records, take_record, work, why);
    if (err && work->why.text[0])
        *why = work->why;
    if (!err && !work->taken && work->records.damaged)
        err = err_set(why, ERR_BAD_VALUE,
                      "no record in %s can be read: %llu lines are damaged, the first is line %llu",
                      work->request->directory, (unsigned long long)work->records.damaged,
                      (unsigned long long)work->records.first_damaged);
    else if (!err && !work->taken)
        err = err_set(why, ERR_NOT_FOUND, "%s has no record of model '%.100s'",
                      work->request->directory, work->model);
    return err;
}

static enum err prepare(struct export_state *work, struct error *why)
{
    const struct export_request *request = work->request;
    enum err err = work->driver->available ? work->driver->available(why) : ERR_OK;
    if (!err)
        err = run_dir_check_files(request->directory, why);
    if (!err)
        err = run_records_open(request->directory, &work->records, why);
    if (!err)
        err = read_summary(work, why);
    if (!err)
        err = choose_model(work, why);
    if (!err)
        err = gather_metadata(work, why);
    if (!err && traces_exist(request->directory))
        err = traces_load(request->directory, &work->traces, why);
    struct slice name = slice_path_name(slice_of(request->directory));
    if (!err)
        work->name = request->name ? xstrdup(request->name) : xstrndup(name.start, name.length);
    work->run = (struct export_run){request->directory,
                                    work->name,
                                    work->model,
                                    work->has_summary ? &work->summary : NULL,
                                    work->metadata,
                                    request->output,
                                    request->replace,
                                    request->raw,
                                    work->traces.count ? &work->traces : NULL};
    work->export = (struct export){
        .run = &work->run, .output = &work->output, .push = request->push ? &work->push : NULL};
    if (err || work->driver->makes_files)
        return err;
    if (request->push)
        return otlp_receiver_open(&work->push.receiver, work->driver->signal, request->push, why);
    return output_open(&work->output, request->output, false, why);
}

static enum err put_all(struct export_state *work, struct error *why)
{
    const struct export_driver *driver = work->driver;
    work->export.state = xcalloc(1, driver->state_size + 1);
    enum err err = driver->begin ? driver->begin(&work->export, why) : ERR_OK;
    if (!err)
        err = read_records(work, why);
    if (!err && driver->end)
        err = driver->end(&work->export, why);
    if (!err)
        err = flush_output(&work->export, why);
    if (driver->release)
        driver->release(&work->export);
    free(work->export.state);
    return err;
}

enum err export_run(const struct export_driver *driver, const struct export_request *request,
                    struct export_done *done, struct error *why)
{
    struct export_state work = {
        .driver = driver, .request = request, .output = {.fd = -1, .folder = -1}};
    struct error reason = {0};
    summary_init(&work.summary);
    enum err err = prepare(&work, &reason);
    if (!err)
        err = output_finish(&work.output, put_all(&work, &reason), &reason);
    *done = (struct export_done){.damaged = work.records.damaged,
                                 .first_damaged = work.records.first_damaged,
                                 .format = work.records.format,
                                 .pushed = work.push.sent,
                                 .rejected = work.push.rejected};
    if (request->push) {
        chars_copy(done->receiver, work.push.receiver.shown);
        otlp_receiver_release(&work.push.receiver);
    }
    if (err)
        err_set(why, err, "%s", reason.text[0] ? reason.text : err_text(err));
    text_release(&work.export.out);
    run_records_close(&work.records);
    summary_release(&work.summary);
    traces_release(&work.traces);
    jv_index_release(&work.metadata_keys);
    jv_free(work.metadata);
    free(work.model);
    free(work.name);
    return err;
}

/* ---- fields of a record ---- */

void export_add_number(struct text *out, double value)
{
    struct json json;
    json_init(&json, out, false);
    json_number(&json, NULL, value);
}

const char *export_text(const struct export_run *run, const struct record *record,
                        const struct record_field *field)
{
    if (field->role != ROLE_DERIVED)
        return json_field_text(&field->at, record);
    return str_equal(field->export_name, "run") ? run->name : run->model;
}

bool moments_of(const struct record *record, struct moments *out)
{
    double from = record->started_at, latency = record->latency_s, prefill = record->prefill_s;
    if (!is_known(latency)) /* a failed query has no latency */
        latency = fmax(record->decode_s, 0) + fmax(prefill, 0);
    if (!(from > 0 && latency >= 0 && from + latency < 8e9)) /* fits into 64-bit nanoseconds */
        return false;
    *out = (struct moments){.from_ns = (int64_t)llround(from * 1e9)};
    out->to_ns = out->from_ns + (int64_t)llround(latency * 1e9);
    if (prefill >= 0 && prefill <= latency)
        out->first_ns = out->from_ns + (int64_t)llround(prefill * 1e9);
    if (out->first_ns > out->to_ns)
        out->first_ns = out->to_ns;
    return true;
}
