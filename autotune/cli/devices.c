/* devices: lists the GPUs of this machine and of the catalogue. */
#include "autotune/base/json.h"
#include "autotune/base/text.h"
#include "autotune/run/target.h"
#include "common.h"
#include "devices/nvml/visible.h"

/* --- the GPUs of this machine ----------------------------------------------------------------- */

struct machine {
    struct plim_nvml *nvml; /* NULL: NVML is not available */
    struct plim_visible_world world;
    struct plim_visible visible;
    char problem[PLIM_ERROR_TEXT]; /* why no GPU can be used, or a problem of the first; "": none */
};

static enum plim_status find_gpus(struct machine *machine, struct plim_error *err)
{
    struct plim_target target;
    struct plim_error absent = PLIM_ERROR_INIT;
    const struct plim_target_place place = plim_target_local();
    *machine = (struct machine){.world = {.visible_devices = place.visible_devices,
                                          .device_order = place.device_order}};
    enum plim_status opened = plim_target_open(&place, &machine->nvml, &absent);
    if (opened == PLIM_NOMEM) return plim_fail(err, opened, "%s", absent.text);
    if (opened) {
        snprintf(machine->problem, sizeof(machine->problem), "%s", absent.text);
        return PLIM_OK;
    }
    machine->world.gpus = plim_nvml_gpus(machine->nvml, &machine->world.count);
    plim_visible_list(&machine->world, &machine->visible);
    enum plim_status st = plim_target_resolve_at(&place, "auto", &target, err);
    if (!st) snprintf(machine->problem, sizeof(machine->problem), "%s", target.note);
    return st;
}

/* Returns CUDA's number of a GPU or MIG instance; -1 if CUDA does not show it. */
static int ordinal(const struct machine *machine, int gpu, int instance)
{
    for (size_t i = 0; i < machine->visible.count; i++)
        if (machine->visible.devices[i].gpu == gpu &&
            machine->visible.devices[i].instance == instance)
            return (int)i;
    return -1;
}

