/* exec on a real driver, for which the stand-ins of tests/doubles stand: the program is plimsoll
 * itself, which trains a tiny model there and knows what it takes. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define BINARY "'" PLIM_BINARY "'"
#define WITH_GPU "'" PLIM_WITH_STAND_INS "' --build '" PLIM_BUILD_FOLDER "' --memory 2GiB -- "
#define EXPLAIN BINARY " explain tiny-gpt2 --device cuda:0 --checkpointing none --seq 32 "

/* The JSON that a shell command prints. */
static json_t *run(const char *command, int exit_code)
{
    char line[2048];
    snprintf(line, sizeof(line), "%s 2>/dev/null", command);
    FILE *pipe = popen(line, "r");
    cr_assert(pipe != NULL);
    json_t *root = json_loadf(pipe, 0, NULL);
    int status = pclose(pipe);
    cr_assert(eq(int, WEXITSTATUS(status), exit_code), "%s", command);
    cr_assert(root != NULL, "%s", command);
    return root;
}

static json_int_t number(json_t *root, const char *first, const char *second, const char *third)
{
    json_t *node = json_object_get(root, first);
    if (second) node = json_object_get(node, second);
    if (third) node = json_object_get(node, third);
    return json_integer_value(node);
}

Test(observe, what_the_driver_gave_is_seen)
{
    json_t *told = run(WITH_GPU EXPLAIN "--batch 8 --json", 0);
    json_t *seen = run(WITH_GPU BINARY " exec --observe --device cuda:0 --json -- " EXPLAIN
                                             "--batch 8", 0);
    cr_expect(eq(i64, number(seen, "choice", "peak", "reserved_bytes"),
                 number(told, "peak", "reserved_bytes", NULL)));
    cr_expect(eq(i64, number(seen, "device", "total_bytes", NULL), INT64_C(2) << 30));
    json_decref(told);
    json_decref(seen);
}

Test(observe, a_smaller_gpu_refuses_what_the_real_one_has)
{
    /* 610 MiB are the context's; the smallest batch takes 24. */
    json_t *root = run(WITH_GPU BINARY " exec --device cuda:0,memory=632MiB --margin 0 "
                                             "--batch 1,2 --json -- " EXPLAIN "--batch {batch}", 1);
    json_t *samples = json_object_get(root, "samples");
    cr_expect(eq(int, json_is_null(json_object_get(root, "choice")), 1));
    cr_assert(lt(sz, 0, json_array_size(samples)));
    for (size_t i = 0; i < json_array_size(samples); i++) {
        json_t *verdict = json_object_get(json_array_get(samples, i), "verdict");
        cr_expect(eq(str, (char *)json_string_value(verdict), "oom"));
    }
    json_decref(root);
    root = run(WITH_GPU BINARY " exec --device cuda:0,memory=700MiB --margin 0 --batch 1,2 "
                                     "--json -- " EXPLAIN "--batch {batch}", 0);
    cr_expect(eq(i64, number(root, "largest_fit", "micro_batch", NULL), 2));
    json_decref(root);
}
