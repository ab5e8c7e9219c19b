/* The file that fuzz_hf_config begins with, on standard output: a small decoder. */
#include <stdio.h>

#include "support/model_bytes.h"

int main(void)
{
    return fputs(model_config_text(), stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
