/* Checks files of the catalog, as the build does:
 *
 *     check_catalog FILE...
 *
 * Each must be read without an error, its id must be its file name, and a device must not contradict itself nor share a
 * name with another.  Every fault is reported; any makes it exit 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog_file.h"
#include "catalog/hardware_json.h"
#include "core/json_field.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

static int faults;

static void report(const char *path, const char *problem)
{
    fprintf(stderr, "%s: %s\n", path, problem);
    faults++;
}

/* Lists, by the folder or the kind of the file. */
static const struct list {
    const char *path, *kind; /* a part of the path; the value of "kind", NULL: any */
    const struct catalog_format *format;
} LISTS[] = {
    {NULL, "peak-only", &CATALOG_PEAK_LIST},
    {NULL, "power-only", &CATALOG_POWER_LIST},
    {"/models/", NULL, &CATALOG_MODEL_LIST},
};

static const struct list *list_of(const char *path, const struct jv *tree)
{
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        const char *kind = text_or_empty(jv_text(jv_get(tree, "kind")));
        if (LISTS[i].kind ? strcmp(kind, LISTS[i].kind) == 0 : strstr(path, LISTS[i].path) != NULL)
            return &LISTS[i];
    }
    return NULL;
}

static void check_id(const char *path, const char *id)
{
    char expected[80];
    const char *name = strrchr(path, '/');
    str_format(expected, sizeof expected, "%s.json", id);
    if (strcmp(name ? name + 1 : path, expected) != 0)
        report(path, "its id is not its name");
}

static void check_list(const char *path, const struct list *list, const struct text *bytes)
{
    struct error why = {0};
    void *parsed = NULL;
    if (catalog_list_parse(list->format, path, text_get(bytes), bytes->length, &parsed, &why)) {
        fprintf(stderr, "%s\n", why.text);
        faults++;
        return;
    }
    catalog_list_free(list->format, parsed);
}

static void check_device(const char *path, struct hardware *out)
{
    struct error why = {0};
    if (hardware_read(path, out, &why)) {
        fprintf(stderr, "%s\n", why.text);
        faults++;
        return;
    }
    if (hardware_check(out, &why))
        report(path, why.text);
    check_id(path, out->id);
}

static void check_file(const char *path, struct hardware *out)
{
    struct error why = {0};
    struct text bytes = {0};
    struct jv *tree = NULL;
    enum err err = jv_read(path, FILE_SMALL, &tree, &why);
    if (!err)
        err = file_read(path, FILE_SMALL, &bytes, &why);
    const struct list *list = list_of(path, tree);
    if (err) {
        fprintf(stderr, "%s\n", why.text);
        faults++;
    } else if (list) {
        check_list(path, list, &bytes);
        check_id(path, text_or_empty(jv_text(jv_get(tree, "id"))));
    } else {
        check_device(path, out);
    }
    jv_free(tree);
    text_release(&bytes);
}

static bool is_called(const struct hardware *hardware, const char *name)
{
    if (str_equal_nocase(hardware->id, name))
        return true;
    for (size_t i = 0; i < hardware->aliases.count; i++)
        if (str_equal_nocase(hardware->aliases.items[i], name))
            return true;
    return false;
}

/* An alias that two devices have would lead to either. */
static void check_aliases(char *const *paths, const struct hardware *devices, int count)
{
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < devices[i].aliases.count; k++)
            for (int j = 0; j < count; j++)
                if (i != j && is_called(&devices[j], devices[i].aliases.items[k])) {
                    char problem[160];
                    str_format(problem, sizeof problem, "alias '%s' is a name of %s as well",
                               devices[i].aliases.items[k], devices[j].id);
                    report(paths[i], problem);
                }
}

int main(int argc, char **argv)
{
    int count = argc - 1;
    struct hardware *devices = calloc((size_t)argc, sizeof *devices);
    if (!devices)
        return 1;
    for (int i = 0; i < count; i++)
        check_file(argv[i + 1], &devices[i]);
    check_aliases(argv + 1, devices, count);
    for (int i = 0; i < count; i++)
        hardware_release(&devices[i]);
    free(devices);
    return faults ? 1 : 0;
}
