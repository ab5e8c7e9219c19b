/* The output of Slurm's programs, and the files of submitted jobs.  The programs are scripts that print the input, so
 * that a run takes milliseconds. */
#include "fuzz/fuzz.h"

#include <sys/stat.h>

#include "runner/slurm.h"

static void make_programs(void)
{
    static const char *const NAMES[] = {"bin/srun", "bin/squeue", "bin/sbatch"};
    struct text script = {0}, path = {0};
    text_addf(&script, "#!/bin/sh\nexec /bin/cat %s/output\n", fuzz_folder());
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        chmod(fuzz_file(NAMES[i], script.bytes, script.length), 0700);
    fuzz_file("work/slurm/array-1.sh", "", 0);
    text_addf(&path, "%s/bin", fuzz_folder());
    setenv("PATH", path.bytes, 1);
    text_release(&script);
    text_release(&path);
}

static enum err list(void *context, size_t *parts, size_t *count, struct error *why)
{
    (void)context, (void)why;
    for (size_t i = 0; i < 4; i++)
        parts[i] = i + 1;
    *count = 4;
    return ERR_OK;
}

static void wrote(const char *script, const char *job)
{
    fuzz_check(*script && !job);
}

static void submit(void)
{
    static char command[] = "true";
    char *words[] = {command, NULL}, directory[128];
    struct slurm_work work = {.directory = directory,
                              .name = "n",
                              .command = words,
                              .suffix = "",
                              .list = list,
                              .max = 4};
    struct error why = {0};
    size_t count = 0;
    str_format(directory, sizeof directory, "%s/work", fuzz_folder());
    fuzz_check_error(slurm_submit(&work, &(struct slurm_options){0}, &count, false, wrote, &why),
                     &why);
    fuzz_check(count <= 4);
}

static void run(const char *bytes, size_t length)
{
    static bool is_made;
    struct error why = {0};
    double *clocks = NULL;
    size_t count = 0;
    if (!is_made)
        make_programs();
    is_made = true;
    unsigned choice = fuzz_choose(&bytes, &length, 3);
    if (choice == 0) {
        fuzz_file("output", bytes, length);
        enum err err = slurm_clocks(&(struct slurm_options){0}, NULL, 0, &clocks, &count, &why);
        fuzz_check_error(err, &why);
        for (size_t i = 1; !err && i < count; i++)
            fuzz_check(clocks[i] <= clocks[i - 1]);
        free(clocks);
    } else if (choice == 1) {
        fuzz_file("work/slurm/array-1.job", "4711 1 2 3", 10);
        fuzz_file("output", bytes, length);
        submit();
    } else {
        fuzz_file("work/slurm/array-1.job", bytes, length);
        fuzz_file("output", "4711 0 RUNNING None\n4711 1 PENDING Resources\n", 45);
        submit();
    }
}

static void seeds(void)
{
    fuzz_seed(0, "{\"knobs\":[{\"name\":\"n\"},{\"name\":\"gpu-clock\",\"unit\":\"MHz\"}],"
                 "\"settings\":[{\"values\":[\"1\",\"1200.5\"]},{\"values\":[\"1\",\"1785\"]}]}");
    fuzz_seed(0, "{\"uncontrolled\":\"needs root\",\"knobs\":[{\"name\":\"gpu-clock\"}],"
                 "\"settings\":[{\"values\":[\"default\"]}]}");
    fuzz_seed(1, "4711 0 RUNNING None\n4711 2 PENDING Priority\n4711 N/A PENDING x\n12\n");
    fuzz_seed(2, "4711 3 1 2");
}

const struct fuzz_target fuzz_slurm = {.run = run, .seeds = seeds};
