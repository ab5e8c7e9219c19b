/* What the legacy model says (`ipw estimate --model-compat`), with the digits that its reports had. */
#ifndef IPW_REPORT_ESTIMATE_COMPAT_H
#define IPW_REPORT_ESTIMATE_COMPAT_H

struct legacy_estimate;
struct text;

void compat_text(const struct legacy_estimate *compat, struct text *out);
void compat_json(const struct legacy_estimate *compat, struct text *out);

#endif
