/* A session as its modules see it: onnx_session.c opens and shares it, onnx_run.c runs it. */
#ifndef IPW_ENGINE_ONNX_STATE_H
#define IPW_ENGINE_ONNX_STATE_H

#include "engine/onnx.h"
#include "engine/ort_library.h"

struct onnx_session {
    const struct ort_library *library;
    struct ort_session *ort;
    struct onnx_facts facts;
    const char **input_names, **output_names; /* of the ports, as the library takes them */
    char *key;                                /* of shared sessions: file and options */
    unsigned users;
    struct onnx_session *next;
};

#endif
