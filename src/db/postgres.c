/* PostgreSQL through libpq, which is opened at run time with declarations of our own.  Results are in binary format,
 * decoded by column type; bulk load is COPY in binary, so that a figure is stored with all its bits. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "db/driver.h"
#include "port/dl.h"

/* ---- the library ---- */

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
enum { CONNECTION_OK = 0 };
enum { PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2, PGRES_COPY_IN = 4 };
enum { DIAG_SQLSTATE = 'C', DIAG_MESSAGE_PRIMARY = 'M' };
enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_FLOAT8 = 701 };

#define LIBPQ(F)                                                                                   \
    F(PGconn *, PQconnectdbParams, (const char *const *, const char *const *, int))                \
    F(int, PQstatus, (const PGconn *))                                                             \
    F(char *, PQerrorMessage, (const PGconn *))                                                    \
    F(void *, PQsetNoticeProcessor, (PGconn *, void (*)(void *, const char *), void *))            \
    F(const char *, PQparameterStatus, (const PGconn *, const char *))                             \
    F(PGresult *, PQexec, (PGconn *, const char *))                                                \
    F(PGresult *, PQexecParams,                                                                    \
      (PGconn *, const char *, int, const unsigned *, const char *const *, const int *,            \
       const int *, int))                                                                          \
    F(int, PQresultStatus, (const PGresult *))                                                     \
    F(char *, PQresultErrorField, (const PGresult *, int))                                         \
    F(int, PQntuples, (const PGresult *))                                                          \
    F(int, PQnfields, (const PGresult *))                                                          \
    F(unsigned, PQftype, (const PGresult *, int))                                                  \
    F(char *, PQgetvalue, (const PGresult *, int, int))                                            \
    F(int, PQgetlength, (const PGresult *, int, int))                                              \
    F(int, PQgetisnull, (const PGresult *, int, int))                                              \
    F(void, PQclear, (PGresult *))                                                                 \
    F(int, PQputCopyData, (PGconn *, const char *, int))                                           \
    F(int, PQputCopyEnd, (PGconn *, const char *))                                                 \
    F(PGresult *, PQgetResult, (PGconn *))                                                         \
    F(void, PQfinish, (PGconn *))

static struct {
#define MEMBER(type, name, arguments) type(*name) arguments;
    LIBPQ(MEMBER)
#undef MEMBER
} pq;

