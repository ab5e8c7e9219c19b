/* Only the default parameters exist. */
#define VERSION "0.5.0"
#define LACKS_FUNCTIONS
#include "llama_fake.h"
