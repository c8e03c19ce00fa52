/* Preloaded before a virtual GPU: writes down what the program launches, a line an event.
 * record_streams.py builds and reads it. The log's path is in STEPS_LOG.
 *
 *     N ID NAME               a kernel's mangled name, before its first launch
 *     k ID GRID BLOCK | P..   a launch; the pointers through which it writes, as far as its name tells
 *     l OP SHAPE | R.. | W..  a library launch: function and transposes, sizes; what it reads and writes
 *     c BYTES P               a copy to the device
 *     m BYTES                 device memory held, after a change
 *     S                       cudaProfilerStart: the program marks the end of an optimizer step
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER __attribute__((visibility("default")))
#define NEXT(name) ((void *(*)())next(#name))

typedef struct { unsigned x, y, z; } dim3;
struct kernel { const void *host; char *name; int id, parameters; uint32_t written; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static struct kernel *kernels[1 << 18];
static int ids;

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) fprintf(stderr, "record_shim: no %s\n", name), abort();
    return found;
}

static void say(const char *fmt, ...)
{
    if (!out) {
        const char *path = getenv("STEPS_LOG");
        out = fopen(path ? path : "/dev/null", "a");
        setvbuf(out, NULL, _IOFBF, 1 << 20);
    }
    va_list list;
    va_start(list, fmt);
    vfprintf(out, fmt, list);
    va_end(list);
}

__attribute__((destructor)) static void finish(void) { if (out) fflush(out); }

static struct kernel **slot(const void *host)
{
    size_t i = (size_t)((uintptr_t)host >> 3) * 0x9e3779b97f4a7c15u >> 46;
    while (kernels[i] && kernels[i]->host != host) i = (i + 1) & ((1 << 18) - 1);
    return &kernels[i];
}

/* Which parameters are pointers to something that is not const: as devices/virtual/work/signature.c does. */
static int is_written(const char *type, size_t n)
{
    while (n && type[n - 1] == ' ') n--;
    for (size_t i = 0; i + 11 < n; i++) if (!strncmp(type + i, "rray<char*", 10)) return 1;
    return n && type[n - 1] == '*' && (n < 7 || strncmp(type + n - 7, " const*", 7));
}

static void read_name(struct kernel *k)
{
    void *cxx =
        dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD); /* Python loads it as a local one */
    char *(*demangle)(const char *, char *, size_t *, int *) = cxx ? dlsym(cxx, "__cxa_demangle") : 0;
    char *text = demangle ? demangle(k->name, 0, 0, 0) : 0;
    const char *list = 0, *begin;
    int depth = 0;
    for (const char *c = text; c && *c; c++) {
        if (*c == '(' && !depth) list = c + 1;
        depth += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
    }
    depth = 0;
    for (const char *c = begin = list; c && *c; c++) {
        if (strchr("(<[{", *c)) depth++;
        int ends = !depth && (*c == ',' || *c == ')');
        if (strchr(")>]}", *c)) depth--;
        if (!ends) continue;
        if (k->parameters < 32 && is_written(begin, c - begin)) k->written |= 1u << k->parameters;
        k->parameters++;
        if (*c == ')') break;
        begin = c + 1;
    }
    free(text);
    k->id = ++ids;
    say("N %d %s\n", k->id, k->name);
}

static struct kernel *known(const void *host, const char *name)
{
    struct kernel **at = slot(host);
    if (!*at) {
        *at = calloc(1, sizeof(**at));
        (*at)->host = host;
        (*at)->name = strdup(name ? name : "unknown");
    }
    return *at;
}

static int is_device(const void *p) { return (uintptr_t)p >> 40 >= 0x30 && (uintptr_t)p >> 40 < 0x50; }

static void launched(const void *host, dim3 g, dim3 b, void **arguments)
{
    pthread_mutex_lock(&lock);
    struct kernel *k = known(host, NULL);
    if (!k->id) read_name(k);
    say("k %d %u,%u,%u %u,%u,%u |", k->id, g.x, g.y, g.z, b.x, b.y, b.z);
    for (int i = 0; arguments && i < k->parameters && i < 32; i++) {
        void *p;
        if (!(k->written >> i & 1)) continue;
        memcpy(&p, arguments[i], sizeof(p));
        if (is_device(p)) say(" %p", p);
    }
    say("\n");
    pthread_mutex_unlock(&lock);
}

