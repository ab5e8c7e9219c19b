/* Errors: one enum, 0 is success, and an optional context: what failed, where, and how to fix it. The caller owns every
 * struct error; nothing here allocates. */
#ifndef IPW_CORE_ERR_H
#define IPW_CORE_ERR_H

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define COUNT_OF(array)   (sizeof(array) / sizeof *(array))

enum err {
#define ERR(name, text) ERR_##name,
#include "core/err.def"
#undef ERR
    ERR_COUNT
};

struct error {
    enum err code;
    char text[320]; /* one line: what failed, where, how to fix it */
};

/* Description of a code for users, without context. */
const char *err_text(enum err code);

/* Fills *why (which may be NULL) and returns code, so that a failure is one statement:
 * `return err_set(why, ERR_DENIED, "cannot read %s", path);`  A message that does not fit loses its middle. */
enum err err_set(struct error *why, enum err code, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same for an errno, whose description is added to the message: "cannot read FILE: Permission denied". */
enum err err_errno(struct error *why, int number, const char *format, ...) PRINTF_LIKE(3, 4);

/* err_set with err_text as the message; ERR_OK is returned and leaves *why unchanged. */
enum err err_explain(struct error *why, enum err code);

static inline enum err err_no_memory(struct error *why)
{
    (void)err_explain(why, ERR_NO_MEMORY);
    return ERR_NO_MEMORY;
}

#ifdef __clang_analyzer__ /* it analyzes one file at a time and does not know that err_set returns its code */
static inline enum err err_same(enum err set, enum err code)
{
    (void)set;
    return code;
}
#define err_set(why, code, ...) err_same(err_set(why, code, __VA_ARGS__), code)
#define err_errno(why, number, ...)                                                                \
    err_same(err_errno(why, number, __VA_ARGS__), (number) ? ERR_IO : ERR_OK)
#endif

/* Maps an errno value to an error code. */
enum err err_from_errno(int number);

#endif
