/* One tree for each test of a file, with its set-up and tear-down. */
#ifndef TESTS_SUPPORT_ONE_TREE_H
#define TESTS_SUPPORT_ONE_TREE_H

#include "support/tree.h"

extern struct tree tree;

int tree_set_up(void **state);
int tree_tear_down(void **state);

#endif
