/* Recordings packed by xz: the same as the plain text, and of bounded size. */
#include "autotune/base/xz.h"
#include "autotune/base/sha256.h"
#include "workloads/recording/recording.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 1024 };

#define FOUR(text) text text text text

static const char body[] =
    "plimsoll_recording: 3\nname: \"t\"\ncommand: [\"t\", \"{batch}\"" FOUR(FOUR(", \"--again\"")) "]\n"
    "made_by: \"plimsoll\"\n"
    "compute_capability: 80\nallocator: pytorch\nproof: \"\"\nbatch: [1, 2, 4]\nseq: []\naxes: {}\n"
    "micro_steps: one\nstreams:\n- from_batch: 1\n  from_seq: 1\n  sizes:\n  - \"1048576*b\"\n"
    "  launches: []\n  work: []\n  before: [\"a0\"]\n  step: [\"a0 a0 f1 f2\"]\n";

static enum plim_status read_bytes(const void *bytes, size_t count, struct plim_recording *out,
                                   struct plim_error *err)
{
    char path[] = "/tmp/test_recording_packed_XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    close(fd);
    *out = (struct plim_recording){0};
    *err = (struct plim_error)PLIM_ERROR_INIT;
    enum plim_status st = plim_recording_read(path, out, err);
    unlink(path);
    return st;
}

/* The recording of `body`. */
static void read_plain(struct plim_recording *out)
{
    char text[sizeof(body) + 128], sum[PLIM_SHA256_TEXT];
    struct plim_error err;
    plim_sha256_text(body, sizeof(body) - 1, sum);
    int length = snprintf(text, sizeof(text), "%schecksum: %s\n", body, sum);
    cr_assert(eq(int, read_bytes(text, (size_t)length, out, &err), PLIM_OK), "%s", err.text);
}

/* The same as a file: its bytes, and how many. */
static size_t save(char bytes[FILE_BYTES])
{
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char path[] = "/tmp/test_recording_packed_XXXXXX";
    size_t count;
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    read_plain(&recording);
    cr_assert(eq(int, plim_recording_save(&recording, path, &count, &err), PLIM_OK), "%s", err.text);
    plim_recording_finish(&recording);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL);
    cr_assert(eq(sz, fread(bytes, 1, FILE_BYTES, file), count));
    fclose(file);
    unlink(path);
    return count;
}

Test(recording_packed, says_the_same_in_fewer_bytes)
{
    struct plim_recording plain, packed;
    struct plim_error err;
    char bytes[FILE_BYTES], *texts[2];
    size_t count = save(bytes);
    cr_expect(plim_xz_is(bytes, count));
    cr_expect(lt(sz, count, sizeof(body)));
    read_plain(&plain);
    cr_assert(eq(int, read_bytes(bytes, count, &packed, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_recording_write(&plain, &texts[0], &err), PLIM_OK));
    cr_assert(eq(int, plim_recording_write(&packed, &texts[1], &err), PLIM_OK));
    cr_expect(eq(str, texts[1], texts[0]));
    for (int i = 0; i < 2; i++) free(texts[i]);
    plim_recording_finish(&packed);
    plim_recording_finish(&plain);
}

/* xz has a checksum over each of its parts. */
Test(recording_packed, one_that_was_cut_or_changed_is_refused_in_one_line)
{
    struct plim_recording recording;
    struct plim_error err;
    char bytes[FILE_BYTES];
    size_t count = save(bytes);
    for (size_t i = 0; i < count; i++) {
        cr_expect(eq(int, read_bytes(bytes, i, &recording, &err), PLIM_SPEC), "%zu", i);
        cr_expect(err.text[0] && !strchr(err.text, '\n'));
        plim_recording_finish(&recording);
        bytes[i] ^= 4;
        cr_expect(eq(int, read_bytes(bytes, count, &recording, &err), PLIM_SPEC), "%zu", i);
        cr_expect(err.text[0] && !strchr(err.text, '\n'), "%zu", i);
        plim_recording_finish(&recording);
        bytes[i] ^= 4;
    }
}

/* A file with these bytes, whose name does not show its format. */
static bool is_recording(const void *bytes, size_t count)
{
    char path[] = "/tmp/test_recording_packed_XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    close(fd);
    bool is = plim_recording_is(path);
    unlink(path);
    return is;
}

Test(recording_packed, a_file_is_known_for_one_whatever_its_name)
{
    char bytes[FILE_BYTES];
    size_t count = save(bytes);
    cr_expect(is_recording(bytes, count));
    cr_expect(is_recording(body, sizeof(body) - 1));
    cr_expect(not(is_recording("name: \"t\"\nmodel:\n  family: llama\n", 32)));
    cr_expect(not(is_recording(body, 10)));
    cr_expect(plim_recording_is("there/is/none.plim"));
    cr_expect(not(plim_recording_is("/tmp")));
}

/* 64 MiB of spaces in 64 KiB. */
Test(recording_packed, one_of_more_than_a_text_may_have_is_refused)
{
    enum { TEXT_BYTES = 64 << 20 };
    struct plim_recording recording;
    struct plim_error err = PLIM_ERROR_INIT;
    char *text = malloc(TEXT_BYTES), *packed;
    size_t count;
    cr_assert(text != NULL);
    memset(text, ' ', TEXT_BYTES);
    cr_assert(eq(int, plim_xz_pack(text, TEXT_BYTES, &packed, &count, &err), PLIM_OK));
    cr_expect(lt(sz, count, 80000));
    cr_expect(eq(int, read_bytes(packed, count, &recording, &err), PLIM_SPEC));
    cr_expect(strstr(err.text, "unpacks to more than 33554432 bytes") != NULL, "%s", err.text);
    plim_recording_finish(&recording);
    free(packed);
    free(text);
}

/* Merged parts may come to more than a reader takes. */
Test(recording_packed, one_of_more_events_than_are_read_is_not_written)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_recording recording = {0};
    struct plim_recorded_stream streams[2] = {{.events.count = PLIM_RECORDED_EVENTS}, {.events.count = 1}};
    char *text;
    recording.streams.items = streams;
    recording.streams.count = 2;
    cr_expect(eq(int, plim_recording_write(&recording, &text, &err), PLIM_UNSUPPORTED));
    cr_expect(strstr(err.text, "8388609 events") != NULL, "%s", err.text);
}

Test(recording_packed, one_that_could_not_be_read_is_not_written)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_recording recording;
    char path[] = "/tmp/test_recording_packed_XXXXXX";
    size_t count;
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    unlink(path);
    read_plain(&recording);
    recording.streams.items[0].events.items[0].value = 7; /* there is one size */
    cr_expect(eq(int, plim_recording_save(&recording, path, &count, &err), PLIM_SPEC));
    cr_expect(strstr(err.text, "numbers in range") != NULL, "%s", err.text);
    cr_expect(ne(int, access(path, F_OK), 0));
    plim_recording_finish(&recording);
}
