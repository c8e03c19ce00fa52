#include "cudnn_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "plan WORKSPACE COUNT", then for each descriptor "d TYPE ATTRIBUTES" and for each of its attributes
 * "a NAME TYPE COUNT VALUE...": numbers of descriptors from 0, or bytes in hexadecimal. */
enum { MOST = 256 };

struct list {
    int count;
    const struct descriptor *items[MOST];
};

static int index_of(const struct list *list, const struct descriptor *d)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i] == d) return i;
    return -1;
}

static void add_all(struct list *list, const struct descriptor *d)
{
    for (int i = 0; i < d->attributes; i++)
        for (int64_t j = 0; j < d->attribute[i].count; j++)
            if (d->attribute[i].type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
                add_all(list, ((struct descriptor **)d->attribute[i].values)[j]);
    if (index_of(list, d) < 0 && list->count < MOST) list->items[list->count++] = d;
}

static void write_attribute(FILE *out, const struct list *list, const struct attribute *a)
{
    fprintf(out, "a %d %d %" PRId64, (int)a->name, (int)a->type, a->count);
    size_t bytes = attribute_size(a->type) * (size_t)a->count;
    if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < a->count; i++)
            fprintf(out, " %d", index_of(list, ((struct descriptor **)a->values)[i]));
    else
        for (size_t i = 0; i < bytes; i++)
            fprintf(out, " %02x", ((const unsigned char *)a->values)[i]);
    fputc('\n', out);
}

char *plan_write(const struct descriptor *plan)
{
    struct list list = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    add_all(&list, plan->graph);
    fprintf(out, "plan %" PRId64 " %d\n", plan->workspace_bytes, list.count);
    for (int i = 0; i < list.count; i++) {
        fprintf(out, "d %d %d\n", (int)list.items[i]->type, list.items[i]->attributes);
        for (int j = 0; j < list.items[i]->attributes; j++)
            write_attribute(out, &list, &list.items[i]->attribute[j]);
    }
    fclose(out);
    return text;
}

static bool read_value(FILE *in, struct descriptor *const made[], int count, struct attribute *a,
                       size_t at)
{
    unsigned byte;
    int index;
    if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        if (fscanf(in, " %2x", &byte) != 1) return false;
        ((unsigned char *)a->values)[at] = (unsigned char)byte;
        return true;
    }
    if (fscanf(in, " %d", &index) != 1 || index < 0 || index >= count) return false;
    ((struct descriptor **)a->values)[at] = made[index];
    descriptor_retain(made[index]);
    return true;
}

static bool read_attribute(FILE *in, struct descriptor *const made[], int count,
                           struct descriptor *d)
{
    int name, type;
    struct attribute a = {0};
    if (fscanf(in, " a %d %d %" SCNd64, &name, &type, &a.count) != 3 || a.count < 1 ||
        a.count > MOST)
        return false;
    a.name = (cudnnBackendAttributeName_t)name;
    a.type = (cudnnBackendAttributeType_t)type;
    bool links = a.type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
    size_t values = links ? (size_t)a.count : attribute_size(a.type) * (size_t)a.count;
    a.values = calloc(values, 8);
    for (size_t i = 0; i < values; i++)
        if (!read_value(in, made, count, &a, i)) abort(); /* a fault of the test's */
    d->attribute[d->attributes++] = a;
    return true;
}

bool plan_read(const char *text, size_t bytes, struct descriptor *plan)
{
    struct descriptor *made[MOST];
    int count = 0, wanted = 0, type, attributes;
    FILE *in = fmemopen((char *)text, bytes, "r");
    bool good = in && fscanf(in, "plan %" SCNd64 " %d", &plan->workspace_bytes, &wanted) == 2 &&
                wanted > 0 && wanted <= MOST;
    while (good && count < wanted) {
        good = fscanf(in, " d %d %d", &type, &attributes) == 2 && attributes <= MAX_ATTRIBUTES;
        if (!good) break;
        struct descriptor *d = descriptor_create((cudnnBackendDescriptorType_t)type);
        for (int i = 0; good && i < attributes; i++) good = read_attribute(in, made, count, d);
        d->finalized = true;
        made[count++] = d;
    }
    if (in) fclose(in);
    for (int i = 0; i < count; i++)
        if (!good || i < count - 1) descriptor_release(made[i]); /* who is linked has an owner */
    if (good) plan->graph = made[count - 1];
    return good;
}
