/* OTLP in JSON: the common parts of OpenTelemetry traces and metrics.  Written into a struct json of the caller. */
#ifndef IPW_WIRE_OTLP_H
#define IPW_WIRE_OTLP_H

#include <stdbool.h>
#include <stdint.h>

struct json;

enum { OTLP_CUMULATIVE = 2 }; /* aggregationTemporality */

/* OTLP/JSON encodes 64-bit integers as strings. */
void otlp_digits(struct json *json, const char *key, int64_t value);

/* Elements of "attributes"; unknown values (NULL and "", not finite) are omitted. */
void otlp_text(struct json *json, const char *key, const char *value);
void otlp_number(struct json *json, const char *key, double value);
void otlp_integer(struct json *json, const char *key, int64_t value);
void otlp_bool(struct json *json, const char *key, bool value);
/* For a value of another type, written between these two. */
void otlp_open_value(struct json *json, const char *key);
void otlp_close_value(struct json *json);

/* A batch: of_resources "resourceSpans" and of_scopes "scopeSpans", or those of metrics.  otlp_open leaves the
 * attributes of the resource open, otlp_scope closes them; then the content of the scope; otlp_close ends the batch. */
void otlp_open(struct json *json, const char *of_resources, const char *instance, const char *host);
void otlp_scope(struct json *json, const char *of_scopes);
void otlp_close(struct json *json);

#endif
