/* Sessions: opened once per file and options, and described by their inputs and outputs. */
#include "engine/onnx_state.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/thread.h"

static struct {
    pthread_mutex_t lock;
    struct onnx_session *first;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- inputs and outputs ---- */

static enum err read_shape(const struct ort_api *api, const struct ort_tensor *tensor,
                           struct onnx_port *port, struct error *why)
{
    const char *symbols[ONNX_RANK_MAX] = {0};
    int type = 0;
    enum err err = ort_check(api->element_type(tensor, &type), why, port->name);
    if (!err)
        err = ort_check(api->rank(tensor, &port->rank), why, port->name);
    if (!err && port->rank > ONNX_RANK_MAX)
        return err_set(why, ERR_UNSUPPORTED, "%s has %zu dimensions: the limit is %d", port->name,
                       port->rank, ONNX_RANK_MAX);
    if (!err)
        err = ort_check(api->shape(tensor, port->shape, port->rank), why, port->name);
    if (!err)
        err = ort_check(api->symbols(tensor, symbols, port->rank), why, port->name);
    port->type = (enum onnx_type)type;
    for (size_t i = 0; !err && i < port->rank; i++)
        chars_copy(port->symbols[i], text_or_empty(symbols[i]));
    return err;
}

/* The functions that describe inputs, or outputs. */
struct port_reader {
    struct ort_status *(*count)(const struct ort_session *, size_t *);
    struct ort_status *(*name)(const struct ort_session *, size_t, struct ort_allocator *, char **);
    struct ort_status *(*type)(const struct ort_session *, size_t, struct ort_type **);
};

/* A sequence or map has the type ONNX_UNDEFINED. */
static enum err read_port(const struct onnx_session *session, const struct port_reader *reader,
                          size_t i, struct onnx_port *port, struct error *why)
{
    const struct ort_library *library = session->library;
    const struct ort_api *api = library->api;
    const struct ort_tensor *tensor = NULL;
    struct ort_type *type = NULL;
    char *name = NULL;
    enum err err =
        ort_check(reader->name(session->ort, i, library->allocator, &name), why, "its ports");
    if (!err && !chars_copy(port->name, name))
        err = err_set(why, ERR_UNSUPPORTED, "the name of %.60s... is too long", name);
    if (name && api->free_memory(library->allocator, name))
        log_debug("ONNX Runtime did not release a name");
    if (!err)
        err = ort_check(reader->type(session->ort, i, &type), why, port->name);
    if (!err)
        err = ort_check(api->type_tensor(type, &tensor), why, port->name);
    if (!err && tensor)
        err = read_shape(api, tensor, port, why);
    if (type)
        api->release_type(type);
    return err;
}

static enum err read_ports(const struct onnx_session *session, const struct port_reader *reader,
                           const struct onnx_port **out, const char ***names, size_t *count,
                           struct error *why)
{
    enum err err = ort_check(reader->count(session->ort, count), why, "its ports");
    if (!err && *count > ONNX_PORTS_MAX)
        err = err_set(why, ERR_UNSUPPORTED, "%zu inputs or outputs: the limit is %d", *count,
                      ONNX_PORTS_MAX);
    if (err)
        return err;
    struct onnx_port *ports = xcalloc(*count + 1, sizeof *ports);
    *out = ports;
    *names = xcalloc(*count + 1, sizeof **names);
    for (size_t i = 0; !err && i < *count; i++) {
        err = read_port(session, reader, i, &ports[i], why);
        (*names)[i] = ports[i].name;
    }
    return err;
}

static enum err describe(struct onnx_session *session, struct error *why)
{
    const struct ort_api *api = session->library->api;
    const struct port_reader inputs = {api->input_count, api->input_name, api->input_type};
    const struct port_reader outputs = {api->output_count, api->output_name, api->output_type};
    struct onnx_facts *facts = &session->facts;
    struct error reason;
    enum err err = read_ports(session, &inputs, &facts->inputs, &session->input_names,
                              &facts->input_count, &reason);
    if (!err)
        err = read_ports(session, &outputs, &facts->outputs, &session->output_names,
                         &facts->output_count, &reason);
    return err ? err_set(why, err, "%s: %s", facts->path, reason.text) : ERR_OK;
}

/* ---- options ---- */

/* "CUDA, CPU" of the names that the library has built in, and whether one of them is that provider. */
static enum err find_provider(const struct ort_api *api, const char *wanted, bool *is_found,
                              struct text *list, struct error *why)
{
    static const char SUFFIX[] = "ExecutionProvider";
    char **names = NULL;
    int count = 0;
    enum err err = ort_check(api->providers(&names, &count), why, "execution providers");
    if (err)
        return err;
    for (int i = 0; i < count; i++) {
        char *name = xstrdup(names[i]);
        if (str_ends(name, SUFFIX))
            name[strlen(name) - strlen(SUFFIX)] = '\0';
        *is_found |= str_equal_nocase(name, wanted);
        text_addf(list, "%s%s", list->length ? ", " : "", name);
        free(name);
    }
    return ort_check(api->release_providers(names, count), why, "execution providers");
}

static enum err append_cuda(const struct ort_library *library, struct ort_options *options,
                            struct error *why)
{
    const struct ort_api *api = library->api;
    struct text list = {0};
    struct ort_cuda *cuda = NULL;
    bool is_found = false;
    enum err err = find_provider(api, "cuda", &is_found, &list, why);
    if (!err && !is_found)
        err = err_set(why, ERR_UNSUPPORTED,
                      "provider=cuda: %s has no CUDA provider (it has %s); library= or "
                      "IPW_ONNXRUNTIME_LIB names one that has, as in the package onnxruntime-gpu",
                      library->path, text_get(&list));
    text_release(&list);
    if (!err)
        err = ort_check(api->create_cuda(&cuda), why, "provider=cuda");
    if (!err)
        err = ort_check(api->append_cuda(options, cuda), why, "provider=cuda");
    if (cuda)
        api->release_cuda(cuda);
    return err;
}

static enum err make_options(const struct ort_library *library, const struct onnx_options *wanted,
                             struct ort_options **out, struct error *why)
{
    static const char WHAT[] = "ONNX Runtime's options";
    const struct ort_api *api = library->api;
    int level = wanted->is_optimized_basic ? ORT_OPTIMIZE_BASIC : ORT_OPTIMIZE_ALL;
    enum err err = ort_check(api->create_options(out), why, WHAT);
    if (!err)
        err = ort_check(api->set_intra_threads(*out, (int)wanted->threads), why, WHAT);
    if (!err)
        err = ort_check(api->set_inter_threads(*out, 1), why, WHAT);
    if (!err)
        err = ort_check(api->set_optimization(*out, level), why, WHAT);
    if (!err && wanted->profile)
        err = ort_check(api->enable_profiling(*out, wanted->profile), why, WHAT);
    if (!err && str_equal(wanted->provider, "cuda"))
        err = append_cuda(library, *out, why);
    return err;
}

/* ---- opening ---- */

static void destroy(struct onnx_session *session)
{
    if (session->ort)
        session->library->api->release_session(session->ort);
    free((void *)session->facts.inputs);
    free((void *)session->facts.outputs);
    free((void *)session->facts.path);
    free(session->input_names);
    free(session->output_names);
    free(session->key);
    free(session);
}

/* The library's message without "Load model from PATH failed:", since the path is before it. */
static struct error without_preamble(const char *path, const struct error *reason)
{
    static const char BEGIN[] = ": Load model from ", END[] = " failed:";
    const char *begin = strstr(reason->text, BEGIN);
    const char *end = begin ? strstr(begin, END) : NULL;
    struct error out = *reason;
    if (end)
        err_set(&out, reason->code, "%s: %s", path, end + sizeof END - 1);
    return out;
}

/* Adds what to do to the messages of a model that the library does not run. */
static enum err explain(const struct ort_library *library, const struct error *reason,
                        struct error *why)
{
    enum { REASON_MAX = sizeof reason->text - 130 }; /* so that what to do is not cut */
    bool is_long = strlen(reason->text) > REASON_MAX;
    if (reason->code == ERR_UNSUPPORTED)
        return err_set(why, ERR_UNSUPPORTED,
                       "%.*s%s; ONNX Runtime %s: export the model with an opset and operators that "
                       "it has, or set IPW_ONNXRUNTIME_LIB to a newer library",
                       (int)REASON_MAX, reason->text, is_long ? "..." : "", library->version);
    if (reason->code == ERR_BAD_VALUE)
        return err_set(why, ERR_BAD_VALUE, "%s: not a valid ONNX model", reason->text);
    return err_set(why, reason->code, "%s", reason->text);
}

static enum err load(struct onnx_session *session, const struct onnx_options *wanted,
                     struct error *why)
{
    const struct ort_library *library = session->library;
    struct ort_options *options = NULL;
    struct error reason;
    enum err err = make_options(library, wanted, &options, why);
    if (!err) {
        err = ort_check(
            library->api->open_session(library->env, session->facts.path, options, &session->ort),
            &reason, session->facts.path);
        if (err) {
            reason = without_preamble(session->facts.path, &reason);
            err = explain(library, &reason, why);
        }
    }
    if (options)
        library->api->release_options(options);
    return err ? err : describe(session, why);
}

static enum err check_options(const char *path, const struct onnx_options *options,
                              struct stat *file, struct error *why)
{
    static const char *const PROVIDERS[] = {"cpu", "cuda"};
    if (!str_is_listed(options->provider, PROVIDERS, COUNT_OF(PROVIDERS)))
        return registry_unknown("provider", options->provider, PROVIDERS, COUNT_OF(PROVIDERS),
                                ERR_USAGE, why);
    if (stat(path, file))
        return err_set(why, ERR_NOT_FOUND, "no ONNX file %s: %s", path, strerror(errno));
    if (!S_ISREG(file->st_mode))
        return err_set(why, ERR_BAD_VALUE, "%s is not a file: expected an ONNX file", path);
    return ERR_OK;
}

/* A file that was replaced meanwhile is another one. */
static char *key_of(const struct stat *file, const struct onnx_options *options)
{
    return xformat("%llu:%llu:%lld:%lld.%09ld %u %s %d", (unsigned long long)file->st_dev,
                   (unsigned long long)file->st_ino, (long long)file->st_size,
                   (long long)file->st_mtim.tv_sec, file->st_mtim.tv_nsec, options->threads,
                   options->provider, options->is_optimized_basic);
}

static struct onnx_session *find_shared(const char *key)
{
    struct onnx_session *session = shared.first;
    while (session && !str_equal(session->key, key))
        session = session->next;
    return session;
}

/* The options with their defaults. */
static struct onnx_options complete(const struct onnx_options *given)
{
    struct onnx_options options = given ? *given : (struct onnx_options){0};
    if (!options.provider)
        options.provider = "cpu";
    if (options.threads == 0)
        options.threads = (unsigned)thread_cpu_count();
    return options;
}

static enum err open_new(const char *path, const struct onnx_options *options,
                         const struct ort_library *library, struct onnx_session **out,
                         struct error *why)
{
    struct onnx_session *session = XNEW(session);
    session->library = library;
    session->users = 1;
    session->facts = (struct onnx_facts){
        .path = xstrdup(path),
        .library = library->path,
        .version = library->version,
        .provider = str_equal(options->provider, "cuda") ? "cuda" : "cpu",
        .threads = options->threads,
    };
    enum err err = load(session, options, why);
    if (err)
        destroy(session);
    else
        *out = session;
    return err;
}

/* A profiled session has one user: its file has the nodes of that one. */
enum err onnx_session_open(const char *path, const struct onnx_options *given,
                           struct onnx_session **out, struct error *why)
{
    const struct onnx_options options = complete(given);
    const struct ort_library *library;
    struct stat file;
    *out = NULL;
    enum err err = check_options(path, &options, &file, why);
    if (!err)
        err = ort_library_open(options.library, &library, why);
    if (err)
        return err;
    if (options.profile)
        return open_new(path, &options, library, out, why);
    char *key = key_of(&file, &options);
    pthread_mutex_lock(&shared.lock);
    *out = find_shared(key);
    if (*out) {
        (*out)->users++;
        free(key);
    } else {
        err = open_new(path, &options, library, out, why);
        if (err) {
            free(key);
        } else {
            (*out)->key = key;
            (*out)->next = shared.first;
            shared.first = *out;
        }
    }
    pthread_mutex_unlock(&shared.lock);
    return err;
}

static void unlink_shared(struct onnx_session *session)
{
    struct onnx_session **at = &shared.first;
    while (*at && *at != session)
        at = &(*at)->next;
    if (*at)
        *at = session->next;
}

void onnx_session_close(struct onnx_session *session)
{
    if (!session)
        return;
    pthread_mutex_lock(&shared.lock);
    bool is_last = --session->users == 0;
    if (is_last)
        unlink_shared(session);
    pthread_mutex_unlock(&shared.lock);
    if (is_last)
        destroy(session);
}

/* ---- facts ---- */

const struct onnx_facts *onnx_session_facts(const struct onnx_session *session)
{
    return &session->facts;
}

static int find_port(const struct onnx_port *ports, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(ports[i].name, name))
            return (int)i;
    return -1;
}