static enum err load_library(struct error *why)
{
    static const char *const NAMES[] = {"libpq.so.5", NULL};
    static const struct dl_symbol SYMBOLS[] = {
#define SYMBOL(type, name, arguments) {#name, &pq.name, true},
        LIBPQ(SYMBOL)
#undef SYMBOL
    };
    static struct dl_library library = {.names = NAMES,
                                        .symbols = SYMBOLS,
                                        .count = COUNT_OF(SYMBOLS),
                                        .absent = "libpq is not installed: apt install libpq5",
                                        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}

/* ---- connections ---- */

enum { PIECE = 1 << 16 };

struct session {
    PGconn *connection;
    size_t width;     /* columns per row of a COPY */
    struct text rows; /* rows not sent yet */
};

/* For an SQLSTATE; NULL: none. */
static enum err err_of_state(const char *state)
{
    static const struct {
        const char *state;
        enum err err;
    } STATES[] = {{"42501", ERR_DENIED}, {"53100", ERR_NO_SPACE}, {"55P03", ERR_BUSY}};
    for (size_t i = 0; state && i < COUNT_OF(STATES); i++)
        if (str_starts(state, STATES[i].state))
            return STATES[i].err;
    return ERR_IO;
}

/* The message of the server or the library on one line, with secrets redacted. */
static enum err failed(const struct db *db, const PGresult *result, struct error *why)
{
    const struct session *session = db->state;
    const char *state = result ? pq.PQresultErrorField(result, DIAG_SQLSTATE) : NULL;
    const char *primary = result ? pq.PQresultErrorField(result, DIAG_MESSAGE_PRIMARY) : NULL;
    const char *words = primary ? primary : pq.PQerrorMessage(session->connection);
    char line[240];
    secret_one_line(line, sizeof line, words, strcspn(words, "\n"));
    return err_set(why, err_of_state(state), "%s: %s", db->shown, line);
}

static void ignore_notice(void *context, const char *message)
{
    (void)context, (void)message;
}

/* Later parameters override earlier ones: the address may set its own timeouts, but no other encoding. */
static PGconn *connect_to(const char *address)
{
    const char *names[8], *values[8];
    size_t count = 0;
    names[count] = "fallback_application_name", values[count++] = "ipw";
    if (!getenv("PGCONNECT_TIMEOUT"))
        names[count] = "connect_timeout", values[count++] = "10";
    names[count] = "tcp_user_timeout", values[count++] = "30000";
    names[count] = "dbname", values[count++] = address;
    names[count] = "client_encoding", values[count++] = "UTF8";
    names[count] = values[count] = NULL;
    return pq.PQconnectdbParams(names, values, 1);
}

static enum err postgres_open(struct db *db, const char *address, bool create, struct error *why)
{
    (void)create;
    enum err err = load_library(why);
    if (err)
        return err;
    struct session *session = XNEW(session);
    db->state = session;
    session->connection = memory_need(connect_to(address));
    pq.PQsetNoticeProcessor(session->connection, ignore_notice, NULL);
    if (pq.PQstatus(session->connection) != CONNECTION_OK)
        return failed(db, NULL, why);
    const char *encoding = pq.PQparameterStatus(session->connection, "server_encoding");
    if (!encoding || !str_equal(encoding, "UTF8"))
        return err_set(why, ERR_UNSUPPORTED,
                       "%s has the encoding %s: create the database with ENCODING 'UTF8'",
                       db->shown, encoding ? encoding : "unknown");
    /* Tables are in their own schema, apart from the other tables of the database.  A lock held by somebody else must
     * not block a measurement forever. */
    return db->driver->query(db, "SET search_path TO ipw; SET lock_timeout TO '300s'", NULL, 0,
                             NULL, NULL, why);
}

static void postgres_close(struct db *db)
{
    struct session *session = db->state;
    if (session->connection)
        pq.PQfinish(session->connection);
    text_release(&session->rows);
    free(session);
    db->state = NULL;
}

/* ---- results ---- */

static uint64_t big_endian(const char *bytes, int length)
{
    uint64_t value = 0;
    for (int i = 0; i < length; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static struct db_value read_value(const PGresult *result, int row, int column)
{
    struct db_value value = {.is_null = pq.PQgetisnull(result, row, column),
                             .bytes = pq.PQgetvalue(result, row, column),
                             .length = (size_t)pq.PQgetlength(result, row, column)};
    uint64_t bits = value.length <= 8 ? big_endian(value.bytes, (int)value.length) : 0;
    switch (pq.PQftype(result, column)) {
    case OID_BOOL:
        value.type = DB_BOOLEAN;
        value.integer = bits != 0;
        break;
    case OID_INT4:
        value.type = DB_INTEGER;
        value.integer = (int32_t)(uint32_t)bits;
        break;
    case OID_INT8:
        value.type = DB_INTEGER;
        value.integer = (int64_t)bits;
        break;
    case OID_FLOAT8:
        value.type = DB_REAL;
        memcpy(&value.real, &bits, sizeof bits);
        break;
    case OID_BYTEA:
        value.type = DB_BYTES;
        break;
    default:
        value.type = DB_TEXT;
    }
    return value;
}

enum { COLUMNS_MAX = 160 };

static enum err emit_rows(const PGresult *result, db_take *take, void *context, struct error *why)
{
    struct db_value values[COLUMNS_MAX];
    int width = pq.PQnfields(result), rows = pq.PQntuples(result);
    enum err err = ERR_OK;
    if (width > COLUMNS_MAX)
        return err_set(why, ERR_BAD_VALUE, "a result has %d columns", width);
    for (int row = 0; !err && row < rows; row++) {
        for (int column = 0; column < width; column++)
            values[column] = read_value(result, row, column);
        err = take(context, values, (size_t)width);
    }
    return err_explain(why, err);
}

static enum err postgres_query(struct db *db, const char *sql, const char *const *values,
                               size_t count, db_take *take, void *context, struct error *why)
{
    const struct session *session = db->state;
    /* Several statements without results use the simple query protocol. */
    PGresult *result = take || count ? pq.PQexecParams(session->connection, sql, (int)count, NULL,
                                                       values, NULL, NULL, 1)
                                     : pq.PQexec(session->connection, sql);
    int status = pq.PQresultStatus(result);
    enum err err = ERR_OK;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        err = failed(db, result, why);
    else if (take && status == PGRES_TUPLES_OK)
        err = emit_rows(result, take, context, why);
    pq.PQclear(result);
    return err;
}

/* ---- bulk load ---- */

static void add_big_endian(struct text *to, uint64_t value, int length)
{
    char bytes[8];
    for (int i = 0; i < length; i++)
        bytes[i] = (char)(value >> (8 * (length - 1 - i)));
    text_add_bytes(to, bytes, (size_t)length);
}

static enum err send_copy_data(struct db *db, struct error *why)
{
    struct session *session = db->state;
    bool sent =
        pq.PQputCopyData(session->connection, session->rows.bytes, (int)session->rows.length) == 1;
    text_clear(&session->rows);
    return sent ? ERR_OK : failed(db, NULL, why);
}

static enum err postgres_copy_begin(struct db *db, const char *table, size_t width,
                                    struct error *why)
{
    static const char SIGNATURE[19] = "PGCOPY\n\377\r\n"; /* then flags and extension: zeros */
    struct session *session = db->state;
    struct text sql = {0};
    text_addf(&sql, "COPY %s FROM STDIN (FORMAT binary)", table);
    PGresult *result = pq.PQexec(session->connection, text_get(&sql));
    enum err err = pq.PQresultStatus(result) == PGRES_COPY_IN ? ERR_OK : failed(db, result, why);
    pq.PQclear(result);
    text_release(&sql);
    session->width = width;
    text_clear(&session->rows);
    text_add_bytes(&session->rows, SIGNATURE, sizeof SIGNATURE);
    return err;
}

/* The server requires valid UTF-8; the run's files keep the original bytes. */
static void add_text(struct text *rows, const char *bytes, size_t length)
{
    struct text repaired = {0};
    if (utf8_valid_prefix(bytes, length) == length) {
        add_big_endian(rows, length, 4);
        text_add_bytes(rows, bytes, length);
        return;
    }
    text_add_repaired(&repaired, bytes, length);
    add_big_endian(rows, repaired.length, 4);
    text_add_bytes(rows, text_get(&repaired), repaired.length);
    text_release(&repaired);
}

static void add_value(struct text *rows, const struct db_value *value)
{
    uint64_t bits;
    if (value->is_null) {
        add_big_endian(rows, UINT32_MAX, 4);
        return;
    }
    switch (value->type) {
    case DB_INTEGER:
        add_big_endian(rows, 8, 4);
        add_big_endian(rows, (uint64_t)value->integer, 8);
        break;
    case DB_REAL:
        memcpy(&bits, &value->real, sizeof bits);
        add_big_endian(rows, 8, 4);
        add_big_endian(rows, bits, 8);
        break;
    case DB_BOOLEAN:
        add_big_endian(rows, 1, 4);
        add_big_endian(rows, value->integer != 0, 1);
        break;
    case DB_BYTES:
        add_big_endian(rows, value->length, 4);
        text_add_bytes(rows, value->bytes, value->length);
        break;
    default:
        add_text(rows, value->bytes, value->length);
    }
}

static enum err postgres_copy_row(struct db *db, const struct db_value *values, struct error *why)
{
    struct session *session = db->state;
    add_big_endian(&session->rows, session->width, 2);
    for (size_t i = 0; i < session->width; i++)
        add_value(&session->rows, &values[i]);
    return session->rows.length >= PIECE ? send_copy_data(db, why) : ERR_OK;
}

static enum err postgres_copy_end(struct db *db, struct error *why)
{
    struct session *session = db->state;
    add_big_endian(&session->rows, UINT16_MAX, 2);
    enum err err = send_copy_data(db, why);
    if (!err && pq.PQputCopyEnd(session->connection, NULL) != 1)
        err = failed(db, NULL, why);
    for (PGresult *result; (result = pq.PQgetResult(session->connection)); pq.PQclear(result))
        if (!err && pq.PQresultStatus(result) != PGRES_COMMAND_OK)
            err = failed(db, result, why);
    return err;
}

/* Writers own the tables, so that each of them can migrate the schema. */
#define CREATE_ROLE(name)                                                                          \
    "DO $$ BEGIN CREATE ROLE " name " NOLOGIN; "                                                   \
    "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$; "
#define OWN(table) "ALTER TABLE " table " OWNER TO ipw_writer; "
#define ROLES                                                                                      \
    "BEGIN; SELECT pg_advisory_xact_lock(hashtext('ipw'), 0); " CREATE_ROLE("ipw_reader")          \
        CREATE_ROLE("ipw_writer") "GRANT ipw_reader TO ipw_writer; "                               \
                                  "GRANT ipw_writer TO CURRENT_USER; "                             \
                                  "GRANT USAGE ON SCHEMA ipw TO ipw_reader; "                      \
                                  "GRANT USAGE, CREATE ON SCHEMA ipw TO ipw_writer; "              \
                                  "GRANT SELECT ON ALL TABLES IN SCHEMA ipw TO ipw_reader; "       \
                                  "ALTER DEFAULT PRIVILEGES FOR ROLE ipw_writer IN SCHEMA ipw "    \
                                  "GRANT SELECT ON TABLES TO ipw_reader; " OWN("runs")             \
                                      OWN("queries") OWN("files") OWN("migrations") "COMMIT"

const struct db_driver db_postgres = {
    .name = "PostgreSQL",
    .types = {"text", "bigint", "double precision", "boolean", "bytea"},
    .begin = "BEGIN",
    .begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    .lock = "SELECT pg_advisory_xact_lock(hashtext('ipw'), hashtext($1))",
    .lock_schema = "SELECT pg_advisory_xact_lock(hashtext('ipw'), 0)",
    .has_tables = "SELECT 1 FROM pg_tables WHERE schemaname = 'ipw' AND tablename = 'migrations'",
    .has_column = "SELECT 1 FROM information_schema.columns WHERE table_schema = 'ipw' AND "
                  "table_name = $1 AND column_name = $2",
    .before_create = "CREATE SCHEMA IF NOT EXISTS ipw",
    /* lz4 costs a tenth of the default compression, if the server supports it. */
    .after_create = "DO $$ BEGIN ALTER TABLE files ALTER COLUMN content SET COMPRESSION lz4; "
                    "EXCEPTION WHEN OTHERS THEN NULL; END $$",
    .set_owner_role = "SELECT set_config('role', tableowner, true) FROM pg_tables "
                      "WHERE schemaname = 'ipw' AND tablename = 'migrations'",
    .roles = ROLES,
    .open = postgres_open,
    .query = postgres_query,
    .copy_begin = postgres_copy_begin,
    .copy_row = postgres_copy_row,
    .copy_end = postgres_copy_end,
    .close = postgres_close,
};
