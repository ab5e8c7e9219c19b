#include "graph/zoo/family.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

const void *zoo_row(const void *rows, size_t row_size, size_t count, const char *name)
{
    const char *row = rows;
    for (size_t i = 0; i < count; i++, row += row_size) {
        const char *its_name;
        memcpy(&its_name, row, sizeof its_name);
        if (!strcmp(its_name, name))
            return row;
    }
    return NULL; /* zoo.def names what the family has not: a programming error, and every test sees it */
}

/* ---- begin ---- */

struct build zoo_image(const char *name, const struct graph_options *setting, int64_t channels,
                       struct graph *out, struct error *why, tensor_id *image)
{
    struct build b = build_begin(out, name, why);
    int64_t dims[] = {setting->batch, channels, setting->image, setting->image};
    out->batch = (double)setting->batch;
    *image = build_input(&b, "input", GRAPH_FLOAT, 4, dims);
    return b;
}

/* ---- convolutions ---- */

static const char *inside(char *room, size_t size, const char *place, const char *name)
{
    str_format(room, size, "%s%s%s", place, *place ? "." : "", name);
    return room;
}

tensor_id zoo_conv_norm(struct build *build, const char *place, tensor_id x, struct build_conv conv,
                        enum graph_op activation)
{
    char name[64];
    x = build_conv(build, inside(name, sizeof name, place, "0"), x, conv);
    x = build_batch_norm(build, inside(name, sizeof name, place, "1"), x);
    if (activation == GRAPH_VIEW)
        return x;
    return build_op(build, activation, inside(name, sizeof name, place, "2"), x);
}

struct build_conv zoo_same(int64_t channels, int32_t kernel, int32_t stride)
{
    return (struct build_conv){
        .channels = channels, .kernel = kernel, .stride = stride, .pad = (kernel - 1) / 2};
}

int64_t zoo_rounded(double channels)
{
    int64_t rounded = (int64_t)floor((channels + 4) / 8) * 8;
    if (rounded < 8)
        rounded = 8;
    return (double)rounded < 0.9 * channels ? rounded + 8 : rounded;
}

tensor_id zoo_excite(struct build *build, const char *place, tensor_id x, struct zoo_excite excite)
{
    char name[64];
    struct build_conv down = {.channels = excite.squeezed, .kernel = 1, .has_bias = true};
    struct build_conv up = {.channels = build_dim(build, x, 1), .kernel = 1, .has_bias = true};
    tensor_id scale = build_global_pool(build, inside(name, sizeof name, place, "avgpool"), x);
    scale = build_conv(build, inside(name, sizeof name, place, "fc1"), scale, down);
    scale =
        build_op(build, excite.activation, inside(name, sizeof name, place, "activation"), scale);
    scale = build_conv(build, inside(name, sizeof name, place, "fc2"), scale, up);
    scale =
        build_op(build, excite.scale, inside(name, sizeof name, place, "scale_activation"), scale);
    return build_binary(build, GRAPH_MUL, inside(name, sizeof name, place, "mul"), scale, x);
}

/* ---- the rest ---- */

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