int onnx_input(const struct onnx_session *session, const char *name)
{
    return find_port(session->facts.inputs, session->facts.input_count, name);
}

int onnx_output(const struct onnx_session *session, const char *name)
{
    return find_port(session->facts.outputs, session->facts.output_count, name);
}

/* A copy of a string of the library, which is released. */
static char *take_string(const struct ort_library *library, char *string)
{
    if (!string)
        return NULL;
    char *copy = xstrdup(string);
    struct ort_status *status = library->api->free_memory(library->allocator, string);
    if (status)
        library->api->release_status(status);
    return copy;
}

char *onnx_session_metadata(const struct onnx_session *session, const char *key)
{
    const struct ort_library *library = session->library;
    struct ort_metadata *metadata = NULL;
    struct error reason;
    char *value = NULL;
    enum err err =
        ort_check(library->api->metadata(session->ort, &metadata), &reason, session->facts.path);
    if (!err)
        err = ort_check(library->api->metadata_value(metadata, library->allocator, key, &value),
                        &reason, key);
    if (err)
        log_debug("%s", reason.text);
    if (metadata)
        library->api->release_metadata(metadata);
    return take_string(library, value);
}

char *onnx_session_profile(struct onnx_session *session)
{
    const struct ort_library *library = session->library;
    struct error reason;
    char *path = NULL;
    if (ort_check(library->api->end_profiling(session->ort, library->allocator, &path), &reason,
                  session->facts.path))
        log_debug("%s", reason.text);
    char *copy = take_string(library, path);
    if (copy && !*copy) { /* not profiling */
        free(copy);
        return NULL;
    }
    return copy;
}
