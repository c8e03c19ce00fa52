#include "option_kinds.h"
#include "autotune/base/text.h"
#include "autotune/search/limit.h"
#include "devices/catalogue/catalogue.h"
#include "devices/uri.h"
#include "workloads/spec/key.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(struct plim_request *request, const struct plim_option *option)
{
    return (char *)request + option->offset;
}

/* --- plain values ----------------------------------------------------------------------------- */

enum plim_status plim_option_switch(struct plim_request *request, const struct plim_option *option,
                                    const char *value, struct plim_error *err)
{
    (void)value;
    (void)err;
    *(bool *)field(request, option) = true;
    return PLIM_OK;
}

enum plim_status plim_option_text(struct plim_request *request, const struct plim_option *option,
                                  const char *value, struct plim_error *err)
{
    (void)err;
    *(const char **)field(request, option) = value;
    return PLIM_OK;
}

enum plim_status plim_option_number(struct plim_request *request, const struct plim_option *option,
                                    const char *value, struct plim_error *err)
{
    char *end;
    errno = 0;
    long long number = value[0] >= '0' && value[0] <= '9' ? strtoll(value, &end, 10) : 0;
    if (number < 1 || number > option->most || errno || *end)
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected a number from 1 to %lld",
                         option->name, value, (long long)option->most);
    *(int64_t *)field(request, option) = number;
    return PLIM_OK;
}

/* Parses a number followed by one of `units`, each with a factor. Returns false if `text` is anything else. */
static bool parse_with_unit(const char *text, const char *const *units, const double *factors,
                            double *out)
{
    char *end;
    errno = 0;
    if (!strchr("0123456789.", text[0]) || !text[0] || strpbrk(text, "xX")) return false;
    *out = strtod(text, &end);
    if (end == text || errno) return false;
    for (size_t i = 0; units[i]; i++) {
        if (strcmp(units[i], end)) continue;
        *out *= factors[i];
        return true;
    }
    return false;
}

enum plim_status plim_option_seconds(struct plim_request *request, const struct plim_option *option,
                                     const char *value, struct plim_error *err)
{
    static const char *const units[] = {"s", "", "ms", "m", "min", "h", NULL};
    static const double factors[] = {1, 1, 1e-3, 60, 60, 3600};
    static const double MOST = 10 * 365.0 * 24 * 60 * 60; /* ten years, which fits into a time_t */
    double seconds;
    if (!parse_with_unit(value, units, factors, &seconds) || seconds <= 0 || seconds > MOST)
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected a time such as 60s, 500ms or 5m",
                         option->name, value);
    *(double *)field(request, option) = seconds;
    return PLIM_OK;
}

/* --- lists ------------------------------------------------------------------------------------ */

static enum plim_status too_many(const struct plim_option *option, int64_t most,
                                 struct plim_error *err)
{
    return plim_fail(err, PLIM_INVALID, "%s is given too often, expected at most %lld times",
                     option->name, (long long)most);
}

enum plim_status plim_option_list(struct plim_request *request, const struct plim_option *option,
                                  const char *value, struct plim_error *err)
{
    struct plim_request_list *list = field(request, option);
    int64_t most = option->most ? option->most : PLIM_REQUEST_LIST;
    if (list->count == (size_t)most) return too_many(option, most, err);
    list->items[list->count++] = value;
    return PLIM_OK;
}

enum plim_status plim_option_pairs(struct plim_request *request, const struct plim_option *option,
                                   const char *value, struct plim_error *err)
{
    if (value[0] == '=' || !strchr(value, '='))
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected %s", option->name, value,
                         option->argument);
    return plim_option_list(request, option, value, err);
}

enum plim_status plim_option_devices(struct plim_request *request, const struct plim_option *option,
                                     const char *value, struct plim_error *err)
{
    for (;;) {
        size_t length = plim_uri_length(value);
        char *text = request->texts + request->texts_used;
        if (!length)
            return plim_fail(err, PLIM_INVALID, "%s has an empty value, expected %s", option->name,
                             option->argument);
        if (length >= sizeof(request->texts) - request->texts_used)
            return plim_fail(err, PLIM_INVALID, "%s is longer than expected", option->name);
        memcpy(text, value, length);
        text[length] = '\0';
        request->texts_used += length + 1;
        enum plim_status st = plim_option_list(request, option, text, err);
        if (st || !value[length]) return st;
        value += length + 1;
    }
}

