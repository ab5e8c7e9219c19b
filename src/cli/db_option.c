#include "cli/db_option.h"

#include "core/log.h"
#include "core/text.h"
#include "db/db.h"

int db_option_check(const char *address)
{
    if (!address)
        return 0;
    db_address_hide(address);
    return db_is_address(address)
               ? 0
               : complain(EXIT_USAGE,
                          "--db: invalid address: use postgres://[USER@]HOST[:PORT]/NAME or "
                          "sqlite:///PATH");
}

void db_option_push(const char *address, const char *directory, bool quiet)
{
    struct error why = {0}, pending = {0};
    struct db_pushed pushed;
    struct db *db = NULL;
    char kept[1024];
    if (!address || !directory[0])
        return;
    db_address_kept(address, kept, sizeof kept);
    if (run_pending_set(directory, kept, &pending))
        log_warn("%s", pending.text);
    enum err err = db_open(&db, address, true, &why);
    if (!err)
        err = db_push(db, directory, &pushed, &why);
    if (err) {
        log_warn("the run was not pushed: %s; it stays in %s, and `ipw db push %s` pushes it",
                 why.text, directory, directory);
    } else {
        run_pending_clear(directory);
        if (!quiet)
            tell("pushed to %s as %s\n", db_shown(db), pushed.id);
    }
    db_free(db);
}
