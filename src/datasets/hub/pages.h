/* Pages of rows of one dataset on a server, kept on disk as they come, so that a second run asks for
 * nothing and one that was cut off goes on where it stopped.  A struct hub_pages owns its server and
 * strings: hub_pages_init, hub_pages_release. */
#ifndef IPW_DATASETS_HUB_PAGES_H
#define IPW_DATASETS_HUB_PAGES_H

#include "datasets/hub/server.h"

struct jv;

enum { HUB_PAGE_ROWS = 100 }; /* the most that the server gives at once */

struct hub_pages {
    struct hub_server server;
    bool refresh; /* ask again for what is on disk */
    char *dataset, *config, *split;
    char *folder; /* of the pages of this dataset */
};

/* Finds config and split where the parameters do not name them: the one named default, and test
 * before validation before train. */
enum err hub_pages_init(struct hub_pages *out, const struct params *params, struct error *why)
    MUST_USE;
void hub_pages_release(struct hub_pages *pages);

/* The page that begins with row `first`: {"rows": [...], "num_rows_total": N}.  The caller frees it. */
enum err hub_pages_get(struct hub_pages *pages, uint64_t first, struct jv **out, struct error *why)
    MUST_USE;

#endif
