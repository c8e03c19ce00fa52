#include "catalogue.h"

#include "autotune/base/embed.h"
#include "autotune/base/text.h"
#include "autotune/base/yaml.h"
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern const struct plim_embedded_file plim_catalogue_data[];

enum { MAX_GPUS = 96, MAX_NAME = 64, MAX_TOKENS = 12, MAX_NEAREST = 3 };

static struct {
    pthread_once_t once;
    struct plim_gpu gpus[MAX_GPUS];
    size_t count;
    struct plim_error err; /* status PLIM_OK: the table was read */
} catalogue = {.once = PTHREAD_ONCE_INIT};

/* --- reading the table ------------------------------------------------------------------------ */

struct gpu {
    struct plim_gpu gpu;
    double cuda_bytes, smi_bytes, marketing_bytes; /* totals, the most reliable first; 0: unknown */
};

enum field_kind { TEXT, INT, INT64, DOUBLE, NOTE /* for people */ };

#define MIB 1048576.0
#define TERA 1e12

static const struct field {
    const char *section, *key; /* section "": the GPU itself */
    enum field_kind kind;
    size_t offset, size;
    double unit;
} fields[] = {
#define AT(member) offsetof(struct gpu, member), sizeof(((struct gpu *)0)->member)
    {"", "name", TEXT, AT(gpu.name), 0},
    {"", "match", TEXT, AT(gpu.match), 0},
    {"", "compute_capability", INT, AT(gpu.compute_capability), 10},
    {"", "multiprocessors", INT, AT(gpu.multiprocessors), 1},
    {"", "boost_mhz", INT, AT(gpu.boost_mhz), 1},
    {"", "l2_mib", INT64, AT(gpu.l2_bytes), MIB},
    {"", "nvlink_gb_per_second", DOUBLE, AT(gpu.nvlink_bandwidth), 1e9},
    {"", "pcie_gb_per_second", DOUBLE, AT(gpu.pcie_bandwidth), 1e9},
    {"", "tdp_watts", INT, AT(gpu.tdp_watts), 1},
    {"memory", "marketing_gib", DOUBLE, AT(marketing_bytes), 1024 * MIB},
    {"memory", "smi_mib", DOUBLE, AT(smi_bytes), MIB},
    {"memory", "cuda_mib", DOUBLE, AT(cuda_bytes), MIB},
    {"memory", "gb_per_second", DOUBLE, AT(gpu.bandwidth), 1e9},
    {"tflops", "fp32", DOUBLE, AT(gpu.fp32), TERA},
    {"tflops", "tf32", DOUBLE, AT(gpu.tf32), TERA},
    {"tflops", "fp16", DOUBLE, AT(gpu.fp16), TERA},
    {"tflops", "bf16", DOUBLE, AT(gpu.bf16), TERA},
    {"tflops", "fp8", DOUBLE, AT(gpu.fp8), TERA},
    {"seen", "bf16", DOUBLE, AT(gpu.matmul_bf16_seen), TERA},
    {"seen", "fp16", DOUBLE, AT(gpu.matmul_fp16_seen), TERA},
    {"seen", "fp32", DOUBLE, AT(gpu.matmul_fp32_seen), TERA},
    {"", "checked", NOTE, 0, 0, 0},
    {"", "source", NOTE, 0, 0, 0},
#undef AT
};

static const struct field *find_field(const char *section, const char *key)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcmp(fields[i].section, section) == 0 && strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

static enum plim_status read_text(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                  char *to, size_t size, struct plim_error *err)
{
    const char *text;
    enum plim_status st = plim_yaml_text(yaml, node, &text, err);
    if (st != PLIM_OK) return st;
    if (strlen(text) >= size) return plim_yaml_fail(yaml, node, err, "the name is too long");
    memcpy(to, text, strlen(text) + 1);
    return PLIM_OK;
}

static enum plim_status read_field(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                   const struct field *field, struct gpu *gpu,
                                   struct plim_error *err)
{
    char *to = (char *)gpu + field->offset;
    if (field->kind == NOTE) return PLIM_OK;
    if (field->kind == TEXT) return read_text(yaml, node, to, field->size, err);

    double value;
    enum plim_status st = plim_yaml_number(yaml, node, &value, err);
    if (st != PLIM_OK) return st;
    value *= field->unit;
    if (field->kind == INT) *(int *)(void *)to = (int)lround(value);
    if (field->kind == INT64) *(int64_t *)(void *)to = (int64_t)llround(value);
    if (field->kind == DOUBLE) *(double *)(void *)to = value;
    return PLIM_OK;
}

