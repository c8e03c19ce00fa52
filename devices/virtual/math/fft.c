/* cuFFT. A plan is a number. It needs no work area if each dimension is one kernel, and otherwise a copy of its complex
 * numbers (area_of()). The program may provide the area (PyTorch does, for each transform); otherwise the plan
 * allocates it. */
#include "autotune/base/text.h"
#include "devices/virtual/memory/heap.h"
#include "math_library.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Unused parameters keep their names so that signatures are readable. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum status { OK, INVALID_PLAN, ALLOC_FAILED, INVALID_TYPE, INVALID_VALUE, INTERNAL_ERROR, EXEC_FAILED };
enum type { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, D2Z = 0x6a, Z2D = 0x6c, Z2Z = 0x69 }; /* cufftType */
enum { IS_DOUBLE = 0x40, IS_COMPLEX = 1 }; /* bits of a type; only C2C and Z2Z have IS_COMPLEX */
enum { R_16F = 2, R_32F = 0, R_64F = 1, C_16F = 6, C_32F = 4, C_64F = 5 }; /* cudaDataType */
enum { PLANS = 4096, RANKS = 3, LARGEST_FACTOR = 113, ONE_KERNEL = 8192, SMALL_PLANE = 4096 };

struct plan {
    bool is_taken, gives_area;
    void *stream;
    size_t work_bytes; /* 0: none */
    uintptr_t area; /* allocated by the plan; 0: none */
};

static struct plan plans[PLANS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Plans are numbered from 1. */
static struct plan *plan_of(int number)
{
    struct plan *plan = number >= 1 && number <= PLANS ? &plans[number - 1] : NULL;
    return plan && plan->is_taken ? plan : NULL;
}

PLIM_MATH_PROPERTY(cufft)
ANSWER int cufftGetVersion(int *version) { return cufft_version(version); }

ANSWER int cufftCreate(int *out)
{
    static bool is_noted;
    if (!out) return INVALID_VALUE;
    if (plim_self_use_current()) return INTERNAL_ERROR;
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < PLANS && plans[at].is_taken) at++;
    if (at < PLANS) plans[at] = (struct plan){.is_taken = true};
    bool notes = !is_noted;
    is_noted = true;
    pthread_mutex_unlock(&lock);
    if (notes) plim_self_note("cuFFT's work areas are estimates");
    if (at == PLANS) return ALLOC_FAILED;
    *out = at + 1;
    return OK;
}

ANSWER int cufftDestroy(int number)
{
    struct plan *plan = plan_of(number);
    if (!plan) return INVALID_PLAN;
    if (plan->area) plim_heap_free(plan->area);
    *plan = (struct plan){0};
    return OK;
}

ANSWER int cufftSetStream(int number, void *stream)
{
    struct plan *plan = plan_of(number);
    if (!plan) return INVALID_PLAN;
    plan->stream = stream;
    return OK;
}

ANSWER int cufftSetAutoAllocation(int number, int automatic)
{
    struct plan *plan = plan_of(number);
    if (!plan) return INVALID_PLAN;
    plan->gives_area = !automatic;
    return OK;
}

ANSWER int cufftSetWorkArea(int number, void *area)
{
    struct plan *plan = plan_of(number);
    if (!plan) return INVALID_PLAN;
    if (plan->area) plim_heap_free(plan->area);
    plan->area = 0;
    return OK;
}

ANSWER int cufftGetSize(int number, size_t *bytes)
{
    const struct plan *plan = plan_of(number);
    if (!plan) return INVALID_PLAN;
    if (!bytes) return INVALID_VALUE;
    *bytes = plan->work_bytes;
    return OK;
}

/* --- work areas ------------------------------------------------------------------------------- */

static bool is_smooth(long long n)
{
    for (long long factor = 2; factor <= LARGEST_FACTOR; factor++)
        while (n % factor == 0) n /= factor;
    return n == 1;
}

/* Returns the size of the work area as cuFFT 12.0 reported it on an H200 (tests/gpu/measured/h200-libraries.jsonl: 100
 * transforms, 8 of them 0.8 % larger); negative if it exceeds any memory. Lengths up to 4096 without large prime
 * factors are one kernel and need none; 30030 and 65536 need a copy. ONE_KERNEL lies between them and is a guess. With
 * a large factor, and in planes whose last dimension is odd, a real transform of odd length is a complex one of that
 * length; one of even length is a complex one of half the length. */
static double area_of(int rank, const long long *n, long long batch, bool is_real, size_t width)
{
    bool is_odd = n[rank - 1] % 2, pads = false, is_long = false;
    double numbers = 1;
    for (int i = 0; i < rank; i++) {
        numbers *= (double)n[i];
        pads |= !is_smooth(n[i]);
        is_long |= n[i] > ONE_KERNEL;
    }
    bool is_whole = is_real && is_odd && (pads || (rank > 1 && numbers >= SMALL_PLANE));
    if (!pads && !is_long && !is_whole) return 0;
    if (is_real && !is_whole) numbers *= ((double)(n[rank - 1] / 2) + !pads) / (double)n[rank - 1];
    double bytes = numbers * (double)batch * (double)width;
    return bytes < (double)PLIM_MOST_BYTES ? bytes : -1;
}