/* --- keys of the spec ------------------------------------------------------------------------- */

static enum plim_status add_setting(struct plim_request *request, const struct plim_option *option,
                                    const char *key, size_t key_length, const char *value,
                                    struct plim_error *err)
{
    if (request->setting_count == PLIM_REQUEST_SETTINGS)
        return too_many(option, PLIM_REQUEST_SETTINGS, err);
    struct plim_request_setting *setting = &request->settings[request->setting_count++];
    setting->option = option->name;
    setting->value = value;
    snprintf(setting->key, sizeof(setting->key), "%.*s", (int)key_length, key);
    return PLIM_OK;
}

enum plim_status plim_option_key(struct plim_request *request, const struct plim_option *option,
                                 const char *value, struct plim_error *err)
{
    return add_setting(request, option, option->key, strlen(option->key), value, err);
}

enum plim_status plim_option_any_key(struct plim_request *request, const struct plim_option *option,
                                     const char *value, struct plim_error *err)
{
    size_t length = strcspn(value, "=");
    if (!length || !value[length] || length >= sizeof(request->settings[0].key))
        return plim_fail(err, PLIM_INVALID,
                         "--set is '%s', expected KEY=VALUE such as train.clip=1.0", value);
    return add_setting(request, option, value, length, value + length + 1, err);
}

/* --- memory limits and objectives -------------------------------------------------------------- */

/* True for a number without a unit, other than 0: it could be a share, or a size in an unknown unit. */
static bool is_bare(const char *value)
{
    char *end;
    double number = strtod(value, &end);
    return end != value && !*end && number > 0;
}

/* Converts a bare number to a percentage; numbers below 1 are taken as fractions. */
static const char *share_text(const char *value, char room[40])
{
    double number = strtod(value, NULL);
    snprintf(room, 40, "%g", number < 1 ? 100 * number : number);
    return room;
}

enum plim_status plim_option_margin(struct plim_request *request, const struct plim_option *option,
                                    const char *value, struct plim_error *err)
{
    static const char *const units[] = {"%", " %", NULL};
    static const double factors[] = {0.01, 0.01};
    char room[40];
    double share;
    struct plim_allowance *allowance = &request->allowance;
    allowance->margin_given = true;
    if (parse_with_unit(value, units, factors, &share) && share <= 1) {
        allowance->margin_bytes = -1;
        allowance->margin_share = share;
        return PLIM_OK;
    }
    if (is_bare(value))
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected a unit: %s%% or %sGiB?",
                         option->name, value, share_text(value, room), value);
    if (plim_parse_bytes(value, &allowance->margin_bytes, NULL) == PLIM_OK) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID,
                     "%s is '%s', expected a share such as 5%% or a size such as 2GiB",
                     option->name, value);
}

enum plim_status plim_option_overhead(struct plim_request *request,
                                      const struct plim_option *option, const char *value,
                                      struct plim_error *err)
{
    struct plim_allowance *allowance = &request->allowance;
    allowance->overhead_given = strcmp(value, "auto") != 0;
    if (!allowance->overhead_given) return PLIM_OK;
    if (is_bare(value))
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected a unit: %sMiB or %sGiB?",
                         option->name, value, value, value);
    if (plim_parse_bytes(value, &allowance->overhead_bytes, NULL) == PLIM_OK) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID, "%s is '%s', expected auto or a size such as 600MiB",
                     option->name, value);
}

enum plim_status plim_option_alloc_conf(struct plim_request *request,
                                        const struct plim_option *option, const char *value,
                                        struct plim_error *err)
{
    if (strlen(value) >= sizeof(((struct plim_limit *)0)->alloc_conf))
        return plim_fail(err, PLIM_INVALID, "%s is longer than expected", option->name);
    request->allowance.alloc_conf = value;
    return PLIM_OK;
}

enum plim_status plim_option_objective(struct plim_request *request,
                                       const struct plim_option *option, const char *value,
                                       struct plim_error *err)
{
    const char *names[PLIM_OBJECTIVE_COUNT];
    char expected[128];
    for (int i = 0; i < PLIM_OBJECTIVE_COUNT; i++) {
        names[i] = plim_objectives[i].name;
        if (strcmp(names[i], value)) continue;
        request->objective = (enum plim_objective)i;
        request->objective_given = true;
        return PLIM_OK;
    }
    plim_join_names(names, PLIM_OBJECTIVE_COUNT, expected, sizeof(expected));
    return plim_fail(err, PLIM_INVALID, "%s is '%s', expected %s", option->name, value, expected);
}

