/* As ours, but it does not say its version. */
#include "llama_fake.h"
