/* Peak arithmetic and memory rates of accelerators, for MFU and MBU, from data/hardware (catalog/catalog_file.h).  The
 * caller owns the struct, strings are the catalog's.
 *
 * The arithmetic rate is that of dense matrix products accumulated in 32 bits, as language models run; vendors'
 * headlines often state the sparse rate, twice this. */
#ifndef IPW_CATALOG_DEVICE_PEAK_H
#define IPW_CATALOG_DEVICE_PEAK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct hardware;

struct device_peak {
    double tflops; /* dense matrix TFLOPS in `precision`; UNKNOWN where not published */
    double
        gb_per_s; /* memory bandwidth, 10^9 bytes per second; UNKNOWN where one name has several */
    const char *precision; /* "bf16", or "fp16" where the device has no matrix unit for bf16 */
    const char *name;      /* the matching row: "H100 NVL" */
    const char *hardware;  /* id of the device in the catalog; NULL: it has only peaks */
    const char *source;
};

/* Finds a device by the name that the driver reports ("NVIDIA H100 80GB HBM3").  Every word of a row must occur in the
 * name, and the other words of the name must not denote another product: "RTX 4070" does not match "RTX 4070 Ti", nor
 * "RTX 4090" the laptop GPU.  Of several rows the one with the most words wins.  False, with both figures UNKNOWN, for
 * a device that is not in the table and for a partition (MIG). */
bool device_peak_find(const char *gpu_name, struct device_peak *out);

/* The device of the catalog by the name that a driver reports ("NVIDIA H200"); false when none fits. */
bool hardware_find_device(const char *driver_name, struct hardware *out);

#endif
