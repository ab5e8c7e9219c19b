/* ipw: options -> command row -> function.  Everything else is in the commands. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/options.h"
#include "core/log.h"
#include "core/registry.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"
#include "port/fs.h"
#include "port/out_of_memory.h"
#include "port/proc.h"
#include "port/thread.h"

extern char **environ;

#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND

static const struct command *const COMMANDS[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};
enum { COMMAND_COUNT = COUNT_OF(COMMANDS) };

static const char *const LEVELS[] = {"error", "warning", "note", "debug"};

static void log_to_stderr(enum log_level level, const char *line)
{
    notify("ipw: %s: %s\n", LEVELS[level], line);
}

static int show_help(void)
{
    struct text text = {0};
    text_add(&text,
             "ipw - intelligence per watt: energy measurement for AI inference\n\n"
             "usage: ipw COMMAND [OPTIONS]\n       ipw COMMAND --help\n       ipw help COMMAND\n"
             "       ipw --version\n\ncommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        text_addf(&text, "  %-10s %s\n", COMMANDS[i]->name, COMMANDS[i]->summary);
    text_add(
        &text,
        "\nexit status: 0 success, 1 failure, 2 usage error, 3 energy required but not measured,\n"
        "             4 not comparable, 130 interrupted; `ipw run` exits with the status of its "
        "command\n\n"
        "environment: IPW_SYSROOT=DIR  read /sys, /proc and /dev under DIR\n"
        "             IPW_NVML=FILE    NVML library to load\n"
        "             IPW_DCGMI=FILE   dcgmi to run; empty: none\n"
        "             IPW_AMDSMI=FILE, IPW_ROCMSMI=FILE   same for AMD\n"
        "             IPW_LOG=debug|note|warning|error    log level on stderr\n"
        "             IPW_API_KEY=KEY, OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY\n"
        "                              for services that require one\n"
        "             IPW_MCP_TOKEN=TOKEN  for MCP servers at a URL that require one\n"
        "             HF_TOKEN=TOKEN   for datasets that require one\n"
        "             CURL_CA_BUNDLE=FILE  certificates to trust\n"
        "             XDG_CACHE_HOME=DIR   cache of datasets (default: ~/.cache)\n"
        "             NO_COLOR=1       no color\n");
    int code = put_output(&text);
    text_release(&text);
    return code;
}

static int show_version(void)
{
    struct text text = {0};
    text_add(&text, "ipw " IPW_VERSION "\n");
    int code = put_output(&text);
    text_release(&text);
    return code;
}

static enum log_level wanted_level(const char *word)
{
    const char *const *found = STR_FIND(word, LEVELS);
    return found ? (enum log_level)(found - LEVELS) : LOG_WARN;
}

static bool is_help(const char *word)
{
    return str_equal(word, "--help") || str_equal(word, "-h") || str_equal(word, "help");
}

static const struct command *find_command(const char *word)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (str_equal(COMMANDS[i]->name, word))
            return COMMANDS[i];
    return NULL;
}

static int unknown_command(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = COMMANDS[i]->name;
    const char *near = nearest_name(word, names, COMMAND_COUNT);
    notify("ipw: unknown %s '%s'; %s%s%s\n", word[0] == '-' ? "option" : "command", word,
           near ? "did you mean '" : "see `ipw --help`", text_or_empty(near), near ? "'?" : "");
    return EXIT_USAGE;
}

/* `ipw help COMMAND [TOOL]` is `ipw COMMAND [TOOL] --help`. */
static int help_for(int count, char **words)
{
    static char option[] = "--help";
    const struct command *command = find_command(words[0]);
    char *argv[4] = {words[0], option};
    int argc = 2;
    if (!command)
        return unknown_command(words[0]);
    if (count > 1) {
        argv[1] = words[1];
        argv[argc++] = option;
    }
    return command_call(command, argc, argv);
}

/* A thread blocked in a driver may hold a lock of its library, on which an exit handler would wait. */
static int exit_with(int code)
{
    if (thread_any_abandoned()) {
        fflush(NULL);
        _exit(code);
    }
    return code;
}

int main(int argc, char **argv)
{
    out_of_memory_install("ipw");
    proc_hold_standard_files();
    secret_add_environment(environ);
    fs_set_root(getenv("IPW_SYSROOT"));
    log_to(log_to_stderr, wanted_level(getenv("IPW_LOG")));
    proc_ignore_write_signals(); /* a failed write is then reported as an error */
    if (argc < 2) {
        show_help();
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (is_help(word) && (argc == 2 || is_help(argv[2])))
        return show_help();
    if (str_equal(word, "--version") || str_equal(word, "-V") || str_equal(word, "version"))
        return show_version();
    if (is_help(word))
        return help_for(argc - 2, argv + 2);
    const struct command *command = find_command(word);
    return command ? exit_with(command_call(command, argc - 1, argv + 1)) : unknown_command(word);
}
