/* libFuzzer: any bytes as a safetensors file: parsed, built and counted. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/model_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *wrong = model_safetensors_exercise(bytes, length);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}
