/* Threads of llama.cpp that stay between graphs.  Without them some builds start threads anew for every
 * graph, and for every piece of one that is stopped. */
#ifndef IPW_ENGINE_LLAMA_POOL_H
#define IPW_ENGINE_LLAMA_POOL_H

struct ggml_threadpool;

/* NULL where the library cannot give one; it then does as it likes. */
struct ggml_threadpool *pool_new(int threads);
void pool_free(struct ggml_threadpool *pool);

#endif
