/* A dataset on disk as Hugging Face saves it, and as the Python IPW reads it, one row at a time.  hf_dataset_open allocates
 * what hf_dataset_close frees; what was not finished leaves nothing behind. */
#ifndef IPW_RUNDIR_HF_DATASET_H
#define IPW_RUNDIR_HF_DATASET_H

#include "core/err.h"
#include "port/arrow_write.h"

struct hf_dataset;

/* ERR_UNSUPPORTED, with how to install it, in a build without Arrow or JSON. */
enum err hf_dataset_available(struct error *why) MUST_USE;

/* Takes the fields over, also when it fails; NULL: out of memory. */
enum err hf_dataset_open(const char *directory, struct arrow_field *root, struct hf_dataset **out,
                         struct error *why) MUST_USE;
enum err hf_dataset_add(struct hf_dataset *dataset, const struct jv *row, struct error *why)
    MUST_USE;
enum err hf_dataset_finish(struct hf_dataset *dataset, struct error *why) MUST_USE;
void hf_dataset_close(struct hf_dataset *dataset); /* NULL is none */

#endif
