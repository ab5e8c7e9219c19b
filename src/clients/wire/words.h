/* A server's own words, made fit for one line of a message.  Nothing here is owned. */
#ifndef IPW_CLIENTS_WIRE_WORDS_H
#define IPW_CLIENTS_WIRE_WORDS_H

#include <stddef.h>

struct jv;

/* Copies bytes as one line of whole UTF-8 characters, cut where there is no room; what does not print
 * becomes a space. */
void words_shown(char *to, size_t size, const char *bytes, size_t length);

/* What an object says of an error, in any of the forms that servers use: {"error":{"message":...}},
 * {"error":"..."}, {"message":...}, {"detail":...}.  NULL when it speaks of none. */
const char *words_of_error(const struct jv *object);

#endif
