/* Requests as JSON, and what servers tell as JSON of ours.  Nothing here is owned. */
#ifndef IPW_CLIENTS_WIRE_REQUEST_JSON_H
#define IPW_CLIENTS_WIRE_REQUEST_JSON_H

#include "clients/client.h"
#include "core/json.h"

struct jv;

/* What the user gave is text; a server wants types.  A value that is JSON goes as it is: a number (with its own digits), true, false, null, an array, an
 * object, a string in quotes.  Anything else is a string. */
void request_json_value(struct json *json, const char *key, const char *value);

/* ERR_USAGE for a parameter that the driver sets itself; `reserved` ends with NULL. */
enum err request_json_check(const struct params *params, const char *const *reserved,
                            struct error *why) MUST_USE;

/* "messages": the system's, where there is one, and the user's. */
void request_json_messages(struct json *json, const struct client_request *request);

/* A string or whole number that a server told; anything else is left out. */
void request_json_copy(struct json *json, const char *key, const struct jv *value);

#endif
