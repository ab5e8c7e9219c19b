/* Compatible, but without the backend libraries that should be next to it. */
#define VERSION "0.5.0"
#define LACKS_BACKENDS
#include "llama_fake.h"
