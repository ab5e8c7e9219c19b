/* Several models side by side: accuracy against energy, and which of them nobody beats. */
#ifndef IPW_REPORT_FAMILY_REPORT_H
#define IPW_REPORT_FAMILY_REPORT_H

#include <stdbool.h>

struct profile_family;
struct text;

void family_text(const struct profile_family *family, bool color, struct text *out);
void family_json(const struct profile_family *family, struct text *out);

#endif
