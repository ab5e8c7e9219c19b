/* SQLite, loaded when first needed and never unloaded: linking to it would add to every start, and most commands have
 * no database.  Its header gives the types and codes; calls go through `sqlite`. */
#ifndef IPW_PORT_SQLITE_H
#define IPW_PORT_SQLITE_H

#include <sqlite3.h>

#include "core/err.h"

#define SQLITE_FUNCTIONS(F)                                                                        \
    F(bind_blob64)                                                                                 \
    F(bind_double)                                                                                 \
    F(bind_int64)                                                                                  \
    F(bind_null)                                                                                   \
    F(bind_parameter_index)                                                                        \
    F(bind_text)                                                                                   \
    F(bind_text64)                                                                                 \
    F(bind_value)                                                                                  \
    F(busy_handler)                                                                                \
    F(close)                                                                                       \
    F(column_blob)                                                                                 \
    F(column_bytes)                                                                                \
    F(column_count)                                                                                \
    F(column_double)                                                                               \
    F(column_int)                                                                                  \
    F(column_int64)                                                                                \
    F(column_text)                                                                                 \
    F(column_type)                                                                                 \
    F(column_value)                                                                                \
    F(errmsg)                                                                                      \
    F(errstr)                                                                                      \
    F(exec)                                                                                        \
    F(finalize)                                                                                    \
    F(open_v2)                                                                                     \
    F(prepare_v2)                                                                                  \
    F(reset)                                                                                       \
    F(step)

/* Set once sqlite_load has returned ERR_OK. */
struct sqlite_library {
#define MEMBER(name) __typeof__(sqlite3_##name) *name;
    SQLITE_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct sqlite_library sqlite;

/* ERR_UNSUPPORTED, with how to install it, when it cannot be opened.  Any thread. */
enum err sqlite_load(struct error *why) MUST_USE;

/* ERR_UNSUPPORTED for a path that is longer than SQLite opens, whatever the kernel takes. */
enum err sqlite_check_path(const char *path, struct error *why) MUST_USE;

#endif
