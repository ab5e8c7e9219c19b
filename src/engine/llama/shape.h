/* Do the library's structures have the shape that we declare?  Those that go by value are handed out
 * by its own functions, so they can be measured before any is handed in.  Nothing is kept. */
#ifndef IPW_ENGINE_LLAMA_SHAPE_H
#define IPW_ENGINE_LLAMA_SHAPE_H

#include "core/err.h"
#include "engine/llama/api.h"

/* A function of the library that returns a structure by value, of whatever size. */
typedef void (*llama_defaults)(void);

/* Takes both structures of defaults into *api.  ERR_UNSUPPORTED, saying what differs, when they are
 * not as declared. */
enum err llama_take_defaults(llama_defaults model, llama_defaults context, struct llama_api *api,
                             struct error *why) MUST_USE;

#endif
