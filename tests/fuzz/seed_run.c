/* The seed input of fuzz_run, on standard output: a run of tests/fixtures. */
#include <stdio.h>

#include "support/run_files.h"

int main(void)
{
    struct text files = {0};
    bool is_done = run_files_add(&files, "gpu-concurrent") &&
                   fwrite(files.bytes, 1, files.length, stdout) == files.length &&
                   fflush(stdout) == 0;
    text_release(&files);
    return is_done ? 0 : 1;
}
