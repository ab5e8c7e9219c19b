/* The seed input of fuzz_csv_grid, on standard output: a few measured rows. */
#include <stdio.h>

int main(void)
{
    static const char FILE_TEXT[] = "op,shape,dtype,latency_s,energy_j,notes\n"
                                    "matmul,64x64x64,fp32,5.778e-06,0.0,\n"
                                    "vector_add,256,fp32,1.8e-06,0.0032,\"a \"\"b\"\", c\"\r\n";
    return fputs(FILE_TEXT, stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
