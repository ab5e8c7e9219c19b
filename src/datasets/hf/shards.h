/* Which Arrow files a saved dataset consists of.  A struct shards owns its paths: shards_find,
 * shards_release. */
#ifndef IPW_DATASETS_HF_SHARDS_H
#define IPW_DATASETS_HF_SHARDS_H

#include <stddef.h>

#include "core/err.h"

struct shards {
    char **paths; /* in their order */
    size_t count, capacity;
};

/* `directory` is what save_to_disk made: of one dataset (state.json), or of several splits
 * (dataset_dict.json), of which `split` names one; it may be NULL when there is no choice. */
enum err shards_find(const char *directory, const char *split, struct shards *out,
                     struct error *why) MUST_USE;
void shards_release(struct shards *shards);

#endif
