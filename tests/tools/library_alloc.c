/* libipw while allocations fail, one after the other: `library_alloc`, with the fake failing_malloc preloaded.  Each
 * round uses the whole interface with the next allocation failing, until a round needs fewer.  A call may then fail with
 * a status; it may not crash, claim success without a result, or keep memory.  Prints the number of allocations that
 * were made to fail, and how many calls reported it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <ipw.h>

static void (*fail_allocation)(long number);
static bool (*fail_allocation_reached)(void);
static long (*allocations_live)(void);

static int all_devices; /* with enough memory */

static _Noreturn void fail(const char *what, long round)
{
    fail_allocation(0);
    fprintf(stderr, "allocation %ld: %s\n", round, what);
    exit(EXIT_FAILURE);
}

/* Number of calls that reported a failure. */
static unsigned use_session(ipw_session *session, long round)
{
    ipw_result result = IPW_RESULT_INIT;
    unsigned failures = 0;
    int outer = ipw_begin(session, "request"), inner = ipw_begin(session, "prefill");
    int ended[] = {inner < 0 ? 0 : ipw_end(session, inner),
                   outer < 0 ? 0 : ipw_end(session, outer)};
    int status = outer < 0 ? outer : ipw_read(session, outer, &result);
    if (status == IPW_OK && result.method != IPW_METHOD_NONE &&
        !(isfinite(result.joules) && result.seconds > 0))
        fail("a region was read without a result", round);
    if (outer >= 0 && !ipw_region_path(session, outer))
        fail("a region has no path", round);
    if (round && ipw_device_count(session) < all_devices)
        fail("a session lacks devices, and no call failed", round);
    for (int i = 0; i < ipw_device_count(session); i++) {
        const char *device = ipw_device_id(session, i);
        if (!device)
            fail("a device has no name", round);
        if (outer >= 0)
            failures += ipw_read_device(session, outer, device, &result) != IPW_OK;
    }
    failures += (outer < 0) + (inner < 0) + (ended[0] != IPW_OK) + (ended[1] != IPW_OK);
    return failures + (status != IPW_OK);
}

/* A round with its `number`th allocation failing; 0: none. */
static unsigned one_round(long number)
{
    ipw_options options = IPW_OPTIONS_INIT;
    int status = IPW_OK;
    fail_allocation(number);
    ipw_session *session = ipw_open(&options, &status);
    if (!session && status == IPW_OK)
        fail("no session, and no status", number);
    unsigned failures = session ? use_session(session, number) : 1;
    if (session && !number)
        all_devices = ipw_device_count(session);
    ipw_close(session);
    return failures;
}

int main(void)
{
    enum { ROUNDS_MAX = 100000 };
    *(void **)&fail_allocation = dlsym(RTLD_DEFAULT, "fail_allocation");
    *(void **)&fail_allocation_reached = dlsym(RTLD_DEFAULT, "fail_allocation_reached");
    *(void **)&allocations_live = dlsym(RTLD_DEFAULT, "allocations_live");
    if (!fail_allocation || !fail_allocation_reached || !allocations_live)
        return fputs("the fake failing_malloc is not preloaded\n", stderr), EXIT_FAILURE;
    if (one_round(0))
        fail("a call failed with enough memory", 0);
    long reported = 0, round = 1;
    long before = allocations_live(); /* what is allocated once stays */
    for (; round < ROUNDS_MAX; round++) {
        unsigned failures = one_round(round);
        bool reached = fail_allocation_reached();
        fail_allocation(0);
        if (!reached)
            break;
        reported += failures > 0;
        if (allocations_live() > before && (one_round(0) || allocations_live() > before))
            fail("memory was not freed",
                 round); /* what a failed round left open, the next one has closed */
    }
    if (one_round(0))
        fail("a call failed with enough memory again", round);
    printf("%ld allocations, %ld reported\n", round - 1, reported);
    return EXIT_SUCCESS;
}
