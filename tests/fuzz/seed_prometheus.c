/* The seed input of fuzz_prometheus, on standard output: two scrapes of a histogram, of equal length. */
#include <stdio.h>

int main(void)
{
    static const char READING[] = "# TYPE x histogram\n"
                                  "x_bucket{m=\"a\\\"b\",le=\"0.1\"} %d1\n"
                                  "x_bucket{m=\"a\\\"b\",le=\"0.2\"} %d5 # {t=\"1\"} 0.15\n"
                                  "x_bucket{m=\"a\\\"b\",le=\"+Inf\"} %d6 1700000000000\n"
                                  "x_sum{m=\"a\\\"b\"} %d.5\nx_count{m=\"a\\\"b\"} %d6\n"
                                  "x{quantile=\"0.95\"} NaN\n";
    for (int i = 1; i <= 2; i++)
        if (printf(READING, i, i, i, i, i) < 0)
            return 1;
    return fflush(stdout) == 0 ? 0 : 1;
}
