/* Compatible structures, but an untested version. */
#define VERSION "9.9.9"
#include "llama_fake.h"
