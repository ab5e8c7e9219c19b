/* Where the joules of a run went, in parts that add up to them. */
#ifndef IPW_REPORT_HTML_SHARES_H
#define IPW_REPORT_HTML_SHARES_H

struct json;
struct run_table;

/* "shares": [{"key", "label", "joules", "share"}], each joule in one of them; empty when the summary
 * does not tell. */
void shares_put(struct json *json, const struct run_table *table);

#endif
