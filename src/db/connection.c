/* Addresses of databases, and statements in any of them. */
#include <stdlib.h>
#include <string.h>

#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"
#include "db/db.h"
#include "db/driver.h"

static const struct db_driver *const DRIVERS[] = {&db_postgres, &db_sqlite};

/* ---- addresses ---- */

static const struct db_driver *find_driver(const char *address)
{
    for (size_t i = 0; i < sizeof DRIVERS / sizeof *DRIVERS; i++)
        for (size_t k = 0; DRIVERS[i]->schemes[k]; k++)
            if (str_starts(address, DRIVERS[i]->schemes[k]))
                return DRIVERS[i];
    return NULL;
}

bool db_is_address(const char *word)
{
    return find_driver(word) != NULL;
}

/* A password may have an @ or a / that was not escaped: what precedes the last @ is not shown. */
void db_address_shown(const char *address, char *to, size_t size)
{
    const char *scheme = strstr(address, "://"), *host = scheme ? scheme + 3 : address;
    const char *at = strrchr(host, '@'), *rest = at ? at + 1 : host;
    if (find_driver(address) == &db_sqlite) {
        str_copy(to, size, address);
        return;
    }
    str_format(to, size, "%.*s%.*s", scheme ? (int)(host - address) : 0, address,
               (int)strcspn(rest, "?"), rest);
}

static int hex(char c)
{
    static const char DIGITS[] = "0123456789abcdef";
    const char *at = c ? strchr(DIGITS, c | 0x20) : NULL;
    return at ? (int)(at - DIGITS) : -1;
}

/* As it is written and as it is meant: a server may echo either. */
static void add_secret(const char *from, size_t length)
{
    char raw[256], plain[256];
    size_t used = 0;
    if (!str_format(raw, sizeof raw, "%.*s", (int)length, from))
        return;
    for (const char *at = raw; *at; at++)
        if (*at == '%' && hex(at[1]) >= 0 && hex(at[2]) >= 0) {
            plain[used++] = (char)(hex(at[1]) * 16 + hex(at[2]));
            at += 2;
        } else {
            plain[used++] = *at;
        }
    plain[used] = '\0';
    secret_add(raw);
    secret_add(plain);
}

void db_address_hide(const char *address)
{
    const char *scheme = strstr(address, "://"), *host = scheme ? scheme + 3 : address;
    const char *at = strrchr(host, '@');
    const char *colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (colon)
        add_secret(colon + 1, (size_t)(at - colon - 1));
    for (const char *option = address; (option = strstr(option, "password=")); option++)
        add_secret(option + 9, strcspn(option + 9, "&"));
}

/* Without the password alone: the next attempt takes it from the environment or from ~/.pgpass. */
void db_address_kept(const char *address, char *to, size_t size)
{
    const char *scheme = strstr(address, "://"), *host = scheme ? scheme + 3 : address;
    const char *at = strrchr(host, '@');
    const char *colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (strstr(address, "password=")) /* among the options: the login is gone with them */
        db_address_shown(address, to, size);
    else if (colon)
        str_format(to, size, "%.*s%s", (int)(colon - address), address, at);
    else
        str_copy(to, size, address);
}

/* ---- connections ---- */

enum err db_connect(struct db *db, const char *address, bool create, struct error *why)
{
    *db = (struct db){.driver = find_driver(address)};
    db_address_hide(address);
    if (!db->driver)
        return err_set(why, ERR_USAGE,
                       "invalid database address '%.100s': use postgres://[USER@]HOST[:PORT]/NAME "
                       "or sqlite:///PATH",
                       strchr(address, '@') ? "***" : plain_text(address).text);
    db_address_shown(address, db->shown, sizeof db->shown);
    enum err err = db->driver->open(db, address, create, why);
    if (err)
        db_close(db);
    return err;
}

void db_close(struct db *db)
{
    if (db->driver && db->state)
        db->driver->close(db);
    *db = (struct db){0};
}

/* ---- statements ---- */

enum err db_query(struct db *db, const char *sql, const char *const *values, size_t count,
                  db_take *take, void *context, struct error *why)
{
    return db->driver->query(db, sql, values, count, take, context, why);
}

enum err db_run(struct db *db, const char *sql, struct error *why)
{
    return db_query(db, sql, NULL, 0, NULL, NULL, why);
}

void db_roll_back(struct db *db)
{
    struct error ignored;
    (void)!db_run(db, "ROLLBACK", &ignored);
}

struct first {
    bool found;
    double number;
};

static enum err take_first(void *context, const struct db_value *values, size_t count)
{
    struct first *first = context;
    if (!first->found && count && !values->is_null)
        first->number = values->type == DB_REAL   ? values->real
                        : values->type == DB_TEXT ? strtod(values->bytes, NULL)
                                                  : (double)values->integer;
    first->found = true;
    return ERR_OK;
}

enum err db_exists(struct db *db, const char *sql, const char *const *values, size_t count,
                   bool *found, struct error *why)
{
    struct first first = {.number = UNKNOWN};
    enum err err = db_query(db, sql, values, count, take_first, &first, why);
    *found = first.found;
    return err;
}

enum err db_number(struct db *db, const char *sql, const char *const *values, size_t count,
                   double *out, struct error *why)
{
    struct first first = {.number = UNKNOWN};
    enum err err = db_query(db, sql, values, count, take_first, &first, why);
    *out = first.number;
    return err;
}
