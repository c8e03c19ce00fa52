/* PYTORCH_CUDA_ALLOC_CONF: "key:value,key:[a:b,c:d]", blanks ignored, as PyTorch 2.11
 * reads it (c10/core/AllocatorConfig, c10/cuda/CUDAAllocatorConfig). Malformed text that PyTorch
 * accepts ("0.8x", a missing colon) is an error here. */
#include "blocks.h"

#include "autotune/base/text.h"
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1024, INTERVALS = 16 };

#define MIB ((int64_t)1 << 20)

/* The text without blanks, split into tokens: one of , : [ ] or a word between them. */
struct reader {
    char text[MAX_TEXT];
    const char *at;
    char word[MAX_TEXT]; /* the token read last; "" at the end */
    const char *key;     /* the option it belongs to */
    struct plim_allocator_config *config;
    struct plim_error *err;
};

static const char *next_token(struct reader *r)
{
    size_t length = strcspn(r->at, ",:[]");
    if (length == 0 && *r->at) length = 1;
    memcpy(r->word, r->at, length);
    r->word[length] = '\0';
    r->at += length;
    return r->word;
}

static enum plim_status bad_value(struct reader *r, const char *expected)
{
    if (!*r->word)
        return plim_fail(r->err, PLIM_INVALID, "allocator option %s: expected %s at the end",
                         r->key, expected);
    return plim_fail(r->err, PLIM_INVALID, "allocator option %s: expected %s, not '%.40s'", r->key,
                     expected, r->word);
}

static enum plim_status expect(struct reader *r, const char *token)
{
    char expected[8] = {'\'', *token, '\'', 0};
    return strcmp(next_token(r), token) == 0 ? PLIM_OK : bad_value(r, expected);
}

/* -- values: each reads the word that was read last -- */

static bool to_integer(const char *word, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(word, &end, 10);
    return isdigit((unsigned char)*word) && !*end && errno == 0;
}

static bool to_number(const char *word, double *value)
{
    char *end;
    *value = strtod(word, &end);
    return (isdigit((unsigned char)*word) || *word == '.') && !*end;
}

static bool is_power_of_2(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static enum plim_status read_bool(struct reader *r, bool *value)
{
    *value = strcmp(next_token(r), "True") == 0;
    if (*value || strcmp(r->word, "False") == 0) return PLIM_OK;
    return bad_value(r, "True or False");
}

static enum plim_status read_mib(struct reader *r, int64_t *bytes)
{
    int64_t value;
    if (!to_integer(next_token(r), &value) || value == 0)
        return bad_value(r, "a positive number of MiB");
    *bytes = value > INT64_MAX / MIB ? INT64_MAX : value * MIB;
    return PLIM_OK;
}

/* -- options -- */

static enum plim_status expandable_segments(struct reader *r)
{
    return read_bool(r, &r->config->expandable_segments);
}

static enum plim_status large_segment_size(struct reader *r)
{
    enum plim_status st = read_mib(r, &r->config->large_segment_size);
    if (st == PLIM_OK && r->config->large_segment_size <= PLIM_MIN_LARGE_ALLOC)
        return bad_value(r, "more than 10 MiB");
    return st;
}

static enum plim_status max_split_size(struct reader *r)
{
    return read_mib(r, &r->config->max_split_size);
}

static enum plim_status max_non_split_rounding(struct reader *r)
{
    return read_mib(r, &r->config->max_non_split_rounding);
}

static enum plim_status garbage_collection_threshold(struct reader *r)
{
    double value;
    if (!to_number(next_token(r), &value) || !(value > 0 && value < 1))
        return bad_value(r, "a number between 0 and 1");
    r->config->garbage_collection_threshold = value;
    return PLIM_OK;
}

static enum plim_status memory_fraction(struct reader *r)
{
    double value;
    if (!to_number(next_token(r), &value) || !(value >= 0 && value <= 1))
        return bad_value(r, "a number from 0 to 1");
    /* A fraction of 1 is no limit, for which the struct has 0; a fraction of 0 becomes the smallest value. */
    r->config->memory_fraction = value == 1 ? 0 : value == 0 ? DBL_MIN : value;
    return PLIM_OK;
}

static enum plim_status read_divisions(struct reader *r, int64_t *divisions)
{
    if (to_integer(next_token(r), divisions) && (*divisions == 0 || is_power_of_2(*divisions)))
        return PLIM_OK;
    return bad_value(r, "a power of two or 0");
}

/* "256:1": for sizes from 256 MiB to the next power of two; the first entry also applies to sizes below it. ">:8": for
 * all sizes above the last interval. */
static enum plim_status read_interval(struct reader *r, int *last, bool *first)
{
    int64_t *table = r->config->roundup_power2_divisions, size = 0, divisions = 0;
    bool rest = strcmp(r->word, ">") == 0;
    if (!rest && !(to_integer(r->word, &size) && is_power_of_2(size)))
        return bad_value(r, "a power of two (in MiB) or '>'");
    enum plim_status st = expect(r, ":");
    if (st == PLIM_OK) st = read_divisions(r, &divisions);
    if (st != PLIM_OK) return st;
    if (rest) {
        for (int i = *last + 1; i < INTERVALS; i++) table[i] = divisions;
        return PLIM_OK;
    }
    int interval = 0;
    while (interval < INTERVALS - 1 && size >> (interval + 1)) interval++;
    for (int i = 0; *first && i < interval; i++) table[i] = divisions;
    table[interval] = divisions;
    *last = interval;
    *first = false;
    return PLIM_OK;
}

static enum plim_status roundup_power2_divisions(struct reader *r)
{
    int64_t value;
    if (strcmp(next_token(r), "[") != 0) {
        if (!to_integer(r->word, &value) || !is_power_of_2(value))
            return bad_value(r, "a power of two or a list [size:divisions,...]");
        for (int i = 0; i < INTERVALS; i++) r->config->roundup_power2_divisions[i] = value;
        return PLIM_OK;
    }
    int last = 0;
    bool first = true;
    while (strcmp(next_token(r), "]") != 0) {
        enum plim_status st = read_interval(r, &last, &first);
        if (st != PLIM_OK) return st;
        if (*r->at == ',') next_token(r);
        else if (*r->at != ']') return next_token(r), bad_value(r, "',' or ']'");
    }
    return PLIM_OK;
}

static enum plim_status backend(struct reader *r)
{
    if (strcmp(next_token(r), "native") == 0) return PLIM_OK;
    if (strcmp(r->word, "cudaMallocAsync") == 0)
        return plim_fail(r->err, PLIM_UNSUPPORTED,
                         "allocator backend cudaMallocAsync is not modelled, only native");
    return bad_value(r, "native");
}

/* Options of pinned host memory, of locks and of graph capture, which affect no device memory. */
static enum plim_status without_effect(struct reader *r)
{
    if (!*next_token(r) || strchr(",:[]", *r->word)) return bad_value(r, "a value");
    return PLIM_OK;
}

static const struct {
    const char *name;
    enum plim_status (*read)(struct reader *r);
} options[] = {
    {"expandable_segments", expandable_segments},
    {"large_segment_size_mb", large_segment_size},
    {"max_split_size_mb", max_split_size},
    {"max_non_split_rounding_mb", max_non_split_rounding},
    {"garbage_collection_threshold", garbage_collection_threshold},
    {"per_process_memory_fraction", memory_fraction},
    {"roundup_power2_divisions", roundup_power2_divisions},
    {"backend", backend},
    {"release_lock_on_cudamalloc", without_effect},
    {"release_lock_on_hipmalloc", without_effect},
    {"pinned_use_cuda_host_register", without_effect},
    {"pinned_use_hip_host_register", without_effect},
    {"pinned_num_register_threads", without_effect},
    {"pinned_use_background_threads", without_effect},
    {"pinned_reserve_segment_size_mb", without_effect},
    {"graph_capture_record_stream_reuse", without_effect},
};

enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]) };

