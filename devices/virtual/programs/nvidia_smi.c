/* nvidia-smi for programs under `plimsoll exec`: reports the virtual GPUs in the formats of NVIDIA's own program
 * ("nvidia-smi --help-query-gpu"). It queries the same NVML that the programs themselves find.
 *
 *     nvidia-smi [-i INDEX]                                                          a table
 *     nvidia-smi -L                                                                  a line for each GPU
 *     nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits] [-i INDEX] */
#include "devices/nvml/nvml.h"
#include <stdio.h>
#include <string.h>

enum { TEXT = PLIM_NVML_TEXT };

static struct plim_nvml *nvml;

/* --- fields ----------------------------------------------------------------------------------- */

static void format_index(const struct plim_nvml_gpu *gpu, char *out)
{
    snprintf(out, TEXT, "%d", gpu->index);
}
static void format_count(const struct plim_nvml_gpu *gpu, char *out)
{
    size_t count;
    (void)gpu;
    (void)plim_nvml_gpus(nvml, &count);
    snprintf(out, TEXT, "%zu", count);
}
static void format_name(const struct plim_nvml_gpu *gpu, char *out)
{
    snprintf(out, TEXT, "%s", gpu->name);
}
static void format_uuid(const struct plim_nvml_gpu *gpu, char *out)
{
    snprintf(out, TEXT, "%s", gpu->uuid);
}
static void format_driver(const struct plim_nvml_gpu *gpu, char *out)
{
    (void)gpu;
    snprintf(out, TEXT, "%s", plim_nvml_driver_version(nvml));
}
/* nvidia-smi writes the PCI domain with eight digits, CUDA and Linux with four. */
static void format_bus(const struct plim_nvml_gpu *gpu, char *out)
{
    snprintf(out, TEXT, "0000%s", gpu->bus_id);
}
static void format_capability(const struct plim_nvml_gpu *gpu, char *out)
{
    snprintf(out, TEXT, "%d.%d", gpu->compute_capability / 10, gpu->compute_capability % 10);
}
static void format_mebibytes(int64_t bytes, char *out)
{
    snprintf(out, TEXT, "%lld", (long long)(bytes >> 20));
}
static void format_total(const struct plim_nvml_gpu *gpu, char *out)
{
    format_mebibytes(gpu->memory.total_bytes, out);
}
static void format_used(const struct plim_nvml_gpu *gpu, char *out)
{
    format_mebibytes(gpu->memory.total_bytes - gpu->memory.free_bytes, out);
}
static void format_free(const struct plim_nvml_gpu *gpu, char *out)
{
    format_mebibytes(gpu->memory.free_bytes, out);
}
/* A virtual GPU is never busy. */
static void format_zero(const struct plim_nvml_gpu *gpu, char *out)
{
    (void)gpu;
    snprintf(out, TEXT, "0");
}

static const struct field {
    const char *name, *other_name, *unit;
    void (*write_value)(const struct plim_nvml_gpu *, char *out);
} fields[] = {
    {"index", NULL, "", format_index},
    {"count", NULL, "", format_count},
    {"name", "gpu_name", "", format_name},
    {"uuid", "gpu_uuid", "", format_uuid},
    {"driver_version", NULL, "", format_driver},
    {"pci.bus_id", "gpu_bus_id", "", format_bus},
    {"compute_cap", NULL, "", format_capability},
    {"memory.total", NULL, "MiB", format_total},
    {"memory.used", NULL, "MiB", format_used},
    {"memory.free", NULL, "MiB", format_free},
    {"utilization.gpu", NULL, "%", format_zero},
    {"utilization.memory", NULL, "%", format_zero},
};

/* Returns NULL for unknown fields; they are printed as [N/A], as NVIDIA's program does for fields that a GPU lacks. */
static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (!strcmp(fields[i].name, name) || (fields[i].other_name && !strcmp(fields[i].other_name, name)))
            return &fields[i];
    return NULL;
}

static void write_value(const char *name, const struct plim_nvml_gpu *gpu, bool with_unit, char out[TEXT])
{
    const struct field *field = find_field(name);
    *out = '\0';
    if (field) field->write_value(gpu, out);
    size_t used = strlen(out);
    if (!used) snprintf(out, TEXT, "[N/A]");
    else if (with_unit && *field->unit) snprintf(out + used, TEXT - used, " %s", field->unit);
}

/* --- output ----------------------------------------------------------------------------------- */

struct asked {
    char *query;       /* NULL: no --query-gpu */
    const char *format, *only; /* `only`: an index, a UUID or a bus address; NULL: all */
    bool list;
};

static bool is_asked(const struct asked *asked, const struct plim_nvml_gpu *gpu)
{
    static const char *const ways[] = {"index", "uuid", "pci.bus_id"};
    char text[TEXT];
    bool found = !asked->only;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !found; i++) {
        write_value(ways[i], gpu, false, text);
        found = !strcmp(text, asked->only);
    }
    return found;
}

