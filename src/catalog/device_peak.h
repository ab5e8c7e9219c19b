/* What an accelerator can do at most: arithmetic and memory, as its maker publishes them.  Pure over
 * a table (device_peaks.def); the caller owns the struct, strings are static. */
#ifndef IPW_CATALOG_DEVICE_PEAK_H
#define IPW_CATALOG_DEVICE_PEAK_H

#include <stdbool.h>

struct device_peak {
    double tflops;         /* dense matrix TFLOPS in `precision`; UNKNOWN where not published */
    double gb_per_s;       /* memory bandwidth, 10^9 bytes a second; UNKNOWN where it depends */
    const char *precision; /* "bf16", or "fp16" where the device has no matrix unit for bf16 */
    const char *name;      /* the row that fits: "H100 NVL" */
    const char *source;
};

/* By the name that the driver gives ("NVIDIA H100 80GB HBM3").  Every word of a row must stand in the
 * name, and what else stands there must not tell of another product: "RTX 4070" does not fit
 * "RTX 4070 Ti", nor "RTX 4090" a laptop's.  Of several rows the one with the most words wins.
 * False, with both figures UNKNOWN, for a device that is not in the table and for a part of one (MIG). */
bool device_peak_find(const char *gpu_name, struct device_peak *out);

#endif
