#include "support/boards.h"

#include <stdio.h>
#include <string.h>

/* ---- hosts ---- */

void board_cpu_times(struct tree *tree, unsigned busy, unsigned idle, unsigned stolen)
{
    tree_write(tree, "/proc/stat", "cpu  %u 0 0 %u 0 0 0 %u 0 0\ncpu0 %u 0 0 %u 0 0 0 %u 0 0\n",
               busy, idle, stolen, busy, idle, stolen);
}

void board_host(struct tree *tree)
{
    board_cpu_times(tree, 0, 1000, 0);
    tree_write(tree, "/proc/meminfo",
               "MemTotal:       16384000 kB\nMemFree:         2000000 kB\n"
               "MemAvailable:   12288000 kB\nBuffers:          100000 kB\n");
    tree_write(tree, "/etc/os-release",
               "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n"
               "VERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\nID=debian\n");
    tree_write(tree, "/proc/sys/kernel/osrelease", "6.1.0-18-test\n");
    tree_write(tree, "/proc/sys/kernel/hostname", "testhost\n");
}

static void set_online(struct tree *tree, unsigned threads)
{
    if (threads > 1)
        tree_write(tree, "/sys/devices/system/cpu/online", "0-%u\n", threads - 1);
    else
        tree_write(tree, "/sys/devices/system/cpu/online", "0\n");
}

/* cpuinfo is longer than one tree_write can write, so it is written piece by piece. */
static long append(struct tree *tree, const char *path, long at, const char *text)
{
    tree_write_bytes(tree, path, at, text, strlen(text));
    return at + (long)strlen(text);
}

void board_x86(struct tree *tree, const char *vendor, unsigned family, unsigned model,
               const char *brand, unsigned threads, unsigned sockets, const char *more_flags)
{
    long at = 0;
    tree_remove(tree, "/proc/cpuinfo");
    for (unsigned i = 0; i < threads; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "processor\t: %u\nvendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\n"
                 "model name\t: %s\nstepping\t: 2\ncpu MHz\t\t: %u.000\nphysical id\t: %u\n"
                 "siblings\t: %u\ncore id\t\t: %u\nflags\t\t: fpu vme sse2 %s\n"
                 "power management:\n\n",
                 i, vendor, family, model, brand, 2000 + i * 100, i * sockets / threads,
                 threads / sockets, i, more_flags);
        at = append(tree, "/proc/cpuinfo", at, text);
    }
    set_online(tree, threads);
}

void board_arm(struct tree *tree, unsigned implementer, unsigned part, unsigned cores)
{
    long at = 0;
    tree_remove(tree, "/proc/cpuinfo");
    for (unsigned i = 0; i < cores; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "processor\t: %u\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve\n"
                 "CPU implementer\t: 0x%02x\nCPU architecture: 8\nCPU variant\t: 0x0\n"
                 "CPU part\t: 0x%03x\nCPU revision\t: 0\n\n",
                 i, implementer, part);
        at = append(tree, "/proc/cpuinfo", at, text);
    }
    set_online(tree, cores);
}

/* ---- chips ---- */

void board_attribute(struct tree *tree, unsigned n, const char *file, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%u/%s", n, file);
    tree_write(tree, path, "%s\n", text);
}

void board_chip(struct tree *tree, unsigned n, const char *name)
{
    board_attribute(tree, n, "name", name);
}

/* ---- Jetson ---- */

static void add_rail(struct tree *tree, unsigned chip, unsigned index, const char *label,
                     unsigned mv, int ma)
{
    char file[40], text[24];
    snprintf(file, sizeof file, "in%u_label", index);
    board_attribute(tree, chip, file, label);
    snprintf(file, sizeof file, "in%u_input", index);
    snprintf(text, sizeof text, "%u", mv);
    board_attribute(tree, chip, file, text);
    snprintf(file, sizeof file, "curr%u_input", index);
    snprintf(text, sizeof text, "%d", ma);
    board_attribute(tree, chip, file, text);
}

