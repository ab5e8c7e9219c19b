/* What the OTLP exports share: attributes, numbers and the resource, in OTLP's JSON.  Nothing here keeps
 * state. */
#ifndef IPW_REPORT_EXPORTS_OTLP_H
#define IPW_REPORT_EXPORTS_OTLP_H

#include <stdbool.h>
#include <stdint.h>

struct export_run;
struct json;
struct jv;

/* An element of "attributes"; nothing is written of what is not known. */
void otlp_text(struct json *json, const char *key, const char *value);
void otlp_number(struct json *json, const char *key, double value);
void otlp_integer(struct json *json, const char *key, const struct jv *value);
void otlp_truth(struct json *json, const char *key, const struct jv *value);

/* A 64-bit number is a string of digits there. */
void otlp_digits(struct json *json, const char *key, int64_t value);

/* "resource" and then "scope", as every batch begins: `of_scopes` is "scopeSpans" or "scopeMetrics", whose array
 * and first object stay open. */
void otlp_open(struct json *json, const struct export_run *run, const char *of_resources,
               const char *of_scopes);
void otlp_close(struct json *json);

#endif
