/* The help of topics that are not commands: the keys of a spec, and those of a family's models. */
#include "command.h"
#include "workloads/spec/key_doc.h"
#include <string.h>

const char plim_help_spec[] =
    "A spec is a YAML file that says what is trained and how:\n"
    "\n"
    "  name: my-llama\n"
    "  model:\n"
    "    family: llama          # or hf: path/to/config.json, or zoo: llama-3.2-1b\n"
    "    hidden_size: 2048\n"
    "    num_hidden_layers: 22\n"
    "  data:\n"
    "    seq: [1024, 2048]      # a list is searched\n"
    "  train:\n"
    "    precision: bf16-mixed\n"
    "    checkpointing: [none, full]\n"
    "    effective_batch: 256\n"
    "\n"
    "Each key can be set on the command line, too: --set train.clip=1.0,\n"
    "--set data.seq=512,1024, --set model.num_hidden_layers=12. 'plimsoll help KEY'\n"
    "describes a key (train.clip) or a section (train.zero); the keys of model are\n"
    "those of the family's config.json: 'plimsoll help model' lists the families.\n";

static void print_key(const struct plim_key_doc *doc, FILE *out)
{
    char value[PLIM_KEY_DOC_VALUE], text[PLIM_KEY_DOC_VALUE + 2];
    plim_key_doc_describe(doc, value, sizeof(value));
    snprintf(text, sizeof(text), "(%s)", value);
    plim_help_print_wrapped(out, fprintf(out, "  %s", doc->name), doc->help);
    plim_help_print_wrapped(out, 0, text);
}

/* True if `path` is the key `topic`, or in the section of this name. `topic` NULL: always true. */
static bool is_about(const char *path, const char *topic)
{
    size_t length = topic ? strlen(topic) : 0;
    return !topic || (strncmp(path, topic, length) == 0 && (!path[length] || path[length] == '.'));
}

/* Prints the keys of a topic. false: there are none. */
static bool print_keys(const char *topic, FILE *out)
{
    bool is_known = false;
    for (size_t i = 0; i < plim_key_doc_count(); i++) {
        struct plim_key_doc doc;
        plim_key_doc_at(i, &doc);
        if (!is_about(doc.name, topic)) continue;
        print_key(&doc, out);
        is_known = true;
    }
    return is_known;
}

static void print_family(enum plim_family family, FILE *out)
{
    struct plim_key_doc doc;
    fprintf(out, "The keys of model for the family %s, with the names and defaults of its\n"
                 "config.json; those of published models are in 'plimsoll models'.\n\n", plim_family_names[family]);
    for (size_t i = 0; plim_key_doc_of_family(family, i, &doc); i++) print_key(&doc, out);
}

static void print_families(FILE *out)
{
    char names[PLIM_FAMILY_COUNT * 32];
    size_t used = 0;
    static const struct {
        const char *name, *help;
    } origins[] = {
        {"model.family", "one of the families below, transformers' model_type; keys that are not given have the "
                         "class's defaults"},
        {"model.hf", "a config.json, or a folder with one, relative to the spec, or a name in the Hub"},
        {"model.zoo", "a name of plimsoll models: that spec's model, without its training settings"},
    };
    fputs("A model has one of three origins, and keys of its family override what it says:\n\n", out);
    for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
        plim_help_print_wrapped(out, fprintf(out, "  %s", origins[i].name), origins[i].help);
    for (int f = 0; f < PLIM_FAMILY_COUNT; f++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%.30s", f ? " " : "", plim_family_names[f]);
    plim_help_print_wrapped(out, fprintf(out, "  families"), names);
    fputs("\n'plimsoll help FAMILY' lists the keys of one.\n", out);
}

bool plim_help_print_topic(const char *topic, FILE *out)
{
    enum plim_family family = plim_family_named(topic);
    if (!strcmp(topic, "spec")) {
        fprintf(out, "%s\n", plim_help_spec);
        print_keys(NULL, out);
    } else if (!strcmp(topic, "model")) {
        print_families(out);
    } else if (family < PLIM_FAMILY_COUNT) {
        print_family(family, out);
    } else {
        return print_keys(topic, out);
    }
    return true;
}

const char *plim_help_topic(size_t index)
{
    static const char *const others[] = {"spec", "model"};
    struct plim_key_doc doc;
    if (index < 2) return others[index];
    index -= 2;
    if (index < PLIM_FAMILY_COUNT) return plim_family_names[index];
    index -= PLIM_FAMILY_COUNT;
    if (index >= plim_key_doc_count()) return NULL;
    plim_key_doc_at(index, &doc);
    return doc.name;
}