/* The profile is applied after all options are read, since other options override it (plim_options_parse()). */
enum plim_status plim_option_profile(struct plim_request *request,
                                     const struct plim_option *option, const char *value,
                                     struct plim_error *err)
{
    const char *names[PLIM_PROFILES];
    char expected[128];
    for (int i = 0; i < PLIM_PROFILES; i++) {
        names[i] = plim_profiles[i].name;
        if (!strcmp(names[i], value)) request->profile = &plim_profiles[i];
    }
    if (request->profile && !strcmp(request->profile->name, value)) return PLIM_OK;
    plim_join_names(names, PLIM_PROFILES, expected, sizeof(expected));
    return plim_fail(err, PLIM_INVALID, "%s is '%s', expected %s", option->name, value, expected);
}

static const char *const orders[] = {"speed", "memory", "batch", "given"};
enum { ORDER_COUNT = sizeof(orders) / sizeof(orders[0]) };
_Static_assert(ORDER_COUNT == PLIM_ORDER_GIVEN - PLIM_ORDER_SPEED + 1, "a name for each order");

enum plim_status plim_option_order(struct plim_request *request, const struct plim_option *option,
                                   const char *value, struct plim_error *err)
{
    char expected[64];
    for (int i = 0; i < ORDER_COUNT; i++) {
        if (strcmp(orders[i], value) != 0) continue;
        request->order = (enum plim_result_order)(PLIM_ORDER_SPEED + i);
        return PLIM_OK;
    }
    plim_join_names(orders, ORDER_COUNT, expected, sizeof(expected));
    return plim_fail(err, PLIM_INVALID, "%s is '%s', expected %s", option->name, value, expected);
}

enum plim_status plim_option_price(struct plim_request *request, const struct plim_option *option,
                                   const char *value, struct plim_error *err)
{
    const char *equals = strrchr(value, '=');
    char *end = NULL;
    double amount = equals ? strtod(equals + 1, &end) : 0;
    size_t length = equals ? (size_t)(equals - value) : 0, used = request->texts_used;
    if (!length || !end || *end || !(amount > 0) || amount > 1e9)
        return plim_fail(err, PLIM_INVALID, "%s is '%s', expected a GPU and an amount: RTX-4090=0.69",
                         option->name, value);
    if (request->price_count == PLIM_REQUEST_LIST || used + length + 1 > sizeof(request->texts))
        return plim_fail(err, PLIM_INVALID, "%s: more than expected", option->name);
    memcpy(request->texts + used, value, length);
    request->texts[used + length] = '\0';
    request->texts_used += length + 1;
    request->prices[request->price_count++] =
        (struct plim_price){.device = request->texts + used, .amount = amount};
    return PLIM_OK;
}

/* --- names ------------------------------------------------------------------------------------ */

static const char *device_name(size_t index, char scratch[PLIM_OPTION_VALUE])
{
    static const char *const schemes[] = {"auto", "host", "cuda:0", "cuda:all"};
    enum { SCHEMES = sizeof(schemes) / sizeof(schemes[0]) };
    if (index < SCHEMES) return schemes[index];
    if (index - SCHEMES >= plim_catalogue_count()) return NULL;
    snprintf(scratch, PLIM_OPTION_VALUE, "sim:%s", plim_catalogue_at(index - SCHEMES)->name);
    return scratch;
}

const char *plim_option_value(const struct plim_option *option, size_t index,
                              char scratch[PLIM_OPTION_VALUE])
{
    if (option->kind == plim_option_devices) return device_name(index, scratch);
    if (option->kind == plim_option_objective)
        return index < PLIM_OBJECTIVE_COUNT ? plim_objectives[index].name : NULL;
    if (option->kind == plim_option_profile)
        return index < PLIM_PROFILES ? plim_profiles[index].name : NULL;
    if (option->kind == plim_option_order) return index < ORDER_COUNT ? orders[index] : NULL;
    const struct plim_spec_key *key = option->key ? plim_spec_key_find(option->key) : NULL;
    return key && index < key->value.name_count ? key->value.names[index] : NULL;
}
