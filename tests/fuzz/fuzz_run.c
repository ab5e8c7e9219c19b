/* libFuzzer: any bytes as a run directory, through all commands that read runs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *wrong = run_files_exercise((const char *)bytes, length);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}

/* Mostly mutations that are still JSON and CSV: other damage gets no further than the readers. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t size, unsigned seed)
{
    static char copy[RUN_FILES_MAX];
    if (seed % 8 == 0 || length > sizeof copy)
        return LLVMFuzzerMutate(bytes, length, size);
    memcpy(copy, bytes, length);
    size_t left = run_files_damage(copy, length, seed);
    if (left > size)
        return LLVMFuzzerMutate(bytes, length, size);
    memcpy(bytes, copy, left);
    return left;
}
