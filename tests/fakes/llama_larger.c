/* Its context parameters have grown by a pointer. */
#define VERSION     "0.5.0"
#define EXTRA_BYTES 8
#include "llama_fake.h"
