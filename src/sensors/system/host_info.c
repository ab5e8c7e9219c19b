/* The machine according to /proc and /sys: its properties, and its CPU time. */
#include "sensors/system/host_info.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "catalog/cpu_power.h"
#include "core/text.h"
#include "core/units.h"
#include "port/fs.h"

/* ---- /proc/cpuinfo ---- */

enum { SOCKET_IDS = 1024 };

static unsigned number(const char *text)
{
    return (unsigned)strtoul(text, NULL, 0);
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void count_socket(struct cpu_identity *cpu, uint64_t *seen, const char *value)
{
    unsigned id = number(value) % SOCKET_IDS;
    uint64_t bit = (uint64_t)1 << (id % 64);
    if (seen[id / 64] & bit)
        return;
    seen[id / 64] |= bit;
    cpu->sockets++;
}

/* Fields that are the same for every processor are taken from the first. */
static void take_first(struct cpu_identity *cpu, const char *key, const char *value)
{
    if (str_equal(key, "vendor_id") && !cpu->vendor[0])
        chars_copy(cpu->vendor, value);
    else if (str_equal(key, "cpu family") && !cpu->family)
        cpu->family = number(value);
    else if (str_equal(key, "model") && !cpu->model)
        cpu->model = number(value);
    else if (str_equal(key, "CPU implementer") && !cpu->implementer)
        cpu->implementer = number(value);
    else if (str_equal(key, "CPU part") && !cpu->part)
        cpu->part = number(value);
    else if ((str_equal(key, "flags") || str_equal(key, "Features")) &&
             has_word(value, "hypervisor"))
        cpu->hypervisor = true;
}

/* "model name" on x86, "cpu" on POWER, "uarch" on RISC-V. */
static void take_brand(struct cpu_identity *cpu, const char *key, const char *value)
{
    bool is_brand =
        str_equal(key, "model name") || str_equal(key, "cpu") || str_equal(key, "uarch");
    if (is_brand && !cpu->brand[0] && !str_equal_nocase(value, "unknown"))
        chars_copy(cpu->brand, value);
}

static void take_line(struct cpu_identity *cpu, uint64_t *sockets_seen, char *line)
{
    char *colon = strchr(line, ':');
    if (!colon)
        return;
    *colon = '\0';
    const char *key = str_trim(line);
    const char *value = str_trim(colon + 1);
    if (str_equal(key, "processor")) {
        cpu->processors++;
    } else if (str_equal(key, "physical id")) {
        count_socket(cpu, sockets_seen, value);
    } else {
        take_first(cpu, key, value);
        take_brand(cpu, key, value);
    }
}

/* Reads all processors, or only the first: the whole file of a large server is half a megabyte. */
static enum err read_cpuinfo(struct cpu_identity *out, bool first_only)
{
    *out = (struct cpu_identity){0};
    int fd;
    enum err err = fs_open("/proc/cpuinfo", &fd);
    if (err)
        return err;
    FILE *file = fdopen(fd, "r");
    if (!file) {
        close(fd);
        return ERR_NO_MEMORY;
    }
    uint64_t sockets_seen[SOCKET_IDS / 64] = {0};
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) >= 0) {
        if (first_only && line[0] == '\n')
            break; /* a blank line ends a processor */
        take_line(out, sockets_seen, line);
    }
    free(line);
    fclose(file);
    return ERR_OK;
}

void cpu_identity_read(struct cpu_identity *out)
{
    if (read_cpuinfo(out, true))
        *out = (struct cpu_identity){0};
}

/* ---- the host ---- */

/* Reads a file into a fixed field; "" when it is not there.  Device tree strings end in a NUL,
 * which fs_read_text takes for the end, so they need nothing more. */
static bool read_field(const char *path, char *to, size_t size)
{
    if (fs_read_text(path, to, size)) {
        to[0] = '\0';
        return false;
    }
    return to[0] != '\0';
}

/* The value of a `KEY=value` or `KEY="value"` line. */
static void shell_value(const char *text, const char *key, char *to, size_t size)
{
    size_t length = strlen(key);
    to[0] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || line[length] != '=')
            continue;
        const char *value = line + length + 1;
        size_t end = strcspn(value, "\n");
        if (end >= 2 && (value[0] == '"' || value[0] == '\'') && value[end - 1] == value[0]) {
            value++;
            end -= 2;
        }
        str_format(to, size, "%.*s", (int)end, value);
        return;
    }
}

static void read_os(struct host_info *host)
{
    char text[4096];
    if (!read_field("/etc/os-release", text, sizeof text) &&
        !read_field("/usr/lib/os-release", text, sizeof text))
        return;
    shell_value(text, "NAME", host->os_name, sizeof host->os_name);
    shell_value(text, "VERSION", host->os_version, sizeof host->os_version);
    if (!host->os_version[0])
        shell_value(text, "VERSION_ID", host->os_version, sizeof host->os_version);
}

