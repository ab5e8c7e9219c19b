/* A tree that is created and removed for each test of a file. */
#ifndef TESTS_SUPPORT_TREE_FIXTURE_H
#define TESTS_SUPPORT_TREE_FIXTURE_H

#include "support/tree.h"

extern struct tree tree;

int tree_set_up(void **state);
int tree_tear_down(void **state);

#endif
