/* A fake machine: a temporary directory that replaces / through the root prefix. tree_new creates
 * it and points port/fs at it; tree_free removes it and restores the real root. */
#ifndef TESTS_SUPPORT_TREE_H
#define TESTS_SUPPORT_TREE_H

struct tree {
    char root[128];
};

void tree_new(struct tree *tree);
void tree_free(struct tree *tree);

/* Creates parents and (over)writes the file with text, in one write, as in sysfs. */
void tree_write(struct tree *tree, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tree_write_bytes(struct tree *tree, const char *path, long offset, const void *bytes,
                      unsigned long length);
void tree_link(struct tree *tree, const char *path, const char *target);
void tree_remove(struct tree *tree, const char *path); /* a file or a whole directory */
/* Creates directories in the tree until the path of the last one has `length` bytes; the caller frees the path. */
char *tree_deep(struct tree *tree, unsigned long length);
void tree_mode(struct tree *tree, const char *path, unsigned mode);

#endif
