/* Figures of estimates as words, shared by their reports and plots.  Functions with a buffer of WORDS_MAX bytes write into
 * it and return it. */
#ifndef IPW_REPORT_ESTIMATE_WORDS_H
#define IPW_REPORT_ESTIMATE_WORDS_H

#include "core/energy.h"
#include "core/err.h"

struct result;
struct result_item;

enum { WORDS_MAX = 256 };

/* Appends to a comma-separated list. */
void words_add(char *to, const char *format, ...) PRINTF_LIKE(2, 3);
/* "per sample", "per output token". */
char *words_each(char *to, const char *unit);
/* "~12.3 ± 4.5 mJ"; without ± if that is unknown. */
char *words_estimated(char *to, double value, double plus_minus, const char *unit);
/* "s", or "" for 1. */
/* "54 %", "< 1 %", "-". */
char *words_share(char *to, double share);
/* "-", or the number with three digits and a unit prefix: "2.43 k". */
char *words_rate(char *to, double rate);

/* ---- of the result of an estimate ---- */

/* Energy and latency with their uncertainty: "~12.3 ± 4.5 mJ per sample", or where measured models take more than
 * the estimate "~12 mJ per sample (9.9 to 45 mJ as shipped)".  The energy is that of the group "each" or "request". */
char *words_energy(char *to, const struct result *result, const char *group, const char *unit);
char *words_latency(char *to, const struct result *result);
/* "tensor parallel over 2 devices: 0.01 % of MACs split, rest replicated"; NULL if nearly all are split.  estimate: the
 * outermost group, or a point. */
char *words_divided(char *to, const struct result_item *estimate);

/* The prices of a group "operating". */
struct tariff words_tariff(const struct result_item *operating);

#endif