/* Writes the CUDA version of the driver, such as "13.0"; "" if not known. */
static void cuda_text(const struct machine *machine, char out[16])
{
    int version = plim_nvml_cuda_version(machine->nvml);
    out[0] = '\0';
    if (version > 0) snprintf(out, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

static const char *mode_name(enum plim_compute_mode mode)
{
    static const char *const names[] = {"default", "exclusive thread", "prohibited",
                                        "exclusive process"};
    return (size_t)mode < sizeof(names) / sizeof(names[0]) ? names[mode] : "unknown";
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void known_bytes(struct plim_json *json, json_t *node, const char *key, int64_t value)
{
    plim_json_int(json, node, key, value < 0 ? PLIM_JSON_ABSENT : value);
}

static void known_text(struct plim_json *json, json_t *node, const char *key, const char *text)
{
    plim_json_text(json, node, key, *text ? text : NULL);
}

static void add_place(struct plim_json *json, json_t *node, const struct machine *machine, int gpu,
                      int instance, const char *uuid, const struct plim_nvml_memory *memory)
{
    char uri[PLIM_NVML_TEXT + 8] = "";
    if (*uuid) snprintf(uri, sizeof(uri), "cuda:%s", uuid);
    known_text(json, node, "uri", uri);
    known_bytes(json, node, "ordinal", ordinal(machine, gpu, instance));
    known_text(json, node, "uuid", uuid);
    known_bytes(json, node, "memory_bytes", memory->total_bytes);
    known_bytes(json, node, "reserved_bytes", memory->reserved_bytes);
    known_bytes(json, node, "held_bytes", memory->held_bytes);
    known_bytes(json, node, "free_bytes", memory->free_bytes);
}

static void add_processes(struct plim_json *json, json_t *node, const struct machine *machine,
                          const char *uuid)
{
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES];
    size_t count;
    if (plim_nvml_processes(machine->nvml, uuid, processes, &count, NULL)) return;
    json_t *list = plim_json_array(json, node, "processes");
    for (size_t i = 0; i < count && i < PLIM_NVML_PROCESSES; i++) {
        json_t *entry = plim_json_object(json, list, NULL);
        plim_json_int(json, entry, "pid", processes[i].pid);
        known_bytes(json, entry, "held_bytes", processes[i].held_bytes);
    }
}

static void add_gpu(struct plim_json *json, json_t *list, const struct machine *machine, int at)
{
    const struct plim_nvml_gpu *gpu = &machine->world.gpus[at];
    const struct plim_gpu *known = plim_target_known(gpu);
    json_t *node = plim_json_object(json, list, NULL);
    known_text(json, node, "name", gpu->name);
    known_text(json, node, "problem", gpu->problem);
    plim_json_int(json, node, "index", gpu->index);
    if (gpu->status) return;
    add_place(json, node, machine, at, -1, gpu->uuid, &gpu->memory);
    known_text(json, node, "bus_id", gpu->bus_id);
    plim_json_text(json, node, "catalogue", known ? known->name : NULL);
    plim_json_int(json, node, "compute_capability", gpu->compute_capability);
    plim_json_text(json, node, "compute_mode", mode_name(gpu->compute_mode));
    plim_json_bool(json, node, "display_active", gpu->display_active);
    plim_json_bool(json, node, "persistence", gpu->persistence);
    plim_json_bool(json, node, "mig", gpu->mig);
    if (!gpu->mig) {
        add_processes(json, node, machine, gpu->uuid);
        return;
    }
    json_t *instances = plim_json_array(json, node, "instances");
    for (int i = 0; i < (int)gpu->instance_count; i++) {
        const struct plim_nvml_instance *instance = &gpu->instances[i];
        json_t *entry = plim_json_object(json, instances, NULL);
        add_place(json, entry, machine, at, i, instance->uuid, &instance->memory);
        known_bytes(json, entry, "multiprocessors", instance->multiprocessors);
        add_processes(json, entry, machine, instance->uuid);
    }
}

static void add_machine(struct plim_json *json, json_t *root, const struct machine *machine)
{
    char cuda[16];
    json_t *node = plim_json_object(json, root, "machine");
    known_text(json, node, "problem", machine->problem);
    json_t *list = plim_json_array(json, node, "gpus");
    if (!machine->nvml) return;
    cuda_text(machine, cuda);
    known_text(json, node, "driver", plim_nvml_driver_version(machine->nvml));
    known_text(json, node, "cuda", cuda);
    for (int i = 0; i < (int)machine->world.count; i++) add_gpu(json, list, machine, i);
}

/* Adds a rate if it is known. */
static void known_rate(struct plim_json *json, json_t *node, const char *key, double value)
{
    if (value > 0) plim_json_number(json, node, key, value);
}

static void add_model(struct plim_json *json, json_t *list, const struct plim_gpu *gpu)
{
    char uri[64];
    json_t *node = plim_json_object(json, list, NULL);
    snprintf(uri, sizeof(uri), "sim:%s", gpu->name);
    plim_json_text(json, node, "name", gpu->name);
    plim_json_text(json, node, "uri", uri);
    plim_json_bool(json, node, "simulated", true);
    plim_json_int(json, node, "total_bytes", gpu->total_bytes);
    plim_json_int(json, node, "compute_capability", gpu->compute_capability);
    plim_json_int(json, node, "multiprocessors", gpu->multiprocessors);
    known_rate(json, node, "bandwidth_bytes_per_second", gpu->bandwidth);
    known_rate(json, node, "fp32_flops", gpu->fp32);
    known_rate(json, node, "tf32_flops", gpu->tf32);
    known_rate(json, node, "fp16_flops", gpu->fp16);
    known_rate(json, node, "bf16_flops", gpu->bf16);
    known_rate(json, node, "fp8_flops", gpu->fp8);
}

static enum plim_status print_json(const struct machine *machine, FILE *out, struct plim_error *err)
{
    struct plim_json json = {0};
    char *text = NULL;
    json_t *root = plim_json_object(&json, NULL, NULL);
    plim_json_text(&json, root, "schema", "plimsoll.devices/1");
    add_machine(&json, root, machine);
    json_t *list = plim_json_array(&json, root, "devices");
    for (size_t i = 0; i < plim_catalogue_count(); i++)
        add_model(&json, list, plim_catalogue_at(i));
    enum plim_status st = plim_json_write(&json, &text, err);
    if (!st) fputs(text, out);
    free(text);
    plim_json_finish(&json);
    return st;
}

/* --- text ------------------------------------------------------------------------------------- */

enum { WIDTH = 80 };

/* Prints a text in lines broken at blanks; all but the first are indented. */
static void print_wrapped(FILE *out, int indent, const char *from)
{
    char shown[1024], *text = plim_text_show(from, shown, sizeof(shown));
    while ((int)strlen(text) > WIDTH - indent) {
        int cut = WIDTH - indent;
        while (cut > 1 && text[cut] != ' ') cut--;
        fprintf(out, "%.*s\n%*s", cut, text, indent, "");
        text += cut + (text[cut] == ' ');
    }
    fprintf(out, "%s\n", text);
}

static void memory_text(const struct plim_nvml_memory *memory, char *out, size_t size)
{
    char total[16], held[16];
    if (memory->total_bytes < 0) snprintf(out, size, "memory not known");
    else if (memory->held_bytes <= 0)
        snprintf(out, size, "%s", plim_format_bytes(memory->total_bytes, total));
    else
        snprintf(out, size, "%s, of which %s are held",
                 plim_format_bytes(memory->total_bytes, total),
                 plim_format_bytes(memory->held_bytes, held));
}

static void print_processes(const struct machine *machine, const char *uuid, FILE *out)
{
    struct plim_nvml_process processes[PLIM_NVML_PROCESSES];
    size_t count;
    char bytes[16];
    if (plim_nvml_processes(machine->nvml, uuid, processes, &count, NULL)) return;
    for (size_t i = 0; i < count && i < PLIM_NVML_PROCESSES; i++)
        fprintf(out, "%10sprocess %lld%s%s\n", "", (long long)processes[i].pid,
                processes[i].held_bytes < 0 ? "" : " holds ",
                processes[i].held_bytes < 0 ? ""
                                            : plim_format_bytes(processes[i].held_bytes, bytes));
    if (count > PLIM_NVML_PROCESSES)
        fprintf(out, "%10sand %zu more processes\n", "", count - PLIM_NVML_PROCESSES);
}

static void print_number(const struct machine *machine, int gpu, int instance, FILE *out)
{
    char name[16];
    int number = ordinal(machine, gpu, instance);
    snprintf(name, sizeof(name), "cuda:%d", number);
    fprintf(out, "%-10s", number < 0 ? instance < 0 ? "not shown" : "" : name);
}

static void print_instances(const struct machine *machine, int at, FILE *out)
{
    const struct plim_nvml_gpu *gpu = &machine->world.gpus[at];
    char memory[64];
    if (!gpu->instance_count)
        fprintf(out, "%10sin MIG mode without an instance: `nvidia-smi mig -cgi 0 -C`\n", "");
    for (int i = 0; i < (int)gpu->instance_count; i++) {
        memory_text(&gpu->instances[i].memory, memory, sizeof(memory));
        print_number(machine, at, i, out);
        fprintf(out, "%s\n%12s%s", gpu->instances[i].uuid, "", memory);
        if (gpu->instances[i].multiprocessors > 0)
            fprintf(out, ", %d SMs", gpu->instances[i].multiprocessors);
        fputc('\n', out);
        print_processes(machine, gpu->instances[i].uuid, out);
    }
}

static void print_gpu(const struct machine *machine, int at, FILE *out)
{
    const struct plim_nvml_gpu *gpu = &machine->world.gpus[at];
    const struct plim_gpu *known = plim_target_known(gpu);
    char memory[64], line[512], name[128];
    if (gpu->status) {
        snprintf(line, sizeof(line), "GPU %-5d %s", gpu->index, gpu->problem);
        print_wrapped(out, 10, line);
        return;
    }
    memory_text(&gpu->memory, memory, sizeof(memory));
    print_number(machine, at, -1, out);
    plim_text_show(gpu->name, name, sizeof(name));
    fprintf(out, "%.66s\n%10s%s, cc %d.%d, %s\n", name, "", memory,
            gpu->compute_capability / 10, gpu->compute_capability % 10,
            known ? known->name : "not in the catalogue");
    fprintf(out, "%10s%s, PCI %s\n", "", gpu->uuid, gpu->bus_id);
    if (gpu->compute_mode != PLIM_COMPUTE_DEFAULT)
        fprintf(out, "%10scompute mode: %s\n", "", mode_name(gpu->compute_mode));
    if (gpu->mig) print_instances(machine, at, out);
    else print_processes(machine, gpu->uuid, out);
}

static void print_machine(const struct machine *machine, FILE *out)
{
    char cuda[16];
    if (machine->problem[0]) print_wrapped(out, 0, machine->problem);
    if (!machine->world.count) return;
    cuda_text(machine, cuda);
    fprintf(out, "%sGPUs of this machine (driver %s%s%s):\n\n", machine->problem[0] ? "\n" : "",
            plim_nvml_driver_version(machine->nvml), *cuda ? ", CUDA " : "", cuda);
    for (int i = 0; i < (int)machine->world.count; i++) print_gpu(machine, i, out);
    if (machine->visible.guessed && machine->visible.count > 1)
        print_wrapped(out, 0,
                      "The GPUs differ, and CUDA's order of them is a guess: use the UUIDs, or set "
                      "CUDA_DEVICE_ORDER=PCI_BUS_ID.");
}

/* Formats a rate in multiples of `unit`; "-" if not known. */
static const char *rate_text(double value, double unit, char out[16])
{
    if (value > 0) snprintf(out, 16, value / unit < 100 ? "%.1f" : "%.0f", value / unit);
    else snprintf(out, 16, "-");
    return out;
}

static void print_table(FILE *out)
{
    char memory[16], bandwidth[16], half[16], full[16];
    fprintf(out, "\nSimulated GPUs (--device sim:NAME):\n\n");
    fprintf(out, "%-24s %9s %5s %5s %9s %11s %8s\n", "name", "memory", "cc", "SMs", "GB/s",
            "16-bit TF/s", "fp32");
    for (size_t i = 0; i < plim_catalogue_count(); i++) {
        const struct plim_gpu *gpu = plim_catalogue_at(i);
        fprintf(out, "%-24s %9s %3d.%d %5d %9s %11s %8s\n", gpu->name,
                plim_format_bytes(gpu->total_bytes, memory), gpu->compute_capability / 10,
                gpu->compute_capability % 10, gpu->multiprocessors,
                rate_text(gpu->bandwidth, 1e9, bandwidth),
                rate_text(gpu->bf16 > 0 ? gpu->bf16 : gpu->fp16, 1e12, half),
                rate_text(gpu->fp32, 1e12, full));
    }
    fprintf(
        out,
        "\nAlso sim:24GiB, a plain GPU of that size; \",memory=20GiB\" may follow any name,\n"
        "and \",placement=ascending\": memory lies in the order in which it is asked\n"
        "for, as in the golden runs, and not where the driver places it.\n");
}

static enum plim_status run_devices(const struct plim_request *request, const struct plim_io *io,
                                    struct plim_error *err)
{
    struct machine machine;
    enum plim_status st = plim_catalogue_check(err);
    if (st) return st;
    st = find_gpus(&machine, err);
    if (!st && request->json) st = print_json(&machine, io->out, err);
    if (!st && !request->json) {
        print_machine(&machine, io->out);
        print_table(io->out);
    }
    plim_nvml_close(&machine.nvml);
    return st;
}

const struct plim_command plim_command_devices = {
    .name = "devices", .id = PLIM_COMMAND_DEVICES, .run = run_devices,
    .summary = "the GPUs of this machine, and those that can be simulated",
    .about = "Lists the devices, with their names as --device takes them.\n"};
