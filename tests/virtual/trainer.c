/* A program that takes memory as a training program does, for the tests of exec: it knows nothing of
 * plimsoll and speaks CUDA's runtime. What it takes is simple enough to be known in a test:
 *
 *     trainer BATCH [key=value ...]         BATCH may be @FILE: the number behind "batch " there; a value
 *                                           may be @FILE too: the number in it
 *
 *     fixed     MiB once (64)                   sample    MiB a sample in each step (32)
 *     states    MiB from the first step's end on (0)      steps     how many (5)
 *     micro     micro-steps a step (1)
 *     grads     MiB from a step's first micro-step to its end; each later one adds as much to it, which
 *               it takes for a moment (0)
 *     cache     1: keeps what it freed, and gives it back when memory is refused, as PyTorch (1)
 *     leak      MiB more after each step (0)    grows     MiB that a step takes more than the last (0)
 *     keeps     bytes more after each step, as a log of losses does (0)
 *     alone     takes the memory of so many samples by itself, one such chunk after the other (0: of all at once)
 *     large     from this BATCH on a step takes 64 MiB more for a moment, as long as it has all samples (0: never)
 *     skips     from this BATCH on a step ends with its forward pass (0: never)
 *     rounds    to whole multiples of so many, up: what BATCH takes (1)
 *     ignores   1: takes one sample whatever BATCH is
 *     catches   1: halves the batch when memory is refused, and goes on
 *     fork      1: forks a child before it uses the GPU, which sleeps; 2: and leaves the session;
 *               3: and the environment, as `sleep $PLIM_TEST`
 *     ranks     processes, each on a GPU of its own (1)
 *     least     the smallest BATCH it runs with: with a smaller one it ends with exit code 4 (1)
 *     fails     exit code, after the first step (0)     signal    signal to itself after a step
 *     input     1: reads a line first                   tty       1: opens /dev/tty first
 *     sleep     milliseconds a step (0)                 forever   1: no end
 *     hostile   so many times it cuts the virtual machine's memory and fills it with random bytes
 *     cpu       1: does not use the GPU                 unknown   1: calls a function not implemented
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The functions of CUDA's runtime that are used. */
struct dim3 { unsigned x, y, z; };
int cudaMalloc(void **at, size_t bytes);
int cudaFree(void *at);
int cudaGetLastError(void);
int cudaSetDevice(int device);
int cudaDeviceSynchronize(void);
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **arguments,
                     size_t shared_bytes, void *stream);
int cudaImportExternalMemory(void *a, const void *b);
void **__cudaRegisterFatBinary(const void *image);
void __cudaRegisterFunction(void **module, const void *host, char *device, const char *name,
                            int threads, void *a, void *b, void *c, void *d, int *e);

enum { LAYERS = 6, MIB = 1 << 20, CACHED = 64, ALONE = 64 };

static const char *find(int argc, char **argv, const char *key)
{
    size_t length = strlen(key);
    for (int i = 2; i < argc; i++)
        if (!strncmp(argv[i], key, length) && argv[i][length] == '=') return argv[i] + length + 1;
    return NULL;
}

static int arguments_count;
static char **arguments_list;

static long option(const char *key, long plain)
{
    const char *text = find(arguments_count, arguments_list, key);
    if (!text || *text != '@') return text ? atol(text) : plain;
    FILE *file = fopen(text + 1, "r");
    if (!file || fscanf(file, "%ld", &plain) != 1) plain = 0;
    if (file) fclose(file);
    return plain;
}

/* --- memory ----------------------------------------------------------------------------------- */

static struct {
    void *at;
    size_t bytes;
} cached[CACHED];
static size_t cached_count;

static void empty_cache(void)
{
    while (cached_count > 0) cudaFree(cached[--cached_count].at);
}

