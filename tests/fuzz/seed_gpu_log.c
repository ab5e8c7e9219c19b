/* The seed input of fuzz_gpu_log, on standard output: a table, then CSV. */
#include <stdio.h>

int main(void)
{
    static const char FILE_TEXT[] = "timestamp, index, name, power.draw [W], utilization.gpu [%]\n"
                                    "2025/07/08 15:27:53.949, 0, Tesla V100, 33.13 W, [N/A]\n"
                                    "#Entity   DVNAM         POWER   SMACT\n"
                                    "ID                      W\n"
                                    "GPU 0     Tesla V100    33.130  N/A\n";
    return fputs(FILE_TEXT, stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
