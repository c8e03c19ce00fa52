/* AdamW over lists of tensors and with states of 8 bits; the gradient scaler's update. */
#include "adam.cuh"
#include "lists.cuh"

__device__ inline bool is_set(const plim_cuda_flat_operand &flag)
{
    return flag.data && load_float(flag.data, flag.dtype, 0) == 1;
}

PLIM_KERNEL(adamw_count, plim_adamw_args, 256)
{
    if (is_set(args.found_inf)) return;
    for (int i = (int)threadIdx.x; i < (int)args.lists.tensors; i += (int)blockDim.x) {
        uint64_t counter = list_record(args.lists, i)[PLIM_RECORD_DATA + PLIM_ADAMW_STEPS];
        uint32_t dtype = args.lists.dtype[PLIM_ADAMW_STEPS];
        store_float(counter, dtype, 0, load_float(counter, dtype, 0) + 1);
    }
}

PLIM_KERNEL(adamw, plim_adamw_args, PLIM_FOREACH_THREADS)
{
    if (is_set(args.found_inf)) return;
    const plim_cuda_tensor_lists &lists = args.lists;
    list_chunk chunk = chunk_of_block(lists);
    const uint64_t *data = chunk.data;
    const uint32_t *dtype = lists.dtype;
    float step = lists.lists > PLIM_ADAMW_STEPS
                     ? load_float(data[PLIM_ADAMW_STEPS], dtype[PLIM_ADAMW_STEPS], 0)
                     : args.adam.step;
    adam_step at = adam_at(args.adam, step);
    float scale = 1;
    if (args.grad_scale.data) scale = load_float(args.grad_scale.data, args.grad_scale.dtype, 0);
    chunk_visit(chunk, PLIM_ADAMW_STEPS, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float p[N], m[N], v[N], g[N];
        load_floats(data[PLIM_ADAMW_PARAMETERS], dtype[PLIM_ADAMW_PARAMETERS], i, p);
        load_floats(data[PLIM_ADAMW_MOMENTS], dtype[PLIM_ADAMW_MOMENTS], i, m);
        load_floats(data[PLIM_ADAMW_SECOND_MOMENTS], dtype[PLIM_ADAMW_SECOND_MOMENTS], i, v);
        load_floats(data[PLIM_ADAMW_GRADIENTS], dtype[PLIM_ADAMW_GRADIENTS], i, g);
        for (int k = 0; k < N; k++) adam_update(args.adam, at, p[k], m[k], v[k], g[k] / scale);
        store_floats(data[PLIM_ADAMW_PARAMETERS], dtype[PLIM_ADAMW_PARAMETERS], i, p);
        store_floats(data[PLIM_ADAMW_MOMENTS], dtype[PLIM_ADAMW_MOMENTS], i, m);
        store_floats(data[PLIM_ADAMW_SECOND_MOMENTS], dtype[PLIM_ADAMW_SECOND_MOMENTS], i, v);
    });
}

/* The code whose value in the ascending book is nearest to x; of two as near the lower one. */
__device__ inline uint32_t nearest_code(const float *book, float x)
{
    int low = 0; /* book[low] <= x, or low is 0 */
    for (int half = PLIM_CODES / 2; half > 0; half /= 2)
        if (book[low + half] <= x) low += half;
    int next = low + 1 < PLIM_CODES ? low + 1 : low;
    return (uint32_t)(x - book[low] > book[next] - x ? next : low);
}

__device__ inline float warp_maximum(float x)
{
    for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, lane_xor(x, offset));
    return x;
}

/* A lane's elements [first, first + 8) of those before `end`. */
struct code_lane {
    int64_t first, end;
    bool vectors;
};

__device__ inline void load_lane(const code_lane &lane, const plim_cuda_flat_operand &a,
                                 float (&v)[VECTOR])
{
    if (lane.vectors)
        load_floats(a.data, a.dtype, lane.first, v);
    else
        for (int k = 0; k < VECTOR; k++)
            v[k] = lane.first + k < lane.end ? load_float(a.data, a.dtype, lane.first + k) : 0;
}

struct alignas(8) eight_codes {
    uint32_t word[2];
};

