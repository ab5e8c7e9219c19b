/* The files of a run directory as links of a page that may stand elsewhere. */
#ifndef IPW_REPORT_HTML_FILES_H
#define IPW_REPORT_HTML_FILES_H

struct json;

/* "files": [{"name", "href", "bytes"}] of what is there; href leads from the page's folder. */
void files_put(struct json *json, const char *directory, const char *page);

#endif
