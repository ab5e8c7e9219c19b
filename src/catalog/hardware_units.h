/* Units of a hardware file as SI factors. */
#ifndef IPW_CATALOG_HARDWARE_UNITS_H
#define IPW_CATALOG_HARDWARE_UNITS_H

#define UNIT_tflops   1e12
#define UNIT_tops     1e12
#define UNIT_gflops   1e9
#define UNIT_gb_per_s 1e9
#define UNIT_tb_per_s 1e12
#define UNIT_mb_per_s 1e6
#define UNIT_gib      (1024.0 * 1024 * 1024)
#define UNIT_mib      (1024.0 * 1024)
#define UNIT_kib      1024.0
#define UNIT_gb       1e9
#define UNIT_mb       1e6
#define UNIT_pj       1e-12
#define UNIT_nj       1e-9
#define UNIT_w        1.0
#define UNIT_mw       1e-3
#define UNIT_us       1e-6
#define UNIT_ns       1e-9
#define UNIT_ms       1e-3

#endif
