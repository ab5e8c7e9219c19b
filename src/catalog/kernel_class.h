/* Classes of kernels and what each attains on a device (kernels.def).  Plain data. */
#ifndef IPW_CATALOG_KERNEL_CLASS_H
#define IPW_CATALOG_KERNEL_CLASS_H

enum kernel_class {
#define KERNEL(constant, name) KERNEL_##constant,
#include "catalog/kernels.def"
#undef KERNEL
    KERNEL_COUNT
};
const char *kernel_class_name(enum kernel_class class);

/* A kernel takes `fixed` beside its work; products attain `compute_share` of the peak of the units in full tiles and
 * wait `depth` for each element of the sum; rows are distributed to the units at `row` each; `active` is what busy
 * units draw beside the joules of operations and bytes. */
struct kernel_figures {
    double fixed_s, compute_share, memory_share, depth_s, row_s, active_w;
};

#endif
