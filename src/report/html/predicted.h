/* What `ipw estimate` predicted of a run, where its report was put into the run's directory. */
#ifndef IPW_REPORT_HTML_PREDICTED_H
#define IPW_REPORT_HTML_PREDICTED_H

struct json;

/* "predicted": null without DIR/estimate.json; else what an estimate of a request says, under the keys of the
 * headline, or {"note"} why it is no such. */
void predicted_put(struct json *json, const char *directory);

#endif
