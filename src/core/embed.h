/* EMBED(name, "path"): embeds a file as constant bytes from name up to name_end, followed by a NUL. */
#ifndef IPW_CORE_EMBED_H
#define IPW_CORE_EMBED_H

/* .incbin copies the file unchanged, on any architecture and at no compile time. */
#define EMBED(name, path)                                                                          \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden " #name "\n.hidden " #name "_end\n"                                           \
            ".globl " #name "\n.globl " #name "_end\n" #name ":\n.incbin \"" path "\"\n" #name     \
            "_end:\n.byte 0\n"                                                                     \
            ".popsection\n");                                                                      \
    extern const char name[] __attribute__((visibility("hidden")));                                \
    extern const char name##_end[] __attribute__((visibility("hidden")))

#endif
