/* Sandbox for a program that we did not write (a model's shell command): it cannot open sockets or inspect other
 * processes, writes only to its own directory and reads only that and the files that programs need to run.
 * Enforced by the kernel (seccomp, Landlock) and inherited by its child processes. */
#ifndef IPW_PORT_CONFINE_H
#define IPW_PORT_CONFINE_H

#include <stdbool.h>

#include "core/err.h"

/* Whether the kernel can enforce the sandbox; it cannot without seccomp. */
enum err confine_available(struct error *why) MUST_USE;

/* Whether file access can be restricted too.  ERR_UNSUPPORTED without Landlock (Linux 5.13): the program can then
 * access the files that this user can. */
enum err confine_files_available(struct error *why) MUST_USE;

/* Prepares the file access rules: the directory (a descriptor; -1: none), `readable` (paths, NULL-terminated; may
 * be NULL; paths that do not exist are ignored) and system files.  *out is a descriptor for confine_self, closed by
 * the caller; -1 if the kernel has no Landlock. */
enum err confine_files(int directory, const char *const *readable, int *out, struct error *why)
    MUST_USE;

/* Confines the calling process, between fork and execve: makes async-signal-safe calls only.  False with errno. */
bool confine_self(int files);

/* Between the two calls, which nest, programs of the same user cannot read our memory or environment, which may
 * hold keys; unconfined programs of root can. */
void confine_guard(void);
void confine_unguard(void);

#endif
