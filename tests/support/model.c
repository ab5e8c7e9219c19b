#include "support/model.h"

#include <dirent.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"
#include "support/unit.h"

extern char **environ;

static char folder[64], path[128], other[192];

enum err model_available(struct error *why)
{
    const struct engine_library *library;
    return engine_library_open(&library, why);
}

int model_make(void **state)
{
    (void)state;
    char layers[16], hidden[16], heads[16], context[16];
    snprintf(folder, sizeof folder, "/tmp/ipw-model-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/tiny-1b.gguf", folder);
    setenv("IPW_MODELS", folder, 1);
    if (model_available(NULL) != ERR_OK)
        return 0; /* every test will skip */
    snprintf(layers, sizeof layers, "%d", MODEL_LAYERS);
    snprintf(hidden, sizeof hidden, "%d", MODEL_HIDDEN);
    snprintf(heads, sizeof heads, "%d", MODEL_HEADS);
    snprintf(context, sizeof context, "%d", MODEL_CONTEXT);
    static char python[] = "python3", script[] = IPW_FIXTURES "/../e2e/make_gguf.py",
                layers_option[] = "--layers", hidden_option[] = "--hidden",
                heads_option[] = "--heads", context_option[] = "--context";
    char *argv[] = {python, script,       path,  layers_option,  layers,  hidden_option,
                    hidden, heads_option, heads, context_option, context, NULL};
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1, 0);
    pid_t pid;
    int status = -1;
    int failure = posix_spawnp(&pid, python, &quiet, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&quiet);
    if (!failure)
        waitpid(pid, &status, 0);
    return failure || status ? -1 : 0;
}

int model_remove(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        char file[512];
        snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
        unlink(file); /* fails for . and .., which is fine */
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
    return 0;
}

const char *model_path(void)
{
    return path;
}

const char *model_folder(void)
{
    return folder;
}

unsigned char *model_bytes(size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    struct stat status;
    unsigned char *bytes = NULL;
    if (fstat(fileno(file), &status) == 0)
        bytes = malloc((size_t)status.st_size);
    *length = bytes ? fread(bytes, 1, (size_t)status.st_size, file) : 0;
    (void)fclose(file);
    return bytes;
}

const char *model_write(const char *name, const unsigned char *bytes, size_t length)
{
    snprintf(other, sizeof other, "%s/%s", folder, name);
    FILE *file = fopen(other, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length)
        fail_msg("cannot write %s", other);
    if (file)
        fclose(file);
    return other;
}
