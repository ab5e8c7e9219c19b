/* Files of the kernel, on machines of every kind: one of them has the input as its content.  The sensors that read
 * files, the processes and the saved state of a GPU report what is there, or why nothing is. */
#define _GNU_SOURCE
#include "fuzz/fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#include "port/fs.h"
#include "port/proc_tree.h"
#include "runner/gpu_control.h"
#include "sensors/registry.h"
#include "support/boards.h"
#include "support/machines.h"

enum { MACHINES = 6, FILES_MAX = 96, CONTENT_MAX = 4096, READINGS_MAX = 256 };

static struct machine {
    struct tree tree;
    char *files[FILES_MAX];
    size_t count;
} machines[MACHINES], *building;

static int add_file(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status, (void)at;
    if (type == FTW_F && building->count < FILES_MAX)
        building->files[building->count++] = strdup(path);
    return 0;
}

static void add_processes(struct tree *tree)
{
    tree_write(tree, "/proc/7/stat",
               "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 12 34 5 6 20 0 1 0 99 1 1\n");
    tree_write(tree, "/proc/7/comm", "a b\n");
    tree_write(tree, "/proc/7/cgroup", "1:cpu,cpuacct:/old\n0::/system.slice/x.service\n");
    tree_write(tree, "/proc/net/tcp",
               "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
               "timeout inode\n"
               "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0  "
               "      0 5\n");
    tree_write(tree, "/run/ipw/GPU-1.state",
               "ipw-gpu-state 1\nuuid GPU-1\ngraphics unlocked\nlimit 300\n");
}

static void build(void)
{
    for (int i = 0; i < MACHINES; i++) {
        building = &machines[i];
        struct tree *tree = &building->tree;
        tree_new(tree);
        if (i == 0)
            machine_intel_two_socket(tree, MACHINE_PERF | MACHINE_POWERCAP | MACHINE_MSR);
        else if (i == 1)
            machine_intel_client(tree);
        else if (i == 2)
            machine_amd(tree, MACHINE_PERF | MACHINE_POWERCAP | MACHINE_MSR);
        else if (i == 3)
            board_jetson_orin_nano(tree);
        else if (i == 4)
            board_grace(tree, 1);
        else
            board_host(tree);
        add_processes(tree);
        nftw(tree->root, add_file, 8, FTW_PHYS);
    }
}

static void remove_machines(void)
{
    for (int i = 0; i < MACHINES; i++) {
        tree_free(&machines[i].tree);
        for (size_t k = 0; k < machines[i].count; k++)
            free(machines[i].files[k]);
    }
}

static void read_sensors(const char *driver)
{
    struct sensor_findings findings = {0};
    sensors_probe(&(struct sensor_config){0}, driver, &findings);
    for (size_t i = 0; i < findings.count && i < 6; i++) {
        const struct sensor_finding *finding = &findings.items[i];
        struct observation items[READINGS_MAX];
        struct observations out = {.items = items, .capacity = READINGS_MAX};
        struct sensor sensor;
        struct error why = {0};
        fuzz_check(finding->status <= SENSOR_ESTIMATED || finding->reason[0]);
        if (finding->status > SENSOR_ESTIMATED)
            continue;
        enum err err = sensor_open(finding, &sensor, &why);
        fuzz_check_error(err, &why);
        for (unsigned group = 0; !err && group < sensor.group_count; group++)
            (void)sensor.driver->read(&sensor, group, &out);
        if (!err)
            sensor_close(&sensor);
    }
    sensor_findings_release(&findings);
}

static void read_processes(void)
{
    int pids[PROC_LISTENERS_MAX], ancestry[PROC_ANCESTRY_MAX];
    char name[16], cgroup[64];
    struct proc_time *times = NULL;
    (void)proc_listeners(8080, pids);
    (void)proc_ancestry(7, ancestry);
    proc_name(7, name, sizeof name);
    proc_cgroup(7, cgroup, sizeof cgroup);
    (void)proc_times(&times);
    free(times);
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    fuzz_check(file && (!length || fwrite(bytes, 1, length, file) == length) && !fclose(file));
}

static void run(const char *bytes, size_t length)
{
    static const char *const DRIVERS[] = {"rapl", "rapl", "rapl", "jetson", "hwmon", "host"};
    char before[CONTENT_MAX];
    struct gpu_restored restored;
    struct error why = {0};
    if (!building) {
        build();
        atexit(remove_machines);
    }
    unsigned machine = fuzz_choose(&bytes, &length, MACHINES);
    fs_set_root(machines[machine].tree.root);
    const char *path =
        machines[machine].files[fuzz_choose(&bytes, &length, (unsigned)machines[machine].count)];
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(before, 1, sizeof before, file) : 0;
    fuzz_check(file && !fclose(file));
    write_file(path, bytes, length);
    read_sensors(DRIVERS[machine]);
    read_sensors("host");
    read_sensors("cpu_model");
    read_processes();
    fuzz_check_error(gpu_control_restore(&restored, &why), &why);
    fs_set_root(NULL);
    write_file(path, before, size);
}

static void seeds(void)
{
    build();
    for (int i = 0; i < MACHINES; i++)
        for (size_t k = 0; k < machines[i].count; k++) {
            static char content[CONTENT_MAX];
            FILE *file = fopen(machines[i].files[k], "r");
            fuzz_check(file);
            content[0] = (char)('a' + k);
            size_t size = fread(content + 1, 1, 1024, file);
            fclose(file);
            if (i == 0 || k % 2 == (size_t)i % 2) /* many are the same */
                fuzz_seed_bytes(i, content, size + 1);
        }
    remove_machines();
}

static const char *const WORDS[] = {
    "18446744073709551615", "-1", "0x", "\n", "energy_uj", "0-3,7", "model name\t: ",
    "cpu family\t: ",       NULL};

const struct fuzz_target fuzz_machine = {.run = run, .seeds = seeds, .words = WORDS};
