#define _GNU_SOURCE
#include "rundir/run_path.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hash.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/arrow.h"
#include "port/file.h"
#include "port/json_read.h"

/* ---- hardware ---- */

enum { LABEL_MAX = 128 };

/* A sequence of letters and digits inside the name. */
struct token {
    const char *start;
    size_t length;
};

static bool next_token(const char **at, struct token *token)
{
    const char *c = *at;
    while (*c && !isalnum((unsigned char)*c))
        c++;
    token->start = c;
    while (isalnum((unsigned char)*c))
        c++;
    token->length = (size_t)(c - token->start);
    *at = c;
    return token->length > 0;
}

static size_t count(struct token token, int (*is)(int))
{
    size_t n = 0;
    for (size_t i = 0; i < token.length; i++)
        n += is((unsigned char)token.start[i]) != 0;
    return n;
}

/* "RTX" in "RTX 4090": a short family name in one case, or anything that already contains a number. */
static bool precedes_number(struct token token)
{
    size_t letters = count(token, isalpha);
    if (letters == 0)
        return false;
    if (count(token, isdigit) > 0)
        return true;
    return token.length <= 4 &&
           (count(token, isupper) == letters || count(token, islower) == letters);
}

static void append(char *to, size_t size, struct token token)
{
    size_t used = strlen(to);
    str_format(to + used, size - used, "%.*s", (int)token.length, token.start);
}

