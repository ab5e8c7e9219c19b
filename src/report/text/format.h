/* Numbers for text output: SI prefixes, three or four significant digits, "-" for unknown.
 * Each writes into the caller's buffer (FORMAT_MAX bytes are enough) and returns it. */
#ifndef IPW_REPORT_FORMAT_H
#define IPW_REPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/units.h"

struct summary_conditions;
struct text;

enum { FORMAT_MAX = 48 };

/* 0.01234, "J" -> "12.34 mJ"; 12345, "J" -> "12.35 kJ". */
char *format_si(char *to, double value, const char *unit);

/* The same with two significant digits, for rough figures: "12 mJ", "5.8 W". */
char *format_rough(char *to, double value, const char *unit);

/* Value and standard uncertainty with one prefix, to two digits of the uncertainty:
 * "12.35 ± 0.36 kJ". */
char *format_with_error(char *to, double value, double error, const char *unit);

/* A figure of any unit, without ± where the error is unknown or 0: prefixes for "J", a share in "%", "12.3 1/J" for
 * what has no prefixes, and a plain number for "". */
char *format_figure(char *to, double value, double error, const char *unit);

/* 0.9934 -> "99.3 %". */
char *format_percent(char *to, double share);

/* How an energy was obtained: "estimated", "measured (counter)", "measured"; of "" "by an unknown method". */
char *format_method(char *to, const char *method);

/* The relative error that all rows share: "±60 % common". */
char *format_common(char *to, double share);

/* Bytes with binary prefixes: "1.5 GiB". */
char *format_bytes(char *to, double bytes);

/* Part of a whole in one unit: "12.3/139.8 GiB", "-/139.8 GiB"; the part alone when the whole is
 * unknown. */
char *format_bytes_of(char *to, double used, double total);

/* 75.2 s, 2 m 05 s, 3 h 02 m. */
char *format_duration(char *to, double seconds);

/* A time since the epoch: "2026-01-31T23:59:59.123Z". */
char *format_time(char *to, nanos wall);

/* A line for each finding on the conditions of a measurement, the gravest first; nothing without any.  With color,
 * those that break figures are red. */
void format_findings(const struct summary_conditions *conditions, bool color, struct text *out);

#endif
