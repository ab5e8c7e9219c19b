/* Rows of a run's table out of one Arrow file.  Nothing is kept. */
#ifndef IPW_RUNDIR_RUN_TABLE_ARROW_H
#define IPW_RUNDIR_RUN_TABLE_ARROW_H

#include "rundir/run_table.h"

struct builder;

/* Adds to names, which it allocates, those of the models in the file that are not there yet. */
enum err arrow_models(const char *path, char ***names, size_t *count, struct error *why) MUST_USE;

/* All rows of the model.  ERR_BAD_VALUE names the file and after how many records it broke off. */
enum err arrow_rows(const char *path, const char *model, struct builder *builder, struct error *why)
    MUST_USE;

#endif
