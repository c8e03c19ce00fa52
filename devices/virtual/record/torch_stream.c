#include "torch_stream.h"
#include "devices/virtual/machine/version.h"
#include "stream.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* c10::cuda::CUDAStream (c10/core/Stream.h): two words, returned in registers. Id 0 is the default stream. */
struct torch_stream {
    uint64_t device;
    int64_t id;
};
typedef struct torch_stream current_stream(int8_t device);

/* Returns c10::cuda::getCurrentCUDAStream (c10/cuda/CUDAStream.h, 1.8 to 2.15), or NULL if it is not loaded. */
static current_stream *find_current_stream(void)
{
    static current_stream *found;
    if (found) return found;
    void *library = plim_version_library("libc10_cuda.so");
    void *symbol = library ? dlsym(library, "_ZN3c104cuda20getCurrentCUDAStreamEa") : NULL;
    memcpy(&found, &symbol, sizeof(found));
    return found;
}

/* Numbers streams in the order of their first allocation. Streams beyond MOST share a number. */
static int number_of(int64_t id)
{
    enum { MOST = 64 };
    static int64_t ids[MOST];
    static int count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int number = 0;
    if (!id) return 0;
    pthread_mutex_lock(&lock);
    while (number < count && ids[number] != id) number++;
    if (number == count && count < MOST) ids[count++] = id;
    pthread_mutex_unlock(&lock);
    return number + 1;
}

int plim_torch_stream(int device)
{
    current_stream *current =
        plim_stream_is_on() || plim_stream_has_blocks() ? find_current_stream() : NULL;
    return current ? number_of(current((int8_t)device).id) : 0;
}
