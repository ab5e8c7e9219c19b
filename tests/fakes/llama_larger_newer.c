/* An untested version whose context parameters have grown by a pointer. */
#define VERSION     "9.9.9"
#define EXTRA_BYTES 8
#include "llama_fake.h"
