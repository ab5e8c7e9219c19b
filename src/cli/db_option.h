/* The database of a command: of --db URL, of an argument that is an address, or of IPW_DB; and --db of the commands that
 * measure.  Nothing here keeps what it is passed. */
#ifndef IPW_CLI_DB_OPTION_H
#define IPW_CLI_DB_OPTION_H

#include "cli/common.h"

/* clang-format off */
#define DB_OPTION_ROW(text, what)                                                                  \
    {.name = "db", .type = OPTION_TEXT, .target = &(text), .value = "URL", .help = what}
#define DB_PUSH_OPTION_ROW(text)                                                                   \
    DB_OPTION_ROW(text, "push the run to this database when it has ended; see ipw db")
/* clang-format on */

/* Before anything is measured: 0 if the address may be one of a database, or is NULL; else complains and returns
 * EXIT_USAGE.  Its password becomes a secret. */
int db_option_check(const char *address);

/* Pushes a run that was measured and saved.  A failure is a warning: the run stays marked as pending, and a later
 * `ipw db push` pushes it. */
void db_option_push(const char *address, const char *directory, bool quiet);

#endif
