/* The part of the text of `ipw layers` that is of an ONNX model: its nodes, measured and estimated. */
#ifndef IPW_REPORT_LAYERS_NODES_H
#define IPW_REPORT_LAYERS_NODES_H

#include <stdbool.h>

struct result_item;
struct text;

void layers_nodes_head(const struct result_item *model, const char *name, struct text *out);
void layers_nodes_tables(const struct result_item *model, const char *mark, bool color,
                         struct text *out);

#endif
