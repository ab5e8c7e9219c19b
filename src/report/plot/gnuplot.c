#define _GNU_SOURCE
#include "report/plot/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "port/filter.h"
#include "report/plot/fonts.h"
#include "rundir/run_dir.h"

enum { PATH_LONGEST = 1024 };

static enum err find(char *path, struct error *why)
{
    if (program_find("gnuplot", path, PATH_LONGEST))
        return err_set(why, ERR_UNSUPPORTED,
                       "no gnuplot in PATH; install gnuplot-nox (Debian, Ubuntu) or gnuplot");
    return ERR_OK;
}

enum err gnuplot_available(struct error *why)
{
    char path[PATH_LONGEST];
    return find(path, why);
}

/* A PDF has the time it was made, near its end; the same figure shall give the same file. */
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
    enum err err = filter_run(argv, script, file, why);
    if (err)
        return err;
    if (lseek(file, 0, SEEK_END) <= 0)
        return err_set(why, ERR_IO, "%s drew nothing; is it built with cairo?", path);
    forget_date(file);
    return ERR_OK;
}

static enum err draw_file(const char *temporary, const char *final, const char *path,
                          const struct text *script, struct error *why)
{
    int file = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0)
        return err_set(why, err_from_errno(errno), "cannot write %s: %s", temporary,
                       strerror(errno));
    enum err err = draw_into(file, path, script, why);
    if (close(file) && !err)
        err =
            err_set(why, err_from_errno(errno), "cannot write %s: %s", temporary, strerror(errno));
    if (!err && rename(temporary, final))
        err = err_set(why, err_from_errno(errno), "cannot write %s: %s", final, strerror(errno));
    if (err)
        unlink(temporary);
    return err;
}

enum err gnuplot_draw(struct figure *figure, enum figure_format format, bool dark,
                      const char *directory, const char *name, struct error *why)
{
    char path[PATH_LONGEST], temporary[PATH_LONGEST], final[PATH_LONGEST];
    struct text script = {0}, kept = {0};
    enum err err = find(path, why);
    if (err)
        return err;
    if (!str_format(temporary, sizeof temporary, "%s/.%s.%s.tmp", directory, name,
                    FIGURE_SUFFIXES[format]) ||
        !str_format(final, sizeof final, "%s/%s.%s", directory, name, FIGURE_SUFFIXES[format]))
        return err_set(why, ERR_BAD_VALUE, "too long a path: %s", directory);
    /* An SVG is drawn by whoever opens it, with the fonts there. */
    if (format != FIGURE_SVG)
        fonts_replace(figure, &kept);
    err = figure_script(figure, format, dark, &script);
    fonts_restore(figure, &kept);
    text_release(&kept);
    if (err)
        err_set(why, err, "%s", err_text(err));
    if (!err)
        err = run_dir_make(directory, why);
    if (!err)
        err = draw_file(temporary, final, path, &script, why);
    text_release(&script);
    return err;
}
