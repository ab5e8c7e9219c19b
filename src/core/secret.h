/* Values of secrets known to this process: API keys, tokens, passwords.  Code that reads a secret adds it here;
 * errors, log lines, the journal and the summary replace every occurrence by SECRET_MARK, wherever it comes from: a
 * server may echo a key in an error message or in an answer.
 *
 * The list only grows and is never freed.  Any thread may add and hide. */
#ifndef IPW_CORE_SECRET_H
#define IPW_CORE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

struct text;

#define SECRET_MARK "***"

/* Shorter values, and placeholders such as "EMPTY", are not secrets: they occur in ordinary text. */
enum { SECRET_SHORTEST = 6 };

void secret_add(const char *value);

/* Memory for clients' keys, half a million usual ones.  A key beyond them cannot be recognized: from then on,
 * secret_hide_text and secret_one_line replace the whole text by SECRET_MARK. */
#define SECRET_FOREIGN_MAX ((size_t)64 << 20)

/* A key that a client of ours sent.  It is hidden in text, where a server may echo it, but not by secret_hide_json:
 * otherwise clients could choose what to remove from our own fields.  Ordinary words are rejected: a key must have
 * twelve letters and digits in a row. */
void secret_add_foreign(const char *value);

/* Adds the value of a header; for "Bearer KEY" also KEY alone. */
void secret_add_header(const char *value);

/* Adds a user name and password, also in the base64 form of HTTP basic authentication. */
void secret_add_login(const char *user, const char *password);

/* Values of variables whose names end in KEY, TOKEN, SECRET or PASSWORD.  environment is like environ. */
void secret_add_environment(char *const *environment);

/* Adds secrets given on a command line: "--api-key VALUE", "--token=VALUE", "Authorization: VALUE", and the login
 * of a URL.  Ends with NULL. */
void secret_add_words(char *const *words);

/* Length of the secret at the start of these bytes; 0 if there is none. */
size_t secret_at(const char *bytes, size_t length);

/* Compares a client's token (may be NULL) with ours in constant time. */
bool secret_matches(const char *given, const char *token);

/* Replaces in place. */
void secret_hide(char *string);
void secret_hide_text(struct text *text);

/* Copies text from outside as one line of whole UTF-8 characters, truncated to fit; characters that are not plain
 * (core/text.h) and invalid bytes become spaces, secrets SECRET_MARK. */
void secret_one_line(char *to, size_t size, const char *bytes, size_t length);

/* As secret_hide_json, in a string that is a JSON value. */
void secret_hide_value(char *string);

/* Whether JSON contains a secret; keys are ignored. */
bool secret_in_json(const struct text *json);
void secret_hide_json(struct text *json);

#endif
