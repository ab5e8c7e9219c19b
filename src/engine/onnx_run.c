/* One run of a model, and its cancellation: a thread watches the flags of the runs in progress, which are polled since
 * signal handlers set them. */
#include <pthread.h>
#include <string.h>

#include "core/units.h"
#include "engine/onnx_state.h"
#include "port/thread.h"

/* ---- cancellation ---- */

enum { IDLE_POLLS = 50 }; /* after so many without a run the watcher sleeps until the next one */
static const nanos POLL = 20 * NS_PER_MS;

struct watched {
    const atomic_bool *cancel;
    struct ort_run_options *options;
    struct watched *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct watched *first;
    unsigned idle_polls;
    bool has_thread, is_asleep;
} watcher = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void end_cancelled(void)
{
    const struct ort_api *api = ort_library()->api;
    for (struct watched *run = watcher.first; run; run = run->next) {
        struct ort_status *status = atomic_load(run->cancel) ? api->terminate(run->options) : NULL;
        if (status)
            api->release_status(status);
    }
}

/* Lives as long as the process. */
static void *watch(void *unused)
{
    (void)unused;
    thread_name("ipw-onnx", -1);
    pthread_mutex_lock(&watcher.lock);
    for (;;) {
        end_cancelled();
        watcher.idle_polls = watcher.first ? 0 : watcher.idle_polls + 1;
        watcher.is_asleep = watcher.idle_polls > IDLE_POLLS;
        thread_wait(&watcher.changed, &watcher.lock, watcher.is_asleep ? 60 * NS_PER_S : POLL);
        watcher.is_asleep = false;
    }
    return NULL;
}

/* Without a thread a run cannot be cancelled. */
static void begin_watch(struct watched *run)
{
    pthread_t thread;
    pthread_mutex_lock(&watcher.lock);
    run->next = watcher.first;
    watcher.first = run;
    if (!watcher.has_thread && !thread_start(&thread, watch, NULL)) {
        watcher.has_thread = true;
        pthread_detach(thread);
    } else if (watcher.is_asleep) {
        thread_wake(&watcher.changed);
    }
    pthread_mutex_unlock(&watcher.lock);
}

static void end_watch(struct watched *run)
{
    struct watched **at = &watcher.first;
    pthread_mutex_lock(&watcher.lock);
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    pthread_mutex_unlock(&watcher.lock);
}

/* ---- inputs and outputs ---- */

/* The library's values of a run: those of inputs that are not the caller's own are released after it. */
struct call {
    struct onnx_session *session;
    struct ort_value *inputs[ONNX_PORTS_MAX], *outputs[ONNX_PORTS_MAX];
    bool is_ours[ONNX_PORTS_MAX];
    const char *names[ONNX_PORTS_MAX]; /* of the wanted outputs */
    size_t indices[ONNX_PORTS_MAX];
    size_t wanted;
};

static enum err wrap_input(struct call *call, size_t i, const struct onnx_tensor *tensor,
                           struct error *why)
{
    static uint64_t nothing; /* what an empty tensor points to */
    const struct onnx_facts *facts = &call->session->facts;
    const struct ort_library *library = call->session->library;
    const char *name = facts->inputs[i].name;
    if (tensor->owner) {
        call->inputs[i] = tensor->owner;
        return ERR_OK;
    }
    size_t size = onnx_type_size(tensor->type);
    if (size == 0)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: input %s has elements of type %s: expected numbers", facts->path, name,
                       onnx_type_name(tensor->type));
    if (!tensor->data && tensor->count > 0)
        return err_set(why, ERR_BAD_VALUE, "%s: input %s is missing", facts->path, name);
    call->is_ours[i] = true;
    return ort_check(library->api->create_tensor(library->host,
                                                 tensor->data ? tensor->data : &nothing,
                                                 tensor->count * size, tensor->shape, tensor->rank,
                                                 (int)tensor->type, &call->inputs[i]),
                     why, name);
}

static enum err wrap_inputs(struct call *call, const struct onnx_tensor *inputs, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < call->session->facts.input_count; i++)
        err = wrap_input(call, i, &inputs[i], why);
    return err;
}

static void list_outputs(struct call *call, const bool *wanted)
{
    for (size_t i = 0; i < call->session->facts.output_count; i++) {
        if (wanted && !wanted[i])
            continue;
        call->names[call->wanted] = call->session->output_names[i];
        call->indices[call->wanted++] = i;
    }
}

