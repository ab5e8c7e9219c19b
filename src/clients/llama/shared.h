/* Models that the clients of this process share: one of a file and its options, however many ask it.
 * The one used last stays loaded when its last user is gone, for the next.
 * A share is owned by who took it, and given back once. */
#ifndef IPW_CLIENTS_LLAMA_SHARED_H
#define IPW_CLIENTS_LLAMA_SHARED_H

#include "engine/engine.h"

struct shared_model;

/* Loads the model if it is not there; *load_s is how long that took, 0 when it was there. */
enum err shared_take(const char *path, const struct engine_model_options *options,
                     struct shared_model **out, double *load_s, struct error *why) MUST_USE;

/* One more share of the model that was taken last with these options; NULL when there is none. */
struct shared_model *shared_take_last(const struct engine_model_options *options);

void shared_give(struct shared_model *model);

struct engine_model *shared_engine(struct shared_model *model);
const char *shared_path(const struct shared_model *model);

#endif
