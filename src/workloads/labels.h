/* Names of the classes of a model, and a classification as an answer.  The caller owns the struct labels. */
#ifndef IPW_WORKLOADS_LABELS_H
#define IPW_WORKLOADS_LABELS_H

#include <stddef.h>

#include "core/err.h"

struct jv;
struct model_files;
struct onnx_session;
struct text;

struct labels {
    char **names; /* NULL: a class without a name */
    size_t count; /* 0: only numbers */
};

/* The first of: "id2label" of the model's config.json (config may be NULL); NAME.labels.txt beside NAME.onnx, or labels.txt
 * of the directory, with a label per line; "names" in the metadata of the ONNX file, as Python or JSON writes a dictionary
 * or a list.  Without any, classes have numbers. */
enum err labels_load(const struct model_files *files, const struct onnx_session *session,
                     const struct jv *config, struct labels *out, struct error *why) MUST_USE;
void labels_release(struct labels *labels);

/* ERR_BAD_VALUE, naming the model, unless there are as many labels as classes, or none. */
enum err labels_check(const struct labels *labels, size_t classes, const char *model,
                      struct error *why) MUST_USE;

/* The name of a class, or its number. */
struct label_text {
    char text[256];
};
struct label_text labels_text(const struct labels *labels, size_t index);

/* Appends the most probable classes, at most `top`, as JSON: [{"label":"square","score":0.97}, ...].  Values that are no
 * probabilities, since one is negative or their sum is not 1, are logits and converted by softmax. */
void labels_answer(const struct labels *labels, const float *values, size_t count, size_t top,
                   struct text *out);

/* The literal that ultralytics writes into the metadata of a model: {0: 'person', 1: "driver's seat"}, or a list.
 * ERR_BAD_VALUE says where it cannot be read; on failure *out is empty. */
enum err labels_parse(const char *literal, struct labels *out, struct error *why) MUST_USE;

#endif
