/* As ours in every way that shows, but of a version whose functions we do not know. */
#define VERSION "9.9.9"
#include "llama_fake.h"
