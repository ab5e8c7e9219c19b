/* Opens a dataset by name: a driver, a preset, or a file or directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/registry.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"
#include "datasets/media_folder.h"
#include "engine/shipped.h"
#include "port/file.h"

#define DATASET(name) extern const struct dataset_driver dataset_##name;
#include "datasets/datasets.def"
#undef DATASET

const struct dataset_driver *const DATASET_DRIVERS[] = {
#define DATASET(name) &dataset_##name,
#include "datasets/datasets.def"
#undef DATASET
    NULL,
};

const struct dataset_preset DATASET_PRESETS[] = {
#define PRESET(name, summary, driver, params, grader, answer_format)                               \
    {name, summary, driver, params, grader, answer_format},
#include "datasets/presets.def"
#undef PRESET
    {0},
};

/* ---- finding ---- */

static const struct dataset_driver *find_driver(const char *name)
{
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++)
        if (str_equal((*driver)->name, name))
            return *driver;
    return NULL;
}

static const struct dataset_preset *find_preset(const char *name)
{
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++)
        if (str_equal(preset->name, name))
            return preset;
    return NULL;
}

const char *dataset_answer_format(const char *name)
{
    const struct dataset_preset *preset = find_driver(name) ? NULL : find_preset(name);
    return preset ? preset->answer_format : NULL;
}

static const struct suffix {
    const char *text;
    const char *driver; /* NULL: recognized, but not supported */
} SUFFIXES[] = {
    {".jsonl", "jsonl"}, {".ndjson", "jsonl"}, {".json", "jsonl"}, {".csv", "csv"},
    {".tsv", "csv"},     {".txt", "text"},     {".parquet", NULL}, {".arrow", NULL},
};

static const struct suffix *find_suffix(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < COUNT_OF(SUFFIXES); i++)
        if (str_equal_nocase(dot, SUFFIXES[i].text))
            return &SUFFIXES[i];
    return NULL;
}

static bool is_path(const char *name)
{
    return strchr(name, '/') || find_suffix(name) || file_exists(name);
}

/* One with neither is left to hf, which says what it misses. */
static const char *driver_of_directory(const char *path)
{
    const char *media = dataset_is_saved(path) ? NULL : media_folder_driver(path);
    return media ? media : "hf";
}

/* A directory is a saved dataset or has images or sound; the format of a file follows from its suffix, by default JSON
 * lines. */
static enum err driver_of_path(const char *path, const struct dataset_driver **out,
                               struct error *why)
{
    const struct suffix *suffix = find_suffix(path);
    if (!file_exists(path))
        return err_set(why, ERR_NOT_FOUND, "%s: no such file or directory", path);
    const char *name = file_is_directory(path) ? driver_of_directory(path)
                       : suffix                ? suffix->driver
                                               : "jsonl";
    if (!name)
        return err_set(
            why, ERR_UNSUPPORTED,
            "%s: unsupported format; expected JSON lines, CSV, or a directory of images, of "
            "WAV files or written by save_to_disk",
            path);
    *out = find_driver(name);
    return ERR_OK;
}

static enum err unknown_name(const char *name, struct error *why)
{
    const char *names[64];
    size_t count = 0;
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++)
        names[count++] = (*driver)->name;
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name && count < 64;
         preset++)
        names[count++] = preset->name;
    return registry_unknown("dataset or file", name, names, count, ERR_NOT_FOUND, why);
}

/* ---- opening ---- */

/* The driver and parameters to open, from the name and the user's parameters. */
struct plan {
    const struct dataset_driver *driver;
    const struct dataset_preset *preset; /* or NULL */
    struct params params;
};

static bool accepts(const struct dataset_driver *driver, const char *key)
{
    for (const struct param_spec *spec = driver->params; spec && spec->name; spec++)
        if (str_equal(spec->name, key))
            return true;
    return false;
}

/* The preset's parameters, without those that the driver of a local copy does not accept. */
static void add_preset_params(struct plan *plan)
{
    struct params all = {0};
    params_add(&all, plan->preset->params);
    for (size_t i = 0; i < all.count; i++)
        if (accepts(plan->driver, all.items[i].key))
            params_set(&plan->params, all.items[i].key, all.items[i].value);
    params_release(&all);
}

/* In the parameters of a preset, shipped:data/scenes is the path of a file or folder that ipw ships. */
static enum err find_shipped(const struct dataset_preset *preset, struct params *params,
                             struct error *why)
{
    static const char MARK[] = "shipped:";
    for (size_t i = 0; i < params->count; i++) {
        const char *value = params->items[i].value;
        if (!str_starts(value, MARK))
            continue;
        char *found = shipped_data(value + sizeof MARK - 1);
        if (!found)
            return err_set(why, ERR_NOT_FOUND,
                           "dataset %s: %s is not installed: IPW_MODELS names the folder of the "
                           "shipped models",
                           preset->name, value + sizeof MARK - 1);
        params_set(params, params->items[i].key, found);
        free(found);
    }
    return ERR_OK;
}

static enum err choose_driver(struct plan *plan, const char *name, const struct params *given,
                              struct error *why)
{
    const char *path = params_get(given, "path");
    plan->driver = find_driver(name);
    if (plan->driver)
        return ERR_OK;
    plan->preset = find_preset(name);
    if (plan->preset && path && *path)
        return driver_of_path(path, &plan->driver, why);
    if (plan->preset) {
        plan->driver = find_driver(plan->preset->driver);
        return ERR_OK;
    }
    return is_path(name) ? driver_of_path(name, &plan->driver, why) : unknown_name(name, why);
}

