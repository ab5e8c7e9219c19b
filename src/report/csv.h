/* Fields of CSV (RFC 4180). */
#ifndef IPW_REPORT_CSV_H
#define IPW_REPORT_CSV_H

struct text;

/* A field of text, quoted where it must be. */
void csv_add(struct text *out, const char *value);

#endif
