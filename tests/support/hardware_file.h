/* A hardware file for tests: a small complete one, and copies of it with one piece replaced. */
#ifndef TESTS_SUPPORT_HARDWARE_FILE_H
#define TESTS_SUPPORT_HARDWARE_FILE_H

#include <stddef.h>

struct text;

/* A device with matrix units (bf16, int8), vector units (fp32), two memories and two operating points. */
extern const char HARDWARE_FILE[];

/* HARDWARE_FILE with the first `old` replaced; fails the test when it is not found. */
void hardware_file_with(const char *old, const char *new, struct text *out);

/* For fuzzers: parses any bytes as a hardware file and, on success, uses it in every way. Returns
 * what is wrong then, or NULL. */
const char *hardware_file_exercise(const char *bytes, size_t length);

#endif