static enum err make_plan(struct plan *plan, const char *name, const struct params *given,
                          struct error *why)
{
    char owner[64];
    enum err err = choose_driver(plan, name, given, why);
    if (err)
        return err;
    bool is_named = plan->preset || find_driver(name);
    if (plan->preset)
        add_preset_params(plan);
    if (plan->preset)
        err = find_shipped(plan->preset, &plan->params, why);
    if (err)
        return err;
    if (!is_named)
        params_set(&plan->params, "path", name);
    params_copy(&plan->params, given);
    chars_format(owner, "dataset %s", plan->driver->name);
    return params_check(&plan->params, plan->driver->params, owner, why);
}

/* The display name: of the preset, the file name without suffix, the end of the repository's name, or the driver. */
static void set_name(const struct plan *plan, struct dataset *out)
{
    const char *path = params_get(&plan->params, "path");
    const char *from = path && *path ? path : params_get(&plan->params, "dataset");
    if (plan->preset || !from) {
        chars_copy(out->name, plan->preset ? plan->preset->name : plan->driver->name);
        return;
    }
    struct slice last = slice_path_name(slice_of(from));
    chars_format(out->name, "%.*s", (int)last.length, last.start);
    const struct suffix *suffix = find_suffix(out->name);
    if (suffix && strlen(out->name) > strlen(suffix->text))
        out->name[strlen(out->name) - strlen(suffix->text)] = '\0';
}

/* "judge, key=value": the grader of a preset and its parameters. */
static enum err set_grader(const struct dataset_preset *preset, struct dataset *out,
                           struct error *why)
{
    size_t length = strcspn(preset->grader, ",");
    chars_format(out->grader, "%.*s", (int)length, preset->grader);
    if (preset->grader[length])
        params_add(&out->grading, preset->grader + length + 1);
    return find_shipped(preset, &out->grading, why);
}

enum err dataset_open(const char *name, const struct dataset_config *config, struct dataset *out,
                      struct error *why)
{
    struct plan plan = {0};
    *out = (struct dataset){.count = -1};
    enum err err = make_plan(&plan, name, config ? config->params : NULL, why);
    if (!err && plan.driver->available)
        err = plan.driver->available(why);
    if (!err) {
        set_name(&plan, out);
        if (plan.preset)
            err = set_grader(plan.preset, out, why);
        out->driver = plan.driver;
    }
    if (!err) {
        struct dataset_config full = {.params = &plan.params};
        err = plan.driver->open(&full, out, why);
    }
    params_release(&plan.params);
    if (err) {
        params_release(&out->grading);
        *out = (struct dataset){.count = -1};
    }
    return err;
}

/* ---- its content ---- */

/* Of images and sound, reading all of which would take minutes. */
static uint64_t hash_size(uint64_t hash, const char *path)
{
    struct stat info;
    int64_t size = stat(path, &info) ? -1 : info.st_size;
    return hash_bytes(hash, &size, sizeof size);
}

/* Not of a pipe, which can be read only once. */
static uint64_t hash_content(uint64_t hash, const char *path)
{
    enum { BLOCK = 1 << 18 };
    int fd = file_is_regular(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char *block = fd >= 0 ? xmalloc(BLOCK) : NULL;
    ssize_t got;
    while (block && ((got = read(fd, block, BLOCK)) > 0 || (got < 0 && errno == EINTR)))
        hash = hash_bytes(hash, block, got > 0 ? (size_t)got : 0);
    free(block);
    if (fd >= 0)
        close(fd);
    return hash;
}

/* The files of a directory: of one written by save_to_disk, those of its splits, too. */
struct hashed {
    bool only_sizes; /* of files that are not text */
    unsigned depth_max;
};

static uint64_t hash_file(const struct hashed *hashed, uint64_t hash, const char *path)
{
    const struct suffix *suffix = find_suffix(path);
    bool is_text = suffix && suffix->driver;
    return hashed->only_sizes && !is_text ? hash_size(hash, path) : hash_content(hash, path);
}

static uint64_t hash_tree(const struct hashed *hashed, uint64_t hash, const char *path,
                          unsigned depth)
{
    if (!file_is_directory(path))
        return hash_file(hashed, hash, path);
    struct dirent **entries;
    int count = depth > hashed->depth_max ? 0 : scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *inner = path_join(path, name);
        bool is_other = name[0] == '.' || str_starts(name, "cache-"); /* Python's caches */
        if (!is_other)
            hash = hash_tree(hashed, hash_string(hash, name), inner, depth + 1);
        free(inner);
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
    return hash;
}

void dataset_hash(const char *name, const struct params *params, char *to, size_t size)
{
    struct plan plan = {0};
    to[0] = '\0';
    const char *path =
        make_plan(&plan, name, params, NULL) ? NULL : params_get(&plan.params, "path");
    if (path && (file_is_regular(path) || file_is_directory(path))) {
        bool has_media = plan.driver->has_media;
        struct hashed hashed = {has_media, has_media ? MEDIA_DEPTH_MAX : 1};
        str_format(to, size, "%016llx",
                   (unsigned long long)hash_tree(&hashed, HASH_START, path, 0));
    }
    params_release(&plan.params);
}

enum err dataset_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
{
    *out = (struct item){0};
    *end = false;
    enum err err = dataset->driver->next(dataset, out, end, why);
    if (err || *end)
        item_release(out);
    else
        item_complete(out);
    return err;
}

void dataset_close(struct dataset *dataset)
{
    if (dataset->driver)
        dataset->driver->close(dataset);
    params_release(&dataset->grading);
    *dataset = (struct dataset){.count = -1};
}
