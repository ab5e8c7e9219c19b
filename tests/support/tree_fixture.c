#include "support/tree_fixture.h"

struct tree tree;

int tree_set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    return 0;
}

int tree_tear_down(void **state)
{
    (void)state;
    tree_free(&tree);
    return 0;
}
