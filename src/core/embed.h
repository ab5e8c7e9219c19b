/* EMBED(name, "path"): the bytes of a file as constants of the program, name up to name_end, with a NUL behind them. */
#ifndef IPW_CORE_EMBED_H
#define IPW_CORE_EMBED_H

/* The assembler copies a file as it stands, for any processor and at no cost of compiling. */
#define EMBED(name, path)                                                                          \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden " #name "\n.hidden " #name "_end\n"                                           \
            ".globl " #name "\n.globl " #name "_end\n" #name ":\n.incbin \"" path "\"\n" #name     \
            "_end:\n.byte 0\n"                                                                     \
            ".popsection\n");                                                                      \
    extern const char name[] __attribute__((visibility("hidden")));                                \
    extern const char name##_end[] __attribute__((visibility("hidden")))

#endif
