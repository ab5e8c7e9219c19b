/* The commands inside `ipw estimate`: argv[0] is their own word.  Each returns the exit code. */
#ifndef IPW_CLI_ESTIMATE_TOOLS_H
#define IPW_CLI_ESTIMATE_TOOLS_H

int estimate_calibrate(int argc, char **argv);
int estimate_validate(int argc, char **argv);

#endif
