#include "sensors/system/cpuinfo.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "core/units.h"
#include "port/fs.h"

/* Sums kept while the file goes by. */
struct tally {
    uint64_t sockets_seen[16]; /* bit set of physical ids */
    double mhz_sum;
    unsigned mhz_count;
};

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

static void count_socket(struct cpu_identity *cpu, struct tally *tally, const char *value)
{
    unsigned id = number(value) % 1024;
    uint64_t bit = (uint64_t)1 << (id % 64);
    if (tally->sockets_seen[id / 64] & bit)
        return;
    tally->sockets_seen[id / 64] |= bit;
    cpu->sockets++;
}

/* Fields that are the same for every processor are taken from the first. */
static void take_first(struct cpu_identity *cpu, const char *key, const char *value)
{
    if (!strcmp(key, "vendor_id") && !cpu->vendor[0])
        str_copy(cpu->vendor, sizeof cpu->vendor, value);
    else if (!strcmp(key, "cpu family") && !cpu->family)
        cpu->family = number(value);
    else if (!strcmp(key, "model") && !cpu->model)
        cpu->model = number(value);
    else if (!strcmp(key, "CPU implementer") && !cpu->implementer)
        cpu->implementer = number(value);
    else if (!strcmp(key, "CPU part") && !cpu->part)
        cpu->part = number(value);
    else if ((!strcmp(key, "flags") || !strcmp(key, "Features")) && has_word(value, "hypervisor"))
        cpu->hypervisor = true;
}

/* "model name" on x86, "cpu" on POWER, "uarch" on RISC-V. */
static void take_brand(struct cpu_identity *cpu, const char *key, const char *value)
{
    bool is_brand = !strcmp(key, "model name") || !strcmp(key, "cpu") || !strcmp(key, "uarch");
    if (is_brand && !cpu->brand[0] && !str_equal_nocase(value, "unknown"))
        str_copy(cpu->brand, sizeof cpu->brand, value);
}

static void take_line(struct cpu_identity *cpu, struct tally *tally, char *line)
{
    char *colon = strchr(line, ':');
    if (!colon)
        return;
    *colon = '\0';
    const char *key = str_trim(line);
    const char *value = str_trim(colon + 1);
    double mhz;
    if (!strcmp(key, "processor")) {
        cpu->processors++;
    } else if (!strcmp(key, "physical id")) {
        count_socket(cpu, tally, value);
    } else if (!strcmp(key, "cpu MHz") && !parse_double(value, &mhz)) {
        tally->mhz_sum += mhz;
        tally->mhz_count++;
    } else {
        take_first(cpu, key, value);
        take_brand(cpu, key, value);
    }
}

enum err cpuinfo_read(struct cpu_identity *out)
{
    *out = (struct cpu_identity){.mhz = UNKNOWN};
    int fd;
    enum err err = fs_open("/proc/cpuinfo", &fd);
    if (err)
        return err;
    FILE *file = fdopen(fd, "r");
    if (!file) {
        close(fd);
        return ERR_NO_MEMORY;
    }
    struct tally tally = {0};
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) >= 0)
        take_line(out, &tally, line);
    free(line);
    fclose(file);
    if (tally.mhz_count)
        out->mhz = tally.mhz_sum / tally.mhz_count;
    return ERR_OK;
}
