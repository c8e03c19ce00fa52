#include "numbers.h"
#include "autotune/base/text.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

char *plim_number_bytes(int64_t bytes, char out[PLIM_NUMBER])
{
    return plim_format_bytes(bytes > 0 ? bytes : 0, out);
}

char *plim_number_grouped(double value, char out[PLIM_NUMBER])
{
    char digits[PLIM_NUMBER];
    int length = snprintf(digits, sizeof(digits), "%.0f", fmin(fabs(value), 1e15)), used = 0;
    if (value < 0) out[used++] = '-';
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

char *plim_number_rate(double value, char out[PLIM_NUMBER])
{
    if (value >= 99.95) return plim_number_grouped(value, out);
    if (value >= 0.995) snprintf(out, PLIM_NUMBER, "%.*f", value >= 9.995 ? 1 : 2, value);
    else snprintf(out, PLIM_NUMBER, "%.3g", value);
    return out;
}

char *plim_number_seconds(double seconds, char out[PLIM_NUMBER])
{
    int digits = seconds >= 100 ? 0 : seconds >= 10 ? 1 : seconds >= 1 ? 2 : seconds >= 0.1 ? 3 : 4;
    snprintf(out, PLIM_NUMBER, "%.*f s", digits, seconds);
    return out;
}

char *plim_number_batch(const struct plim_result_setting *setting, char out[PLIM_NUMBER])
{
    if (setting->micro_batch)
        snprintf(out, PLIM_NUMBER, "%" PRId64 " x %" PRId64, setting->micro_batch,
                 setting->accumulation);
    else
        snprintf(out, PLIM_NUMBER, "-");
    return out;
}