static enum plim_status unknown_option(const struct reader *r)
{
    const char *names[OPTION_COUNT];
    for (size_t i = 0; i < OPTION_COUNT; i++) names[i] = options[i].name;
    int nearest = plim_nearest(r->word, names, OPTION_COUNT);
    if (nearest < 0)
        return plim_fail(r->err, PLIM_INVALID, "unknown allocator option '%.60s'", r->word);
    return plim_fail(r->err, PLIM_INVALID, "unknown allocator option '%.60s'; did you mean '%s'?",
                     r->word, names[nearest]);
}

static enum plim_status read_option(struct reader *r)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strcmp(r->word, options[i].name) != 0) continue;
        r->key = options[i].name;
        enum plim_status st = expect(r, ":");
        return st == PLIM_OK ? options[i].read(r) : st;
    }
    return unknown_option(r);
}

/* The segment size of the large pool is the default of one option and the minimum of two, wherever in the text it
 * occurs. */
static enum plim_status check_sizes(struct plim_allocator_config *config, struct plim_error *err)
{
    int64_t least = config->large_segment_size;
    if (config->max_non_split_rounding == 0) config->max_non_split_rounding = least;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        {"max_split_size_mb", config->max_split_size},
        {"max_non_split_rounding_mb", config->max_non_split_rounding},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i].value < least)
            return plim_fail(err, PLIM_INVALID,
                             "allocator option %s: %lld is less than large_segment_size_mb, %lld",
                             sizes[i].name, (long long)(sizes[i].value / MIB),
                             (long long)(least / MIB));
    }
    return PLIM_OK;
}

static enum plim_status strip_blanks(const char *text, char out[MAX_TEXT], struct plim_error *err)
{
    size_t length = 0;
    for (; *text; text++) {
        if (isspace((unsigned char)*text)) continue;
        if (length == MAX_TEXT - 1)
            return plim_fail(err, PLIM_INVALID, "allocator options longer than %d characters",
                             MAX_TEXT - 1);
        out[length++] = *text;
    }
    out[length] = '\0';
    return PLIM_OK;
}

enum plim_status plim_allocator_config_parse(const char *text, struct plim_allocator_config *config,
                                             struct plim_error *err)
{
    *config = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    struct plim_allocator_config parsed = *config;
    struct reader r = {.config = &parsed, .err = err};
    enum plim_status st = strip_blanks(text ? text : "", r.text, err);
    if (st != PLIM_OK) return st;
    parsed.max_non_split_rounding = 0;
    r.at = r.text;
    while (*next_token(&r)) {
        st = read_option(&r);
        if (st != PLIM_OK) return st;
        if (*r.at && (st = expect(&r, ",")) != PLIM_OK) return st;
    }
    st = check_sizes(&parsed, err);
    if (st == PLIM_OK) *config = parsed;
    return st;
}
