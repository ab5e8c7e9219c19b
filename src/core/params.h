/* Parameters that a user gives as key=value, for a driver, a request or a grader.
 * One word may hold several, separated by commas: "a=1, b=2".  Each is split at its first "=", both sides are trimmed,
 * one without a key is dropped, one without "=" has the value "", and a repeated key replaces the earlier value.  A
 * comma inside a value is written "\,"; inside [] and {} it needs no escape.
 * Values stay text.  A struct params owns its strings: zero-initialize it, params_release when done. */
#ifndef IPW_CORE_PARAMS_H
#define IPW_CORE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct param {
    char *key;
    char *value;
};

struct params {
    struct param *items;
    size_t count;
    size_t capacity;
};

/* The parameters that a driver accepts, for its help and for rejecting others.  Ends with a NULL name. */
struct param_spec {
    const char *name;  /* a trailing "*" matches every longer key: "header.*" */
    const char *value; /* placeholder in the help: "FILE", "TOKENS" */
    const char *help;  /* with unit and default */
};

/* These fail only in libipw, for lack of memory (core/memory.h). */
enum err params_add(struct params *params, const char *words);
enum err params_set(struct params *params, const char *key, const char *value);
enum err params_copy(struct params *to, const struct params *from);
void params_release(struct params *params);

/* NULL when it was not given. */
const char *params_get(const struct params *params, const char *key);

/* Values of other types.  The first failure is kept in err: ERR_USAGE with the key and what was expected.  A value that
 * cannot be read is `otherwise`, as is one that was not given. */
struct params_reader {
    const struct params *params; /* may be NULL */
    struct error *why;
    enum err err;
};

uint64_t params_count(struct params_reader *reader, const char *key, uint64_t otherwise,
                      uint64_t min, uint64_t max);
double params_number(struct params_reader *reader, const char *key, double otherwise, double min,
                     double max);
/* true/false, yes/no, on/off or 1/0. */
bool params_bool(struct params_reader *reader, const char *key, bool otherwise);
/* The index of one of the words, which end with NULL; "" is as if it were not given. */
int params_word(struct params_reader *reader, const char *key, const char *const *words,
                int otherwise);

/* ERR_USAGE for a key that no spec has, with the nearest one suggested; `owner` is for the message: "dataset jsonl". */
enum err params_check(const struct params *params, const struct param_spec *specs,
                      const char *owner, struct error *why) MUST_USE;

#endif
