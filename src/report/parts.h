/* The parts of the program that need a library: which are here, and what brings the others.  The
 * measuring commands need none of them. */
#ifndef IPW_REPORT_PARTS_H
#define IPW_REPORT_PARTS_H

struct json;
struct text;

/* A line for each that is missing; nothing when all are here. */
void parts_text(struct text *out);

/* "parts": [{name, needed_by, available, missing}]. */
void parts_to_json(struct json *json);

#endif
