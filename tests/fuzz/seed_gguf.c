/* The seed input of fuzz_gguf, on standard output: a small model. */
#include <stdio.h>

#include "support/gguf_file.h"

int main(void)
{
    struct gguf_file file = {0};
    gguf_file_model(&file);
    size_t written = fwrite(file.whole.bytes, 1, file.whole.length, stdout);
    int code = written == file.whole.length && fflush(stdout) == 0 ? 0 : 1;
    gguf_file_release(&file);
    return code;
}