static enum err describe_tensor(const struct ort_api *api, const struct ort_tensor *shape,
                                struct onnx_tensor *out, const char *name, struct error *why)
{
    int type = 0;
    enum err err = ort_check(api->element_type(shape, &type), why, name);
    if (!err)
        err = ort_check(api->rank(shape, &out->rank), why, name);
    if (!err && out->rank > ONNX_RANK_MAX)
        return err_set(why, ERR_UNSUPPORTED, "output %s has %zu dimensions: the limit is %d", name,
                       out->rank, ONNX_RANK_MAX);
    if (!err)
        err = ort_check(api->shape(shape, out->shape, out->rank), why, name);
    out->type = (enum onnx_type)type;
    out->count = 1;
    for (size_t i = 0; !err && i < out->rank; i++)
        out->count *= (size_t)out->shape[i];
    return err;
}

/* Strings, sequences and maps have no data. */
static enum err read_output(const struct ort_api *api, struct ort_value *value, const char *name,
                            struct onnx_tensor *out, struct error *why)
{
    struct ort_tensor *shape = NULL;
    int kind = 0;
    out->owner = value;
    enum err err = ort_check(api->value_kind(value, &kind), why, name);
    if (err || kind != ORT_KIND_TENSOR)
        return err;
    err = ort_check(api->value_tensor(value, &shape), why, name);
    if (!err)
        err = describe_tensor(api, shape, out, name, why);
    if (shape)
        api->release_tensor(shape);
    if (!err && out->type != ONNX_STRING)
        err = ort_check(api->tensor_data(value, &out->data), why, name);
    return err;
}

static enum err read_outputs(struct call *call, struct onnx_tensor *outputs, struct error *why)
{
    const struct ort_api *api = call->session->library->api;
    enum err err = ERR_OK;
    for (size_t i = 0; i < call->wanted; i++) {
        struct onnx_tensor *out = &outputs[call->indices[i]];
        if (!err)
            err = read_output(api, call->outputs[i], call->names[i], out, why);
        else
            out->owner = call->outputs[i]; /* released with the others */
    }
    for (size_t i = 0; err && i < call->wanted; i++)
        onnx_tensor_release(&outputs[call->indices[i]]);
    return err;
}

/* ---- a run ---- */

static enum err run(struct call *call, struct ort_run_options *options, struct error *why)
{
    struct onnx_session *session = call->session;
    return ort_check(session->library->api->run(session->ort, options, session->input_names,
                                                (const struct ort_value *const *)call->inputs,
                                                session->facts.input_count, call->names,
                                                call->wanted, call->outputs),
                     why, session->facts.path);
}

static enum err run_cancellable(struct call *call, const atomic_bool *cancel, struct error *why)
{
    const struct ort_api *api = call->session->library->api;
    struct watched watched = {.cancel = cancel};
    if (!cancel)
        return run(call, NULL, why);
    if (atomic_load(cancel))
        return err_explain(why, ERR_INTERRUPTED);
    enum err err = ort_check(api->create_run_options(&watched.options), why, "a run");
    if (err)
        return err;
    begin_watch(&watched);
    err = run(call, watched.options, why);
    end_watch(&watched);
    api->release_run_options(watched.options);
    return err && atomic_load(cancel) ? err_explain(why, ERR_INTERRUPTED) : err;
}

enum err onnx_run(struct onnx_session *session, const struct onnx_tensor *inputs,
                  struct onnx_tensor *outputs, const bool *wanted, const atomic_bool *cancel,
                  struct error *why)
{
    struct call call;
    memset(&call, 0, offsetof(struct call, names));
    call.session = session;
    call.wanted = 0;
    for (size_t i = 0; i < session->facts.output_count; i++)
        outputs[i] = (struct onnx_tensor){0};
    list_outputs(&call, wanted);
    enum err err = wrap_inputs(&call, inputs, why);
    if (!err)
        err = run_cancellable(&call, cancel, why);
    if (!err)
        err = read_outputs(&call, outputs, why);
    for (size_t i = 0; i < session->facts.input_count; i++)
        if (call.is_ours[i] && call.inputs[i])
            session->library->api->release_value(call.inputs[i]);
    return err;
}
