/* The seed input of fuzz_safetensors, on standard output: a small decoder. */
#include <stdio.h>

#include "support/model_bytes.h"

int main(void)
{
    struct text file = {0};
    model_safetensors_add(&file);
    size_t written = fwrite(file.bytes, 1, file.length, stdout);
    int code = written == file.length && fflush(stdout) == 0 ? 0 : 1;
    text_release(&file);
    return code;
}