static void show_line(const struct plim_nvml_gpu *gpu)
{
    char name[TEXT], uuid[TEXT];
    write_value("name", gpu, false, name);
    write_value("uuid", gpu, false, uuid);
    printf("GPU %d: %s (UUID: %s)\n", gpu->index, name, uuid);
}

static void show_fields(char *const *names, size_t count, const struct plim_nvml_gpu *gpu, bool with_unit)
{
    char text[TEXT];
    for (size_t i = 0; i < count; i++) {
        write_value(names[i], gpu, with_unit, text);
        printf("%s%s", i ? ", " : "", text);
    }
    printf("\n");
}

static void show_header(char *const *names, size_t count, bool with_unit)
{
    for (size_t i = 0; i < count; i++) {
        const struct field *field = find_field(names[i]);
        printf("%s%s", i ? ", " : "", names[i]);
        if (with_unit && field && *field->unit) printf(" [%s]", field->unit);
    }
    printf("\n");
}

static void begin_table(void)
{
    const char *driver = plim_nvml_driver_version(nvml);
    int cuda = plim_nvml_cuda_version(nvml);
    printf("NVIDIA-SMI %s    Driver Version: %s    CUDA Version: %d.%d\n(virtual GPUs of plimsoll exec)\n\n", driver,
           driver, cuda / 1000, cuda % 1000 / 10);
}

static void show_row(const struct plim_nvml_gpu *gpu)
{
    char name[TEXT], bus[TEXT], used[TEXT], total[TEXT];
    write_value("name", gpu, false, name);
    write_value("pci.bus_id", gpu, false, bus);
    write_value("memory.used", gpu, true, used);
    write_value("memory.total", gpu, true, total);
    printf("| %2d  %-32s %18s | %12s / %12s |   0%%  Default |\n", gpu->index, name, bus, used, total);
}

/* Splits the text in place into names. Returns how many there are. */
static size_t read_names(char *text, char **names, size_t room)
{
    size_t count = 0;
    for (char *at = text, *rest; at && count < room; at = rest) {
        rest = strchr(at, ',');
        if (rest) *rest++ = '\0';
        while (*at == ' ') at++;
        names[count++] = at;
    }
    return count;
}

static int show(const struct asked *asked)
{
    char *names[64];
    size_t gpus, shown = 0, count = asked->query ? read_names(asked->query, names, 64) : 0;
    const struct plim_nvml_gpu *gpu = plim_nvml_gpus(nvml, &gpus);
    bool plain = asked->format && strstr(asked->format, "noheader");
    bool with_unit = !asked->format || !strstr(asked->format, "nounits");
    if (asked->query && !plain) show_header(names, count, with_unit);
    for (; gpus; gpus--, gpu++) {
        if (!is_asked(asked, gpu)) continue;
        if (!shown++ && !asked->query && !asked->list) begin_table();
        if (asked->query) show_fields(names, count, gpu, with_unit);
        else if (asked->list) show_line(gpu);
        else show_row(gpu);
    }
    if (!shown) printf("No devices were found\n");
    return shown ? 0 : 6; /* as NVIDIA's program */
}

/* Returns the value of an option, written as NAME=VALUE or NAME VALUE; NULL if argv[*i] is another option. */
static char *value_of(const char *name, char **argv, int *i)
{
    size_t length = strlen(name);
    if (!strncmp(argv[*i], name, length) && argv[*i][length] == '=') return argv[*i] + length + 1;
    return !strcmp(argv[*i], name) && argv[*i + 1] ? argv[++*i] : NULL;
}

int main(int argc, char **argv)
{
    struct asked asked = {0};
    for (int i = 1; i < argc; i++) {
        char *value;
        if (!strcmp(argv[i], "-L") || !strcmp(argv[i], "--list-gpus")) asked.list = true;
        else if ((value = value_of("--query-gpu", argv, &i))) asked.query = value;
        else if ((value = value_of("--format", argv, &i))) asked.format = value;
        else if ((value = value_of("-i", argv, &i)) || (value = value_of("--id", argv, &i))) asked.only = value;
        else {
            fprintf(stderr,
                    "nvidia-smi of a virtual GPU: %s is not implemented (-L, -i, --query-gpu and --format are)\n",
                    argv[i]);
            return 2;
        }
    }
    struct plim_error err = PLIM_ERROR_INIT;
    int code;
    if (plim_nvml_open(NULL, &nvml, &code, &err)) {
        fprintf(stderr, "nvidia-smi of a virtual GPU: %s\n", err.text);
        return code;
    }
    int status = show(&asked);
    plim_nvml_close(&nvml);
    return status;
}
