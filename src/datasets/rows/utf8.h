/* Making text valid: what a file holds may be any bytes, and everything above wants UTF-8 without
 * NUL.  What is not valid becomes U+FFFD, the replacement character, one for each bad byte.
 * The texts are the caller's. */
#ifndef IPW_DATASETS_ROWS_UTF8_H
#define IPW_DATASETS_ROWS_UTF8_H

struct text;

/* Repairs JSON in place before it is parsed: bad bytes, and the escapes of NUL and of half
 * a surrogate pair, which no C string and no UTF-8 can hold. */
void utf8_repair_json(struct text *json);

#endif
