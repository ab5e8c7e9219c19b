/* The tables (db.c): one list, from which the statements of every database are made.  Nothing here keeps state. */
#ifndef IPW_DB_SCHEMA_H
#define IPW_DB_SCHEMA_H

#include "db/driver.h"

struct text;

enum db_table { DB_RUNS, DB_QUERIES, DB_FILES, DB_MIGRATIONS, DB_TABLES };

struct db_column {
    const char *name;
    enum db_type type;
};

const char *db_table_name(enum db_table table);
size_t db_column_count(enum db_table table);
struct db_column db_column(enum db_table table, size_t i);

/* The position of the first column of the run index in DB_RUNS, and of that of exports in DB_QUERIES. */
enum { DB_RUNS_FIGURES = 9, DB_QUERIES_EXPORTS = 1 };

/* "a", "b" ... */
void db_add_columns(enum db_table table, struct text *sql);

#endif
