/* libFuzzer: any bytes as a GGUF file: parsed, traversed and counted as a decoder. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/gguf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *wrong = gguf_file_exercise(bytes, length);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}