static int make(int number, int rank, const long long *n, long long batch, bool is_real, size_t width, size_t *bytes)
{
    struct plan *plan = plan_of(number);
    if (!plan) return INVALID_PLAN;
    if (rank < 1 || rank > RANKS || !n || batch < 1 || !width) return INVALID_VALUE;
    for (int i = 0; i < rank; i++)
        if (n[i] < 1) return INVALID_VALUE;
    double area = area_of(rank, n, batch, is_real, width);
    if (area < 0) return ALLOC_FAILED;
    plan->work_bytes = (size_t)area;
    if (bytes) *bytes = plan->work_bytes;
    if (plan->gives_area || plan->area || !plan->work_bytes) return OK;
    return plim_heap_allocate(plim_self_device(), plan->work_bytes, &plan->area) ? ALLOC_FAILED : OK;
}

static int make_of_type(int number, int rank, const long long *n, int type, long long batch, size_t *bytes)
{
    static const int types[] = {R2C, C2R, C2C, D2Z, Z2D, Z2Z};
    bool is_known = false;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) is_known |= types[i] == type;
    if (!is_known) return INVALID_TYPE;
    size_t width = 2 * (type & IS_DOUBLE ? sizeof(double) : sizeof(float));
    return make(number, rank, n, batch, !(type & IS_COMPLEX), width, bytes);
}

/* Same with int instead of long long. */
static int make_of_ints(int number, int rank, const int *n, int type, int batch, size_t *bytes)
{
    long long wide[RANKS];
    if (rank < 1 || rank > RANKS || !n) return INVALID_VALUE;
    for (int i = 0; i < rank; i++) wide[i] = n[i];
    return make_of_type(number, rank, wide, type, batch, bytes);
}

ANSWER int cufftMakePlan1d(int plan, int n, int type, int batch, size_t *bytes)
{
    return make_of_ints(plan, 1, &n, type, batch, bytes);
}

ANSWER int cufftMakePlan2d(int plan, int x, int y, int type, size_t *bytes)
{
    return make_of_ints(plan, 2, (const int[]){x, y}, type, 1, bytes);
}

ANSWER int cufftMakePlan3d(int plan, int x, int y, int z, int type, size_t *bytes)
{
    return make_of_ints(plan, 3, (const int[]){x, y, z}, type, 1, bytes);
}

ANSWER int cufftMakePlanMany(int plan, int rank, int *n, int *in_embed, int in_stride, int in_distance, int *out_embed,
                             int out_stride, int out_distance, int type, int batch, size_t *bytes)
{
    return make_of_ints(plan, rank, n, type, batch, bytes);
}

ANSWER int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in_embed, long long in_stride,
                               long long in_distance, long long *out_embed, long long out_stride,
                               long long out_distance, int type, long long batch, size_t *bytes)
{
    return make_of_type(plan, rank, n, type, batch, bytes);
}

ANSWER int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *in_embed, long long in_stride,
                               long long in_distance, int in_type, long long *out_embed, long long out_stride,
                               long long out_distance, int out_type, long long batch, size_t *bytes, int compute_type)
{
    bool is_real = in_type == R_16F || in_type == R_32F || in_type == R_64F || out_type == R_16F || out_type == R_32F ||
                   out_type == R_64F;
    size_t width = compute_type == C_64F ? 16 : compute_type == C_32F ? 8 : compute_type == C_16F ? 4 : 0;
    return make(plan, rank, n, batch, is_real, width, bytes);
}

#define PLAN(name, parameters, made)                                                               \
    ANSWER int name parameters                                                                     \
    {                                                                                              \
        int failed = cufftCreate(plan);                                                            \
        return failed ? failed : made;                                                             \
    }

PLAN(cufftPlan1d, (int *plan, int n, int type, int batch), cufftMakePlan1d(*plan, n, type, batch, NULL))
PLAN(cufftPlan2d, (int *plan, int x, int y, int type), cufftMakePlan2d(*plan, x, y, type, NULL))
PLAN(cufftPlan3d, (int *plan, int x, int y, int z, int type), cufftMakePlan3d(*plan, x, y, z, type, NULL))
PLAN(cufftPlanMany,
     (int *plan, int rank, int *n, int *in_embed, int in_stride, int in_distance, int *out_embed, int out_stride,
      int out_distance, int type, int batch),
     make_of_ints(*plan, rank, n, type, batch, NULL))

/* --- transforms --------------------------------------------------------------------------------- */

static int transform(const char *name, int number, const void *in, const void *out)
{
    const struct plan *plan = plan_of(number);
    if (!plan) return INVALID_PLAN;
    return plim_math_launch(plan->stream, name, (const void *[]){in, out}, 2, 1) ? EXEC_FAILED : OK;
}

#define TURNS(name)                                                                                \
    ANSWER int name(int plan, const void *in, void *out, int direction)                            \
    {                                                                                              \
        return transform(#name, plan, in, out);                                                    \
    }
#define CONVERTS(name)                                                                             \
    ANSWER int name(int plan, const void *in, void *out) { return transform(#name, plan, in, out); }

TURNS(cufftExecC2C)
TURNS(cufftExecZ2Z)
TURNS(cufftXtExec)
CONVERTS(cufftExecR2C)
CONVERTS(cufftExecC2R)
CONVERTS(cufftExecD2Z)
CONVERTS(cufftExecZ2D)
