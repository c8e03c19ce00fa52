#include "yaml_write.h"
#include "array.h"
#include <inttypes.h>
#include <stdio.h>
#include <yaml.h>

struct sink {
    PLIM_ARRAY(char) text;
};

static int append(void *user, unsigned char *data, size_t size)
{
    struct sink *sink = user;
    if (PLIM_ARRAY_RESERVE(&sink->text, sink->text.count + size + 1) != PLIM_OK) return 0;
    memcpy(sink->text.items + sink->text.count, data, size);
    sink->text.count += size;
    sink->text.items[sink->text.count] = '\0';
    return 1;
}

/* Emits a scalar. If `plain` is not set, the emitter has to quote it, so that "off" stays text. */
static bool emit_scalar(yaml_emitter_t *emitter, const char *text, bool plain)
{
    yaml_event_t event;
    yaml_scalar_style_t style =
        !plain && strchr(text, '\n') ? YAML_LITERAL_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE;
    return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                        (int)strlen(text), plain, 1, style) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_number(yaml_emitter_t *emitter, const json_t *node)
{
    char text[40];
    if (json_is_integer(node))
        snprintf(text, sizeof(text), "%" PRId64, (int64_t)json_integer_value(node));
    else
        snprintf(text, sizeof(text), "%.12g", json_real_value(node));
    /* YAML 1.1 reads 1e-05 as text: it requires a decimal point. */
    char *exponent = strchr(text, 'e');
    if (exponent && !strchr(text, '.')) {
        memmove(exponent + 2, exponent, strlen(exponent) + 1);
        memcpy(exponent, ".0", 2);
    }
    return emit_scalar(emitter, text, true);
}

static bool emit_node(yaml_emitter_t *emitter, json_t *node);

static bool emit_object(yaml_emitter_t *emitter, json_t *node)
{
    yaml_event_t event;
    yaml_mapping_style_t style =
        json_object_size(node) ? YAML_BLOCK_MAPPING_STYLE : YAML_FLOW_MAPPING_STYLE;
    if (!yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, style) ||
        !yaml_emitter_emit(emitter, &event))
        return false;
    const char *key;
    json_t *value;
    json_object_foreach(node, key, value)
    {
        if (!emit_scalar(emitter, key, true) || !emit_node(emitter, value)) return false;
    }
    return yaml_mapping_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

static bool emit_array(yaml_emitter_t *emitter, json_t *node)
{
    yaml_event_t event;
    yaml_sequence_style_t style =
        json_array_size(node) ? YAML_BLOCK_SEQUENCE_STYLE : YAML_FLOW_SEQUENCE_STYLE;
    if (!yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style) ||
        !yaml_emitter_emit(emitter, &event))
        return false;
    size_t i;
    json_t *value;
    json_array_foreach(node, i, value)
    {
        if (!emit_node(emitter, value)) return false;
    }
    return yaml_sequence_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

static bool emit_node(yaml_emitter_t *emitter, json_t *node)
{
    switch (json_typeof(node)) {
    case JSON_OBJECT:
        return emit_object(emitter, node);
    case JSON_ARRAY:
        return emit_array(emitter, node);
    case JSON_STRING:
        return emit_scalar(emitter, json_string_value(node), false);
    case JSON_INTEGER:
    case JSON_REAL:
        return emit_number(emitter, node);
    case JSON_TRUE:
        return emit_scalar(emitter, "true", true);
    case JSON_FALSE:
        return emit_scalar(emitter, "false", true);
    case JSON_NULL:
        break;
    }
    return emit_scalar(emitter, "null", true);
}

static bool emit_document(yaml_emitter_t *emitter, json_t *root)
{
    yaml_event_t event;
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit_node(emitter, root) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

enum plim_status plim_yaml_write(const struct plim_json *json, char **text, struct plim_error *err)
{
    *text = NULL;
    struct sink sink = {0};
    yaml_emitter_t emitter;
    bool ok = !json->failed && json->root && yaml_emitter_initialize(&emitter);
    if (ok) {
        yaml_emitter_set_output(&emitter, append, &sink);
        yaml_emitter_set_unicode(&emitter, 1);
        yaml_emitter_set_width(&emitter, -1);
        ok = emit_document(&emitter, json->root);
        yaml_emitter_delete(&emitter);
    }
    if (!ok) {
        PLIM_ARRAY_FINISH(&sink.text);
        return plim_fail(err, PLIM_NOMEM, "out of host memory while writing YAML");
    }
    *text = sink.text.items;
    return PLIM_OK;
}
