/* Fake boards and hosts for the drivers that read files: each call writes into the caller's tree,
 * so a test can build one and then damage it. */
#ifndef TESTS_SUPPORT_BOARDS_H
#define TESTS_SUPPORT_BOARDS_H

#include "support/tree.h"

/* A Linux host: /proc/stat, /proc/meminfo, os-release, kernel names.  No processor yet. */
void board_host(struct tree *tree);
/* The first line of /proc/stat, in ticks; board_host starts at 0 busy, 1000 idle, 0 stolen. */
void board_cpu_times(struct tree *tree, unsigned busy, unsigned idle, unsigned stolen);

/* Processors for /proc/cpuinfo and sysfs. */
void board_x86(struct tree *tree, const char *vendor, unsigned family, unsigned model,
               const char *brand, unsigned threads, unsigned sockets, const char *more_flags);
void board_arm(struct tree *tree, unsigned implementer, unsigned part, unsigned cores);

/* /sys/class/hwmon/hwmon<n> with a name; add files with board_attribute. */
void board_chip(struct tree *tree, unsigned n, const char *name);
void board_attribute(struct tree *tree, unsigned n, const char *file, const char *text);

/* Jetson Orin Nano: one INA3221 (VDD_IN 6 W, VDD_CPU_GPU_CV 2 W, VDD_SOC 1.5 W), GPU temperature
 * 45.5 C, load 37.5 %, clock 624.75 MHz.  The monitor is hwmon1. */
void board_jetson_orin_nano(struct tree *tree);
/* Jetson AGX Orin: two INA3221 (hwmon1, hwmon2), no input rail; rails 10, 5, 4 and 1 W, two not
 * connected. */
void board_jetson_agx_orin(struct tree *tree);

/* Grace, one or two sockets: four ACPI meters per socket, hwmon0 upwards, in the order module (500
 * W), Grace (200 W), CPU (150 W), SysIO (50 W); one watt more for each socket number. */
void board_grace(struct tree *tree, unsigned sockets);
/* The same host before the module of the meters is loaded. */
void board_grace_without_meters(struct tree *tree);

#endif
