/* Two members are swapped, which the size does not show. */
#define VERSION "0.5.0"
#define SWAP_MEMBERS
#include "llama_fake.h"
