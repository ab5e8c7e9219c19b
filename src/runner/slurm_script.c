/* The script of a job array has its options as #SBATCH lines and its part numbers in a bash array, so that any
 * selection of parts, in any order, maps to consecutive array indices. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "runner/slurm.h"

/* sbatch parses #SBATCH lines as words, with quotes. */
static enum err add_path(struct text *out, const char *option, const char *path, const char *rest,
                         struct error *why)
{
    if (strpbrk(path, "\"\\%\n\r"))
        return err_set(why, ERR_USAGE,
                       "a path with quotes, %%, \\ or line breaks cannot be used "
                       "with Slurm: %.200s",
                       path);
    text_addf(out, "#SBATCH --%s=\"%s%s\"\n", option, path, rest);
    return ERR_OK;
}

static enum err add_option(struct text *out, const char *option, const char *value,
                           struct error *why)
{
    if (!value)
        return ERR_OK;
    if (!*value || strpbrk(value, " \t\r\n\"'\\#"))
        return err_set(why, ERR_USAGE,
                       "--%s '%.80s': must not be empty or contain spaces, quotes, \\ or #", option,
                       value);
    text_addf(out, "#SBATCH --%s=%s\n", option, value);
    return ERR_OK;
}

/* Whether the script sets the option itself.  sbatch accepts abbreviations, like getopt_long. */
static bool is_ours(const char *option)
{
    static const char *const OURS[] = {"array", "output", "chdir"};
    size_t length = strcspn(option, "=");
    for (size_t i = 0; i < COUNT_OF(OURS); i++)
        if (length <= strlen(OURS[i]) && strncmp(option, OURS[i], length) == 0)
            return true;
    return false;
}

static enum err add_more(struct text *out, const char *word, struct error *why)
{
    const char *option = word + strspn(word, "-");
    if (!*option || strpbrk(option, " \t\r\n\"'\\#") || is_ours(option))
        return err_set(why, ERR_USAGE,
                       "--sbatch '%.80s': OPTION or OPTION=VALUE of sbatch without spaces or "
                       "quotes, and not array, output or chdir, which the sweep sets",
                       word);
    text_addf(out, "#SBATCH --%s\n", option);
    return ERR_OK;
}

static enum err add_options(const struct slurm_array *array, struct text *out, struct error *why)
{
    const struct slurm_options *options = array->options;
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here))
        return err_set(why, ERR_IO, "the working directory has no usable path");
    text_addf(out, "#SBATCH --job-name=%s\n#SBATCH --array=0-%zu", array->name, array->count - 1);
    if (options->array_limit)
        text_addf(out, "%%%u", options->array_limit);
    text_add(out, "\n");
    enum err err = add_path(out, "chdir", here, "", why);
    if (!err)
        err = add_path(out, "output", array->logs, "/%A_%a.log", why);
    /* A requeued element skips completed work. */
    text_add(out, "#SBATCH --open-mode=append\n#SBATCH --requeue\n");
    if (!err)
        err = add_option(out, "partition", options->partition, why);
    if (!err)
        err = add_option(out, "account", options->account, why);
    if (!err)
        err = add_option(out, "time", options->time, why);
    if (!err)
        err = add_option(out, "gres", options->gres, why);
    if (options->nodes)
        text_addf(out, "#SBATCH --nodes=%u\n", options->nodes);
    for (size_t i = 0; !err && i < options->more_count; i++)
        err = add_more(out, options->more[i], why);
    return err;
}

enum err slurm_script(const struct slurm_array *array, struct text *out, struct error *why)
{
    text_add(out, "#!/bin/bash\n");
    enum err err = add_options(array, out, why);
    text_add(out, "parts=(");
    for (size_t i = 0; i < array->count; i++)
        text_addf(out, "%s%zu", i ? " " : "", array->parts[i]);
    text_addf(out, ")\nexec %s\"${parts[SLURM_ARRAY_TASK_ID]}\"", array->command);
    if (array->suffix[0])
        text_add_shell(out, array->suffix);
    text_add(out, "\n");
    return err;
}