/* uname describes the machine we run on; under a root prefix the files describe another one. */
static void read_kernel(struct host_info *host)
{
    struct utsname names;
    if (!fs_root()[0] && uname(&names) == 0) {
        chars_copy(host->kernel, names.release);
        chars_copy(host->host_name, names.nodename);
        chars_copy(host->machine, names.machine);
        return;
    }
    read_field("/proc/sys/kernel/osrelease", host->kernel, sizeof host->kernel);
    read_field("/proc/sys/kernel/hostname", host->host_name, sizeof host->host_name);
    if (read_field("/proc/sys/kernel/arch", host->machine, sizeof host->machine))
        return;
    if (host->cpu.vendor[0])
        chars_copy(host->machine, "x86_64");
    else if (host->cpu.implementer)
        chars_copy(host->machine, "aarch64");
}

/* How many CPUs are in a list such as "0-3,8,10-11"; 0 when it is not such a list. */
static unsigned count_list(const char *list)
{
    unsigned count = 0;
    while (isdigit((unsigned char)*list)) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtoul(end + 1, &end, 10);
        if (last < first || last - first > 65536)
            return 0;
        count += (unsigned)(last - first + 1);
        if (*end == '\0')
            return count;
        if (*end != ',')
            return 0;
        list = end + 1;
    }
    return 0;
}

/* Distinct package numbers in sysfs, for kernels whose cpuinfo has no "physical id". */
static unsigned count_packages(void)
{
    enum { PACKAGES_MAX = 32 };
    int64_t seen[PACKAGES_MAX];
    unsigned count = 0;
    struct fs_names names;
    if (fs_list("/sys/devices/system/cpu", &names))
        return 0;
    for (size_t i = 0; i < names.count; i++) {
        char path[FS_PATH_MAX];
        int64_t package;
        const char *name = names.items[i];
        if (!str_starts(name, "cpu") || !isdigit((unsigned char)name[3]))
            continue;
        if (!chars_format(path, "/sys/devices/system/cpu/%s/topology/physical_package_id", name) ||
            fs_read_i64(path, &package))
            continue;
        unsigned j = 0;
        while (j < count && seen[j] != package)
            j++;
        if (j == count && count < PACKAGES_MAX)
            seen[count++] = package;
    }
    fs_names_release(&names);
    return count;
}

static void read_cpus(struct host_info *host)
{
    char list[256], active[8];
    if (read_field("/sys/devices/system/cpu/online", list, sizeof list))
        host->cpu_count = count_list(list);
    if (!host->cpu_count)
        host->cpu_count = host->cpu.processors;
    host->sockets = host->cpu.sockets ? host->cpu.sockets : count_packages();
    if (!host->sockets && host->cpu_count)
        host->sockets = 1;
    host->smt_off = read_field("/sys/devices/system/cpu/smt/active", active, sizeof active) &&
                    str_equal(active, "0");
}

static void read_memory(struct host_info *host)
{
    char text[8192];
    const char *line;
    if (read_field("/proc/meminfo", text, sizeof text) && (line = strstr(text, "MemTotal:")))
        host->memory_bytes = strtoull(line + strlen("MemTotal:"), NULL, 10) * 1024;
}

static void read_board(struct host_info *host)
{
    if (!read_field("/proc/device-tree/model", host->board, sizeof host->board))
        read_field("/sys/class/dmi/id/product_name", host->board, sizeof host->board);
}

/* NVIDIA's JEP106 code and the chip number of Grace, as the firmware interface reports them. */
static bool soc_id_is_grace(void)
{
    char id[64];
    return read_field("/sys/devices/soc0/soc_id", id, sizeof id) &&
           str_equal(id, "jep106:036b:0241");
}

static void read_cpu_names(struct host_info *host, const char *machine_vendor)
{
    const struct cpu_identity *cpu = &host->cpu;
    const char *product = cpu_product_name(machine_vendor, cpu->implementer, cpu->part);
    if (soc_id_is_grace())
        product = "NVIDIA Grace";
    chars_copy(host->cpu_product, product);
    chars_copy(host->cpu_brand, cpu->brand);
    if (!host->cpu_brand[0])
        chars_copy(host->cpu_brand, cpu_core_name(cpu->implementer, cpu->part));
    if (!host->cpu_brand[0])
        chars_copy(host->cpu_brand, host->board);
}

/* x86 has a CPU flag for it.  Elsewhere only the firmware's names are available; clouds sell whole
 * machines under the same vendor name and mark those "metal". */
static bool is_virtual(const struct host_info *host, const char *machine_vendor)
{
    static const char *const VENDORS[] = {"QEMU",   "KVM",        "Xen",         "VMware, Inc.",
                                          "Google", "Amazon EC2", "innotek GmbH"};
    if (host->cpu.hypervisor || fs_exists("/proc/device-tree/hypervisor") ||
        str_contains_nocase(host->board, "virtual machine") ||
        str_starts(host->board, "linux,dummy-virt"))
        return true;
    if (host->cpu.vendor[0] || str_contains_nocase(host->board, "metal"))
        return false;
    return str_is_listed(machine_vendor, VENDORS, COUNT_OF(VENDORS));
}

