#include "engine/llama/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "engine/llama/words.h"

enum { SMALL_CONTEXT = 64 };

/* How the child's report begins; without one, it died. */
enum { REFUSED = '-', WENT_WELL = '+', ASSERTED = '!' };

static int report_to; /* the child's alone */

static void report(char how, const char *words)
{
    char line[256];
    str_format(line, sizeof line, "%c%s", how, words);
    size_t length = strlen(line);
    while (write(report_to, line, length) < 0 && errno == EINTR)
        ;
}

/* "FILE:LINE: what failed", of which the path is nobody's business. */
static void asserted(const char *message)
{
    const char *what = strstr(message, ": ");
    report(ASSERTED, what ? what + 2 : message);
    _exit(1);
}

/* Nothing of this process's may be written twice, and none of its locks be waited for. */
static void settle(const struct llama_api *api)
{
    log_to(NULL, LOG_ERROR);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard <= 2 && nowhere >= 0; standard++)
        dup2(nowhere, standard);
    api->ggml_set_abort_callback(asserted);
    words_forget();
}

_Noreturn static void try_it(const struct llama_api *api, const char *path, bool has_gpu)
{
    settle(api);
    void *no_device = NULL;
    struct llama_model_params of_model = api->model_params;
    of_model.devices = &no_device;
    of_model.n_gpu_layers = 0;
    of_model.load_mode = LLAMA_LOAD_READ;
    of_model.no_alloc = !has_gpu;
    of_model.vocab_only = has_gpu;
    struct llama_model *model = api->llama_model_load_from_file(path, of_model);
    struct llama_context_params of_context = api->context_params;
    of_context.n_ctx = of_context.n_batch = of_context.n_ubatch = SMALL_CONTEXT;
    bool is_well = model && (has_gpu || api->llama_init_from_model(model, of_context));
    report(is_well ? WENT_WELL : REFUSED, is_well ? "" : words_complaint());
    _exit(0);
}

/* All that the child said, up to its end. */
static void listen(int from, char *to, size_t size)
{
    size_t used = 0;
    for (;;) {
        ssize_t n = read(from, to + used, size - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    to[used] = '\0';
}

enum err trial_meaning(const char *complaint)
{
    if (strstr(complaint, "unknown model architecture") || strstr(complaint, "unsupported"))
        return ERR_UNSUPPORTED;
    return strstr(complaint, "alloc") ? ERR_NO_MEMORY : ERR_BAD_VALUE;
}

static enum err judge(const char *said, int status, const char *path, struct error *why)
{
    const char *words = said[0] && said[1] ? said + 1 : "it does not say why";
    if (said[0] == WENT_WELL)
        return ERR_OK;
    if (said[0] == REFUSED)
        return err_set(why, trial_meaning(words), "llama.cpp cannot load %s: %s", path, words);
    if (said[0] == ASSERTED)
        return err_set(why, ERR_BAD_VALUE, "%s is broken; llama.cpp gives up at: %s", path, words);
    return err_set(why, ERR_BAD_VALUE, "%s is broken: llama.cpp dies of it (signal %d)", path,
                   WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

enum err trial_load(const struct llama_api *api, const char *path, bool has_gpu, struct error *why)
{
    int pipe_ends[2];
    if (pipe(pipe_ends))
        return err_set(why, err_from_errno(errno), "no pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(pipe_ends[0]);
        report_to = pipe_ends[1];
        try_it(api, path, has_gpu);
    }
    close(pipe_ends[1]);
    char said[256] = "";
    enum err err = ERR_OK;
    if (child < 0) {
        err = err_from_errno(errno);
        err = err_set(why, err, "no process to try the model in: %s", err_text(err));
    }
    listen(pipe_ends[0], said, sizeof said);
    close(pipe_ends[0]);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return err ? err : judge(said, status, path, why);
}
