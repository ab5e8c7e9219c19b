/* What a program that somebody else wrote (a model's shell command) may do: it opens no socket, looks into no other
 * process, writes only in its directory and reads only that and what programs need to run.  All of it is held by the
 * kernel (seccomp, Landlock), and by whatever the program starts. */
#ifndef IPW_PORT_CONFINE_H
#define IPW_PORT_CONFINE_H

#include <stdbool.h>

#include "core/err.h"

/* Can the kernel hold it at all?  Without seccomp it cannot. */
enum err confine_available(struct error *why) MUST_USE;

/* And its files too?  ERR_UNSUPPORTED without Landlock (Linux 5.13): it may then read and write what this user may. */
enum err confine_files_available(struct error *why) MUST_USE;

/* The files that it may use: the directory (a descriptor; -1: none), `readable` (paths, NULL-terminated; may be NULL; those
 * that do not exist are left out) and the system's.  *out is a descriptor for confine_self, which the caller closes; -1
 * where the kernel has no Landlock. */
enum err confine_files(int directory, const char *const *readable, int *out, struct error *why)
    MUST_USE;

/* Confines the calling process, between fork and execve: it makes system calls only.  False with errno. */
bool confine_self(int files);

/* Between the two, which nest, programs of the same user can read neither our memory nor our environment, which may hold
 * keys; those of root that are not confined can. */
void confine_guard(void);
void confine_unguard(void);

#endif
