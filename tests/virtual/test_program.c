/* Placeholders and axes of a user's program. */
#include "autotune/exec/program_question.h"
#include "autotune/exec/user_program.h"
#include "autotune/exec/template.h"
#include "autotune/search/space.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static const struct plim_placeholder words[] = {{"batch", "8"}, {"lr", "0.1"}};

static void expect_expanded(const char *text, const char *expected)
{
    char *out;
    cr_assert(eq(int, plim_template_expand(text, words, 2, &out), 0));
    cr_expect(eq(str, out, (char *)expected));
    free(out);
}

Test(template, only_known_names_are_replaced)
{
    expect_expanded("--b={batch} {lr}{batch}", "--b=8 0.18");
    expect_expanded("{\"batch\": {batch}}", "{\"batch\": 8}");
    expect_expanded("{batc} {batch {} { }} ${lr", "{batc} {batch {} { }} ${lr");
    expect_expanded("", "");
    cr_expect(plim_template_has("x{lr}", "lr") && !plim_template_has("{lr ", "lr"));
}

static void expect_axis(const char *text, const char *joined)
{
    struct plim_axis_values axis = {0};
    char out[256] = "";
    cr_assert(eq(int, plim_axis_values_parse("--axis a", text, &axis, NULL), 0), "%s", text);
    cr_assert(eq(int, plim_axis_values_spread(&axis, "--axis a", NULL), 0));
    for (size_t i = 0; i < axis.values.count; i++) {
        strcat(out, axis.values.items[i]);
        strcat(out, " ");
    }
    cr_expect(eq(str, out, (char *)joined), "%s", text);
    plim_axis_values_finish(&axis);
}

Test(axis_values, lists_and_ranges)
{
    expect_axis("8", "8 ");
    expect_axis("adamw,lion", "adamw lion ");
    expect_axis("2:5", "2 3 4 5 ");
    expect_axis("256:1024:256", "256 512 768 1024 ");
    expect_axis("1:100:x3", "1 3 9 27 81 ");
    expect_axis("7:7", "7 ");
    expect_axis("1:9223372036854775807:9223372036854775806", "1 9223372036854775807 ");
    expect_axis("9223372036854775807:9223372036854775807:x2", "9223372036854775807 ");
}

Test(axis_values, what_is_wrong_is_refused)
{
    static const char *const wrong[] = {"",    ",",    "1,",    "1,1",    "5:2",  "0:4",
                                        "1:x", "1:2:", "1:9:0", "1:9:x1", "a:4", "1:2:3:4",
                                        "1:99999999999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct plim_axis_values axis = {0};
        struct plim_error err = PLIM_ERROR_INIT;
        cr_expect(eq(int, plim_axis_values_parse("--axis a", wrong[i], &axis, &err), PLIM_INVALID),
                  "'%s'", wrong[i]);
        cr_expect(strstr(err.text, "--axis a") != NULL);
        plim_axis_values_finish(&axis);
    }
}

Test(axis_values, a_range_is_not_spread_for_nothing)
{
    struct plim_axis_values axis = {0};
    cr_assert(eq(int, plim_axis_values_parse("--batch", "1:1000000", &axis, NULL), 0));
    cr_expect(axis.is_range && axis.first == 1 && axis.last == 1000000 && !axis.values.count);
    cr_expect(eq(int, plim_axis_values_spread(&axis, "--batch", NULL), PLIM_INVALID), "too many");
    plim_axis_values_finish(&axis);
}

Test(program, combinations_vary_the_last_axis_fastest)
{
    struct plim_program_question q;
    struct plim_space space = {0};
    const struct plim_axes *axes = &q.question.axes;
    char room[PLIM_AXIS_TEXT];
    plim_program_question_init(&q, PLIM_OBJECTIVE_LARGEST_BATCH);
    cr_assert(eq(int, plim_program_question_axis(&q, "--axis a", "a", "x,y", true, NULL), 0));
    cr_assert(eq(int, plim_program_question_axis(&q, "--axis b", "b", "1,2,3", true, NULL), 0));
    cr_expect(eq(sz, plim_program_question_points(&q), 6));
    cr_assert(eq(int, plim_space_build(&space, axes, NULL, 0, NULL), 0));
    const struct plim_setting *points = space.points.items;
    cr_expect(eq(str, (char *)plim_axes_text(axes, &points[2], 0, room), "x"));
    cr_expect(eq(str, (char *)plim_axes_text(axes, &points[2], 1, room), "3"));
    cr_expect(eq(str, (char *)plim_axes_text(axes, &points[3], 0, room), "y"));
    cr_expect(eq(str, (char *)plim_axes_text(axes, &points[3], 1, room), "1"));
    plim_space_finish(&space);
    plim_program_question_finish(&q);
}

