/* The short hardware name that run directories carry ("H10080GB", "EPYC9654"), compatible with the
 * runs of the Python IPW: its rules are kept to the letter, odd results included, so that old and
 * new runs of one machine get one name.  Pure; the caller owns the buffers. */
#ifndef IPW_CORE_HARDWARE_LABEL_H
#define IPW_CORE_HARDWARE_LABEL_H

#include <stddef.h>

/* gpu_name is the aggregate name ("NVIDIA H200 x8"), cpu_brand the model name; either may be NULL
 * or "".  Writes "UNKNOWN_HW" when neither gives a label.  Cuts what does not fit. */
void hardware_label(const char *gpu_name, const char *cpu_brand, char *to, size_t size);

#endif
