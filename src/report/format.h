/* Numbers for people: SI prefixes, three or four significant digits, "-" for unknown.
 * Each writes into the caller's buffer (FORMAT_MAX bytes are enough) and returns it. */
#ifndef IPW_REPORT_FORMAT_H
#define IPW_REPORT_FORMAT_H

#include <stddef.h>

enum { FORMAT_MAX = 48 };

/* 0.01234, "J" -> "12.34 mJ"; 12345, "J" -> "12.35 kJ". */
char *format_si(char *to, double value, const char *unit);

/* Value and standard uncertainty with one prefix: "12.35 kJ ± 0.36". */
char *format_with_error(char *to, double value, double error, const char *unit);

/* 0.9934 -> "99.3 %". */
char *format_percent(char *to, double share);

/* Bytes with binary prefixes: "1.5 GiB". */
char *format_bytes(char *to, double bytes);

/* 75.2 s, 2 m 05 s, 3 h 02 m. */
char *format_duration(char *to, double seconds);

#endif
