/* The figures at the top of a run's report. */
#ifndef IPW_REPORT_HTML_HEADLINE_H
#define IPW_REPORT_HTML_HEADLINE_H

struct json;
struct results;
struct run_table;

/* "headline": [{"key", "label", "value", "text", "note"}]: `text` is the figure for people, with its ±
 * where there is one, and `note` what it rests on.  A figure that is not known is shown as such. */
void headline_put(struct json *json, const struct run_table *table, const struct results *results);

#endif
