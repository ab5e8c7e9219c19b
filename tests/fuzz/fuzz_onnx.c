/* libFuzzer: any bytes as an ONNX file: parsed, shapes inferred, counted and drawn. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/onnx_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *wrong = onnx_file_exercise(bytes, length);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}
