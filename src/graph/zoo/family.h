/* The families of the zoo, each of which builds the architecture that the graph is named after, and shared layers.
 * Graphs belong to the caller; nothing is owned. */
#ifndef IPW_GRAPH_ZOO_FAMILY_H
#define IPW_GRAPH_ZOO_FAMILY_H

#include "graph/build.h"
#include "graph/graph.h"

/* Adds all nodes and returns the output; the options are complete. */
typedef tensor_id zoo_builder(struct build *b, const struct graph_options *options);

zoo_builder zoo_build_alexnet, zoo_build_bert, zoo_build_clip_text, zoo_build_convnext,
    zoo_build_densenet, zoo_build_diffusion, zoo_build_efficientnet, zoo_build_googlenet,
    zoo_build_gpt2, zoo_build_inception_v3, zoo_build_lraspp, zoo_build_maxvit, zoo_build_mnasnet,
    zoo_build_mobilenet_v2, zoo_build_mobilenet_v3, zoo_build_recurrent, zoo_build_regnet,
    zoo_build_resnet, zoo_build_segmentation, zoo_build_shufflenet, zoo_build_squeezenet,
    zoo_build_swin, zoo_build_vgg, zoo_build_vit, zoo_build_whisper, zoo_build_yolo;

/* ---- shared ---- */

/* The row of a family's table whose first member, a string, is this name. */
const void *zoo_row(const void *rows, size_t row_size, size_t count, const char *name);
#define ZOO_ROW(rows, name) zoo_row(rows, sizeof *(rows), sizeof(rows) / sizeof *(rows), name)

/* An image as input: (batch, 3, height, width). */
tensor_id zoo_image(struct build *build, const struct graph_options *options);
/* Fails if the image size is not a multiple. */
void zoo_check_multiple(struct build *build, int64_t image, int64_t multiple);

/* Convolution, batch norm and, unless it is GRAPH_VIEW, an activation, named SCOPE.conv and so on. */
struct zoo_unit {
    const char *conv, *norm, *activation;
};
tensor_id zoo_unit(struct build *build, const char *scope, const struct zoo_unit *names,
                   tensor_id x, struct build_conv conv, enum graph_op activation);
/* The same named like torchvision's Conv2dNormActivation: SCOPE.0, SCOPE.1, SCOPE.2; or by three numbers from FIRST. */
tensor_id zoo_conv_norm(struct build *build, const char *scope, tensor_id x, struct build_conv conv,
                        enum graph_op activation);
tensor_id zoo_conv_norm_from(struct build *build, const char *scope, int first, tensor_id x,
                             struct build_conv conv, enum graph_op activation);
/* "Same" padding: a stride of 1 keeps the size. */
struct build_conv zoo_same_conv(int64_t channels, int32_t kernel, int32_t stride);
struct build_conv zoo_biased_conv(int64_t channels, int32_t kernel, int32_t stride);
struct build_conv zoo_depthwise_conv(int64_t channels, int32_t kernel, int32_t stride);

/* The usual classifier, without a prefix: global average pooling, flatten, dropout unless it is NULL, 1000 classes. */
tensor_id zoo_classifier(struct build *build, tensor_id x, const char *pool, const char *dropout,
                         const char *linear);

/* No-op at inference. */
tensor_id zoo_dropout(struct build *build, const char *name, tensor_id x);
/* Adaptive average pooling to `size` x `size`. */
tensor_id zoo_adaptive_pool(struct build *build, tensor_id x, int64_t size);
/* The first or second half of the channels. */
tensor_id zoo_half_channels(struct build *build, const char *name, tensor_id x);

/* Rounds to the nearest multiple of 8 that is at least 90 %, as in torchvision. */
int64_t zoo_round_channels(double channels);

/* Squeeze-and-excitation: the average of each channel through two 1 x 1 convolutions, times x.  Names are
 * SCOPE.avgpool, SCOPE.fc1 and so on. */
struct zoo_squeeze_excite {
    int64_t squeezed;
    enum graph_op activation, scale;
};
tensor_id zoo_squeeze_excite(struct build *build, const char *scope, tensor_id x,
                             struct zoo_squeeze_excite excite);

/* The large MobileNet V3 without its classifier, named "backbone.", with atrous convolution in its last blocks instead
 * of downsampling.  *early is the output at an eighth of the image size. */
tensor_id zoo_mobilenet_v3_dilated(struct build *build, tensor_id x, tensor_id *early);

#endif
