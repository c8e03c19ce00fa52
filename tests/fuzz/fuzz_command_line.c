/* The arguments of a command line, one per line; the first byte selects the command. */
#include "target.h"
#include "autotune/cli/options.h"
#include <string.h>

enum { MOST_WORDS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_request request;
    char *words[MOST_WORDS + 1] = {NULL};
    int count = 0;
    if (!size) return 0;
    char *text = fuzz_text(data + 1, size - 1), *rest = NULL;
    for (char *word = strtok_r(text, "\n", &rest); word && count < MOST_WORDS;
         word = strtok_r(NULL, "\n", &rest))
        words[count++] = word;
    memset(&request, 0, sizeof(request));
    enum plim_status st =
        plim_options_parse(count, words, data[0] % PLIM_COMMAND_COUNT, &request, &err);
    fuzz_expect(!st == !err.text[0]);
    free(text);
    return 0;
}
