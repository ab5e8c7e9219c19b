/* The fuzz program: selects a target by its name, and passes it libFuzzer's inputs.
 *
 *     fuzz                        lists the targets
 *     fuzz TARGET --write FOLDER  writes the seeds of a target into the folder, and its words to FOLDER.dict
 *     fuzz TARGET ...             libFuzzer, with its own options */
#define _GNU_SOURCE
#include "fuzz/fuzz.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "support/run_files.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t size);

static const struct {
    const char *name;
    const struct fuzz_target *target;
} TARGETS[] = {
#define FUZZ(name) {#name, &fuzz_##name},
#include "fuzz/targets.def"
#undef FUZZ
};

static const struct fuzz_target *chosen;

/* ---- seeds ---- */

static const char *seed_folder;
static unsigned seed_count;

_Noreturn static void give_up(const char *what)
{
    fprintf(stderr, "fuzz: %s: %s\n", what, strerror(errno));
    exit(1);
}

void fuzz_seed_bytes(int choice, const void *bytes, size_t length)
{
    char path[512];
    str_format(path, sizeof path, "%s/seed-%03u", seed_folder, ++seed_count);
    FILE *file = fopen(path, "w");
    if (!file || (choice >= 0 && fputc('a' + choice, file) == EOF) ||
        fwrite(bytes, 1, length, file) != length || fclose(file))
        give_up(path);
}

void fuzz_seed_file(int choice, const char *path, size_t max)
{
    char *bytes = malloc(max);
    FILE *file = fopen(path, "r");
    if (!bytes || !file)
        give_up(path);
    fuzz_seed_bytes(choice, bytes, fread(bytes, 1, max, file));
    fclose(file);
    free(bytes);
}

static void write_words(const char *const *words)
{
    char path[512];
    str_format(path, sizeof path, "%s.dict", seed_folder);
    FILE *file = fopen(path, "w");
    if (!file)
        give_up(path);
    for (; words && *words; words++) {
        fputc('"', file);
        for (const char *at = *words; *at; at++)
            if (*at == '"' || *at == '\\' || *at < ' ' || *at > '~')
                fprintf(file, "\\x%02X", (unsigned char)*at);
            else
                fputc(*at, file);
        fputs("\"\n", file);
    }
    if (fclose(file))
        give_up(path);
}

/* ---- the input ---- */

unsigned fuzz_choose(const char **bytes, size_t *length, unsigned count)
{
    unsigned choice = *length ? (unsigned char)(**bytes - 'a') % count : 0;
    *bytes += *length > 0;
    *length -= *length > 0;
    return choice;
}

char *fuzz_string(const char *bytes, size_t length)
{
    static char *copy;
    free(copy);
    size_t end = length ? strnlen(bytes, length) : 0;
    copy = malloc(end + 1);
    if (!copy)
        give_up("no memory");
    if (end)
        memcpy(copy, bytes, end);
    copy[end] = '\0';
    return copy;
}

static char folder[64];

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status, (void)type, (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    if (!folder[0]) {
        const char *shm = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        str_format(folder, sizeof folder, "%s/ipw-fuzz-XXXXXX", shm);
        if (!mkdtemp(folder))
            give_up(folder);
        atexit(remove_folder);
    }
    return folder;
}

const char *fuzz_file(const char *name, const void *bytes, size_t length)
{
    static char path[256];
    str_format(path, sizeof path, "%s/%s", fuzz_folder(), name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    if (!file || (length && fwrite(bytes, 1, length, file) != length) || fclose(file))
        give_up(path);
    return path;
}

void fuzz_fail(const char *problem)
{
    fprintf(stderr, "fuzz: %s\n", problem);
    abort();
}

void fuzz_check_error(enum err err, const struct error *why)
{
    if (err && (!why->text[0] || !str_is_plain(why->text))) {
        fprintf(stderr, "fuzz: the error has no plain line: '%s'\n", why->text);
        abort();
    }
}

/* ---- libFuzzer ---- */

static void choose_target(const char *name)
{
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        if (name && !strcmp(TARGETS[i].name, name))
            chosen = TARGETS[i].target;
    if (chosen)
        return;
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++)
        puts(TARGETS[i].name);
    exit(name != NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    choose_target((*argv)[1]);
    log_to(NULL, LOG_ERROR);
    if (*argc == 4 && !strcmp((*argv)[2], "--write")) {
        seed_folder = (*argv)[3];
        chosen->seeds();
        write_words(chosen->words);
        exit(0);
    }
    (*argv)[1] = (*argv)[0];
    ++*argv;
    --*argc;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    chosen->run((const char *)bytes, length);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t size, unsigned seed)
{
    static char copy[RUN_FILES_MAX];
    if (!chosen->has_values || seed % 4 == 0 || length > sizeof copy)
        return LLVMFuzzerMutate(bytes, length, size);
    memcpy(copy, bytes, length);
    size_t left = run_files_damage(copy, length, seed);
    if (left > size)
        return LLVMFuzzerMutate(bytes, length, size);
    memcpy(bytes, copy, left);
    return left;
}
