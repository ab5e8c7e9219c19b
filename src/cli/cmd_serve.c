/* ipw serve: runs, live power and estimates in a browser, and as a JSON API.
 *
 *   $ ipw serve &
 *   $ xdg-open http://127.0.0.1:8420/
 *
 * Messages go to stderr; nothing goes to stdout. */
#include <signal.h>

#include "cli/common.h"
#include "cli/option_groups.h"
#include "core/text.h"
#include "port/file.h"
#include "serve/serve.h"

enum { DEFAULT_PORT = 8420 };

static struct serve_command {
    struct serve_options serve;
    struct listen_options http;
    const char *cert_file, *key_file;
    struct text cert, key;
    bool quiet;
} command;

static const struct option_row ROWS[] = {
    TEXT_ROW("listen", command.http.listen, "ADDRESS:PORT",
             "address to listen on (default: 127.0.0.1:8420; port 0: any)", .letter = 'l'),
    TEXT_ROW("runs", command.serve.runs, "DIR", "folder of run directories (default: runs)"),
    DB_OPTION_ROW(command.serve.db,
                  "runs of a database instead: postgres://HOST/NAME, sqlite:///FILE"),
    TEXT_ROW("token-file", command.http.token_file, "FILE",
             "file with the token that requests must send"),
    TEXT_ROW("tls-cert", command.cert_file, "FILE", "serve HTTPS with this certificate (PEM)"),
    TEXT_ROW("tls-key", command.key_file, "FILE", "its private key (PEM)"),
    ALLOW_HOST_OPTION_ROW(command.http.hosts),
    TEXT_ROW("devices", command.serve.devices, "LIST",
             "GPUs by index or UUID (default: all visible)"),
    TEXT_ROW("sensors", command.serve.drivers, "LIST",
             "only these sensor drivers, e.g. nvml,rapl (default: all)"),
    FLAG_ROW("no-live", command.serve.no_live, "do not open sensors: no live power"),
    FLAG_ROW("allow-runs", command.serve.allow_runs,
             "allow clients to start profiles; needs --token-file"),
    FLAG_ROW("quiet", command.quiet, "do not print where the server listens", .letter = 'q'),
    HINT_ROW("token", "use --token-file: command lines are visible to other users"),
    HINT_ROW("port", "use --listen 127.0.0.1:PORT", .letter = 'p'),
    {0},
};

static int complete_source(void)
{
    if (command.serve.runs && command.serve.db)
        return print_error(EXIT_USAGE, "--runs and --db are mutually exclusive");
    if (command.serve.db)
        return check_db(command.serve.db, false);
    if (!command.serve.runs)
        command.serve.runs = "runs";
    if (!file_is_directory(command.serve.runs))
        return print_error(EXIT_USAGE, "no directory %s: give one with --runs DIR",
                           command.serve.runs);
    return 0;
}

static int complete_tls(void)
{
    struct error why = {0};
    if (!command.cert_file && !command.key_file)
        return 0;
    if (!command.cert_file || !command.key_file)
        return print_error(EXIT_USAGE, "--tls-cert and --tls-key are needed together");
    if (file_read(command.cert_file, FILE_SMALL, &command.cert, &why) ||
        file_read(command.key_file, FILE_SMALL, &command.key, &why))
        return print_failure(&why);
    command.serve.tls_cert = text_get(&command.cert);
    command.serve.tls_key = text_get(&command.key);
    command.http.at.is_tls = command.serve.access.is_tls = true;
    return 0;
}

static void listening(unsigned port)
{
    command.http.at.port = port;
    if (!command.quiet)
        notify("ipw serve: listening on %s/\n", listen_url(&command.http.at).text);
}

static int serve_main(const char **words, size_t count)
{
    struct error why = {0};
    int signal = 0, code;
    (void)words, (void)count;
    if ((code = read_access(&command.http, DEFAULT_PORT, &command.serve.access)) ||
        (code = complete_source()) || (code = complete_tls()))
        return code;
    command.serve.listening = listening;
    enum err err = serve_run(&command.serve, &signal, &why);
    text_release(&command.http.token);
    text_release(&command.cert);
    text_release(&command.key);
    if (err)
        return print_err(err, &why);
    return signal == SIGINT ? 128 + SIGINT : EXIT_DONE;
}

const struct command command_serve = {
    .name = "serve",
    .summary = "dashboard of runs and live power in a browser, and a JSON API",
    .usage = "[--runs DIR | --db URL] [OPTIONS]",
    .details =
        "Serves a dashboard at http://127.0.0.1:8420/: search, sort and compare the runs of a\n"
        "folder or of a database, with their Pareto frontier, sweeps and estimates; live power of\n"
        "this machine. The same data is available as a JSON API, described in docs/serve.md and\n"
        "/api/v1/openapi.json.\n\n"
        "  ipw serve --runs runs\n"
        "  ipw serve --db postgres://db.example/ipw\n"
        "  ipw serve --listen 0.0.0.0:8420 --token-file /etc/ipw/token --tls-cert cert.pem "
        "--tls-key key.pem\n\n"
        "The server is read-only, unless --allow-runs lets clients with the token start profiles,\n"
        "one at a time, into the folder of runs. Addresses other than loopback require a token,\n"
        "which programs send as Authorization: Bearer TOKEN, and browsers prompt for. SIGTERM\n"
        "ends the server, and a run that it started.",
    .rows = ROWS,
    .words = WORDS_NONE,
    .run = serve_main,
};
