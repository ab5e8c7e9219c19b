#include "cli/estimate_tools.h"
int estimate_validate(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return 1;
}