ANSWER void __cudaRegisterFunction(void **h, const char *host, char *device, const char *name, int a,
                                   void *b, void *c, void *d, void *e, int *f)
{
    pthread_mutex_lock(&lock);
    known(host, name);
    pthread_mutex_unlock(&lock);
    NEXT(__cudaRegisterFunction)(h, host, device, name, a, b, c, d, e, f);
}

ANSWER int __cudaGetKernel(void **k, const void *host) { *k = (void *)host; return 0; }

ANSWER int __cudaLaunchKernel(void *k, dim3 g, dim3 b, void **arguments, size_t n, void *s)
{
    launched(k, g, b, arguments);
    return 0;
}

ANSWER int cudaLaunchKernel(const void *k, dim3 g, dim3 b, void **arguments, size_t n, void *s)
{
    launched(k, g, b, arguments);
    return 0;
}

ANSWER int cudaLaunchKernelExC(const void *config, const void *k, void **arguments)
{
    dim3 g, b;
    memcpy(&g, config, sizeof(g));
    memcpy(&b, (const char *)config + sizeof(g), sizeof(b));
    launched(k, g, b, arguments);
    return 0;
}

/* The driver's, for Triton: this library also stands in front of libcuda.so.1. Names stay good: a
 * function's handle is our own. */
ANSWER int cuModuleGetFunction(void **f, void *module, const char *name)
{
    pthread_mutex_lock(&lock);
    *f = malloc(16);
    known(*f, name);
    pthread_mutex_unlock(&lock);
    return 0;
}
ANSWER int cuLaunchKernelEx(const void *config, void *f, void **arguments, void **extra)
{
    dim3 g, b;
    memcpy(&g, config, sizeof(g));
    memcpy(&b, (const char *)config + sizeof(g), sizeof(b));
    launched(f, g, b, NULL);
    return 0;
}
ANSWER int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned n, void *s, void **arguments, void **extra)
{
    launched(f, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, NULL);
    return 0;
}

static void library(const char *op, long shape, const void *a, const void *b, const void *c)
{
    pthread_mutex_lock(&lock);
    say("l %s %lx | %p %p | %p\n", op, shape, a, b, c);
    pthread_mutex_unlock(&lock);
}

static void gemm(const char *name, int ta, int tb, int m, int n, int k, const void *a, const void *b,
                 const void *c)
{
    char op[96];
    snprintf(op, sizeof(op), "%s_%d%d", name, ta, tb);
    library(op, (long)m * 1000003 + (long)n * 10007 + k, a, b, c);
}

#define GEMM(name) /* ...(handle, ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) */         \
    ANSWER int name(void *h, int ta, int tb, int m, int n, int k, void *al, void *a, int la,       \
                    void *b, int lb, void *be, void *c, int lc)                                    \
    {                                                                                              \
        gemm(#name, ta, tb, m, n, k, a, b, c);                                                     \
        return 0;                                                                                  \
    }
GEMM(cublasSgemm_v2)
GEMM(cublasDgemm_v2)

ANSWER int cublasGemmEx(void *h, int ta, int tb, int m, int n, int k, void *al, void *a, int at, int la,
                        void *b, int bt, int lb, void *be, void *c, int ct, int lc, int t, int algo)
{ gemm("cublasGemmEx", ta, tb, m, n, k, a, b, c); return 0; }
ANSWER int cublasSgemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, void *al,
                                     void *a, int la, long sa, void *b, int lb, long sb, void *be,
                                     void *c, int lc, long sc, int count)
{ gemm("cublasSgemmStridedBatched", ta, tb, m, n, k + 31 * count, a, b, c); return 0; }
ANSWER int cublasGemmStridedBatchedEx(void *h, int ta, int tb, int m, int n, int k, void *al,
                                      void *a, int at, int la, long sa, void *b, int bt, int lb,
                                      long sb, void *be, void *c, int ct, int lc, long sc,
                                      int count, int t, int algo)
{ gemm("cublasGemmStridedBatchedEx", ta, tb, m, n, k + 31 * count, a, b, c); return 0; }

