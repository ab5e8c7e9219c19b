/* Names of run directories: profile_<hardware>_<model>_<dataset>, as the Python IPW names them
 * (docs/formats.md).  Pure; the caller owns the buffers. */
#ifndef IPW_RUNDIR_RUN_PATH_H
#define IPW_RUNDIR_RUN_PATH_H

#include <stddef.h>

/* The short hardware name that run directories carry ("H10080GB", "EPYC9654"), compatible with the
 * runs of the Python IPW: its rules are kept to the letter, odd results included, so that old and
 * new runs of one machine get one name.
 *
 * gpu_name is the aggregate name ("NVIDIA H200 x8"), cpu_brand the model name; either may be NULL
 * or "".  Writes "UNKNOWN_HW" when neither gives a label.  Cuts what does not fit. */
void hardware_label(const char *gpu_name, const char *cpu_brand, char *to, size_t size);

/* Each character that is neither letter nor digit becomes "_" (none is collapsed), those at the ends
 * are dropped; "model" when nothing is left.  UTF-8 letters and digits count as such. */
void model_slug(const char *model, char *to, size_t size);

/* The directory's name, without its parent.  The dataset's name stays as it is, but for "/". */
void run_dir_name(const char *hardware, const char *model, const char *dataset, char *to,
                  size_t size);

#endif