__device__ inline void decode(const code_lane &lane, uint64_t state, const float *book,
                              float maximum, float (&v)[VECTOR])
{
    const uint8_t *codes = (const uint8_t *)state + lane.first;
    if (lane.vectors) {
        eight_codes eight = *(const eight_codes *)codes;
        for (int k = 0; k < VECTOR; k++)
            v[k] = book[eight.word[k / 4] >> 8 * (k % 4) & 0xff] * maximum;
    } else {
        for (int k = 0; k < VECTOR; k++)
            v[k] = lane.first + k < lane.end ? book[codes[k]] * maximum : 0;
    }
}

/* Returns the new maximum of the block of 256. */
__device__ inline float encode(const code_lane &lane, uint64_t state, const float *book,
                               const float (&v)[VECTOR])
{
    float maximum = 0;
    for (int k = 0; k < VECTOR; k++) maximum = fmaxf(maximum, fabsf(v[k]));
    maximum = warp_maximum(maximum);
    uint8_t *codes = (uint8_t *)state + lane.first;
    eight_codes eight = {{0, 0}};
    for (int k = 0; k < VECTOR; k++) {
        uint32_t code = nearest_code(book, maximum > 0 ? v[k] / maximum : 0);
        if (lane.vectors)
            eight.word[k / 4] |= code << 8 * (k % 4);
        else if (lane.first + k < lane.end)
            codes[k] = (uint8_t)code;
    }
    if (lane.vectors) *(eight_codes *)codes = eight;
    return maximum;
}

PLIM_KERNEL(adamw_8bit, plim_adamw_8bit_args, 256)
{
    __shared__ float book[2][PLIM_CODES];
    for (int i = (int)threadIdx.x; i < 2 * PLIM_CODES; i += (int)blockDim.x)
        book[i / PLIM_CODES][i % PLIM_CODES] =
            ((const float *)args.book[i / PLIM_CODES])[i % PLIM_CODES];
    __syncthreads();

    adam_step at = adam_at(args.adam, args.adam.step);
    int64_t blocks = (args.elements + PLIM_CODE_BLOCK - 1) / PLIM_CODE_BLOCK;
    int warps = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32;
    float *maximum0 = (float *)args.maximum[0], *maximum1 = (float *)args.maximum[1];
    for (int64_t b = (int64_t)blockIdx.x * warps + warp; b < blocks;
         b += (int64_t)gridDim.x * warps) {
        int64_t first = b * PLIM_CODE_BLOCK + threadIdx.x % 32 * VECTOR;
        code_lane lane = {first, args.elements, args.vectors && first + VECTOR <= args.elements};
        float p[VECTOR], g[VECTOR], m[VECTOR], v[VECTOR];
        load_lane(lane, args.parameter, p);
        load_lane(lane, args.gradient, g);
        decode(lane, args.state[0], book[0], maximum0[b], m);
        decode(lane, args.state[1], book[1], maximum1[b], v);
        for (int k = 0; k < VECTOR; k++) {
            if (fabsf(g[k]) < INFINITY)
                adam_update(args.adam, at, p[k], m[k], v[k], g[k]);
            else
                m[k] = v[k] = 0;
        }
        if (lane.vectors)
            store_floats(args.parameter.data, args.parameter.dtype, first, p);
        else
            for (int k = 0; k < VECTOR; k++)
                if (first + k < args.elements)
                    store_float(args.parameter.data, args.parameter.dtype, first + k, p[k]);
        float new0 = encode(lane, args.state[0], book[0], m);
        float new1 = encode(lane, args.state[1], book[1], v);
        if (threadIdx.x % 32 == 0) {
            maximum0[b] = new0;
            maximum1[b] = new1;
        }
    }
}

/* torch.amp.GradScaler's defaults */
enum { GROWTH_INTERVAL = 2000 };

PLIM_KERNEL(amp_update_scale, plim_amp_update_scale_args, 32)
{
    if (threadIdx.x != 0) return;
    bool whole = args.growth.dtype == PLIM_I32;
    float steps = whole ? (float)*(const int32_t *)args.growth.data
                        : load_float(args.growth.data, args.growth.dtype, 0);
    float scale = load_float(args.scale.data, args.scale.dtype, 0);
    if (load_float(args.found_inf.data, args.found_inf.dtype, 0) != 0) {
        scale *= 0.5f;
        steps = 0;
    } else if (++steps == GROWTH_INTERVAL) {
        if (scale * 2 < INFINITY) scale *= 2;
        steps = 0;
    }
    store_float(args.scale.data, args.scale.dtype, 0, scale);
    if (whole)
        *(int32_t *)args.growth.data = (int32_t)steps;
    else
        store_float(args.growth.data, args.growth.dtype, 0, steps);
}