static struct { void *d; int t[2]; } descriptors[256]; /* transposes by descriptor: the latest few */
ANSWER int cublasLtMatmulDescSetAttribute(void *d, int attribute, const void *v, size_t n)
{
    int i = (int)((uintptr_t)d / 16 % 256);
    if (descriptors[i].d != d) memset(&descriptors[i], 0, sizeof(descriptors[i]));
    descriptors[i].d = d;
    if (attribute == 3 || attribute == 4) memcpy(&descriptors[i].t[attribute - 3], v, sizeof(int));
    return 0;
}
ANSWER int cublasLtMatmul(void *h, void *d, void *al, const void *a, void *da, const void *b, void *db,
                          void *be, const void *c, void *dc, void *to, void *dd, void *algo, void *w,
                          size_t n, void *s)
{
    int i = (int)((uintptr_t)d / 16 % 256), *t = descriptors[i].t;
    gemm("cublasLtMatmul", t[0], t[1], 0, 0, 0, a, b, to);
    return 0;
}

/* cuDNN: the pointers are in a variant pack; the plan is the operation. */
static struct { void *d; void *p[8]; int n; } packs[64];
ANSWER int cudnnBackendSetAttribute(void *d, int name, int type, int64_t n, const void *v)
{
    enum { VARIANT_PACK_POINTERS = 1001 };
    if (name == VARIANT_PACK_POINTERS) {
        int i = (int)((uintptr_t)d / 16 % 64);
        packs[i].d = d;
        packs[i].n = n < 8 ? (int)n : 8;
        memcpy(packs[i].p, v, 8 * packs[i].n);
    }
    return (int)(intptr_t)NEXT(cudnnBackendSetAttribute)(d, name, type, n, v);
}
ANSWER int cudnnBackendExecute(void *h, void *plan, void *pack)
{
    int i = (int)((uintptr_t)pack / 16 % 64);
    pthread_mutex_lock(&lock);
    say("l cudnn_%p 0 |", plan);
    for (int p = 0; packs[i].d == pack && p < packs[i].n; p++)
        if (is_device(packs[i].p[p])) say(" %p", packs[i].p[p]);
    say(" |\n");
    pthread_mutex_unlock(&lock);
    return 0;
}

static struct { void *p; size_t n; } blocks[1 << 16];
static size_t held;
ANSWER int cudaMalloc(void **p, size_t n)
{
    int error = (int)(intptr_t)NEXT(cudaMalloc)(p, n);
    pthread_mutex_lock(&lock);
    n = (n + (2 << 20) - 1) / (2 << 20) * (2 << 20);
    for (int i = 0; !error && i < 1 << 16; i++)
        if (!blocks[i].p) { blocks[i].p = *p; blocks[i].n = n; held += n; break; }
    if (!error) say("m %zu\n", held);
    pthread_mutex_unlock(&lock);
    return error;
}
ANSWER int cudaFree(void *p)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; p && i < 1 << 16; i++)
        if (blocks[i].p == p) { held -= blocks[i].n; blocks[i].p = 0; say("m %zu\n", held); break; }
    pthread_mutex_unlock(&lock);
    return (int)(intptr_t)NEXT(cudaFree)(p);
}
ANSWER int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *s)
{
    pthread_mutex_lock(&lock);
    if (is_device(to)) say("c %zu %p\n", n, to);
    pthread_mutex_unlock(&lock);
    return (int)(intptr_t)NEXT(cudaMemcpyAsync)(to, from, n, kind, s);
}
ANSWER int cudaProfilerStart(void)
{
    pthread_mutex_lock(&lock);
    say("S\n");
    pthread_mutex_unlock(&lock);
    return 0;
}
