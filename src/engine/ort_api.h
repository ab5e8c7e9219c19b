/* Declarations of ONNX Runtime's C API, our own: the library's functions are a table of fixed order, of which these are
 * used.  Entries are only ever appended, so that a table of version n is the start of every later one.
 *
 * Opaque structs are the library's, and are released by it. */
#ifndef IPW_ENGINE_ORT_API_H
#define IPW_ENGINE_ORT_API_H

#include <stddef.h>
#include <stdint.h>

struct ort_status; /* NULL: success */
struct ort_env;
struct ort_session;
struct ort_options;
struct ort_run_options;
struct ort_value;
struct ort_memory;
struct ort_allocator;
struct ort_type;
struct ort_tensor; /* type and shape of a tensor */
struct ort_metadata;
struct ort_cuda;

/* The version of the table that has all entries below, of ONNX Runtime 1.11. */
enum { ORT_API_VERSION = 11 };

/* Arguments of the functions. */
enum {
    ORT_LOG_WARNING = 2,
    ORT_LOG_ERROR = 3,
    ORT_OPTIMIZE_BASIC = 1,
    ORT_OPTIMIZE_ALL = 99,
    ORT_KIND_TENSOR = 1,
    ORT_DEVICE_ALLOCATOR = 0,
    ORT_MEMORY_DEFAULT = 0,
};

/* Of a status. */
enum ort_code {
    ORT_FAIL = 1,
    ORT_INVALID_ARGUMENT = 2,
    ORT_NO_FILE = 3,
    ORT_INVALID_PROTOBUF = 7,
    ORT_NOT_IMPLEMENTED = 9,
    ORT_INVALID_GRAPH = 10,
};

typedef void (*ort_logger)(void *context, int level, const char *category, const char *id,
                           const char *where, const char *message);

struct ort_api {
    void *unused_0;
    int (*error_code)(const struct ort_status *);
    const char *(*error_message)(const struct ort_status *);
    void *unused_3;
    struct ort_status *(*create_env)(ort_logger, void *context, int level, const char *name,
                                     struct ort_env **);
    void *unused_5[2];
    struct ort_status *(*open_session)(const struct ort_env *, const char *path,
                                       const struct ort_options *, struct ort_session **);
    struct ort_status *(*create_session)(const struct ort_env *, const void *, size_t,
                                         const struct ort_options *, struct ort_session **);
    struct ort_status *(*run)(struct ort_session *, const struct ort_run_options *,
                              const char *const *inputs, const struct ort_value *const *, size_t,
                              const char *const *outputs, size_t, struct ort_value **);
    struct ort_status *(*create_options)(struct ort_options **);
    void *unused_11[3];
    struct ort_status *(*enable_profiling)(struct ort_options *, const char *prefix);
    void *unused_15[8];
    struct ort_status *(*set_optimization)(struct ort_options *, int level);
    struct ort_status *(*set_intra_threads)(struct ort_options *, int);
    struct ort_status *(*set_inter_threads)(struct ort_options *, int);
    void *unused_26[4];
    struct ort_status *(*input_count)(const struct ort_session *, size_t *);
    struct ort_status *(*output_count)(const struct ort_session *, size_t *);
    void *unused_32;
    struct ort_status *(*input_type)(const struct ort_session *, size_t, struct ort_type **);
    struct ort_status *(*output_type)(const struct ort_session *, size_t, struct ort_type **);
    void *unused_35;
    struct ort_status *(*input_name)(const struct ort_session *, size_t, struct ort_allocator *,
                                     char **);
    struct ort_status *(*output_name)(const struct ort_session *, size_t, struct ort_allocator *,
                                      char **);
    void *unused_38;
    struct ort_status *(*create_run_options)(struct ort_run_options **);
    void *unused_40[6];
    struct ort_status *(*terminate)(struct ort_run_options *);
    void *unused_47[2];
    struct ort_status *(*create_tensor)(const struct ort_memory *, void *, size_t, const int64_t *,
                                        size_t, int type, struct ort_value **);
    void *unused_50;
    struct ort_status *(*tensor_data)(struct ort_value *, void **);
    void *unused_52[3];
    /* Of the type, which owns the result; NULL if it is not a tensor. */
    struct ort_status *(*type_tensor)(const struct ort_type *, const struct ort_tensor **);
    void *unused_56[4];
    struct ort_status *(*element_type)(const struct ort_tensor *, int *);
    struct ort_status *(*rank)(const struct ort_tensor *, size_t *);
    struct ort_status *(*shape)(const struct ort_tensor *, int64_t *, size_t);
    struct ort_status *(*symbols)(const struct ort_tensor *, const char **, size_t);
    void *unused_64;
    struct ort_status *(*value_tensor)(const struct ort_value *, struct ort_tensor **);
    void *unused_66;
    struct ort_status *(*value_kind)(const struct ort_value *, int *);
    void *unused_68;
    struct ort_status *(*create_host_memory)(int allocator, int type, struct ort_memory **);
    void *unused_70[6];
    struct ort_status *(*free_memory)(struct ort_allocator *, void *);
    void *unused_77;
    struct ort_status *(*default_allocator)(struct ort_allocator **); /* not to be released */
    void *unused_79[13];
    void (*release_env)(struct ort_env *);
    void (*release_status)(struct ort_status *);
    void (*release_memory)(struct ort_memory *);
    void (*release_session)(struct ort_session *);
    void (*release_value)(struct ort_value *);
    void (*release_run_options)(struct ort_run_options *);
    void (*release_type)(struct ort_type *);
    void (*release_tensor)(struct ort_tensor *);
    void (*release_options)(struct ort_options *);
    void *unused_101[9];
    struct ort_status *(*end_profiling)(struct ort_session *, struct ort_allocator *, char **path);
    struct ort_status *(*metadata)(const struct ort_session *, struct ort_metadata **);
    void *unused_112[4];
    struct ort_status *(*metadata_value)(const struct ort_metadata *, struct ort_allocator *,
                                         const char *key, char **);
    void *unused_117;
    void (*release_metadata)(struct ort_metadata *);
    void *unused_119[6];
    struct ort_status *(*providers)(char ***, int *count);
    struct ort_status *(*release_providers)(char **, int count);
    void *unused_127[77];
    struct ort_status *(*append_cuda)(struct ort_options *, const struct ort_cuda *);
    struct ort_status *(*create_cuda)(struct ort_cuda **);
    void *unused_206[2];
    void (*release_cuda)(struct ort_cuda *);
};

#define ORT_ENTRY(member, index)                                                                   \
    _Static_assert(offsetof(struct ort_api, member) == (index) * sizeof(void *), #member)
ORT_ENTRY(open_session, 7);
ORT_ENTRY(set_intra_threads, 24);
ORT_ENTRY(create_run_options, 39);
ORT_ENTRY(value_tensor, 65);
ORT_ENTRY(release_env, 92);
ORT_ENTRY(release_options, 100);
ORT_ENTRY(release_metadata, 118);
ORT_ENTRY(release_providers, 126);
ORT_ENTRY(release_cuda, 208);

/* What the library's only exported function, OrtGetApiBase, returns. */
struct ort_base {
    const struct ort_api *(*get_api)(uint32_t version); /* NULL: the library is older */
    const char *(*get_version)(void);
};

#endif