static void uppercase_if_lowercase(char *label)
{
    for (const char *c = label; *c; c++)
        if (isupper((unsigned char)*c))
            return;
    for (char *c = label; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

/* The label of one name; "" if it has neither a letter nor a digit. */
static void label_of(const char *name, char *to, size_t size)
{
    struct token token, previous = {0}, first_number = {0}, last_word = {0};
    const char *at = name;
    bool joined = false;
    to[0] = '\0';
    while (next_token(&at, &token)) {
        bool has_digit = count(token, isdigit) > 0;
        if (previous.length && has_digit && precedes_number(previous)) {
            append(to, size, previous);
            append(to, size, token);
            joined = true;
            break;
        }
        if (has_digit && !first_number.length)
            first_number = token;
        if (count(token, isalpha) > 0)
            last_word = token;
        previous = token;
    }
    if (!joined)
        append(to, size, first_number.length ? first_number : last_word);
    uppercase_if_lowercase(to);
}

static bool has_number(const char *label)
{
    return strpbrk(label, "0123456789") != NULL;
}

void hardware_label(const char *gpu_name, const char *cpu_brand, char *to, size_t size)
{
    char gpu[LABEL_MAX], cpu[LABEL_MAX];
    label_of(gpu_name ? gpu_name : "", gpu, sizeof gpu);
    label_of(cpu_brand ? cpu_brand : "", cpu, sizeof cpu);
    const char *best = "UNKNOWN_HW";
    if (has_number(gpu))
        best = gpu;
    else if (has_number(cpu))
        best = cpu;
    else if (gpu[0])
        best = gpu;
    else if (cpu[0])
        best = cpu;
    str_copy(to, size, best);
}

/* ---- models ---- */

static bool is_alnum(uint32_t code)
{
    static const uint32_t BOUNDS[] = {
#include "rundir/alnum.def"
    };
    if (code < 0x80)
        return isalnum((int)code);
    size_t low = 0, high = COUNT_OF(BOUNDS);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code >= BOUNDS[middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low % 2; /* as many bounds are at or below it */
}

/* Copies without leading and trailing underscores, and truncates only between characters. */
static void copy_stripped(const char *from, char *to, size_t size)
{
    from += strspn(from, "_");
    size_t length = strlen(from);
    if (length >= size) {
        length = size - 1;
        while (length > 0 && utf8_is_continuation(from[length]))
            length--;
    }
    while (length > 0 && from[length - 1] == '_')
        length--;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* The distinguishing part of a model's name: for a path, the file name. */
static size_t distinguishing_length(const char **model)
{
    static const char SUFFIX[] = ".gguf";
    size_t length = strlen(*model);
    size_t rest = length - (sizeof SUFFIX - 1);
    if (length < sizeof SUFFIX || !str_equal_nocase(*model + rest, SUFFIX))
        return length;
    const char *slash = strrchr(*model, '/');
    size_t before = slash ? (size_t)(slash + 1 - *model) : 0;
    *model += before;
    return rest - before;
}

void model_slug(const char *model, char *to, size_t size)
{
    struct text slug = {0};
    size_t kept = distinguishing_length(&model);
    const char *end = model + kept;
    for (const char *s = model; s < end;) {
        size_t length;
        if (is_alnum(utf8_decode(s, (size_t)(end - s), &length)))
            text_add_bytes(&slug, s, length);
        else
            text_add(&slug, "_");
        s += length;
    }
    copy_stripped(text_get(&slug), to, size);
    if (!to[0])
        str_copy(to, size, "model");
    text_release(&slug);
}

void run_dir_name(const char *hardware, const char *model, const char *dataset, char *to,
                  size_t size)
{
    struct text name = {0};
    char slug[256];
    model_slug(model, slug, sizeof slug);
    text_addf(&name, "profile_%s_%s_%s", hardware, slug, dataset);
    for (size_t i = 0; i < name.length; i++)
        if (name.bytes[i] == '/')
            name.bytes[i] = '_';
    copy_stripped(text_get(&name), to, size);
    text_release(&name);
}

/* ---- kinds ---- */

static const struct kind {
    const char *name, *unit, *units;
} KINDS[RUN_KINDS] = {
    [RUN_KIND_PROFILE] = {"profile", "query", "queries"},
    [RUN_KIND_RUN] = {"run", "run", "runs"},
    [RUN_KIND_LAYERS] = {"layers", "window", "windows"},
    [RUN_KIND_SWEEP] = {"sweep", "attempt", "attempts"},
    [RUN_KIND_AGENT] = {"agent", "query", "queries"},
    [RUN_KIND_PROXY] = {"proxy", "request", "requests"},
};

const char *run_kind_name(enum run_kind kind)
{
    return KINDS[kind].name;
}

enum run_kind run_kind_named(const char *name)
{
    const struct kind *found = STR_FIND(name, KINDS);
    return found ? (enum run_kind)(found - KINDS) : RUN_KIND_PROFILE;
}

bool run_kind_has_queries(enum run_kind kind)
{
    return kind == RUN_KIND_PROFILE || kind == RUN_KIND_AGENT;
}

bool run_kind_has_requests(enum run_kind kind)
{
    return run_kind_has_queries(kind) || kind == RUN_KIND_PROXY;
}

const char *run_kind_unit(enum run_kind kind, bool several)
{
    return several ? KINDS[kind].units : KINDS[kind].unit;
}

enum { SUBJECT_MAX = 64 };

void run_path_name(enum run_kind kind, const char *hardware, const char *subject, double started_at,
                   char *to, size_t size)
{
    char slug[SUBJECT_MAX], when[32] = "", name[512];
    time_t seconds = (time_t)started_at;
    struct tm utc;
    model_slug(subject, slug, sizeof slug);
    if (gmtime_r(&seconds, &utc))
        strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
    chars_format(name, "%s_%s%s%s_%s", KINDS[kind].name, hardware ? hardware : "",
                 hardware ? "_" : "", slug, when);
    for (char *slash = name; (slash = strchr(slash, '/'));)
        *slash = '_';
    str_copy(to, size, name);
}

/* ---- repeats ---- */

struct run_repeat run_repeat_new(void)
{
    const struct {
        nanos wall, now;
        long process;
    } here = {clock_wall(), clock_now(), (long)getpid()};
    uint64_t hash = hash_bytes(HASH_START, &here, sizeof here);
    struct run_repeat repeat = {.number = 1, .began = seconds(here.wall)};
    chars_format(repeat.group, "%016" PRIx64, hash_mix(hash));
    return repeat;
}

bool run_repeat_name(const struct run_repeat *repeat, char *name, size_t size)
{
    size_t length = strlen(name);
    const char side[] = {'_', repeat->side, '\0'};
    return repeat->number && str_format(name + length, size - length, "%s_r%u",
                                        repeat->side ? side : "", repeat->number);
}

/* The digits at the end of path[0..length). */
static size_t digits_before(const char *path, size_t length)
{
    size_t count = 0;
    while (count < length && path[length - 1 - count] >= '0' && path[length - 1 - count] <= '9')
        count++;
    return count;
}

/* Length of _20260131T235959Z at the end, 0 if absent. */
static size_t time_before(const char *path, size_t length)
{
    enum { TIME = sizeof "_20260131T235959Z" - 1 };
    const char *at = path + length - TIME;
    bool is_time = length > TIME && at[0] == '_' && at[9] == 'T' && at[TIME - 1] == 'Z' &&
                   digits_before(at, 9) == 8 && digits_before(at, TIME - 1) == 6;
    return is_time ? TIME : 0;
}

size_t run_path_stem(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t digits = digits_before(path, length), stem = length - digits;
    if (digits && stem > 2 && str_starts(path + stem - 2, "_r"))
        length = stem - 2;
    else if (digits && stem > 1 && path[stem - 1] == '-' && time_before(path, stem - 1))
        length = stem - 1; /* suffix of several runs in one second */
    return length - time_before(path, length);
}

/* ---- keys ---- */

char *query_key(uint64_t index, unsigned repeat, char to[static QUERY_KEY_MAX])
{
    str_format(to, QUERY_KEY_MAX, repeat ? "q%06" PRIu64 ".r%u" : "q%06" PRIu64, index, repeat);
    return to;
}

bool query_key_parse(const char *key, uint64_t *index, unsigned *repeat)
{
    char number[40];
    uint64_t again = 0;
    if (!key || key[0] != 'q')
        return false;
    const char *dot = strstr(key, ".r");
    if (!chars_format(number, "%.*s", dot ? (int)(dot - key - 1) : 30, key + 1) ||
        parse_u64(number, index) != ERR_OK || (dot && parse_u64(dot + 2, &again) != ERR_OK) ||
        again > UINT_MAX)
        return false;
    *repeat = (unsigned)again;
    return true;
}

/* ---- opening ---- */

/* Confined paths are resolved by the kernel in one step (openat2), so that a directory that becomes a link meanwhile is
 * not followed either.  Where a kernel or a container lacks openat2, each component is opened in turn, which is as
 * safe. */

bool run_path_is_below(const char *path)
{
    if (!*path || *path == '/')
        return false;
    for (const char *at = path; *at;) {
        size_t length = strcspn(at, "/");
        if ((length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += length + (at[length] == '/');
    }
    return true;
}

static char *root; /* NULL: not confined */

void run_open_confine(const char *folder)
{
    free(root);
    root = folder && *folder ? xstrdup(folder) : NULL;
    for (size_t length = root ? strlen(root) : 0; length > 1 && root[length - 1] == '/';)
        root[--length] = '\0';
}

/* The part of the path below the folder, "." for the folder itself; NULL: it is outside, or has a step up, which no
 * path of a run has. */
static const char *part_below(const char *path)
{
    size_t length = strlen(root);
    if (strncmp(path, root, length) != 0)
        return NULL;
    const char *rest = path + length;
    bool is_other = *rest && *rest != '/' && root[length - 1] != '/';
    rest += strspn(rest, "/");
    if (!*rest)
        return ".";
    return is_other || !run_path_is_below(rest) ? NULL : rest;
}

/* After a call whose errno the caller needs. */
static void close_quietly(int fd)
{
    int number = errno;
    if (fd >= 0)
        close(fd);
    errno = number;
}

/* Opens each component in turn.  Takes ownership of `folder`. */
static int open_by_steps(int folder, const char *path, int flags)
{
    for (const char *slash; folder >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        char name[256];
        bool fits = chars_format(name, "%.*s", (int)(slash - path), path);
        errno = fits ? errno : ENAMETOOLONG;
        int next =
            fits ? openat(folder, *name ? name : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
        close_quietly(folder);
        folder = next;
    }
    if (folder < 0)
        return -1;
    int fd = openat(folder, *path ? path : ".", flags | O_NOFOLLOW);
    close_quietly(folder);
    return fd;
}

static int open_below(const char *path, int flags)
{
    const struct open_how how = {.flags = (unsigned)flags,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* EPERM: by a container's filter */
        return open_by_steps(folder, path, flags);
    close_quietly(folder);
    return fd;
}

/* Links, and paths outside, are as if they were not there. */
static int open_path(const char *path, int flags)
{
    struct stat status;
    flags |= O_RDONLY | O_CLOEXEC;
    if (!root)
        return open(path, flags);
    const char *below = part_below(path);
    int fd = below ? open_below(below, flags) : -1;
    /* O_PATH opens a link itself. */
    if (fd >= 0 && flags & O_PATH && fstat(fd, &status) == 0 && S_ISLNK(status.st_mode)) {
        close(fd);
        fd = -1;
        errno = ELOOP;
    }
    /* ENOTDIR: a link in place of a directory, opened by steps. */
    if (fd < 0 && (!below || errno == ELOOP || errno == EXDEV || errno == ENOTDIR))
        errno = ENOENT;
    return fd;
}

/* A pipe in the folder of a server must not block it. */
int run_open(const char *path)
{
    struct stat status;
    int fd = open_path(path, root ? O_NONBLOCK : 0);
    if (!root || fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

enum err run_open_file(const char *path, FILE **out, struct error *why)
{
    int fd = run_open(path);
    *out = fd < 0 ? NULL : xneed(fdopen(fd, "r"));
    return fd < 0 ? err_errno(why, errno, "cannot read %s", path) : ERR_OK;
}

DIR *run_open_directory(const char *path)
{
    int fd = open_path(path, O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        close_quietly(fd);
    return dir;
}

int run_scan(const char *path, struct dirent ***entries, int (*wants)(const struct dirent *entry))
{
    int fd = open_path(path, O_DIRECTORY);
    int count = fd < 0 ? -1 : scandirat(fd, ".", entries, wants, alphasort);
    close_quietly(fd);
    return count;
}

bool run_stat(const char *path, struct stat *out)
{
    if (!root)
        return stat(path, out) == 0;
    int fd = open_path(path, O_PATH);
    bool found = fd >= 0 && fstat(fd, out) == 0;
    if (fd >= 0)
        close(fd);
    return found;
}

bool run_has_file(const char *path)
{
    struct stat status;
    return run_stat(path, &status);
}

bool run_has_regular(const char *path)
{
    struct stat status;
    return run_stat(path, &status) && S_ISREG(status.st_mode);
}

bool run_has_directory(const char *path)
{
    struct stat status;
    return run_stat(path, &status) && S_ISDIR(status.st_mode);
}

static enum err open_for(const char *path, int *fd, struct error *why)
{
    *fd = run_open(path);
    if (*fd >= 0)
        return ERR_OK;
    int number = errno;
    return err_errno(why, number, "cannot open %s", path);
}

enum err run_read(const char *path, size_t limit, struct text *out, struct error *why)
{
    int fd;
    text_clear(out);
    enum err err = open_for(path, &fd, why);
    return err ? err : file_read_take(fd, path, limit, out, why);
}

enum err run_read_json(const char *path, size_t limit, struct jv **out, struct error *why)
{
    int fd;
    *out = NULL;
    enum err err = open_for(path, &fd, why);
    return err ? err : jv_read_take(fd, path, limit, out, why);
}

enum err run_read_arrow(const char *path, struct arrow_reader **out, struct error *why)
{
    int fd;
    *out = NULL;
    enum err err = open_for(path, &fd, why);
    return err ? err : arrow_reader_take(fd, path, out, why);
}

/* ---- files ---- */

char *run_path_file(const char *directory, enum run_file file)
{
    static const char *const NAMES[RUN_FILES] = {
        [RUN_FILE_RECORDS] = "records.jsonl",  [RUN_FILE_SPANS] = "spans.jsonl",
        [RUN_FILE_SUMMARY] = "summary.json",   [RUN_FILE_LAYERS] = "layers.json",
        [RUN_FILE_ESTIMATE] = "estimate.json", [RUN_FILE_TRACES] = "traces.jsonl",
    };
    return path_join(directory, NAMES[file]);
}

char *run_path_output(const char *directory, const char *name)
{
    if (!name[0] || name[0] == '.' || strlen(name) >= FILE_NAME_SIZE || strchr(name, '/'))
        return NULL;
    char *path = xformat("%s/outputs/%s", directory, name);
    if (run_has_regular(path))
        return path;
    free(path);
    return NULL;
}

char *run_path_samples(const char *directory, unsigned start)
{
    return start <= 1 ? path_join(directory, "samples.csv")
                      : xformat("%s/samples-%u.csv", directory, start);
}

unsigned run_path_start_of(const char *name)
{
    unsigned start;
    int end = 0;
    if (str_equal(name, "samples.csv"))
        return 1;
    bool is_one = sscanf(name, "samples-%u.csv%n", &start, &end) == 1 && end && !name[end];
    return is_one && start > 1 && start <= RUN_STARTS_MAX ? start : 0;
}

/* ---- Arrow files ---- */

static int is_shard(const struct dirent *entry)
{
    return fnmatch("data-[0-9]*.arrow", entry->d_name, 0) == 0;
}

static void add_shard(struct run_shards *shards, const char *directory, const char *name)
{
    char *path = path_join(directory, name);
    unsigned number, expected;
    if (!run_has_file(path)) { /* a link that leads nowhere, or is not followed */
        free(path);
        return;
    }
    if (sscanf(name, "data-%u-of-%u.arrow", &number, &expected) == 2 && !shards->count)
        shards->expected = expected;
    shards->paths[shards->count++] = path;
}

enum err run_shards_find(const char *directory, struct run_shards *out, struct error *why)
{
    struct dirent **entries = NULL;
    *out = (struct run_shards){0};
    int count = run_scan(directory, &entries, is_shard);
    if (count < 0 && errno == ENOENT)
        return err_set(why, ERR_NOT_FOUND, "no such directory: %s", directory);
    if (count < 0)
        return err_errno(why, errno, "cannot read the directory %s", directory);
    out->paths = xcalloc((size_t)count + 1, sizeof *out->paths);
    for (int i = 0; i < count; i++) {
        add_shard(out, directory, entries[i]->d_name);
        free(entries[i]);
    }
    free((void *)entries);
    return ERR_OK;
}

void run_shards_release(struct run_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++)
        free(shards->paths[i]);
    free((void *)shards->paths);
    *shards = (struct run_shards){0};
}

/* ---- parts ---- */

void run_part_name(const struct run_part *part, char *to, size_t size)
{
    to[0] = '\0';
    if (part->of)
        str_format(to, size, "%u/%u", part->number, part->of);
}

bool run_part_parse(const char *text, struct run_part *out)
{
    char number[16];
    uint64_t first, second;
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : sizeof number;
    *out = (struct run_part){0};
    if (length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    if (parse_u64(number, &first) || parse_u64(slash + 1, &second) || first < 1 || first > second ||
        second > RUN_PARTS_MAX)
        return false;
    *out = (struct run_part){(unsigned)first, (unsigned)second};
    return true;
}

bool run_part_suffix(const struct run_part *part, char *name, size_t size)
{
    size_t length = strlen(name);
    return str_format(name + length, size - length, "_shard%uof%u", part->number, part->of);
}

size_t run_part_stem(const char *path)
{
    size_t length = strlen(path);
    const char *at = path, *found = NULL;
    while ((at = strstr(at, "_shard")))
        found = at++;
    unsigned number, of;
    int used = 0;
    bool ours =
        found && sscanf(found, "_shard%uof%u%n", &number, &of, &used) == 2 && found[used] == '\0';
    return ours ? (size_t)(found - path) : length;
}

char *run_part_path(const char *folder, const char *name, const struct run_part *part)
{
    return xformat("%s/%s_shard%uof%u", folder, name, part->number, part->of);
}