Test(program, a_name_is_taken_once)
{
    struct plim_program_question q;
    plim_program_question_init(&q, PLIM_OBJECTIVE_LARGEST_BATCH);
    cr_assert(eq(int, plim_program_question_seq(&q, "512,1024", NULL), 0));
    cr_expect(eq(int, plim_program_question_axis(&q, "a", "seq", "1", true, NULL), PLIM_INVALID));
    cr_expect(eq(int, plim_program_question_axis(&q, "a", "batch", "1", true, NULL), PLIM_INVALID));
    cr_expect(eq(sz, q.question.axes.count, 1));
    plim_program_question_finish(&q);
}

Test(program, more_than_64_batches_may_be_listed)
{
    struct plim_program_question q;
    plim_program_question_init(&q, PLIM_OBJECTIVE_LARGEST_BATCH);
    q.uses_batch = true;
    cr_assert(eq(int, plim_program_question_batch(&q, "2:1024:2", NULL), 0));
    cr_expect(eq(sz, q.question.batch.listed_count, 512));
    cr_expect(eq(i64, q.question.batch.listed[511], 1024));
    plim_program_question_finish(&q);
}

Test(program, more_variables_replace_what_is_there)
{
    char *command[] = {"run", "{batch}", NULL};
    const struct plim_axes axes = {.seq = -1};
    struct plim_program program = {
        .command = command, .variable_count = 1, .variables = {"A={batch}"}, .axes = &axes};
    struct plim_setting setting = {.micro_batch = 4};
    struct plim_program_instance instance = {0};
    const struct plim_program_variable more[] = {{PLIM_VARIABLE_SET, "B", "1:"},
                                                 {PLIM_VARIABLE_TAKEN_OUT, "PATH", NULL}};
    setenv("A", "old", 1);
    cr_assert(eq(int, plim_program_fill(&program, &setting, "/tmp", 1, more, 2, &instance, NULL), 0));
    cr_expect(eq(str, instance.arguments[1], "4"));
    int a = 0, b = 0, path = 0;
    for (char **entry = instance.environment; *entry; entry++) {
        a += !strcmp(*entry, "A=4") + 10 * !strcmp(*entry, "A=old");
        b += !strcmp(*entry, "B=1:");
        path += !strncmp(*entry, "PATH=", 5);
    }
    cr_expect(a == 1 && b == 1 && path == 0);
    plim_program_instance_finish(&instance);
}

Test(program, a_list_of_ours_goes_before_the_programs)
{
    char *command[] = {"run", NULL};
    const struct plim_axes axes = {.seq = -1};
    struct plim_program program = {
        .command = command, .variable_count = 1, .variables = {"LIST=theirs:{batch}"}, .axes = &axes};
    struct plim_setting setting = {.micro_batch = 4};
    struct plim_program_instance instance = {0};
    const struct plim_program_variable more[] = {{PLIM_VARIABLE_PUT_BEFORE, "LIST", "ours"},
                                                 {PLIM_VARIABLE_PUT_BEFORE, "OTHER", "ours"}};
    setenv("LIST", "outer", 1);
    unsetenv("OTHER");
    cr_assert(eq(int, plim_program_fill(&program, &setting, "/tmp", 1, more, 2, &instance, NULL), 0));
    int list = 0, other = 0;
    for (char **entry = instance.environment; *entry; entry++) {
        list += !strncmp(*entry, "LIST=", 5) + !strcmp(*entry, "LIST=ours:theirs:4");
        other += !strncmp(*entry, "OTHER=", 6) + !strcmp(*entry, "OTHER=ours");
    }
    cr_expect(list == 2 && other == 2);
    plim_program_instance_finish(&instance);
}
