/* System files under a root prefix.  Every /sys, /proc and /dev path in the program goes through here, so that a test
 * (or a container with the host mounted elsewhere) can replace the machine: set the root once, before any other call.
 * The caller owns what it passes and every file descriptor it gets. */
#ifndef IPW_PORT_FS_H
#define IPW_PORT_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

/* For paths below the root: the kernel names all their parts, and those in /sys and /proc are much shorter. */
#define FS_PATH_MAX 512

/* NULL or "" means the real machine.  A trailing slash is dropped.  The root may be as long as the kernel takes it. */
void fs_set_root(const char *root);
const char *fs_root(void); /* "" for the real machine */

bool fs_exists(const char *path);

/* Opens for reading (close on exec).  On failure *out is -1.  A counter that this user may not read is read through
 * ipw-reader if that runs: *out then works with fs_pread_u64 and fs_pread_i64 only. */
enum err fs_open(const char *path, int *out) MUST_USE;

/* Reads a small text file completely and trims it; longer than size-1 bytes is ERR_BAD_VALUE. */
enum err fs_read_text(const char *path, char *to, size_t size) MUST_USE;
enum err fs_read_u64(const char *path, uint64_t *out) MUST_USE;
enum err fs_read_i64(const char *path, int64_t *out) MUST_USE;

/* The hot path: pread from the start of an open attribute file and parse it, with no allocation
 * and no locale.  An empty, half-written, negative or non-numeric file is ERR_BAD_VALUE. */
enum err fs_pread_u64(int fd, uint64_t *out) MUST_USE;
enum err fs_pread_i64(int fd, int64_t *out) MUST_USE;

/* Names in a directory, sorted with numbers in numeric order ("hwmon2" before "hwmon10"),
 * without . and ..; release with fs_names_release. */
struct fs_names {
    char **items;
    size_t count;
};
enum err fs_list(const char *path, struct fs_names *out) MUST_USE;
void fs_names_release(struct fs_names *names);

/* As readlink, with a NUL. */
ssize_t fs_read_link(const char *path, char *to, size_t size);

/* The canonical path of a (symbolic) path, without the root prefix. */
enum err fs_real(const char *path, char *to, size_t size) MUST_USE;

#endif
