/* JSON of requests and of error messages, common to all protocols.  Nothing here is owned. */
#ifndef IPW_WIRE_MESSAGE_H
#define IPW_WIRE_MESSAGE_H

#include <stddef.h>

#include "core/err.h"
#include "core/json.h"
#include "core/slice.h"

struct jv;
struct params;
struct text;

/* Writes a request parameter, which the user gave as text, with its JSON type: a number (with its
 * digits kept), true, false, null, an array, an object or a quoted string as it is; anything else as a
 * string. */
void message_write_param(struct json *json, const char *key, const char *value);

/* ERR_USAGE for a parameter that the client sets itself; `reserved` ends with NULL. */
enum err message_check_reserved(const struct params *params, const char *const *reserved,
                                struct error *why) MUST_USE;

/* Copies a string or integer that a server reported; any other value is omitted. */
void message_copy_value(struct json *json, const char *key, const struct jv *value);

/* The error message in an object, in any of the forms that servers use: {"error":{"message":...}},
 * {"error":"..."}, {"message":...}, {"detail":...}.  NULL when it holds no error. */
const char *message_error(const struct jv *object);

/* The value of a member of the outermost object, as it is written, without building a tree: a context of a megabyte is
 * read in a millisecond.  Empty where there is none, or the bytes are not JSON up to there. */
struct slice message_member(const char *bytes, size_t length, const char *key);

/* What a request asks: the text of the last message of the user, of "prompt" or of "input".  *out is "" where there is
 * none. */
void message_question(const char *bytes, size_t length, struct text *out);

#define MESSAGE_UNSPECIFIED_ERROR "unspecified error"

#endif
