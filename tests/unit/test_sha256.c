/* The examples of FIPS 180-4, and lengths around those where padding takes another block. */
#include "autotune/base/sha256.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static void expect(const char *text, const char *hash)
{
    char out[PLIM_SHA256_TEXT];
    cr_expect(eq(str, plim_sha256_text(text, strlen(text), out), (char *)hash));
}

Test(sha256, published_examples)
{
    expect("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

Test(sha256, a_million_times_a)
{
    char block[1000], out[PLIM_SHA256_TEXT];
    struct plim_sha256 hash;
    memset(block, 'a', sizeof(block));
    plim_sha256_init(&hash);
    for (int i = 0; i < 1000; i++) plim_sha256_add(&hash, block, sizeof(block));
    cr_expect(eq(str, plim_sha256_finish(&hash, out),
                 (char *)"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

/* Hashes of so many bytes "x" (Python's hashlib). */
Test(sha256, lengths_around_a_block)
{
    static const struct {
        size_t length;
        const char *start;
    } cases[] = {{1, "2d711642b726b044"},  {55, "d5e285683cd4efc0"},  {56, "04c26261370ee754"},
                 {57, "ae14a2563ccf969d"}, {63, "75220b47218278e6"},  {64, "7ce100971f64e700"},
                 {65, "9537c5fdf120482f"}, {119, "000b48d4edf0fa7b"}, {120, "13f05a0b594787f5"},
                 {127, "70156a14adbabf98"}};
    char text[128], out[PLIM_SHA256_TEXT];
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        plim_sha256_text(text, cases[i].length, out);
        cr_expect(eq(int, strncmp(out, cases[i].start, 16), 0), "%zu: %s", cases[i].length, out);
    }
}

Test(sha256, pieces_make_no_difference)
{
    char text[200], whole[PLIM_SHA256_TEXT], out[PLIM_SHA256_TEXT];
    for (size_t i = 0; i < sizeof(text); i++) text[i] = (char)i;
    plim_sha256_text(text, sizeof(text), whole);
    for (size_t cut = 0; cut <= sizeof(text); cut++) {
        struct plim_sha256 hash;
        plim_sha256_init(&hash);
        plim_sha256_add(&hash, text, cut);
        plim_sha256_add(&hash, text + cut, sizeof(text) - cut);
        cr_expect(eq(str, plim_sha256_finish(&hash, out), whole), "%zu", cut);
    }
}
