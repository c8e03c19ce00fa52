/* A file of the store, with the checksum that its bytes have: damage that a checksum cannot see. */
#include "target.h"
#include "autotune/base/sha256.h"
#include "autotune/store/entry.h"
#include <stdio.h>
#include <string.h>

static void read_answers(const struct plim_store_entry *entry)
{
    struct plim_error err = PLIM_ERROR_INIT;
    for (size_t i = 0; i < entry->answers.count; i++) {
        static struct plim_result result;
        memset(&result, 0, sizeof(result));
        (void)!plim_store_answer_result(&entry->answers.items[i], &result, &err);
        plim_result_finish(&result);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_store_entry entry = {0};
    char hash[PLIM_SHA256_TEXT], name[PLIM_STORE_NAME];
    char *text = malloc(size + 128);
    fuzz_expect(text != NULL);
    memcpy(text, data, size);
    plim_sha256_text(text, size, hash);
    int end = snprintf(text + size, 128, "checksum: sha256:%s\n", hash);
    size_t length = size + (size_t)end;
    text[length] = '\0';
    /* Twice: only when its key is read it is known what its name has to be. */
    if (plim_store_entry_parse("x", text, length, &entry, &err) != PLIM_OK && entry.key.list.count) {
        plim_store_name(&entry.key, name);
        plim_store_entry_finish(&entry);
        entry = (struct plim_store_entry){0};
        if (plim_store_entry_parse(name, text, length, &entry, &err) == PLIM_OK)
            read_answers(&entry);
    }
    plim_store_entry_finish(&entry);
    free(text);
    return 0;
}
