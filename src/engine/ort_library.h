/* ONNX Runtime's library: one per process, opened when it is first needed and never closed, since its threads may still
 * run.  It is shared by in-process inference (onnx.h) and the timer of operators (timers.h). */
#ifndef IPW_ENGINE_ORT_LIBRARY_H
#define IPW_ENGINE_ORT_LIBRARY_H

#include "core/err.h"
#include "engine/ort_api.h"

struct ort_library {
    const struct ort_api *api;
    const char *path, *version;
    struct ort_env *env;
    struct ort_memory *host;         /* describes the caller's memory */
    struct ort_allocator *allocator; /* of strings that it returns */
};

/* `path`: the file or its directory; NULL: where onnx.h says.  ERR_UNSUPPORTED says how to get it; ERR_USAGE if another
 * one is open already. */
enum err ort_library_open(const char *path, const struct ort_library **out, struct error *why)
    MUST_USE;

/* The library that was opened; NULL before. */
const struct ort_library *ort_library(void);

/* ERR_OK for NULL.  Otherwise releases the status, whose message (without its source location) is added to `what`:
 * ERR_BAD_VALUE for what does not fit, ERR_UNSUPPORTED for what the library lacks. */
enum err ort_check(struct ort_status *status, struct error *why, const char *what) MUST_USE;

#endif
