/* Compatible structures, but without a version. */
#include "llama_fake.h"
