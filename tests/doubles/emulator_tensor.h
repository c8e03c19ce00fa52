/* Instructions of a warp's tensor core, by the definition of their operands in the PTX manual
 * ("Matrix fragments for mma.m16n8k16 / mma.m16n8k8", "ldmatrix"). Included by
 * devices/cuda/kernels/tensor.cuh where there is no nvcc.
 *
 * Of lane l, group g = l / 4 and place t = l % 4. Sums are fp32, in the order of k. */
#ifndef PLIM_TESTS_DOUBLES_EMULATOR_TENSOR_H
#define PLIM_TESTS_DOUBLES_EMULATOR_TENSOR_H

#include "devices/half.h"
#include "doubles/emulator_cuda.h"

struct emulated_matrices {
    const uint16_t *row; /* lane 8 m + r: row r of matrix m, eight elements */
    bool transposed;
    uint32_t *words; /* one of each matrix */
};

/* The eight rows of a matrix come at once when they lie in different groups of four banks. */
static inline void emulated_check_banks(void *const lanes[warpSize])
{
    for (int m = 0; m < 4; m++) {
        unsigned groups = 0;
        for (int row = 0; row < 8; row++) {
            const auto *one = static_cast<const emulated_matrices *>(lanes[8 * m + row]);
            groups |= 1u << reinterpret_cast<uintptr_t>(one->row) / 16 % 8;
        }
        if (groups != 0xff) emulated_fail("rows of a matrix share banks");
    }
}

static inline void emulated_load_matrices_work(void *const lanes[warpSize])
{
    emulated_check_banks(lanes);
    for (int lane = 0; lane < warpSize; lane++) {
        const auto *mine = static_cast<const emulated_matrices *>(lanes[lane]);
        for (int m = 0; m < 4; m++) {
            uint32_t halves[2];
            for (int i = 0; i < 2; i++) {
                int row = mine->transposed ? lane % 4 * 2 + i : lane / 4;
                int column = mine->transposed ? lane / 4 : lane % 4 * 2 + i;
                halves[i] = static_cast<const emulated_matrices *>(lanes[8 * m + row])->row[column];
            }
            mine->words[m] = halves[0] | halves[1] << 16;
        }
    }
}

static inline void emulated_load_matrices(uint32_t (&words)[4], const void *row, bool transposed)
{
    emulated_matrices mine = {static_cast<const uint16_t *>(row), transposed, words};
    emulated_together(emulated_load_matrices_work, &mine);
}

/* c += a b */
struct emulated_product {
    float *c;
    const uint32_t *a, *b;
};

static inline uint32_t emulated_half_of(const uint32_t *words, int word, int i)
{
    return words[word] >> 16 * (i % 2) & 0xffff;
}

/* Row and column of element i of a lane's part of c */
static inline int emulated_row_of(int lane, int i)
{
    return lane / 4 + i / 2 * 8;
}

static inline int emulated_column_of(int lane, int i)
{
    return lane % 4 * 2 + i % 2;
}

/* c += a b, of matrices on the stack alone: checks of every access would keep compilers from using vectors. */
template <int DEPTH>
__attribute__((no_sanitize("address", "undefined")))
static void emulated_multiply(const float (&a)[16][DEPTH], const float (&b)[DEPTH][8], float (&c)[16][8])
{
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < DEPTH; k++)
            for (int column = 0; column < 8; column++) c[row][column] += a[row][k] * b[k][column];
}

template <int DEPTH>
static void emulated_add_product(void *const lanes[warpSize], const float (&a)[16][DEPTH], const float (&b)[DEPTH][8])
{
    float c[16][8];
    for (int lane = 0; lane < warpSize; lane++)
        for (int i = 0; i < 4; i++)
            c[emulated_row_of(lane, i)][emulated_column_of(lane, i)] =
                static_cast<const emulated_product *>(lanes[lane])->c[i];
    emulated_multiply(a, b, c);
    for (int lane = 0; lane < warpSize; lane++)
        for (int i = 0; i < 4; i++)
            static_cast<const emulated_product *>(lanes[lane])->c[i] =
                c[emulated_row_of(lane, i)][emulated_column_of(lane, i)];
}

template <float (*TO_FLOAT)(uint16_t), int DEPTH>
static inline void emulated_product_of_halves(void *const lanes[warpSize])
{
    float a[16][DEPTH], b[DEPTH][8];
    for (int lane = 0; lane < warpSize; lane++) {
        const auto *p = static_cast<const emulated_product *>(lanes[lane]);
        int g = lane / 4, t = lane % 4;
        for (int i = 0; i < DEPTH / 2; i++)
            a[g + i / 2 % 2 * 8][t * 2 + i % 2 + i / 4 * 8] =
                TO_FLOAT((uint16_t)emulated_half_of(p->a, i / 2, i));
        for (int i = 0; i < DEPTH / 4; i++)
            b[t * 2 + i % 2 + i / 2 * 8][g] =
                TO_FLOAT((uint16_t)emulated_half_of(p->b, i / 2, i));
    }
    emulated_add_product(lanes, a, b);
}

/* The tensor core looks at the first 19 bits only. */
static inline float emulated_tf32(uint32_t bits)
{
    return __uint_as_float(bits & 0xffffe000u);
}

static inline void emulated_product_of_tf32(void *const lanes[warpSize])
{
    float a[16][8], b[8][8];
    for (int lane = 0; lane < warpSize; lane++) {
        const auto *p = static_cast<const emulated_product *>(lanes[lane]);
        int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++) a[g + i % 2 * 8][t + i / 2 * 4] = emulated_tf32(p->a[i]);
        for (int i = 0; i < 2; i++) b[t + i * 4][g] = emulated_tf32(p->b[i]);
    }
    emulated_add_product(lanes, a, b);
}

template <int A, int B>
static inline void emulated_mma(emulated_work *work, float (&c)[4], const uint32_t (&a)[A],
                                const uint32_t (&b)[B])
{
    emulated_product mine = {c, a, b};
    emulated_together(work, &mine);
}

#endif
