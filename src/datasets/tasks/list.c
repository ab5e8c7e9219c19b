#include "datasets/tasks/task.h"

#include <stddef.h>

#define TASK(name) extern const struct task task_##name;
#include "datasets/tasks/tasks.def"
#undef TASK

const struct task *const BUILTIN_TASKS[] = {
#define TASK(name) &task_##name,
#include "datasets/tasks/tasks.def"
#undef TASK
    NULL,
};
