/* libipw: measures the energy of regions of your own program.
 *
 *     ipw_session *ipw = ipw_open(NULL, NULL);
 *     int region = ipw_begin(ipw, "prefill");
 *     ...
 *     ipw_end(ipw, region);
 *     ipw_result result = IPW_RESULT_INIT;
 *     if (ipw_read(ipw, region, &result) == IPW_OK && result.method != IPW_METHOD_NONE)
 *         printf("%.1f J +- %.1f\n", result.joules, result.plus_minus);
 *     ipw_close(ipw);
 *
 * Beginning and ending a region costs under a microsecond, however many regions there are: it only
 * records the time.  Reading a result waits until the sensors have caught up with the region's end
 * (up to 0.4 s).  Regions nest and may overlap; any thread may use a session.  The library never
 * prints and never exits, and its threads take no signals.  A session belongs to the process that
 * opened it: after fork() the child's calls fail and it opens its own.
 *
 * The ABI is plain: opaque handle, ints, doubles, fixed-size structs that start with their size.
 * A figure that was not measured is NaN, never 0. */
#ifndef IPW_H
#define IPW_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IPW_API __attribute__((visibility("default")))
#else
#define IPW_API
#endif

typedef struct ipw_session ipw_session;

/* Return values: 0 or more is success, negative is one of these. */
enum ipw_status {
    IPW_OK = 0,
    IPW_ERROR_MEMORY = -1,
    IPW_ERROR_ARGUMENT = -2, /* no such region, device or option */
    IPW_ERROR_OPEN = -3,     /* the region has not ended yet */
    IPW_ERROR_SYSTEM = -4,   /* no threads or descriptors available; a session from before fork */
};

enum ipw_method {
    IPW_METHOD_NONE = 0,      /* not measured: joules is NaN, note says why */
    IPW_METHOD_COUNTER = 1,   /* hardware energy counter */
    IPW_METHOD_INTEGRAL = 2,  /* integral of sampled power */
    IPW_METHOD_ESTIMATED = 3, /* a model, not a measurement */
};

typedef struct ipw_options {
    size_t size;         /* sizeof(ipw_options) */
    const char *devices; /* GPUs by index or UUID, comma-separated; NULL: the visible ones */
    const char *sensors; /* drivers, comma-separated; NULL: all */
    double rate_hz;      /* reads per second; 0: each sensor's default */
} ipw_options;
#define IPW_OPTIONS_INIT {sizeof(ipw_options), NULL, NULL, 0}

typedef struct ipw_result {
    size_t size;        /* sizeof(ipw_result) */
    double seconds;     /* length of the region */
    double joules;      /* NaN when not measured */
    double plus_minus;  /* standard uncertainty of joules */
    double coverage;    /* share of the region that samples cover, 0..1 */
    double watts;       /* mean power over the covered part */
    int method;         /* enum ipw_method */
    int low_confidence; /* 1: shorter than ten sensor updates */
    unsigned long updates;
    char source[320]; /* which sensors */
    char note[160];   /* why unknown, or a warning */
} ipw_result;
#define IPW_RESULT_INIT {sizeof(ipw_result), 0, 0, 0, 0, 0, 0, 0, 0, "", ""}

/* Finds the sensors and starts sampling.  options may be NULL.  On failure returns NULL and, when
 * status is not NULL, the reason in *status.  A machine without sensors is not a failure. */
IPW_API ipw_session *ipw_open(const ipw_options *options, int *status);

/* Stops sampling and frees everything.  NULL is allowed. */
IPW_API void ipw_close(ipw_session *session);

/* Begins a region; returns its number (0 or more).  A region that the same thread begins inside it
 * is nested: its path is "outer/inner". */
IPW_API int ipw_begin(ipw_session *session, const char *name);
IPW_API int ipw_end(ipw_session *session, int region);

/* The region's "outer/inner" path; NULL when there is no such region.  Valid until ipw_close. */
IPW_API const char *ipw_region_path(ipw_session *session, int region);

/* The machine's total over an ended region, or that of one device. */
IPW_API int ipw_read(ipw_session *session, int region, ipw_result *result);
IPW_API int ipw_read_device(ipw_session *session, int region, const char *device,
                            ipw_result *result);

/* The devices with energy: their number, and the id ("gpu0") of each, valid until ipw_close. */
IPW_API int ipw_device_count(ipw_session *session);
IPW_API const char *ipw_device_id(ipw_session *session, int index);

/* A description of a negative status. */
IPW_API const char *ipw_status_text(int status);
IPW_API const char *ipw_version(void);

#ifdef __cplusplus
}
#endif

#endif
