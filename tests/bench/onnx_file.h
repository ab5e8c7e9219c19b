/* Writing an ONNX file from a graph of convolutions, for the bench that reads it: with all weights in it, as an
 * export has them.  Owns nothing. */
#ifndef TESTS_BENCH_ONNX_FILE_H
#define TESTS_BENCH_ONNX_FILE_H

#include "graph/graph.h"

/* Supports the operators of a residual network; another one ends the program, as does a file that
 * cannot be written. */
void onnx_file_write(const struct graph *graph, const char *path);

#endif
