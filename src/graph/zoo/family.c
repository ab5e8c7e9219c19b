/* Layers that several families share, and the lookup of a row by name. */
#include "graph/zoo/family.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

const void *zoo_row(const void *rows, size_t row_size, size_t count, const char *name)
{
    const char *row = rows;
    for (size_t i = 0; i < count; i++, row += row_size) {
        const char *row_name;
        memcpy(&row_name, row, sizeof row_name);
        if (str_equal(row_name, name))
            return row;
    }
    return NULL; /* a name of zoo.def that its family lacks: a programming error detected by tests */
}

tensor_id zoo_image(struct build *build, const struct graph_options *options)
{
    return build_input(build, "input", GRAPH_FLOAT,
                       DIMS(options->batch, 3, options->image, options->image));
}

void zoo_check_multiple(struct build *build, int64_t image, int64_t multiple)
{
    if (image % multiple)
        build->err = err_set(build->why, ERR_BAD_VALUE,
                             "%s: image size must be a multiple of %lld, not %lld",
                             build->graph->name, (long long)multiple, (long long)image);
}

/* ---- convolutions ---- */

struct scoped_name {
    char text[64];
};

static struct scoped_name scoped(const char *scope, const char *name)
{
    struct scoped_name scoped = {0};
    chars_format(scoped.text, "%s%s%s", scope, *scope ? "." : "", name);
    return scoped;
}

tensor_id zoo_unit(struct build *build, const char *scope, const struct zoo_unit *names,
                   tensor_id x, struct build_conv conv, enum graph_op activation)
{
    x = build_conv(build, scoped(scope, names->conv).text, x, conv);
    x = build_batch_norm(build, scoped(scope, names->norm).text, x);
    return activation == GRAPH_VIEW
               ? x
               : build_op(build, activation, scoped(scope, names->activation).text, x);
}

tensor_id zoo_conv_norm_from(struct build *build, const char *scope, int first, tensor_id x,
                             struct build_conv conv, enum graph_op activation)
{
    char numbers[3][8];
    for (int i = 0; i < 3; i++)
        chars_format(numbers[i], "%d", first + i);
    const struct zoo_unit names = {numbers[0], numbers[1], numbers[2]};
    return zoo_unit(build, scope, &names, x, conv, activation);
}

tensor_id zoo_conv_norm(struct build *build, const char *scope, tensor_id x, struct build_conv conv,
                        enum graph_op activation)
{
    return zoo_conv_norm_from(build, scope, 0, x, conv, activation);
}

struct build_conv zoo_same_conv(int64_t channels, int32_t kernel, int32_t stride)
{
    return (struct build_conv){
        .channels = channels, .kernel = kernel, .stride = stride, .pad = (kernel - 1) / 2};
}

struct build_conv zoo_biased_conv(int64_t channels, int32_t kernel, int32_t stride)
{
    struct build_conv conv = zoo_same_conv(channels, kernel, stride);
    conv.has_bias = true;
    return conv;
}

struct build_conv zoo_depthwise_conv(int64_t channels, int32_t kernel, int32_t stride)
{
    struct build_conv conv = zoo_same_conv(channels, kernel, stride);
    conv.groups = -1;
    return conv;
}

int64_t zoo_round_channels(double channels)
{
    int64_t rounded = (int64_t)floor((channels + 4) / 8) * 8;
    if (rounded < 8)
        rounded = 8;
    return (double)rounded < 0.9 * channels ? rounded + 8 : rounded;
}

tensor_id zoo_squeeze_excite(struct build *build, const char *scope, tensor_id x,
                             struct zoo_squeeze_excite excite)
{
    struct build_conv down = {.channels = excite.squeezed, .kernel = 1, .has_bias = true};
    struct build_conv up = {.channels = build_dim(build, x, 1), .kernel = 1, .has_bias = true};
    tensor_id scale = build_global_pool(build, scoped(scope, "avgpool").text, x);
    scale = build_conv(build, scoped(scope, "fc1").text, scale, down);
    scale = build_op(build, excite.activation, scoped(scope, "activation").text, scale);
    scale = build_conv(build, scoped(scope, "fc2").text, scale, up);
    scale = build_op(build, excite.scale, scoped(scope, "scale_activation").text, scale);
    return build_binary(build, GRAPH_MUL, scoped(scope, "mul").text, scale, x);
}

/* ---- pooling and shapes ---- */

tensor_id zoo_classifier(struct build *build, tensor_id x, const char *pool, const char *dropout,
                         const char *linear)
{
    build_root(build);
    x = build_flatten(build, "flatten", build_global_pool(build, pool, x));
    if (dropout)
        x = zoo_dropout(build, dropout, x);
    return build_linear(build, linear, x, 1000, true);
}

tensor_id zoo_dropout(struct build *build, const char *name, tensor_id x)
{
    struct graph_node node = {.op = GRAPH_VIEW, .name = name, .label = "dropout"};
    return build_like(build, &node, &x, 1, x);
}

tensor_id zoo_adaptive_pool(struct build *build, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_AVG_POOL, .name = "avgpool", .as.window = {.rank = 2}};
    for (int i = 0; i < 2; i++) {
        int32_t width = (int32_t)((build_dim(build, x, i + 2) + size - 1) / size);
        node.as.window.kernel[i] = node.as.window.stride[i] = width;
        node.as.window.dilation[i] = 1;
    }
    node.as.window.groups = 1;
    return build_node(build, &node, &x, 1,
                      DIMS(build_dim(build, x, 0), build_dim(build, x, 1), size, size));
}

tensor_id zoo_half_channels(struct build *build, const char *name, tensor_id x)
{
    return build_rearrange(build, name, x,
                           DIMS(build_dim(build, x, 0), build_dim(build, x, 1) / 2,
                                build_dim(build, x, 2), build_dim(build, x, 3)));
}
