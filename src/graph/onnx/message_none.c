/* A build without protobuf-c: no ONNX file can be read, and that is told. */
#include "graph/onnx/message.h"

enum err message_available(struct error *why)
{
    return err_set(
        why, ERR_UNSUPPORTED,
        "built without protobuf-c, which reads ONNX files: run tools/setup build and build "
        "again");
}

enum err message_setting(struct arena *arena, struct slice body, struct message_setting *out)
{
    (void)arena, (void)body;
    *out = (struct message_setting){0};
    return ERR_UNSUPPORTED;
}

enum err message_type(struct arena *arena, struct slice body, struct message_type *out)
{
    (void)arena, (void)body;
    *out = (struct message_type){0};
    return ERR_UNSUPPORTED;
}
