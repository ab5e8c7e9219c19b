/* The seed input of fuzz_hf_config, on standard output: a small decoder. */
#include <stdio.h>

#include "support/model_bytes.h"

int main(void)
{
    return fputs(model_config_text(), stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
