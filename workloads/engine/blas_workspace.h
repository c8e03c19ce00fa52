/* The memory that the handles of cuBLAS and cuBLASLt take at their first use and keep. PyTorch has
 * one handle of each for the main thread and one for the autograd thread. */
#ifndef PLIM_ENGINE_BLAS_WORKSPACE_H
#define PLIM_ENGINE_BLAS_WORKSPACE_H

#include "engine.h"

/* Of this thread's cuBLAS handle. NULL: the engine is halted and there is none. */
struct storage *blas_workspace(struct engine *e);
/* The same of cuBLASLt, which a matmul with a bias epilogue uses; cuBLAS's own comes first. */
struct storage *blaslt_workspace(struct engine *e);

#endif
