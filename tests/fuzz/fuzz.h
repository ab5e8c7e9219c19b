/* The shape of a fuzz target.  A target is one file, fuzz_<name>.c, that exports `const struct fuzz_target fuzz_<name>`,
 * and one line in targets.def; all are linked into one program, `fuzz TARGET [OPTIONS OF LIBFUZZER]`.  A target with
 * several readers selects one by the first byte of the input (fuzz_choose).
 *
 * A new reader of bytes from outside also gets a line in readers.txt, which tools/check-fuzz compares with src. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"

struct fuzz_target {
    /* Reads the input and checks what was read: fuzz_check.  bytes[length] is beyond the input. */
    void (*run)(const char *bytes, size_t length);
    /* Calls fuzz_seed for each valid input: one for every branch of the reader, since mutations hardly invent one. */
    void (*seeds)(void);
    /* Optional: words of the format for mutations; ends with NULL. */
    const char *const *words;
    /* JSON or CSV: most mutations replace whole values by others, of other types too; the default ones, of single bytes,
     * mostly give what no parser accepts. */
    bool has_values;
};

#define FUZZ(name) extern const struct fuzz_target fuzz_##name;
#include "fuzz/targets.def"
#undef FUZZ

/* ---- seeds ---- */

void fuzz_seed_bytes(int choice, const void *bytes, size_t length); /* choice -1: none */
static inline void fuzz_seed(int choice, const char *text)
{
    fuzz_seed_bytes(choice, text, strlen(text));
}
/* A file of tests/fixtures or another path; its first `max` bytes. */
void fuzz_seed_file(int choice, const char *path, size_t max);

/* ---- in a target ---- */

/* Removes the first byte, and returns which of `count` readers it selects: 0 for 'a', and so on. */
unsigned fuzz_choose(const char **bytes, size_t *length, unsigned count);

/* The input as a string of exactly its size, up to the first NUL; valid until the next call. */
char *fuzz_string(const char *bytes, size_t length);

/* A folder in memory (tmpfs), removed at exit; and a file in it with these bytes, whose path is valid until the next
 * call. */
const char *fuzz_folder(void);
const char *fuzz_file(const char *name, const void *bytes, size_t length);

/* Aborts, so that the input is kept. */
void fuzz_fail(const char *problem);
#define fuzz_check(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(#condition);                                                                 \
    } while (0)

/* What every reader promises: a failure has one line of plain text. */
void fuzz_check_error(enum err err, const struct error *why);

#endif
