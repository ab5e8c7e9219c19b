/* What `ipw layers -o` wrote: of one file, or of every layers*.json in a directory.
 * measured_layers_load adds to a list that measured_layers_release takes back, whole; models point into
 * the files of their list. */
#ifndef IPW_RUNDIR_MEASURED_LAYERS_H
#define IPW_RUNDIR_MEASURED_LAYERS_H

#include <stddef.h>

#include "core/err.h"

struct jv;

struct measured_model {
    const struct jv *figures; /* a model of `ipw layers --json` */
    const struct jv *host;    /* NULL when not told */
    const char *file;
};

struct measured_layers {
    struct measured_model *models;
    size_t count;
    struct measured_file {
        char *path;
        struct jv *tree;
    } *files;
    size_t file_count;
};

/* A file that is no result of ipw layers is ERR_BAD_VALUE, with its name; a directory without any adds
 * nothing, and that is no error. */
enum err measured_layers_load(const char *path, struct measured_layers *into, struct error *why)
    MUST_USE;
void measured_layers_release(struct measured_layers *layers);

#endif
