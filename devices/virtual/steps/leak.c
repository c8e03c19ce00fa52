#include "leak.h"

enum { SAMPLES = PLIM_LEAK_SAMPLES };

void plim_leak_sample(struct plim_leak *leak, int64_t steps, int64_t held_bytes)
{
    int64_t number = steps - 3;
    if (number < 0 || number % ((int64_t)1 << leak->spread)) return;
    if (leak->count == SAMPLES) {
        for (int i = 0; i < SAMPLES / 2; i++) leak->samples[i] = leak->samples[2 * i];
        leak->count = SAMPLES / 2;
        leak->spread++;
        if (number % ((int64_t)1 << leak->spread)) return;
    }
    leak->samples[leak->count++] = held_bytes;
}

static int64_t growths(const int64_t *samples, int64_t count)
{
    int64_t result = 0;
    for (int64_t i = 1; i < count; i++) result += samples[i] > samples[i - 1];
    return result;
}

/* True if every sample of b is above every sample of a. */
static bool is_above(const int64_t *b, int64_t b_count, const int64_t *a, int64_t a_count)
{
    int64_t least = b[0], most = a[0];
    for (int64_t i = 1; i < b_count; i++)
        if (b[i] < least) least = b[i];
    for (int64_t i = 1; i < a_count; i++)
        if (a[i] > most) most = a[i];
    return least > most;
}

/* Peaks of batches of varying length grow too, but ever more rarely: in the second half of the samples little growth
 * remains. A leak keeps growing, and memory never returns to an earlier level, as it does with batches of random
 * length. */
bool plim_leak_find(const struct plim_leak *leak, double *bytes)
{
    enum { FEWEST = 16, EVENTS = 3 };
    int64_t half = leak->count / 2, count = 2 * half;
    if (leak->count < FEWEST) return false;
    const int64_t *samples = leak->samples + leak->count - count;
    int64_t first = samples[half] - samples[0], second = samples[count - 1] - samples[half - 1];
    if (growths(samples + half - 1, half + 1) < EVENTS || 4 * second < 3 * first) return false;
    int64_t quarter = half / 2, last = count - quarter;
    if (!is_above(samples + half, half, samples, quarter) ||
        !is_above(samples + last, quarter, samples, half))
        return false;
    *bytes = (double)second / (double)(half << leak->spread);
    return true;
}