static enum plim_status read_section(const struct plim_yaml *yaml,
                                     const struct plim_yaml_node *mapping, const char *section,
                                     struct gpu *gpu, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    if (mapping->kind != PLIM_YAML_MAPPING)
        return plim_yaml_fail(yaml, mapping, err, "expected a mapping");
    for (size_t i = 0; i < mapping->count; i++) {
        const char *key = mapping->keys[i]->text;
        const struct plim_yaml_node *value = mapping->items[i];
        const struct field *field = find_field(section, key);
        if (field)
            PLIM_TRY(read_field(yaml, value, field, gpu, err));
        else if (*section == '\0' && value->kind == PLIM_YAML_MAPPING)
            PLIM_TRY(read_section(yaml, value, key, gpu, err));
        else
            PLIM_TRY(plim_yaml_fail(yaml, mapping->keys[i], err, "unknown key '%s'", key));
    }
out:
    return st;
}

static enum plim_status read_gpus(const struct plim_yaml *yaml, struct plim_error *err)
{
    const struct plim_yaml_node *root = yaml->root;
    if (!root || root->kind != PLIM_YAML_SEQUENCE || root->count > MAX_GPUS)
        return plim_fail(err, PLIM_SPEC, "expected a list of at most %d GPUs", MAX_GPUS);
    for (size_t i = 0; i < root->count; i++) {
        struct gpu gpu = {0};
        enum plim_status st = read_section(yaml, root->items[i], "", &gpu, err);
        if (st != PLIM_OK) return st;
        double total = gpu.cuda_bytes > 0  ? gpu.cuda_bytes
                       : gpu.smi_bytes > 0 ? gpu.smi_bytes
                                            : gpu.marketing_bytes;
        gpu.gpu.total_bytes = (int64_t)total;
        catalogue.gpus[i] = gpu.gpu;
    }
    catalogue.count = root->count;
    return PLIM_OK;
}

static void load(void)
{
    const struct plim_embedded_file *file = &plim_catalogue_data[0];
    struct plim_yaml yaml = {0};
    enum plim_status st = PLIM_OK;
    PLIM_TRY(plim_yaml_read_string(file->name, file->text, file->size, &yaml, &catalogue.err));
    PLIM_TRY(read_gpus(&yaml, &catalogue.err));
out:
    if (st != PLIM_OK) catalogue.err.status = st;
    plim_yaml_finish(&yaml);
}

size_t plim_catalogue_count(void)
{
    pthread_once(&catalogue.once, load);
    return catalogue.count;
}

enum plim_status plim_catalogue_check(struct plim_error *err)
{
    if (plim_catalogue_count()) return PLIM_OK;
    return plim_fail_at(err, PLIM_INTERNAL, catalogue.err.file, catalogue.err.line,
                        catalogue.err.column, "%s", catalogue.err.text);
}

const struct plim_gpu *plim_catalogue_at(size_t index)
{
    return index < plim_catalogue_count() ? &catalogue.gpus[index] : NULL;
}

/* --- names ------------------------------------------------------------------------------------ */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_separator(char c)
{
    return c == ' ' || c == '-' || c == '_';
}

/* A name in lower case, split at ' ', '-' and '_'. */
struct tokens {
    char text[MAX_NAME];
    const char *items[MAX_TOKENS];
    size_t count;
};

static void tokens_cut(const char *name, struct tokens *t)
{
    size_t length = strnlen(name, MAX_NAME);
    t->count = 0;
    if (length == MAX_NAME) return; /* longer than any name here */
    bool inside = false;
    for (size_t i = 0; i <= length; i++) {
        bool separator = i == length || is_separator(name[i]);
        t->text[i] = separator ? '\0' : lower(name[i]);
        if (!separator && !inside && t->count < MAX_TOKENS) t->items[t->count++] = &t->text[i];
        inside = !separator;
    }
}

/* True if both have the same letters and digits in the same order. */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (is_separator(*a)) a++;
        while (is_separator(*b)) b++;
        if (lower(*a) != lower(*b)) return false;
        if (*a == '\0') return true;
    }
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0) return true;
    return false;
}

