/* Several models over the same questions, one after another: each is profiled as by itself, and what
 * they cost and get right stands side by side.
 *
 * The caller owns the options; family_run fills a result that family_release gives back. */
#ifndef IPW_RUNNER_FAMILY_H
#define IPW_RUNNER_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/energy.h"
#include "core/err.h"

struct host_report;
struct profile_options;
struct session;

struct family_options {
    const struct profile_options *profile; /* of every run; its model is left aside */
    const char *const *models;             /* as the client calls them */
    size_t count;
    /* Before each; may be NULL. */
    void (*begins)(const char *model, size_t index, size_t count);
};

/* One model; figures are UNKNOWN where they are. */
struct family_member {
    const char *model;   /* of the options */
    char directory[512]; /* of its run; "" when it came to none */
    char why[320];       /* it could not be profiled; "" it was */
    uint64_t queries, completed;
    double accuracy, accuracy_low, accuracy_high; /* 95 % interval */
    double joules_per_query, joules_per_query_plus_minus;
    double joules_per_output_token, output_tokens_per_s;
    double ipj, ipj_plus_minus, ipw, ipw_plus_minus;
    struct energy energy; /* of the machine while the queries ran */
    bool on_frontier;     /* no other member is as accurate for as little energy a query */
};

struct family {
    struct family_member *members; /* those that were tried */
    size_t count;
    int signal; /* that interrupted us; 0 for none */
};

/* A model that fails is told of in its row and the others go on; ERR_OK as long as one was profiled,
 * else the error of the first. */
enum err family_run(struct session *session, const struct host_report *host,
                    const struct family_options *options, struct family *out, struct error *why)
    MUST_USE;
void family_release(struct family *family);

#endif