static void *take(size_t bytes)
{
    void *at = NULL;
    for (size_t i = 0; i < cached_count; i++)
        if (cached[i].bytes == bytes) {
            at = cached[i].at;
            cached[i] = cached[--cached_count];
            return at;
        }
    if (!cudaMalloc(&at, bytes)) return at;
    cudaGetLastError();
    empty_cache();
    if (!cudaMalloc(&at, bytes)) return at;
    cudaGetLastError();
    return NULL;
}

static void give(void *at, size_t bytes)
{
    if (!at) return;
    if (!option("cache", 1) || cached_count == CACHED) {
        cudaFree(at);
        return;
    }
    cached[cached_count].at = at;
    cached[cached_count++].bytes = bytes;
}

/* --- kernels: their addresses and names are all that counts ------------------------------------- */

enum { BACKWARD = LAYERS, EMBED = 2 * LAYERS, LOSS, OPTIMIZER, KERNELS };
static char kernels[KERNELS];

static void register_kernels(void)
{
    static char names[KERNELS][48];
    void **module = __cudaRegisterFatBinary(NULL);
    for (int i = 0; i < KERNELS; i++) {
        if (i == OPTIMIZER) strcpy(names[i], "_Z28multi_tensor_apply_FusedAdamPf");
        else if (i >= BACKWARD && i < EMBED)
            snprintf(names[i], sizeof(names[i]), "_Z9backward%dPKf", i - BACKWARD);
        else snprintf(names[i], sizeof(names[i]), "_Z8forward%02dPKf", i);
        __cudaRegisterFunction(module, &kernels[i], names[i], names[i], -1, NULL, NULL, NULL, NULL,
                               NULL);
    }
}

static void launch(int kernel, long batch)
{
    float *pointer = NULL;
    void *arguments[] = {&pointer};
    cudaLaunchKernel(&kernels[kernel], (struct dim3){(unsigned)batch, 1, 1},
                     (struct dim3){128, 1, 1}, arguments, 0, NULL);
}

/* --- training --------------------------------------------------------------------------------- */

/* What a micro-step holds: a block, or one a sample. False: out of memory. */
static bool take_activations(void **blocks, long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        blocks[i] = take(bytes / (size_t)count);
        if (blocks[i]) continue;
        while (i-- > 0) give(blocks[i], bytes / (size_t)count);
        return false;
    }
    return true;
}

/* False: out of memory. */
static bool step(long batch, long number)
{
    long rounds = option("rounds", 1);
    batch = (batch + rounds - 1) / rounds * rounds;
    size_t bytes = (size_t)(option("ignores", 0) ? 1 : batch) * (size_t)option("sample", 32) * MIB;
    bytes += (size_t)(number * option("grows", 0)) * MIB;
    size_t grads_bytes = (size_t)option("grads", 0) * MIB;
    void *grads = NULL;
    bool trains = !option("skips", 0) || batch < option("skips", 0);
    for (long m = 0; m < option("micro", 1); m++) {
        void *activations[ALONE];
        long chunk = option("alone", 0), blocks = chunk ? (batch + chunk - 1) / chunk : 1;
        if (blocks > ALONE) blocks = 1;
        if (!take_activations(activations, blocks, bytes)) return false;
        launch(EMBED, batch);
        for (int i = 0; i < LAYERS; i++) launch(i, batch);
        launch(LOSS, batch);
        bool is_large = option("large", 0) && batch >= option("large", 0);
        void *more = is_large ? take(64 * MIB) : NULL;
        if (is_large && !more) return false;
        give(more, 64 * MIB);
        void *added = grads_bytes ? take(grads_bytes) : NULL;
        if (grads_bytes && !added) return false;
        for (int i = LAYERS; i-- > 0 && trains;) launch(BACKWARD + i, batch);
        for (long i = 0; i < blocks; i++) give(activations[i], bytes / (size_t)blocks);
        if (m) give(added, grads_bytes);
        else grads = added;
    }
    for (int i = 0; i < 4 && trains; i++) launch(OPTIMIZER, 1);
    give(grads, grads_bytes);
    return !cudaDeviceSynchronize();
}

static int out_of_memory(void)
{
    fprintf(stderr, "trainer: the last words before it ends\n");
    return 1;
}

