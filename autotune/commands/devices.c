/* devices: what can be planned for. */
#include "autotune/base/json.h"
#include "autotune/base/text.h"
#include "common.h"
#include "devices/catalogue/catalogue.h"

static void known_rate(struct plim_json *json, json_t *node, const char *key, double value)
{
    if (value > 0) plim_json_number(json, node, key, value);
}

static void add_card(struct plim_json *json, json_t *list, const struct plim_gpu *gpu)
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

static enum plim_status print_json(FILE *out, struct plim_error *err)
{
    struct plim_json json = {0};
    char *text = NULL;
    json_t *root = plim_json_object(&json, NULL, NULL);
    plim_json_text(&json, root, "schema", "plimsoll.devices/1");
    json_t *list = plim_json_array(&json, root, "devices");
    for (size_t i = 0; i < plim_catalogue_count(); i++) add_card(&json, list, plim_catalogue_at(i));
    enum plim_status st = plim_json_write(&json, &text, err);
    if (!st) fputs(text, out);
    free(text);
    plim_json_finish(&json);
    return st;
}

/* A rate in units of 10^exponent; "-" where it is not known. */
static const char *rate_text(double value, double unit, char out[16])
{
    if (value > 0) snprintf(out, 16, value / unit < 100 ? "%.1f" : "%.0f", value / unit);
    else snprintf(out, 16, "-");
    return out;
}

static void print_table(FILE *out)
{
    char memory[16], bandwidth[16], half[16], full[16];
    fprintf(out, "No GPU is used by this build. Simulated cards (--device sim:NAME):\n\n");
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
        "\nAlso sim:24GiB, a plain card of that size; \",memory=20GiB\" may follow any name.\n");
}

static enum plim_status run_devices(const struct plim_request *request, const struct plim_io *io,
                                    struct plim_error *err)
{
    if (request->subject)
        return plim_fail(err, PLIM_INVALID, "devices takes no '%s'", request->subject);
    if (request->json) return print_json(io->out, err);
    print_table(io->out);
    return PLIM_OK;
}

const struct plim_command plim_command_devices = {
    .name = "devices", .verb = PLIM_VERB_DEVICES, .run = run_devices,
    .summary = "what can be planned for: the catalogue of simulated cards",
    .about = "Lists the devices, with their names as --device takes them.\n"};
