/* Files installed with ipw: models known by name, and other paths relative to the program.
 *
 * The model NAME is the file NAME.gguf in the directory that IPW_MODELS names; without that, in
 * share/ipw/models of the installation, or in models/ of the build or third_party/models of the source
 * tree that ipw was built from.  ONNX models of workloads are in the subfolders vision, speech, text and diffusion of
 * those, or of models/ of the source tree.  The caller frees the paths and releases the lists. */
#ifndef IPW_ENGINE_SHIPPED_H
#define IPW_ENGINE_SHIPPED_H

#include <stddef.h>

#include "core/err.h"

struct shipped_names {
    char **items; /* sorted, without .gguf or .onnx */
    size_t count, capacity;
};

/* Missing and empty directories contribute no names. */
void shipped_list(struct shipped_names *out);
void shipped_names_release(struct shipped_names *names);

/* The file for a model name or path: that file if it exists or the name contains a slash, otherwise the
 * shipped model.  ERR_NOT_FOUND with similar names. */
enum err shipped_find(const char *name, char **path, struct error *why) MUST_USE;

/* The same for the ONNX model of a workload: a path, or the shipped file NAME.onnx or directory NAME. */
enum err shipped_find_onnx(const char *name, char **path, struct error *why) MUST_USE;
void shipped_list_onnx(struct shipped_names *out);

/* The path of a file or folder of the shipped data ("data/scenes"), to be freed; NULL: it is not there. */
char *shipped_data(const char *relative);

/* A library NAME.so... that is opened at run time: the file `path` itself, or the one in that directory; and the one
 * installed with ipw in `installed` (relative to the program), else in `built`, a folder of the source tree.  Of several
 * the one with the shortest name, which has no version.  To be freed; NULL: there is none. */
char *shipped_library_at(const char *path, const char *name);
char *shipped_library(const char *installed, const char *built, const char *name);

#endif
