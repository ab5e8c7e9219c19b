/* The seed input of fuzz_hardware, on standard output: a small device. */
#include <stdio.h>

#include "support/hardware_file.h"

int main(void)
{
    return fputs(HARDWARE_FILE, stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
