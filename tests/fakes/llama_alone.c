/* As ours, but without the files for a processor that should lie beside it. */
#define VERSION "0.5.0"
#include "llama_fake.h"
