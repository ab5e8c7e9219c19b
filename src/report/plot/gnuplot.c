#define _GNU_SOURCE
/* Drawing figures with gnuplot, a program found in PATH and never linked.  Characters that no font here has
 * are replaced by their code points first: a picture would show them as large boxes over their neighbors. */
#include "report/plot/gnuplot.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "port/file.h"
#include "port/output.h"
#include "port/proc.h"
#include "report/plot/figure.h"

/* ---- characters that no font has, as fontconfig reports them ---- */

static struct text
    covered; /* "20-7e a0-17f 6a21", a line per font; "" where fontconfig is missing */
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void ask(void)
{
    char program[1024], piece[4096];
    const char *const argv[] = {program, "--format", "%{charset}\n", NULL};
    struct text nothing = {0};
    FILE *file = proc_find("fc-list", program, sizeof program) ? NULL : tmpfile();
    if (!file)
        return;
    if (!proc_filter(argv, &nothing, fileno(file), NULL)) {
        size_t got = fseek(file, 0, SEEK_SET) == 0 ? sizeof piece : 0;
        while (got == sizeof piece) {
            got = fread(piece, 1, sizeof piece, file);
            text_add_bytes(&covered, piece, got);
        }
    }
    fclose(file);
}

static bool some_font_has(uint32_t code)
{
    pthread_once(&asked, ask);
    for (const char *at = text_get(&covered); *at;) {
        char *end;
        unsigned long low = strtoul(at, &end, 16), high = low;
        if (end == at) {
            at++;
            continue;
        }
        if (*end == '-')
            high = strtoul(end + 1, &end, 16);
        if (code >= low && code <= high)
            return true;
        at = end;
    }
    return false;
}

/* Latin, Greek, Cyrillic and the marks that go with them need not be asked for. */
static bool can_be_shown(uint32_t code)
{
    return code < 0x250 || (code >= 0x370 && code < 0x500) || (code >= 0x2010 && code < 0x2028) ||
           some_font_has(code);
}

/* ---- gnuplot ---- */

enum { PATH_LONGEST = 1024 };

static enum err find_gnuplot(char *path, struct error *why)
{
    if (proc_find("gnuplot", path, PATH_LONGEST))
        return err_set(why, ERR_UNSUPPORTED,
                       "no gnuplot in PATH; install gnuplot-nox (Debian, Ubuntu) or gnuplot");
    return ERR_OK;
}

enum err gnuplot_available(struct error *why)
{
    char path[PATH_LONGEST];
    return find_gnuplot(path, why);
}

/* A PDF has the time it was made, near its end; the same figure must give the same file. */
static void forget_date(int file)
{
    static const char KEY[] = "/CreationDate (D:", DATE[] = "19700101000000";
    char tail[4096];
    off_t end = lseek(file, 0, SEEK_END);
    off_t begin = end > (off_t)sizeof tail ? end - (off_t)sizeof tail : 0;
    ssize_t length = pread(file, tail, sizeof tail, begin);
    const char *found = length > 0 ? memmem(tail, (size_t)length, KEY, sizeof KEY - 1) : NULL;
    if (!found || found + sizeof KEY + sizeof DATE > tail + length)
        return;
    off_t place = begin + (found - tail) + (off_t)(sizeof KEY - 1);
    if (pwrite(file, DATE, sizeof DATE - 1, place) != (ssize_t)(sizeof DATE - 1))
        log_info("the date of a PDF stays in it: %s", strerror(errno));
}

/* The picture comes on gnuplot's standard output, so that no name of a file stands in a script. */
static enum err draw_into(int file, const char *path, const struct text *script, struct error *why)
{
    const char *const argv[] = {path, "-d", "-", NULL}; /* without the user's own settings */
    enum err err = proc_filter(argv, script, file, why);
    if (err)
        return err;
    if (lseek(file, 0, SEEK_END) <= 0)
        return err_set(why, ERR_IO, "%s drew nothing; is it built with cairo?", path);
    forget_date(file);
    return ERR_OK;
}

enum err gnuplot_draw(const struct figure *figure, enum figure_format format, bool dark,
                      struct output *output, struct error *why)
{
    char path[PATH_LONGEST];
    struct text script = {0};
    enum err err = find_gnuplot(path, why);
    if (err)
        return err;
    /* An SVG is rendered by its viewer, with the fonts there. */
    err = figure_script(figure, format, dark, format == FIGURE_SVG ? NULL : can_be_shown, &script);
    if (err)
        err_set(why, err, "%s", err_text(err));
    else
        err = draw_into(output->fd, path, &script, why);
    text_release(&script);
    return err;
}

/* ---- files ---- */

/* By the suffix of the path; false without that of a picture. */
static bool format_of(const char *path, enum figure_format *format)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (!dot || dot == base)
        return false;
    for (int i = 0; i < FIGURE_FORMATS; i++)
        if (strcmp(dot + 1, FIGURE_SUFFIXES[i]) == 0) {
            *format = (enum figure_format)i;
            return true;
        }
    return false;
}

enum err gnuplot_check_file(const char *path, struct error *why)
{
    enum figure_format format;
    if (!format_of(path, &format))
        return err_set(why, ERR_USAGE, "--plot takes a file that ends in .png, .svg or .pdf");
    return gnuplot_available(why);
}

enum err gnuplot_draw_file(struct figure *figure, enum err made, const char *path,
                           struct error *why)
{
    enum figure_format format = 0;
    struct output output;
    (void)format_of(path, &format);
    enum err err = made ? made : file_make_parents(path, why);
    if (!err)
        err = output_open(&output, path, false, why);
    if (!err)
        err = output_finish(&output, gnuplot_draw(figure, format, false, &output, why), why);
    figure_release(figure);
    return err;
}
