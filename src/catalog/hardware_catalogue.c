/* The files of data/hardware, put in by the build: hardware_files.def has a line for each, sorted. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "core/registry.h"
#include "core/text.h"
#include "catalog/device_peak.h"
#include "catalog/hardware.h"

/* The assembler copies a file as it stands, and a NUL behind it. */
#define HARDWARE_FILE(label, id, path)                                                             \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden " #label "\n.hidden " #label "_end\n"                                         \
            ".globl " #label "\n.globl " #label "_end\n" #label ":\n.incbin \"" path "\"\n" #label \
            "_end:\n.byte 0\n"                                                                     \
            ".popsection\n");                                                                      \
    extern const char label[] __attribute__((visibility("hidden")));                               \
    extern const char label##_end[] __attribute__((visibility("hidden")));
#include "catalog/hardware_files.def"
#undef HARDWARE_FILE

static const struct {
    const char *id, *begin, *end;
} FILES[] = {
#define HARDWARE_FILE(label, id, path) {id, label, label##_end},
#include "catalog/hardware_files.def"
#undef HARDWARE_FILE
};
enum { FILE_COUNT = sizeof FILES / sizeof *FILES };

size_t hardware_catalogue_count(void)
{
    return FILE_COUNT;
}

const char *hardware_catalogue_id(size_t index)
{
    return FILES[index].id;
}

const char *hardware_catalogue_text(size_t index)
{
    return FILES[index].begin;
}

static enum err parse(size_t index, struct hardware *out, struct error *why)
{
    /* As numbers: to the compiler the two are different objects. */
    size_t length = (size_t)((uintptr_t)FILES[index].end - (uintptr_t)FILES[index].begin);
    return hardware_parse(FILES[index].id, FILES[index].begin, length, out, why);
}

static bool has_alias(const struct hardware *hardware, const char *name)
{
    for (const char **alias = hardware->aliases; *alias; alias++)
        if (str_equal_nocase(*alias, name))
            return true;
    return false;
}

/* Could it be among the aliases?  Looked up in the text, where each stands as it is, in quotes. */
static bool may_have_alias(const char *text, const struct text *quoted)
{
    const char *at = strstr(text, "\"aliases\"");
    for (; at && *at && *at != ']'; at++)
        if (*at == '"' && strncasecmp(at, quoted->bytes, quoted->length) == 0)
            return true;
    return false;
}

/* ERR_NOT_FOUND when none has the alias.  Only files whose text has it are parsed. */
static enum err find_alias(const char *name, struct hardware *out, struct error *why)
{
    struct text quoted = {0};
    enum err err = ERR_NOT_FOUND;
    text_addf(&quoted, "\"%s\"", name);
    for (size_t i = 0; i < FILE_COUNT && err == ERR_NOT_FOUND && !quoted.failed; i++) {
        if (!may_have_alias(FILES[i].begin, &quoted))
            continue;
        err = parse(i, out, why);
        if (!err && !has_alias(out, name)) {
            hardware_release(out);
            err = ERR_NOT_FOUND;
        }
    }
    text_release(&quoted);
    return err;
}

static enum err find_whole(const char *name, struct hardware *out, struct error *why)
{
    for (size_t i = 0; i < FILE_COUNT; i++)
        if (str_equal_nocase(FILES[i].id, name))
            return parse(i, out, why);
    return name[0] ? find_alias(name, out, why) : ERR_NOT_FOUND;
}

static enum err suggest(const char *name, struct error *why)
{
    const char *ids[FILE_COUNT];
    for (size_t i = 0; i < FILE_COUNT; i++)
        ids[i] = FILES[i].id;
    const char *near = nearest_name(name, ids, FILE_COUNT);
    if (near)
        return err_set(why, ERR_NOT_FOUND, "no hardware '%s': did you mean '%s'?", name, near);
    return err_set(why, ERR_NOT_FOUND, "no hardware '%s': see `ipw list hardware`", name);
}

enum err hardware_find(const char *id, struct hardware *out, struct error *why)
{
    struct text device = {0};
    const char *point = strrchr(id, '@');
    *out = (struct hardware){0};
    enum err err = find_whole(id, out, why); /* a processor's own name may hold an '@' */
    if (err == ERR_NOT_FOUND && point) {
        text_add_bytes(&device, id, (size_t)(point - id));
        err = find_whole(text_get(&device), out, why);
        if (err == ERR_NOT_FOUND)
            err = suggest(text_get(&device), why);
        else if (!err)
            err = hardware_at_point(out, point + 1, why);
        if (err)
            hardware_release(out);
    } else if (err == ERR_NOT_FOUND) {
        err = suggest(id, why);
    }
    text_release(&device);
    return err;
}

/* The table of peaks and the catalogue may mean different things by one name: a module, and the half of it
 * that a driver calls a device. */
static bool is_same(const struct hardware *hardware, const struct device_peak *peak)
{
    enum precision precision, used;
    struct error why;
    if (!is_known(peak->tflops) || precision_find(peak->precision, &precision, &why))
        return true;
    double flops = hardware_product_flops(hardware, precision, &used);
    return fabs(flops / (peak->tflops * 1e12) - 1) < 0.01;
}

bool hardware_of_device(const char *driver_name, struct hardware *out)
{
    struct device_peak peak;
    struct error why;
    *out = (struct hardware){0};
    if (find_whole(driver_name, out, &why) == ERR_OK)
        return true;
    /* Drivers add words that tell nothing; the table of peaks knows which. */
    if (!device_peak_find(driver_name, &peak) || find_whole(peak.name, out, &why))
        return false;
    if (is_same(out, &peak))
        return true;
    hardware_release(out);
    return false;
}
