/* What libraries worked out, kept in a file: found by its whole key, and nothing else believed. */
#include "devices/cuda/memo.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct plim_memo memo;
static FILE *file;

static void set_up(void)
{
    file = tmpfile();
    cr_assert(file != NULL);
    memo = (struct plim_memo){.fd = fileno(file), .gpu = "H100, 90, 132 SMs, driver 13000"};
}

static void tear_down(void)
{
    fclose(file);
}

TestSuite(cuda_memo, .init = set_up, .fini = tear_down);

static const int64_t shape[] = {8, 1024, 768};

static struct plim_memo_question question(void)
{
    return (struct plim_memo_question){
        .kind = "gemm", .version = 130100, .shape = shape, .shape_bytes = sizeof(shape)};
}

static void keep(const char *text)
{
    const struct plim_memo_question q = question();
    plim_memo_store(&memo, &q, text, strlen(text));
}

/* "": nothing is found. */
static const char *find(const struct plim_memo_question *q)
{
    static char text[64];
    struct plim_memo_answer answer;
    text[0] = '\0';
    if (!plim_memo_find(&memo, q, &answer)) return text;
    snprintf(text, sizeof(text), "%.*s", (int)answer.size, (char *)answer.bytes);
    plim_memo_release(&memo, &answer);
    return text;
}

static const char *found(void)
{
    const struct plim_memo_question q = question();
    return find(&q);
}

Test(cuda_memo, the_last_answer_is_found_as_often_as_it_is_asked_for)
{
    cr_expect(eq(str, (char *)found(), (char *)""));
    keep("algorithm 7");
    cr_expect(eq(str, (char *)found(), (char *)"algorithm 7"));
    keep("9");
    cr_expect(eq(str, (char *)found(), (char *)"9"));
    cr_expect(eq(str, (char *)found(), (char *)"9"));
}

Test(cuda_memo, another_key_is_another_question)
{
    int64_t other_shape[] = {8, 1024, 769};
    struct plim_memo_question q = question();
    keep("7");
    q.version = 130101;
    cr_expect(eq(str, (char *)find(&q), (char *)""));
    q = question();
    q.kind = "attention";
    cr_expect(eq(str, (char *)find(&q), (char *)""));
    q = question();
    q.shape = other_shape;
    cr_expect(eq(str, (char *)find(&q), (char *)""));
    q = question();
    q.shape_bytes -= sizeof(int64_t);
    cr_expect(eq(str, (char *)find(&q), (char *)""));
    strcpy(memo.gpu, "H100, 90, 132 SMs, driver 13010");
    cr_expect(eq(str, (char *)found(), (char *)""));
}

Test(cuda_memo, without_a_file_nothing_is_kept)
{
    const struct plim_memo_question q = question();
    struct plim_memo_answer answer;
    memo.fd = -1;
    keep("7");
    cr_expect(eq(str, (char *)found(), (char *)""));
    plim_memo_store(NULL, &q, "7", 1);
    cr_expect(not(plim_memo_find(NULL, &q, &answer)));
}

/* A process that ends between the two: what it was using may be what ended it. */
Test(cuda_memo, what_was_in_use_when_a_process_ended_is_not_found_again)
{
    const struct plim_memo_question q = question();
    struct plim_memo_answer answer;
    keep("poison");
    cr_assert(plim_memo_find(&memo, &q, &answer));
    cr_expect(eq(str, (char *)found(), (char *)""));
    keep("made anew");
    cr_expect(eq(str, (char *)found(), (char *)"made anew"));
    plim_memo_release(&memo, &answer);
}

Test(cuda_memo, a_writer_that_is_killed_leaves_nothing)
{
    keep("whole");
    off_t end = lseek(memo.fd, 0, SEEK_END);
    struct plim_memo_question q = question();
    q.version = 1;
    plim_memo_store(&memo, &q, "cut short", 9);
    for (off_t left = lseek(memo.fd, 0, SEEK_END) - 1; left > end; left--) {
        cr_assert(zero(int, ftruncate(memo.fd, left)));
        cr_expect(eq(str, (char *)find(&q), (char *)""), "%d bytes", (int)left);
        cr_expect(eq(str, (char *)found(), (char *)"whole"));
    }
    plim_memo_store(&memo, &q, "again", 5);
    cr_expect(eq(str, (char *)find(&q), (char *)"again"));
}

Test(cuda_memo, one_changed_byte_is_a_miss_or_no_matter)
{
    unsigned char byte, other;
    keep("the first answer");
    keep("the second answer");
    off_t size = lseek(memo.fd, 0, SEEK_END);
    int misses = 0;
    for (off_t at = 0; at < size; at++) {
        cr_assert(eq(int, (int)pread(memo.fd, &byte, 1, at), 1));
        other = byte ^ 0x15;
        cr_assert(eq(int, (int)pwrite(memo.fd, &other, 1, at), 1));
        const char *text = found();
        bool missed = *text == '\0', first = strcmp(text, "the first answer") == 0;
        bool good = missed || first || strcmp(text, "the second answer") == 0;
        misses += missed;
        cr_expect(good, "byte %d: %s", (int)at, text);
        cr_assert(eq(int, (int)pwrite(memo.fd, &byte, 1, at), 1));
    }
    cr_expect(lt(int, 20, misses));
    cr_expect(eq(str, (char *)found(), (char *)"the second answer"));
}
