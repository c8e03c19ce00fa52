/* The workspaces of cuBLAS and cuBLASLt, allocated at their first use and kept. PyTorch has one handle of each for the
 * main thread and one for the autograd thread, with one workspace per stream. From 2.15 on each product allocates and
 * frees its workspace (engine.h: torch_2_15). */
#ifndef PLIM_ENGINE_BLAS_WORKSPACE_H
#define PLIM_ENGINE_BLAS_WORKSPACE_H

#include "engine.h"

/* Returns the workspace of this thread's handle. `is_lt`: that of cuBLASLt, for a product with a bias epilogue; it is
 * separate from cuBLAS's own, which is allocated first. NULL: the engine is halted. */
struct storage *blas_workspace_acquire(struct engine *e, bool is_lt);
/* Call after the product. */
void blas_workspace_release(struct engine *e, struct storage *workspace);

#endif
