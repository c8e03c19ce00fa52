/* cuBLASLt and cuDNN of a version that plimsoll does not take: as good as none. */
#include <stddef.h>

size_t cublasLtGetVersion(void);
size_t cudnnGetVersion(void);

size_t cublasLtGetVersion(void)
{
    return 120000;
}

size_t cudnnGetVersion(void)
{
    return 90100;
}
