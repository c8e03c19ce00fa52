/* The gradients of logsumexp less the target's logit: each tile of logits is made again and added to the gradients of
 * its rows and of its classes, three products in all, as cut-cross-entropy has them. What a tile adds is rounded with
 * the sum to the gradient's type of 16 bits. Tiles add in turns, so that every sum has an order: to a tile of places in
 * the order of classes, to a tile of classes in the order of places. */
#include "linear_loss.cuh"

namespace linear_loss
{

/* What is needed of each place and class of the tile. */
struct tile_facts {
    int32_t row[TILE];    /* of x; -1: none */
    int32_t target[TILE]; /* counted from the tile's first class; outside of it: none */
    float base[TILE];     /* p = exp2(z - base), z in units of log 2 */
    float sums[2][TILE];  /* of each class, over the places of a row of warps */
};

__device__ inline void find_facts(tile_facts &facts, const plim_linear_lse_backward_args &args, int64_t first,
                                  int64_t first_class)
{
    const plim_linear_head_args &head = args.head;
    find_rows(facts.row, head, first);
    for (int i = (int)threadIdx.x; i < TILE; i += THREADS) { /* the thread's own rows */
        int64_t at = (int64_t)facts.row[i] + head.shift;
        bool has_target = facts.row[i] >= 0 && at >= 0 && at < head.rows;
        int64_t target = has_target ? ((const int64_t *)head.targets)[at] - first_class : -1;
        facts.target[i] = target >= 0 && target < TILE ? (int32_t)target : -1;
        facts.base[i] = facts.row[i] >= 0 ? ((const float *)args.lse)[first + i] * LOG2_E : INFINITY;
    }
}

/* Logits become their gradients. */
__device__ inline void differentiate(logits &z, const plim_linear_lse_backward_args &args, const tile_facts &facts,
                                     int64_t first_class)
{
    const plim_linear_head_args &head = args.head;
    float scale = args.scale * load_float(args.dloss.data, args.dloss.dtype, 0);
    PLIM_UNROLL
    for (int i = 0; i < ROW_BLOCKS * 2; i++) {
        int row = first_row() + i / 2 * ROWS + group() + i % 2 * 8;
        float base = facts.base[row];
        int target = facts.target[row];
        PLIM_UNROLL
        for (int n = 0; n < CLASS_BLOCKS * 2; n++) {
            int column = first_column() + n / 2 * BLOCK + pair() + n % 2;
            float &x = z[i / 2][n / 2][i % 2 * 2 + n % 2];
            float d = exp2_normal(x * LOG2_E - base) - (column == target ? 1.0f : 0.0f);
            float capped = head.cap > 0 ? x / head.cap : 0;
            x = column < (int)(head.classes - first_class) ? d * (1 - capped * capped) * scale : 0.0f;
        }
    }
}

__device__ inline void sum_classes(tile_facts &facts, const logits &d)
{
    PLIM_UNROLL
    for (int n = 0; n < CLASS_BLOCKS * 2; n++) {
        float sum = 0;
        PLIM_UNROLL
        for (int i = 0; i < ROW_BLOCKS * 2; i++) sum += d[i / 2][n / 2][i % 2 * 2 + n % 2];
        for (int lanes = 4; lanes < 32; lanes *= 2) sum += lane_xor(sum, lanes);
        if (group() == 0) facts.sums[warp() / WARPS_OF_CLASSES][first_column() + n / 2 * BLOCK + pair() + n % 2] = sum;
    }
}

template <class Math> __device__ inline void keep(tile<typename Math::element, TILE> to, const logits &d)
{
    PLIM_UNROLL
    for (int i = 0; i < ROW_BLOCKS * 2; i++) {
        PLIM_UNROLL
        for (int n = 0; n < CLASS_BLOCKS; n++) {
            int row = first_row() + i / 2 * ROWS + group() + i % 2 * 8, column = first_column() + n * BLOCK + pair();
            const float *x = &d[i / 2][n][i % 2 * 2];
            *(uint32_t *)(to.chunk(row, column) + column % BLOCK) = Math::join(x[0], x[1]);
        }
    }
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Of a tile's gradients, COLUMNS columns: each warp has 32 rows and as many columns. */
enum { SUM_BLOCKS = 2, SUM_COLUMNS = 4 }; /* blocks of rows and of columns */
typedef float sums[SUM_BLOCKS][SUM_COLUMNS][4];

/* to += d from, or d^T from where TURNED */
template <class Math, bool TURNED>
__device__ inline void multiply_gradients(sums &to, tile<typename Math::element, TILE> d,
                                          tile<typename Math::element, COLUMNS> from)
{
    int row = warp() / 2 * SUM_BLOCKS * ROWS, column = warp() % 2 * SUM_COLUMNS * BLOCK;
    PLIM_UNROLL
    for (int k = 0; k < TILE; k += Math::DEPTH) {
        typename Math::operand_a a[SUM_BLOCKS];
        PLIM_UNROLL
        for (int m = 0; m < SUM_BLOCKS; m++)
            a[m] = TURNED ? Math::load_a_turned(d, k, row + m * ROWS) : Math::load_a(d, row + m * ROWS, k);
        PLIM_UNROLL
        for (int n = 0; n < SUM_COLUMNS; n += 2) {
            typename Math::operand_b b[2];
            Math::load_columns(b, from, k, column + n * BLOCK);
            PLIM_UNROLL
            for (int m = 0; m < SUM_BLOCKS; m++) {
                Math::multiply(to[m][n], a[m], b[0]);
                Math::multiply(to[m][n + 1], a[m], b[1]);
            }
        }
    }
}

/* Two neighbours += x */
template <class Math> __device__ inline void add_pair(uint64_t address, const float *x)
{
    typedef typename Math::element T;
    uint32_t word = load_shared_by_blocks<uint32_t>(address);
    float low = to_float(T{(uint16_t)word}) + x[0], high = to_float(T{(uint16_t)(word >> 16)}) + x[1];
    *(uint32_t *)address = Math::join(low, high);
}

template <class T> __device__ inline void add_one(uint64_t address, float x)
{
    T was = {load_shared_by_blocks<unsigned short>(address)};
    *(T *)address = cast<T>(to_float(was) + x);
}

/* Rows row_of() of (.., width) at `to`, COLUMNS columns from `first` on, += x */
template <class Math, class RowOf>
__device__ inline void add_sums(uint64_t to, const plim_linear_head_args &head, int64_t first, const sums &x,
                                RowOf row_of)
{
    typedef typename Math::element T;
    PLIM_UNROLL
    for (int i = 0; i < SUM_BLOCKS * 2; i++) {
        int64_t row = row_of((warp() / 2 * SUM_BLOCKS + i / 2) * ROWS + group() + i % 2 * 8);
        PLIM_UNROLL
        for (int n = 0; n < SUM_COLUMNS; n++) {
            int64_t column = first + (warp() % 2 * SUM_COLUMNS + n) * BLOCK + pair();
            uint64_t address = to + (uint64_t)(row * head.width + column) * sizeof(T);
            const float *v = &x[i / 2][n][i % 2 * 2];
            if (row < 0 || column >= head.width) continue;
            if (head.whole) {
                add_pair<Math>(address, v);
                continue;
            }
            add_one<T>(address, v[0]);
            if (column + 1 < head.width) add_one<T>(address + sizeof(T), v[1]);
        }
    }
}

/* Where a product goes: rows to_row() of `to`, of gradients and rows from_row() of `from`; `before` tiles add first. */
struct addition {
    uint64_t from, to, turns;
    int32_t before;
};

/* beside() runs in the turn of the first columns. */
template <class Math, bool TURNED, class FromRow, class ToRow, class Beside>
__device__ inline void add_product(const addition &at, typename Math::element *shared,
                                   const plim_linear_head_args &head, FromRow from_row, ToRow to_row, Beside beside)
{
    typedef typename Math::element T;
    tile<T, TILE> d = {shared};
    auto stage_of = [&](int64_t column) {
        return tile<T, COLUMNS>{shared + TILE * TILE + column / COLUMNS % 2 * TILE * COLUMNS};
    };
    auto load = [&](int64_t column) {
        if (column < head.width) load_tile(stage_of(column), at.from, head, column, from_row);
        copy_commit();
    };
    load(0);
    for (int64_t column = 0; column < head.width; column += COLUMNS) {
        uint64_t turns = at.turns + (uint64_t)(column / COLUMNS) * sizeof(int32_t);
        load(column + COLUMNS);
        copy_wait<1>();
        __syncthreads(); /* these columns are here, and the gradients */
        sums x = {};
        multiply_gradients<Math, TURNED>(x, d, stage_of(column));
        wait_for_turn(turns, at.before); /* the columns are done with */
        add_sums<Math>(at.to, head, column, x, to_row);
        if (column == 0) beside();
        end_turn(turns, at.before);
    }
    copy_wait<0>();
}

/* --- the kernel ------------------------------------------------------------------------------- */

struct tile_place {
    int32_t of_places, of_classes;
};

__device__ inline tile_place place_of_block(const plim_linear_head_args &head)
{
    const uint32_t most = PLIM_LINEAR_LOSS_GROUP;
    uint32_t places = (uint32_t)((head.count + TILE - 1) / TILE);
    uint32_t classes = (uint32_t)((head.classes + TILE - 1) / TILE);
    uint32_t first = blockIdx.x / (most * classes) * most, within = blockIdx.x - first * classes;
    uint32_t here = places - first < most ? places - first : most;
    return {(int32_t)(first + within % here), (int32_t)(within / here)};
}

template <class Math> __device__ inline void backward(const plim_linear_lse_backward_args &args)
{
    typedef typename Math::element T;
    const plim_linear_head_args &head = args.head;
    PLIM_DYNAMIC_SHARED(T, shared);
    __shared__ tile_facts facts;
    tile_place at = place_of_block(head);
    int64_t first_class = (int64_t)at.of_classes * TILE, steps = (head.width + COLUMNS - 1) / COLUMNS;
    auto row_of = [&](int r) { return (int64_t)facts.row[r]; };
    int classes = (int)(head.classes - first_class);
    auto class_of = [&](int r) { return r < classes ? first_class + r : -1; };
    find_facts(facts, args, (int64_t)at.of_places * TILE, first_class);
    __syncthreads();

    logits z;
    make_logits<Math>(z, shared, head, row_of, first_class);
    differentiate(z, args, facts, first_class);
    sum_classes(facts, z);
    keep<Math>(tile<T, TILE>{shared}, z);
    if (args.dx) {
        uint64_t turns = args.turns_of_dx + (uint64_t)(at.of_places * steps) * sizeof(int32_t);
        addition dx = {head.weight, args.dx, turns, at.of_classes};
        add_product<Math, false>(dx, shared, head, class_of, row_of, [] {});
    }
    if (!args.dweight) return;
    uint64_t turns = args.turns_of_dweight + (uint64_t)(at.of_classes * steps) * sizeof(int32_t);
    addition dweight = {head.x, args.dweight, turns, at.of_places};
    add_product<Math, true>(dweight, shared, head, row_of, class_of, [&] {
        int64_t of = first_class + threadIdx.x;
        uint64_t to = args.dbias + (uint64_t)of * sizeof(float);
        if (args.dbias && threadIdx.x < TILE && of < head.classes)
            *(float *)to = load_shared_by_blocks<float>(to) + facts.sums[0][threadIdx.x] + facts.sums[1][threadIdx.x];
    });
}

} // namespace linear_loss

#define LINEAR_LSE_BACKWARD(type)                                                                  \
    PLIM_KERNEL(linear_lse_backward_##type, plim_linear_lse_backward_args, PLIM_LINEAR_LOSS_THREADS, 2) \
    {                                                                                              \
        TENSOR_FROM_80(linear_loss::backward<linear_loss_##type>(args);)                           \
    }

LINEAR_LSE_BACKWARD(bf16)
LINEAR_LSE_BACKWARD(fp16)
