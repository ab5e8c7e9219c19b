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
        if (!strcmp(row_name, name))
            return row;
    }
    return NULL; /* zoo.def has a name that its family lacks: a programming error, which the tests find */
}

struct build zoo_image(const char *name, const struct graph_options *options, int64_t channels,
                       struct graph *out, struct error *why, tensor_id *image)
{
    struct build b = build_begin(out, name, why);
    int64_t dims[] = {options->batch, channels, options->image, options->image};
    out->batch = (double)options->batch;
    *image = build_input(&b, "input", GRAPH_FLOAT, 4, dims);
    return b;
}

/* ---- convolutions ---- */

struct scoped_name {
    char text[64];
};

static struct scoped_name scoped(const char *scope, const char *name)
{
    struct scoped_name scoped;
    str_format(scoped.text, sizeof scoped.text, "%s%s%s", scope, *scope ? "." : "", name);
    return scoped;
}

tensor_id zoo_conv_norm(struct build *build, const char *scope, tensor_id x, struct build_conv conv,
                        enum graph_op activation)
{
    x = build_conv(build, scoped(scope, "0").text, x, conv);
    x = build_batch_norm(build, scoped(scope, "1").text, x);
    if (activation == GRAPH_VIEW)
        return x;
    return build_op(build, activation, scoped(scope, "2").text, x);
}

struct build_conv zoo_same_conv(int64_t channels, int32_t kernel, int32_t stride)
{
    return (struct build_conv){
        .channels = channels, .kernel = kernel, .stride = stride, .pad = (kernel - 1) / 2};
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

tensor_id zoo_dropout(struct build *build, const char *name, tensor_id x)
{
    struct graph_node node = {.op = GRAPH_VIEW, .name = name, .label = "dropout"};
    int64_t dims[GRAPH_MAX_RANK];
    int rank = build_rank(build, x);
    for (int i = 0; i < rank; i++)
        dims[i] = build_dim(build, x, i);
    return build_node(build, &node, &x, 1, rank, dims);
}

tensor_id zoo_adaptive_pool(struct build *build, const char *name, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_AVG_POOL, .name = name, .as.window = {.rank = 2}};
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), size, size};
    for (int i = 0; i < 2; i++) {
        int32_t width = (int32_t)((build_dim(build, x, i + 2) + size - 1) / size);
        node.as.window.kernel[i] = node.as.window.stride[i] = width;
        node.as.window.dilation[i] = 1;
    }
    node.as.window.groups = 1;
    return build_node(build, &node, &x, 1, 4, dims);
}

tensor_id zoo_half_channels(struct build *build, const char *name, tensor_id x)
{
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1) / 2, build_dim(build, x, 2),
                      build_dim(build, x, 3)};
    return build_rearrange(build, name, x, 4, dims);
}
