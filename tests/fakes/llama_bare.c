/* Only the parameters are there. */
#define VERSION "0.5.0"
#define LACKS_FUNCTIONS
#include "llama_fake.h"