void host_info_read(struct host_info *out)
{
    char machine_vendor[64];
    *out = (struct host_info){0};
    if (read_cpuinfo(&out->cpu, false))
        out->cpu = (struct cpu_identity){0};
    read_field("/sys/class/dmi/id/sys_vendor", machine_vendor, sizeof machine_vendor);
    read_os(out);
    read_kernel(out);
    read_cpus(out);
    read_memory(out);
    read_board(out);
    read_cpu_names(out, machine_vendor);
    out->virtualized = is_virtual(out, machine_vendor);
}

bool host_is_jetson(char *model, size_t size)
{
    char name[128], compatible[128];
    read_field("/proc/device-tree/model", name, sizeof name);
    if (model)
        str_copy(model, size, name);
    return fs_exists("/etc/nv_tegra_release") || str_contains_nocase(name, "jetson") ||
           (read_field("/proc/device-tree/compatible", compatible, sizeof compatible) &&
            str_starts(compatible, "nvidia,"));
}

bool host_is_grace(const struct host_info *host)
{
    static const char *const PRODUCTS[] = {"Grace", "GH200", "GB200", "GB300"};
    if (str_equal(host->cpu_product, "NVIDIA Grace"))
        return true;
    for (size_t i = 0; i < COUNT_OF(PRODUCTS); i++)
        if (host->cpu.implementer && str_contains_nocase(host->board, PRODUCTS[i]))
            return true;
    return false;
}

/* ---- CPU time ---- */

/* Columns of the first line, in the kernel's order; guest times follow and are inside user. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

enum err proc_stat_open(struct proc_stat *stat)
{
    *stat = (struct proc_stat){.fd = -1};
    return fs_open("/proc/stat", &stat->fd);
}

void proc_stat_close(struct proc_stat *stat)
{
    if (stat->fd >= 0)
        close(stat->fd);
    stat->fd = -1;
}

/* Reads the numbers after "cpu "; old kernels have fewer columns, the missing ones are 0. */
static enum err parse_line(const char *line, uint64_t columns[COLUMNS])
{
    if (strncmp(line, "cpu ", 4) != 0)
        return ERR_BAD_VALUE;
    const char *c = line + 4;
    int n = 0;
    for (; n < COLUMNS; n++) {
        while (*c == ' ')
            c++;
        if (*c < '0' || *c > '9')
            break;
        uint64_t value = 0;
        for (; *c >= '0' && *c <= '9'; c++)
            value = value * 10 + (uint64_t)(*c - '0');
        columns[n] = value;
    }
    bool ended = *c == ' ' || *c == '\n';
    return n > IDLE && ended ? ERR_OK : ERR_BAD_VALUE;
}

static enum err read_times(const struct proc_stat *stat, struct cpu_times *out)
{
    char text[256];
    ssize_t n;
    do
        n = pread(stat->fd, text, sizeof text - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_from_errno(errno);
    text[n] = '\0';
    uint64_t column[COLUMNS] = {0};
    enum err err = parse_line(text, column);
    if (err)
        return err;
    *out = (struct cpu_times){
        .busy = column[USER] + column[NICE] + column[SYSTEM] + column[IRQ] + column[SOFTIRQ],
        .idle = column[IDLE] + column[IOWAIT],
        .stolen = column[STEAL],
    };
    return ERR_OK;
}

enum err proc_stat_utilization(struct proc_stat *stat, double *out)
{
    struct cpu_times now;
    enum err err = read_times(stat, &now);
    if (err)
        return err;
    struct cpu_times last = stat->last;
    bool first = !stat->has_last;
    bool backwards =
        !first && (now.busy < last.busy || now.idle < last.idle || now.stolen < last.stolen);
    uint64_t busy = now.busy - last.busy;
    uint64_t all = busy + (now.idle - last.idle) + (now.stolen - last.stolen);
    if (!first && !backwards && all == 0)
        return ERR_BUSY;
    stat->last = now;
    stat->has_last = true;
    if (first || backwards)
        return ERR_NO_DATA;
    *out = (double)busy / (double)all;
    return ERR_OK;
}

bool proc_stat_now(struct cpu_times *out)
{
    struct proc_stat stat;
    enum err err = proc_stat_open(&stat);
    if (!err)
        err = read_times(&stat, out);
    proc_stat_close(&stat);
    return !err;
}

double proc_stat_busy_s(void)
{
    struct cpu_times times;
    return proc_stat_now(&times) ? (double)times.busy / (double)sysconf(_SC_CLK_TCK) : UNKNOWN;
}
