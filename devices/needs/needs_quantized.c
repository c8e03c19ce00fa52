/* When bitsandbytes multiplies by a 4-bit weight without dequantising it to a matrix first. */
#include "needs.h"

enum { ALWAYS_ROWS = 4, MOST_ROWS = 1536, TILE = 64, SMALL_WEIGHT = 4 << 20 };

/* A product of (m, k) by the transpose of (n, k) on a GPU with `sms` multiprocessors, divided into `tiles` of 64
 * columns. */
struct product {
    int cc;
    int64_t sms, m, n, k, tiles;
};

static bool fills(const struct product *p, int64_t numerator, int64_t denominator)
{
    return p->tiles * denominator >= p->sms * numerator;
}

static bool has_hbm(const struct product *p)
{
    return p->cc == 80 || p->cc / 10 == 9;
}

/* --- weights below 4 M elements --------------------------------------------------------------- */

static int64_t most_rows_of_short_k(const struct product *p)
{
    if (has_hbm(p)) {
        bool few = !fills(p, 1, 3);
        if (p->cc == 80) return few ? 1536 : 512;
        return few ? 512 : 320;
    }
    if (p->cc == 75) {
        if (fills(p, 3, 1) || p->k < 704) return 320;
        return p->k >= 1024 ? 64 : 96;
    }
    if (fills(p, 1, 1)) return 320;
    return p->tiles * p->k > p->sms * 320 ? 192 : 320;
}

static bool small_weight(const struct product *p)
{
    if (p->k * 2 < p->n) return p->m <= most_rows_of_short_k(p);
    bool quarter = p->tiles * 4 <= p->sms;
    if (p->cc == 80 && quarter) {
        if (p->k < p->n) return p->m <= 384;
        return p->m <= (p->tiles * 8 <= p->sms ? 32 : 128);
    }
    if (p->cc == 75 && !fills(p, 1, 1) && p->m > 8) return p->m <= 64;
    if (quarter) return p->m <= (p->k < p->n || has_hbm(p) ? 32 : 23);
    return p->tiles * 2 <= p->sms && p->m <= 16;
}

/* --- larger weights --------------------------------------------------------------------------- */

/* Five to seven rows: fused except where the tensor cores of two GPUs are faster. */
static bool few_rows(const struct product *p)
{
    bool hopper = p->cc / 10 == 9;
    if (!has_hbm(p) || p->m < 6 || p->tiles < (hopper ? 36 : 48)) return true;
    bool below_three_quarters = !fills(p, 3, 4), below_three_fifths = !fills(p, 3, 5);
    if (p->k > p->n) return !below_three_quarters;
    if (p->k < p->n) return true;
    return hopper ? !below_three_quarters || below_three_fifths : !below_three_fifths;
}

static int64_t most_rows_75(const struct product *p)
{
    if (fills(p, 3, 1)) return p->k < p->n ? 128 : 64;
    return p->tiles >= p->sms / 2 ? 64 : 32;
}

static int64_t most_rows_80(const struct product *p)
{
    if (fills(p, 3, 1)) return 128;
    if (fills(p, 1, 1)) return p->k < p->n ? 64 : 32;
    if (p->k >= p->n * 3 && p->tiles * 4 > p->sms) return 0;
    if (p->k == p->n && p->tiles >= 48 && !fills(p, 3, 5)) return 0;
    if (p->tiles * 2 < p->sms) {
        if (p->k <= p->n) return 128;
        if (fills(p, 1, 3)) return 0;
    }
    return p->tiles >= p->sms / 2 && p->k < p->n ? 128 : 16;
}

static int64_t most_rows_86(const struct product *p)
{
    if (fills(p, 1, 1)) return 128;
    return p->tiles >= p->sms / 2 ? 64 : 16;
}

static int64_t most_rows_90(const struct product *p)
{
    if (fills(p, 3, 1)) return 64;
    if (fills(p, 2, 1)) return 48;
    if (fills(p, 1, 1)) return 32;
    if (p->tiles < p->sms / 2) return 0;
    return p->k >= p->n && !fills(p, 3, 4) ? 0 : 16;
}

static int64_t most_rows_100(const struct product *p)
{
    if (fills(p, 3, 1)) return 32;
    return fills(p, 1, 1) && p->k < p->n ? 8 : 0;
}

static int64_t most_rows_120(const struct product *p)
{
    if (fills(p, 3, 1)) return 256;
    if (fills(p, 2, 1)) return 128;
    if (fills(p, 4, 5)) return p->k >= p->n ? 96 : 64;
    if (p->tiles >= p->sms / 2) return p->k * 2 >= p->n && p->tiles >= 128 ? 64 : 8;
    return p->k > p->n * 2 && p->tiles > 64 ? 16 : 8;
}

/* 8.9, and every GPU without its own thresholds. */
static int64_t most_rows_89(const struct product *p)
{
    bool tall = p->k > p->n * 2;
    if (fills(p, 3, 1)) return 256;
    if (fills(p, 2, 1)) return 128;
    if (fills(p, 4, 5)) {
        if (tall || p->tiles >= 200) return 128;
        if (p->k < p->n) return 64;
        return p->sms >= 60 ? 128 : 32;
    }
    if (p->tiles >= p->sms / 2) return tall ? 64 : p->tiles >= 64 ? 8 : 32;
    if (p->k > p->n && p->tiles <= 48) return p->k >= p->n * 3 ? 12 : 10;
    return tall || p->tiles < 48 ? 16 : 8;
}

static int64_t most_rows(const struct product *p)
{
    if (p->cc == 121 && fills(p, 1, 1)) return 256;
    switch (p->cc) {
    case 75: return most_rows_75(p);
    case 80: return most_rows_80(p);
    case 86: return most_rows_86(p);
    case 90: return most_rows_90(p);
    case 120: return most_rows_120(p);
    default: return most_rows_89(p);
    }
}

bool plim_matmul_4bit_is_fused(const struct plim_device_info *info, enum plim_dtype dtype,
                               int64_t m, int64_t n, int64_t k, int64_t block)
{
    const struct product p = {.cc = info->compute_capability,
                              .sms = info->multiprocessors,
                              .m = m,
                              .n = n,
                              .k = k,
                              .tiles = (n + TILE - 1) / TILE};
    int generation = p.cc / 10;
    if (m > MOST_ROWS || k % block != 0) return false;
    if (m <= ALWAYS_ROWS) return true;
    bool has_kernel = p.cc >= 75 && dtype != PLIM_F32 && (p.cc > 75 || dtype == PLIM_F16);
    if (!has_kernel) return m < 8;
    if (p.cc == 87 || generation == 11) return false;
    if (generation == 10) return m <= most_rows_100(&p);
    if (n * k < SMALL_WEIGHT) return small_weight(&p);
    if (m > 512) return false;
    return m < 8 ? few_rows(&p) : m <= most_rows(&p);
}
