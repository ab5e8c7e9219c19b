/* A request of the dashboard and what answers are made of: its path and parameters decoded, who may send it, and
 * errors.  Whoever fills a struct releases it. */
#ifndef IPW_SERVE_REQUEST_H
#define IPW_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

enum { PARAMS_MAX = 32, FILE_NAME_MAX = 512, PATH_ID_MAX = 2 };

/* What a client asks for, decoded; it owns its texts. */
struct request {
    struct text bytes; /* that the others point into */
    const char *path;
    const char *ids[PATH_ID_MAX]; /* what stands in the place of {id} and {name} */
    struct {
        const char *name, *value;
    } params[PARAMS_MAX];
    size_t param_count;
    struct text body;
};

/* ERR_USAGE for a target that is malformed. */
enum err request_read(const char *target, struct request *out, struct error *why) MUST_USE;
void request_release(struct request *request);
/* Whether its path is like "/api/v1/runs/{id}"; fills in ids. */
bool request_matches(struct request *request, const char *pattern);
/* The value of a parameter; NULL without it, or if it is empty. */
const char *request_param(const struct request *request, const char *name);
/* A segment of a path, or a value. */
void request_encode(struct text *to, const char *string);
/* ERR_USAGE for a parameter that is not among these, separated by blanks, or is given twice unless its name ends in
 * "*" there. */
enum err request_check(const struct request *request, const char *names, struct error *why)
    MUST_USE;
/* A whole number from least to most; stays as it is without one. */
enum err request_count(const struct request *request, const char *name, unsigned least,
                       unsigned most, unsigned *inout, struct error *why) MUST_USE;

struct api_answer {
    int status; /* 0: 200 */
    const char *type;
    const char *policy;           /* Content-Security-Policy; NULL: that of the pages */
    char file[FILE_NAME_MAX];     /* of a download; "" */
    char location[FILE_NAME_MAX]; /* header; "" */
    struct text body;
};

/* {"error": {...}} with the status that suits the error. */
void answer_error(struct api_answer *answer, enum err err, const char *message);
void answer_status(struct api_answer *answer, int status, const char *code, const char *message);

/* ---- access ---- */

#define SESSION_COOKIE "ipw_session"
/* ACCESS_RATE: requests per second of one address, ACCESS_BURST at once; ACCESS_TRIES: wrong tokens per minute. */
enum { SESSION_ID_MAX = 33, ACCESS_RATE = 200, ACCESS_BURST = 2000, ACCESS_TRIES = 10 };

struct access;

struct access *access_new(void);
void access_free(struct access *access);
bool access_may_ask(struct access *access, const char *peer, nanos now);
bool access_may_try(struct access *access, nanos now); /* after a wrong token */
/* A new session; false without random numbers. */
bool access_begin(struct access *access, nanos now, char id[static SESSION_ID_MAX]);
/* Whether the header Cookie has a session; NULL: it has none. */
bool access_has_session(const struct access *access, const char *cookies, nanos now);

#endif