/* True for words that can be omitted from a name without referring to another GPU, unlike "Ti" or "Ada". */
static bool may_be_left_out(const char *token)
{
    static const char *const words[] = {"rtx", "sxm", "sxm2", "sxm4", "sxm5", "pcie", "nvl",
                                        "blackwell", NULL};
    size_t digits = strspn(token, "0123456789");
    return is_one_of(token, words) || (digits > 0 && strcmp(token + digits, "gb") == 0);
}

/* True if `asked` is the name with some of its optional tokens omitted. */
static bool is_short_form(const struct tokens *asked, const struct tokens *name)
{
    static const char *const brands[] = {"nvidia", "geforce", "tesla", NULL};
    size_t at = 0;
    while (at < asked->count && is_one_of(asked->items[at], brands)) at++;
    if (at == asked->count) return false;
    for (size_t i = 0; i < name->count; i++) {
        const char *want = at < asked->count ? asked->items[at] : "";
        bool form_factor = strcmp(want, "sxm") == 0 && strncmp(name->items[i], "sxm", 3) == 0;
        if (strcmp(want, name->items[i]) == 0 || form_factor)
            at++;
        else if (!may_be_left_out(name->items[i]))
            return false;
    }
    return at == asked->count;
}

/* True if all tokens of `asked` are in the name. */
static bool has_all(const struct tokens *asked, const char *name)
{
    struct tokens tokens;
    tokens_cut(name, &tokens);
    for (size_t i = 0; i < asked->count; i++) {
        size_t j = 0;
        while (j < tokens.count && strcmp(asked->items[i], tokens.items[j]) != 0) j++;
        if (j == tokens.count) return false;
    }
    return asked->count > 0;
}

static void append_name(char *text, size_t size, const char *name)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

/* No GPU has this name: lists those whose names contain all of its tokens, otherwise the most similar names. */
static enum plim_status fail_unknown(const char *name, const struct tokens *asked,
                                     struct plim_error *err)
{
    const char *names[MAX_GPUS];
    size_t count = 0;
    int found = 0;
    char nearest[160] = "";
    for (size_t i = 0; i < catalogue.count; i++) {
        if (found < MAX_NEAREST && has_all(asked, catalogue.gpus[i].name)) {
            append_name(nearest, sizeof(nearest), catalogue.gpus[i].name);
            found++;
        } else {
            names[count++] = catalogue.gpus[i].name;
        }
    }
    for (; found < MAX_NEAREST; found++) {
        int at = plim_nearest(name, names, count);
        if (at < 0) break;
        append_name(nearest, sizeof(nearest), names[at]);
        names[at] = names[--count];
    }
    if (found == 0)
        return plim_fail(err, PLIM_NODEVICE,
                         "no GPU '%.64s' is known; `plimsoll devices` lists all", name);
    return plim_fail(err, PLIM_NODEVICE, "no GPU '%.64s' is known; the nearest: %s", name, nearest);
}

enum plim_status plim_catalogue_find(const char *name, const struct plim_gpu **out,
                                     struct plim_error *err)
{
    struct tokens asked, tokens;
    const struct plim_gpu *fitting = NULL;
    char candidates[400] = "";
    size_t fitting_count = 0;

    *out = NULL;
    enum plim_status st = plim_catalogue_check(err);
    if (st) return st;
    tokens_cut(name, &asked);
    for (size_t i = 0; i < catalogue.count; i++) {
        const struct plim_gpu *gpu = &catalogue.gpus[i];
        if (same_name(name, gpu->name) || same_name(name, gpu->match)) {
            *out = gpu;
            return PLIM_OK;
        }
        tokens_cut(gpu->name, &tokens);
        if (!is_short_form(&asked, &tokens)) continue;
        fitting = gpu;
        fitting_count++;
        append_name(candidates, sizeof(candidates), gpu->name);
    }
    if (fitting_count == 0) return fail_unknown(name, &asked, err);
    if (fitting_count > 1)
        return plim_fail(err, PLIM_NODEVICE, "'%.64s' may be any of %s", name, candidates);
    *out = fitting;
    return PLIM_OK;
}

/* For a link whose bandwidth is given for both directions together. */
static double one_direction(double both_directions)
{
    return 0.8 * both_directions / 2;
}

double plim_gpu_link_bandwidth(const struct plim_gpu *gpu)
{
    return one_direction(gpu->nvlink_bandwidth > 0 ? gpu->nvlink_bandwidth : gpu->pcie_bandwidth);
}

double plim_gpu_host_bandwidth(const struct plim_gpu *gpu)
{
    return one_direction(gpu->pcie_bandwidth);
}
