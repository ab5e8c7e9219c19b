/* Secrets of this process by their values: API keys, tokens, passwords.  Whoever reads one adds it here; errors, log
 * lines, the journal and the summary replace every occurrence by SECRET_MARK, however it got there: a server may echo
 * a key in an error message or in an answer.
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

/* A key that a client of ours sent.  It is hidden in texts, where a server may echo it, and not by secret_hide_json:
 * otherwise clients could choose what is missing from our own fields.  Words are not taken: random keys have twelve
 * letters and digits in a row. */
void secret_add_foreign(const char *value);

/* The value of a header; of "Bearer KEY", KEY alone too. */
void secret_add_header(const char *value);

/* A user name and password, also as HTTP sends them: base64 of "user:password". */
void secret_add_login(const char *user, const char *password);

/* Values of variables whose names end in KEY, TOKEN, SECRET or PASSWORD.  environment is like environ. */
void secret_add_environment(char *const *environment);

/* What the words of a command give as a secret: "--api-key VALUE", "--token=VALUE", "Authorization: VALUE", and the
 * login of a URL.  Ends with NULL. */
void secret_add_words(char *const *words);

/* How many bytes at the beginning of these are a secret; 0 for none. */
size_t secret_at(const char *bytes, size_t length);

/* Whether what a client sent (NULL: nothing) is the token, in a time that does not depend on how much of it is right. */
bool secret_matches(const char *given, const char *token);

/* Replaces in place. */
void secret_hide(char *string);
void secret_hide_text(struct text *text);

/* Copies text from outside as one line of whole UTF-8 characters, truncated to fit; control characters and invalid
 * bytes become spaces, secrets SECRET_MARK. */
void secret_one_line(char *to, size_t size, const char *bytes, size_t length);

/* The same of JSON: keys stay as they are. */
bool secret_in_json(const struct text *json);
void secret_hide_json(struct text *json);

#endif
