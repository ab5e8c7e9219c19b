/* Fields of CSV (RFC 4180). */
#ifndef IPW_CORE_CSV_H
#define IPW_CORE_CSV_H

struct text;

/* A field of text, quoted where it must be. */
void csv_add(struct text *out, const char *value);

#endif
