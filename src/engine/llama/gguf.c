#include "engine/llama/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct header {
    char magic[4];
    uint32_t version;
    uint64_t tensors;
    uint64_t keys;
};

static enum err look_at_header(int file, const char *path, struct error *why)
{
    struct header header;
    ssize_t length = pread(file, &header, sizeof header, 0);
    if (length >= 4 && memcmp(header.magic, "GGUF", 4) != 0)
        return err_set(why, ERR_BAD_VALUE, "%s is not a GGUF file", path);
    if (length < (ssize_t)sizeof header)
        return err_set(why, ERR_BAD_VALUE, "%s is cut off: it ends within its header", path);
    if (header.version != 2 && header.version != 3)
        return err_set(why, ERR_BAD_VALUE, "%s is GGUF version %u, where 2 and 3 are known", path,
                       header.version);
    if (header.tensors == 0)
        return err_set(why, ERR_BAD_VALUE, "%s holds no tensors: it is a vocabulary alone", path);
    return ERR_OK;
}

enum err gguf_look(const char *path, struct error *why)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        enum err err = err_from_errno(errno);
        return err_set(why, err, "cannot read the model %s: %s", path, err_text(err));
    }
    struct stat found;
    enum err err = ERR_OK;
    if (fstat(file, &found) || !S_ISREG(found.st_mode))
        err = err_set(why, ERR_BAD_VALUE, "the model %s is not a file", path);
    else
        err = look_at_header(file, path, why);
    close(file);
    return err;
}
