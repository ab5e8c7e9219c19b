/* Lack of memory ends the program here (core/memory.h): with one line on standard error, after the last actions, and
 * with status 1.  What must survive it is in one of three hands: a last action (the journal is flushed, the terminal
 * restored, the measured command gets SIGTERM), a watchdog process (clocks, port/proc.h), or the kernel (helpers get
 * SIGTERM, and supervised programs end, when we do). */
#ifndef IPW_PORT_OUT_OF_MEMORY_H
#define IPW_PORT_OUT_OF_MEMORY_H

#include <stddef.h>

/* From now on lack of memory ends this program: call first in main.  `name` begins the message. */
void out_of_memory_install(const char *name);

/* Runs on lack of memory, the last added first, in the thread that needed memory.  It must not wait for a lock, which
 * that thread may hold; a little memory, which was kept for this, can be allocated.  The caller owns it until
 * last_action_remove. */
struct last_action {
    void (*run)(void *context);
    void *context;
    struct last_action *next; /* private */
};
void last_action_add(struct last_action *action);
void last_action_remove(struct last_action *action);

#endif
