#define _GNU_SOURCE
#include "support/tree.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/fs.h"

static void must(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

void tree_new(struct tree *tree)
{
    const char *base = getenv("TMPDIR");
    snprintf(tree->root, sizeof tree->root, "%s/ipw-tree-XXXXXX", base ? base : "/tmp");
    must(mkdtemp(tree->root) != NULL, "mkdtemp");
    fs_set_root(tree->root);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void tree_free(struct tree *tree)
{
    remove_tree(tree->root);
    fs_set_root(NULL);
}

static void full_path(struct tree *tree, const char *path, char *to, size_t size)
{
    snprintf(to, size, "%s%s", tree->root, path);
}

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
}

void tree_write_bytes(struct tree *tree, const char *path, long offset, const void *bytes,
                      unsigned long length)
{
    char full[512];
    full_path(tree, path, full, sizeof full);
    make_parents(full);
    int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(fd >= 0, full);
    must(pwrite(fd, bytes, length, offset) == (ssize_t)length, full);
    close(fd);
}

void tree_write(struct tree *tree, const char *path, const char *format, ...)
{
    char text[2048], full[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    must(length >= 0 && (size_t)length < sizeof text, path);
    full_path(tree, path, full, sizeof full);
    make_parents(full);
    /* The same inode (an open descriptor must see it), one write, then truncated: as with sysfs, a
     * reader never finds an empty file in between. */
    int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(fd >= 0, full);
    must(pwrite(fd, text, (size_t)length, 0) == length, full);
    must(ftruncate(fd, length) == 0, full);
    close(fd);
}

void tree_link(struct tree *tree, const char *path, const char *target)
{
    char full[512];
    full_path(tree, path, full, sizeof full);
    make_parents(full);
    must(symlink(target, full) == 0, full);
}

void tree_remove(struct tree *tree, const char *path)
{
    char full[512];
    full_path(tree, path, full, sizeof full);
    remove_tree(full);
}

char *tree_deep(struct tree *tree, unsigned long length)
{
    enum { PART = 100 }; /* of a path between two slashes, at most */
    char *path = malloc(length + 2);
    must(path != NULL, "malloc");
    size_t at = strlen(tree->root);
    memcpy(path, tree->root, at);
    for (size_t part = 0; at < length; at++, part++)
        path[at] = part % PART ? 'd' : '/';
    if (path[at - 1] == '/')
        path[at - 1] = 'd';
    path[at] = '/';
    path[at + 1] = '\0';
    make_parents(path);
    path[at] = '\0';
    return path;
}

void tree_mode(struct tree *tree, const char *path, unsigned mode)
{
    char full[512];
    full_path(tree, path, full, sizeof full);
    must(chmod(full, mode) == 0, full);
}
