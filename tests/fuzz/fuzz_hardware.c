/* libFuzzer: any bytes as a hardware file: parsed, checked and run at its last operating point. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/hardware_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *wrong = hardware_file_exercise((const char *)bytes, length);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}