static void add_jetson(struct tree *tree, const char *model, const char *gpu_zone)
{
    board_host(tree);
    tree_write(tree, "/etc/nv_tegra_release", "# R36 (release), REVISION: 3.0\n");
    tree_write_bytes(tree, "/proc/device-tree/model", 0, model, strlen(model) + 1);
    static const char COMPATIBLE[] = "nvidia,p3768-0000+p3767-0005\0nvidia,tegra234";
    tree_write_bytes(tree, "/proc/device-tree/compatible", 0, COMPATIBLE, sizeof COMPATIBLE);
    board_arm(tree, 0x41, 0xd42, 6);
    tree_write(tree, "/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
    tree_write(tree, "/sys/class/thermal/thermal_zone0/temp", "47250\n");
    tree_write(tree, "/sys/class/thermal/thermal_zone1/type", "%s\n", gpu_zone);
    tree_write(tree, "/sys/class/thermal/thermal_zone1/temp", "45500\n");
    tree_write(tree, "/sys/class/devfreq/17000000.gpu/device/load", "375\n");
    tree_write(tree, "/sys/class/devfreq/17000000.gpu/cur_freq", "624750000\n");
}

void board_jetson_orin_nano(struct tree *tree)
{
    add_jetson(tree, "NVIDIA Jetson Orin Nano Developer Kit", "gpu-thermal");
    board_chip(tree, 0, "pwmfan");
    board_chip(tree, 1, "ina3221");
    add_rail(tree, 1, 1, "VDD_IN", 5000, 1200);
    add_rail(tree, 1, 2, "VDD_CPU_GPU_CV", 5000, 400);
    add_rail(tree, 1, 3, "VDD_SOC", 5000, 300);
    board_attribute(tree, 1, "in7_label", "sum of shunt voltages");
    board_attribute(tree, 1, "in7_input", "12");
    board_attribute(tree, 1, "update_interval", "7");
}

void board_jetson_agx_orin(struct tree *tree)
{
    add_jetson(tree, "NVIDIA Jetson AGX Orin Developer Kit", "GPU-therm");
    board_chip(tree, 1, "ina3221");
    add_rail(tree, 1, 1, "VDD_GPU_SOC", 20000, 500);
    add_rail(tree, 1, 2, "VDD_CPU_CV", 20000, 250);
    add_rail(tree, 1, 3, "VIN_SYS_5V0", 5000, 800);
    board_chip(tree, 2, "ina3221");
    add_rail(tree, 2, 1, "NC", 5000, 0);
    add_rail(tree, 2, 2, "VDDQ_VDD2_1V8AO", 5000, 200);
    add_rail(tree, 2, 3, "NC", 5000, 0);
}

/* ---- Grace ---- */

void board_grace_without_meters(struct tree *tree)
{
    board_host(tree);
    board_arm(tree, 0x41, 0xd4f, 4);
    tree_write(tree, "/sys/class/dmi/id/sys_vendor", "NVIDIA\n");
    tree_write(tree, "/sys/class/dmi/id/product_name", "Grace Hopper x4 P4496\n");
    tree_write(tree, "/sys/devices/soc0/soc_id", "jep106:036b:0241\n");
}

void board_grace(struct tree *tree, unsigned sockets)
{
    static const struct {
        const char *part;
        unsigned watts;
    } METERS[] = {{"Module", 500}, {"Grace", 200}, {"CPU", 150}, {"SysIO", 50}};
    board_grace_without_meters(tree);
    for (unsigned s = 0; s < sockets; s++)
        for (unsigned m = 0; m < 4; m++) {
            char text[48];
            unsigned n = s * 4 + m;
            /* The driver's old layout: everything in the parent device, including the name. */
            board_attribute(tree, n, "device/name", "power_meter");
            snprintf(text, sizeof text, "%u", (METERS[m].watts + s) * 1000000);
            board_attribute(tree, n, "device/power1_average", text);
            board_attribute(tree, n, "device/power1_average_interval", "50");
            snprintf(text, sizeof text, "%s Power Socket %u", METERS[m].part, s);
            board_attribute(tree, n, "device/power1_oem_info", text);
        }
}
