/* Energy of the parts of a program: two nested regions around real work.
 *
 *     cc regions.c -lipw -lm -o regions && ./regions
 *
 * The same source compiles as C++. */
#include <ipw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Keeps one CPU busy. */
static double compute(double seconds)
{
    double end = now_s() + seconds, x = 1;
    while (now_s() < end)
        for (int i = 0; i < 10000; i++)
            x = sqrt(x + 1);
    return x;
}

static void show(ipw_session *ipw, int region)
{
    ipw_result result = IPW_RESULT_INIT;
    int status = ipw_read(ipw, region, &result);
    if (status != IPW_OK) {
        printf("%s: %s\n", ipw_region_path(ipw, region), ipw_status_text(status));
        return;
    }
    if (result.method == IPW_METHOD_NONE)
        printf("%-14s %.3f s, energy unknown: %s\n", ipw_region_path(ipw, region), result.seconds,
               result.note);
    else
        printf("%-14s %.3f s, %.3f J +- %.3f, %.1f W%s (%s, %.0f %% covered)\n",
               ipw_region_path(ipw, region), result.seconds, result.joules, result.plus_minus,
               result.watts, result.method == IPW_METHOD_ESTIMATED ? ", estimated" : "",
               result.source, 100 * result.coverage);
}

int main(void)
{
    int status;
    ipw_session *ipw = ipw_open(NULL, &status);
    if (!ipw) {
        fprintf(stderr, "cannot measure: %s\n", ipw_status_text(status));
        return EXIT_FAILURE;
    }
    int request = ipw_begin(ipw, "request");
    int prefill = ipw_begin(ipw, "prefill");
    double x = compute(0.3);
    ipw_end(ipw, prefill);
    int decode = ipw_begin(ipw, "decode");
    x += compute(0.6);
    ipw_end(ipw, decode);
    ipw_end(ipw, request);
    show(ipw, request);
    show(ipw, prefill);
    show(ipw, decode);
    ipw_close(ipw);
    return x > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