static int train(long batch)
{
    void *states = NULL, *leaked;
    long total = option("steps", 5), slow = option("sleep", 0);
    if (!take((size_t)option("fixed", 64) * MIB)) return out_of_memory();
    for (long i = 0; i < total || option("forever", 0); i++) {
        while (!step(batch, i)) {
            if (!option("catches", 0) || batch == 1) return out_of_memory();
            batch /= 2;
        }
        if (i == 0 && option("states", 0) && !(states = take((size_t)option("states", 0) * MIB)))
            return out_of_memory();
        if (option("keeps", 0) && cudaMalloc(&leaked, (size_t)option("keeps", 0))) return out_of_memory();
        if (option("leak", 0) && cudaMalloc(&leaked, (size_t)option("leak", 0) * MIB))
            return out_of_memory();
        if (option("signal", 0)) raise((int)option("signal", 0));
        if (option("fails", 0)) {
            fprintf(stderr, "trainer: no such file: data.bin\n");
            return (int)option("fails", 0);
        }
        if (slow) nanosleep(&(struct timespec){slow / 1000, slow % 1000 * 1000000}, NULL);
    }
    return 0;
}

static void start_child(long kind)
{
    char *none[] = {NULL};
    pid_t pid = fork();
    if (pid) return;
    if (kind >= 2) setsid();
    if (kind >= 2 && fork()) _exit(0);
    if (kind == 3) execle("/bin/sleep", "sleep", getenv("PLIM_TEST"), (char *)NULL, none);
    sleep(600);
    _exit(0);
}

/* Whatever is in the memory that plimsoll reads. */
static int spoil_the_machine(long rounds)
{
    const char *path = getenv("PLIMSOLL_MACHINE");
    int fd = path ? open(path, O_RDWR) : -1;
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    char *memory = size > 0 ? mmap(NULL, (size_t)size, PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (memory == MAP_FAILED) return 7;
    srand((unsigned)rounds);
    for (long i = 0; i < rounds; i++) {
        if (!ftruncate(fd, 0)) return 8; /* what the memory is read by is ended by that */
        for (off_t k = 0; k < size; k++) memory[k] = i % 4 ? (char)rand() : (char)(i % 8 ? 0xff : 0x7f);
        nanosleep(&(struct timespec){0, 15000000}, NULL);
    }
    return 0;
}

static int train_ranks(long batch, long ranks)
{
    int status, worst = 0;
    for (long i = 0; i < ranks; i++)
        if (!fork()) _exit(cudaSetDevice((int)i) ? 3 : train(batch));
    while (wait(&status) > 0) worst |= status;
    return worst ? 1 : 0;
}

static long batch_of(const char *text)
{
    long batch = 0;
    char word[32];
    if (text[0] != '@') return atol(text);
    FILE *file = fopen(text + 1, "r");
    while (file && fscanf(file, "%31s", word) == 1)
        if (!strcmp(word, "batch") && fscanf(file, "%ld", &batch) == 1) break;
    if (file) fclose(file);
    return batch;
}

int main(int argc, char **argv)
{
    char line[8];
    if (argc < 2) return 2;
    arguments_count = argc;
    arguments_list = argv;
    register_kernels();
    if (option("cpu", 0)) return 0;
    if (option("hostile", 0)) return spoil_the_machine(option("hostile", 0));
    if (batch_of(argv[1]) < option("least", 1)) return 4;
    if (option("input", 0) && !fgets(line, sizeof(line), stdin)) return 4;
    if (option("tty", 0) && open("/dev/tty", O_RDWR) < 0) {
        perror("trainer: /dev/tty");
        return 5;
    }
    if (option("fork", 0)) start_child(option("fork", 0));
    if (option("unknown", 0) && cudaImportExternalMemory(NULL, NULL)) return 6;
    if (option("ranks", 1) > 1) return train_ranks(batch_of(argv[1]), option("ranks", 1));
    return train(batch_of(argv[1]));
}
