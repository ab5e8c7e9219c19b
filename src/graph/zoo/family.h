/* The families of the zoo: each builds the graph of one of its names and finishes it; and the layers that they share.
 * Graphs are the caller's; nothing is owned. */
#ifndef IPW_GRAPH_ZOO_FAMILY_H
#define IPW_GRAPH_ZOO_FAMILY_H

#include "graph/build.h"
#include "graph/reader.h"

#define ZOO_FAMILY(family)                                                                         \
    enum err zoo_build_##family(const char *name, const struct graph_options *options,             \
                                struct graph *out, struct error *why)
ZOO_FAMILY(alexnet);
ZOO_FAMILY(bert);
ZOO_FAMILY(clip_text);
ZOO_FAMILY(convnext);
ZOO_FAMILY(decoder);
ZOO_FAMILY(densenet);
ZOO_FAMILY(diffusion);
ZOO_FAMILY(efficientnet);
ZOO_FAMILY(googlenet);
ZOO_FAMILY(gpt2);
ZOO_FAMILY(inception_v3);
ZOO_FAMILY(lraspp);
ZOO_FAMILY(maxvit);
ZOO_FAMILY(mnasnet);
ZOO_FAMILY(mobilenet_v2);
ZOO_FAMILY(mobilenet_v3);
ZOO_FAMILY(recurrent);
ZOO_FAMILY(regnet);
ZOO_FAMILY(resnet);
ZOO_FAMILY(segmentation);
ZOO_FAMILY(shufflenet);
ZOO_FAMILY(squeezenet);
ZOO_FAMILY(swin);
ZOO_FAMILY(vgg);
ZOO_FAMILY(vit);
ZOO_FAMILY(whisper);
ZOO_FAMILY(yolo);
#undef ZOO_FAMILY

/* ---- shared ---- */

/* The row of a family's table whose first member, a string, is this name. */
const void *zoo_row(const void *rows, size_t row_size, size_t count, const char *name);
#define ZOO_ROW(rows, name) zoo_row(rows, sizeof *(rows), sizeof(rows) / sizeof *(rows), name)

/* Begins a graph whose input is an image: (batch, channels, height, width). */
struct build zoo_image(const char *name, const struct graph_options *options, int64_t channels,
                       struct graph *out, struct error *why, tensor_id *image);

/* Convolution, batch norm and, unless it is GRAPH_VIEW, an activation, named like torchvision's
 * Conv2dNormActivation: SCOPE.0, SCOPE.1, SCOPE.2. */
tensor_id zoo_conv_norm(struct build *build, const char *scope, tensor_id x, struct build_conv conv,
                        enum graph_op activation);
/* "Same" padding: a stride of 1 keeps the size. */
struct build_conv zoo_same_conv(int64_t channels, int32_t kernel, int32_t stride);
struct build_conv zoo_depthwise_conv(int64_t channels, int32_t kernel, int32_t stride);

/* Free at inference. */
tensor_id zoo_dropout(struct build *build, const char *name, tensor_id x);
/* Adaptive average pooling to `size` x `size`. */
tensor_id zoo_adaptive_pool(struct build *build, const char *name, tensor_id x, int64_t size);
/* The first or second half of the channels. */
tensor_id zoo_half_channels(struct build *build, const char *name, tensor_id x);

/* To the nearest multiple of 8 that is at least nine tenths, as in torchvision. */
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
