/* The seed input of fuzz_onnx, on standard output: a small model. */
#include <stdio.h>

#include "support/onnx_file.h"

int main(void)
{
    struct text file = {0};
    onnx_file_model(&file);
    size_t written = fwrite(file.bytes, 1, file.length, stdout);
    int code = written == file.length && fflush(stdout) == 0 ? 0 : 1;
    text_release(&file);
    return code;
}
