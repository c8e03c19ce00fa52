/* Answers that are kept: what is found again, what is not, and what stays of a file that is not
 * right. */
#define _DEFAULT_SOURCE /* usleep, mkdtemp */
#include "autotune/store/answer_store.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/plimsoll-store-XXXXXX";
static char site[64], users[64];
static struct plim_store store;
static char warned[2048];
static int warnings;

static void note(void *user, enum plim_log_level level, const char *text)
{
    (void)user;
    if (level != PLIM_LOG_WARNING) return;
    snprintf(warned, sizeof(warned), "%s", text);
    warnings++;
}

static const struct plim_log log_noting = {.level = PLIM_LOG_INFO, .write = note};

static void set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(users, sizeof(users), "%s/users", folder);
    snprintf(site, sizeof(site), "%s/site", folder);
    setenv("PLIMSOLL_STORE", users, 1);
    plim_store_init(&store, site, false, &log_noting);
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_expect(eq(int, system(command), 0));
}

TestSuite(store, .init = set_up, .fini = tear_down);

/* --- questions and answers -------------------------------------------------------------------- */

static struct plim_store_question question_of(const char *spec, const char *library,
                                              const char *driver)
{
    struct plim_store_question q = {0};
    plim_facts_add(&q.key, "spec", spec);
    plim_facts_add(&q.key, "usable_bytes", "100");
    plim_facts_add(&q.fits, "libraries", library);
    plim_facts_add(&q.fast, "driver", driver);
    return q;
}

static struct plim_report report_of(int64_t batch)
{
    struct plim_report report = {.version = "1"};
    struct plim_result result = {.objective = "throughput"};
    result.choice =
        (struct plim_result_choice){.present = true,
                                    .setting = {.micro_batch = batch, .accumulation = 1},
                                    .verified = true,
                                    .step_seconds = 0.125};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&report.results, result), PLIM_OK));
    return report;
}

static void keep_as(int64_t batch, const char *spec, const char *library, const char *driver,
                    bool interrupted)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_store_question q = question_of(spec, library, driver);
    struct plim_report report = report_of(batch);
    report.results.items[0].interrupted = interrupted;
    cr_assert(eq(int, plim_store_write(&store, &q, &report, &err), PLIM_OK), "%s", err.text);
    plim_report_finish(&report);
    plim_store_question_finish(&q);
}

static void keep(int64_t batch, const char *spec, const char *library, const char *driver)
{
    keep_as(batch, spec, library, driver, false);
}

/* The micro-batch that is found; 0: none. */
static int64_t found(const char *spec, const char *library, const char *driver,
                     enum plim_store_state wanted, const char *why)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_store_found f;
    struct plim_store_question q = question_of(spec, library, driver);
    cr_assert(eq(int, plim_store_find(&store, &q, &f, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(int, f.state, wanted), "%s", f.why);
    cr_expect(strstr(f.why, why) != NULL, "'%s' is not in '%s'", why, f.why);
    int64_t batch = f.result.choice.setting.micro_batch;
    plim_store_found_finish(&f);
    plim_store_question_finish(&q);
    return batch;
}

/* The file of a spec, in a store. */
static char *file_of(const char *place, const char *spec)
{
    static char path[PATH_MAX];
    char name[PLIM_STORE_NAME];
    struct plim_store_question q = question_of(spec, "", "");
    plim_store_name(&q.key, name);
    plim_store_question_finish(&q);
    cr_assert(eq(int, plim_store_path(place, false, name, path, NULL), PLIM_OK));
    return path;
}

/* --- hits and misses -------------------------------------------------------------------------- */

Test(store, what_is_kept_is_found)
{
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_MISS, "no measured answer"), 0));
    keep(8, "a", "l", "d");
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
    cr_expect(eq(i64, found("b", "l", "d", PLIM_STORE_MISS, "no measured answer"), 0));
    cr_expect(eq(int, warnings, 0));
}

Test(store, what_fits_has_to_match_and_what_is_fast_makes_it_stale)
{
    keep(8, "a", "l1", "d1");
    cr_expect(eq(
        i64, found("a", "l2", "d1", PLIM_STORE_MISS, "libraries (what fits) was l1 and is l2"), 0));
    cr_expect(eq(i64,
                 found("a", "l1", "d2", PLIM_STORE_STALE, "driver (what is fast) was d1 and is d2"),
                 8));
}

Test(store, what_is_not_known_is_a_miss_that_heals)
{
    keep(8, "a", "", "d");
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_MISS, "was not known and is l"), 0));
    keep(9, "a", "l", "d");
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 9));
    cr_expect(eq(i64, found("a", "", "d", PLIM_STORE_MISS, "is not known"), 0));
    cr_expect(eq(i64, found("a", "l", "", PLIM_STORE_STALE, "is not known"), 9));
}

Test(store, a_mismatch_is_never_merged_over)
{
    keep(8, "a", "l1", "d");
    keep(16, "a", "l2", "d");
    keep(4, "a", "l2", "d2");
    cr_expect(eq(i64, found("a", "l1", "d", PLIM_STORE_HIT, ""), 8));
    cr_expect(eq(i64, found("a", "l2", "d", PLIM_STORE_HIT, ""), 16));
    cr_expect(eq(i64, found("a", "l2", "d2", PLIM_STORE_HIT, ""), 4));
    keep(32, "a", "l2", "d");
    cr_expect(eq(i64, found("a", "l1", "d", PLIM_STORE_HIT, ""), 8));
    cr_expect(eq(i64, found("a", "l2", "d", PLIM_STORE_HIT, ""), 32));
}

Test(store, of_many_the_oldest_goes)
{
    char library[24];
    for (int i = 0; i < PLIM_STORE_ANSWERS + 3; i++) {
        snprintf(library, sizeof(library), "l%d", i);
        keep(i + 1, "a", library, "d");
    }
    cr_expect(eq(i64, found("a", "l0", "d", PLIM_STORE_MISS, ""), 0));
    cr_expect(eq(i64, found("a", "l18", "d", PLIM_STORE_HIT, ""), 19));
    cr_expect(eq(i64, found("a", "l3", "d", PLIM_STORE_HIT, ""), 4));
}

Test(store, an_interrupted_answer_is_stale_and_gives_way)
{
    keep_as(2, "a", "l", "d", true);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_STALE, "ended early"), 2));
    keep(8, "a", "l", "d");
    keep_as(4, "a", "l", "d", true);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
}

/* A node whose clock is slow still replaces its own answer; an import does not. */
Test(store, an_answer_that_was_made_just_now_counts_whatever_the_clocks_say)
{
    struct plim_store_entry entry = {0};
    struct plim_store_answer answers[3] = {{.made = "2030-01-01T00:00:00Z", .host = "fast"},
                                           {.made = "2020-01-01T00:00:00Z", .host = "import"},
                                           {.made = "2020-01-01T00:00:00Z", .host = "slow"}};
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, plim_store_entry_merge(&entry, &answers[i], i != 1), PLIM_OK));
    cr_assert(eq(sz, entry.answers.count, 1));
    cr_expect(eq(str, entry.answers.items[0].host, (char *)"slow"));
    plim_store_entry_finish(&entry);
}

Test(store, simulated_answers_are_kept_apart)
{
    struct plim_store_question q = question_of("a", "l", "d");
    struct plim_report report = report_of(8);
    q.simulated = true;
    cr_assert(eq(int, plim_store_write(&store, &q, &report, NULL), PLIM_OK));
    plim_report_finish(&report);
    plim_store_question_finish(&q);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_MISS, "no measured answer"), 0));
}

Test(store, the_users_store_comes_before_the_sites)
{
    keep(8, "a", "l", "d");
    cr_assert(eq(int, rename(users, site), 0));
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
    keep(16, "a", "l", "d");
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 16));
    cr_expect(eq(int, access(file_of(users, "a"), F_OK), 0));
    /* A stale answer of the user's does not hide the site's. */
    cr_assert(eq(int, unlink(file_of(users, "a")), 0));
    keep(16, "a", "l", "other");
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
}

/* Questions with arbitrary bytes are found again. */
Test(store, odd_texts_are_found_again)
{
    static const char *const specs[] = {
        "a\nb: [1]\n", "'",      "null",    "true",     "0x10", "\xff\xfe",
        "\t x ",       "a\r\nb", "\x1b[0m", "- a\n- b", "| x",  "schema: plimsoll.store/9"};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        keep((int64_t)i + 1, specs[i], specs[i], "d");
        cr_expect(eq(i64, found(specs[i], specs[i], "d", PLIM_STORE_HIT, ""), (int64_t)i + 1),
                  "%zu", i);
    }
    cr_expect(eq(int, warnings, 0), "%s", warned);
}

/* --- files that are not right ------------------------------------------------------------------ */

static char *file_text(const char *path, size_t *length)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    *length = fread(text, 1, sizeof(text) - 1, file);
    text[*length] = '\0';
    fclose(file);
    return text;
}

static void put(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fwrite(text, 1, length, file) == length && !fclose(file), "%s", path);
}

/* A miss, one warning, and the next answer heals it. */
static void expect_not_believed(const char *what)
{
    warnings = 0;
    warned[0] = '\0';
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_MISS, ""), 0), "%s", what);
    cr_expect(eq(int, warnings, 1), "%s: %s", what, warned);
    cr_expect(strstr(warned, file_of(users, "a")) != NULL, "%s", warned);
}

Test(store, no_truncated_file_is_believed)
{
    size_t length;
    keep(8, "a", "l", "d");
    char *path = file_of(users, "a"), *text = strdup(file_text(path, &length));
    for (size_t cut = 0; cut < length; cut += cut + 100 < length ? 37 : 1) {
        put(path, text, cut);
        expect_not_believed("truncated");
    }
    put(path, text, length);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
    free(text);
}

Test(store, no_changed_byte_is_believed)
{
    size_t length;
    keep(8, "a", "l", "d");
    char *path = file_of(users, "a"), *text = strdup(file_text(path, &length));
    for (size_t i = 0; i < length; i += 13) {
        char kept = text[i];
        text[i] ^= 1;
        put(path, text, length);
        expect_not_believed("changed");
        text[i] = kept;
    }
    put(path, text, length);
    put(path, "", 0);
    expect_not_believed("empty");
    keep(9, "a", "l", "d");
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 9));
    free(text);
}

/* The text with its checksum made right. */
static void put_summed(const char *path, char *text)
{
    char hash[PLIM_SHA256_TEXT], whole[1 << 16];
    char *sum = strstr(text, "\nchecksum: ");
    cr_assert(sum != NULL);
    sum[1] = '\0';
    plim_sha256_text(text, strlen(text), hash);
    int used = snprintf(whole, sizeof(whole), "%schecksum: sha256:%s\n", text, hash);
    put(path, whole, (size_t)used);
}

static void expect_refused_with(const char *from, const char *to, const char *why)
{
    char text[1 << 16], *path = file_of(users, "a");
    size_t length;
    unlink(path);
    keep(8, "a", "l", "d");
    char *before = file_text(path, &length), *at = strstr(before, from);
    cr_assert(at != NULL, "%s", from);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - before), before, to, at + strlen(from));
    put_summed(path, text);
    expect_not_believed(why);
    cr_expect(strstr(warned, why) != NULL, "%s", warned);
}

Test(store, a_newer_schema_is_a_miss_and_stays)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_store_question q = question_of("a", "l", "d");
    struct plim_report report = report_of(9);
    expect_refused_with("plimsoll.store/1", "plimsoll.store/2", "a newer plimsoll wrote it");
    cr_expect(eq(int, plim_store_write(&store, &q, &report, &err), PLIM_UNSUPPORTED));
    size_t length;
    cr_expect(strstr(file_text(file_of(users, "a"), &length), "plimsoll.store/2") != NULL);
    plim_report_finish(&report);
    plim_store_question_finish(&q);
}

Test(store, what_is_no_entry_is_not_believed)
{
    expect_refused_with("spec: 'a'", "spec: 'b'", "another key than its name says");
    expect_refused_with("answers:", "answer:", "expected a list of answers");
    expect_refused_with("answers:", "answers: []\nothers:", "expected a list of answers");
    expect_refused_with("report:", "repor:", "expected an answer with its report");
    expect_refused_with("micro_batch: 8", "micro_batch: x", "expected an integer");
    expect_refused_with("schema: plimsoll.store/1\n", "# a\nschema: plimsoll.store/1\n",
                        "its schema is not its first key");
}

Test(store, neither_links_nor_pipes_nor_folders_are_read)
{
    keep(8, "a", "l", "d");
    char *path = file_of(users, "a"), other[PATH_MAX];
    snprintf(other, sizeof(other), "%s/other", folder);
    cr_assert(eq(int, rename(path, other), 0));
    cr_assert(eq(int, symlink(other, path), 0));
    expect_not_believed("a link");
    cr_assert(eq(int, unlink(path), 0));
    cr_assert(eq(int, mkfifo(path, 0600), 0));
    expect_not_believed("a pipe");
    cr_assert(eq(int, unlink(path), 0));
    cr_assert(eq(int, mkdir(path, 0700), 0));
    expect_not_believed("a folder");
}

/* --- writing ---------------------------------------------------------------------------------- */

static enum plim_status try_to_keep(struct plim_error *err)
{
    struct plim_store_question q = question_of("a", "l", "d");
    struct plim_report report = report_of(9);
    enum plim_status st = plim_store_write(&store, &q, &report, err);
    plim_report_finish(&report);
    plim_store_question_finish(&q);
    return st;
}

static void expect_nothing_left_over(void)
{
    char command[256];
    snprintf(command, sizeof(command), "test -z \"$(find %s -name '.plimsoll-*')\"", folder);
    cr_expect(eq(int, system(command), 0), "a file is left");
}

Test(store, a_full_disk_leaves_what_was_there)
{
    struct plim_error err = PLIM_ERROR_INIT;
    keep(8, "a", "l", "d");
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = {.rlim_cur = 200, .rlim_max = RLIM_INFINITY}, before;
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &small);
    enum plim_status st = try_to_keep(&err);
    setrlimit(RLIMIT_FSIZE, &before);
    cr_expect(eq(int, st, PLIM_IO), "%s", err.text);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
    expect_nothing_left_over();
}

/* Root may write anywhere. */
Test(store, a_store_that_cannot_be_written_is_still_read)
{
    struct plim_error err = PLIM_ERROR_INIT;
    int status;
    keep(8, "a", "l", "d");
    chmod(folder, 0755);
    pid_t child = fork();
    if (!child) {
        if (geteuid() == 0 && setuid(65534)) _exit(9);
        char command[128];
        if (geteuid() != 65534) {
            snprintf(command, sizeof(command), "chmod -R a-w %s", users);
            if (system(command)) _exit(8);
        }
        _exit(try_to_keep(&err) == PLIM_IO && found("a", "l", "d", PLIM_STORE_HIT, "") == 8 ? 0
                                                                                            : 1);
    }
    waitpid(child, &status, 0);
    chmod(users, 0755);
    char command[160];
    snprintf(command, sizeof(command), "chmod -R u+w %s", users);
    cr_expect(eq(int, system(command), 0));
    cr_expect(eq(int, WEXITSTATUS(status), 0));
}

Test(store, a_home_that_is_none_leaves_the_site)
{
    struct plim_error err = PLIM_ERROR_INIT;
    keep(8, "a", "l", "d");
    cr_assert(eq(int, rename(users, site), 0));
    setenv("PLIMSOLL_STORE", "/dev/null", 1);
    plim_store_init(&store, site, false, &log_noting);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
    cr_expect(eq(int, try_to_keep(&err), PLIM_IO));
    cr_expect(eq(int, warnings, 0), "%s", warned);
}

Test(store, without_home_the_user_database_says_it)
{
    unsetenv("PLIMSOLL_STORE");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/somewhere", 1);
    plim_store_init(&store, NULL, false, NULL);
    cr_expect(eq(str, store.places[0].path, (char *)"/somewhere/.local/state/plimsoll/store"));
    cr_expect(eq(str, store.places[1].path, (char *)PLIM_STORE_SITE));
    unsetenv("HOME");
    plim_store_init(&store, NULL, false, NULL);
    cr_expect(eq(int, store.places[0].path[0], '/'));
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", "/h", 1);
    plim_store_init(&store, NULL, false, NULL);
    cr_expect(eq(str, store.places[0].path, (char *)"/h/.local/state/plimsoll/store"));
    setenv("XDG_STATE_HOME", "/x", 1);
    plim_store_init(&store, NULL, false, NULL);
    cr_expect(eq(str, store.places[0].path, (char *)"/x/plimsoll/store"));
}

/* For hooks that run as root. */
Test(store, what_others_may_write_is_not_read_as_root)
{
    if (geteuid() != 0) cr_skip_test("only root owns root's files");
    keep(8, "a", "l", "d");
    cr_assert(eq(int, rename(users, site), 0));
    chmod(folder, 0755);
    plim_store_init(&store, site, true, &log_noting);
    cr_expect(eq(sz, store.count, 1));
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 8));
    chmod(site, 0777);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_MISS, ""), 0));
    chmod(site, 0755);
    chmod(file_of(site, "a"), 0666);
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_MISS, ""), 0));
    chmod(file_of(site, "a"), 0644);
    cr_assert(eq(int, chown(file_of(site, "a"), 1, 1), 0));
    cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_MISS, ""), 0));
    cr_expect(eq(int, warnings, 3), "%s", warned);
}

/* --- several at once -------------------------------------------------------------------------- */

enum { WRITERS = 4, ROUNDS = 40 };

static void write_on(int number)
{
    char library[24];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(library, sizeof(library), "l%d", number);
        keep(number + 1, "a", library, "d");
    }
    _exit(0);
}

/* A reader sees whole files only, whoever writes. */
Test(store, writers_and_readers_do_not_meet)
{
    pid_t writers[WRITERS];
    int running = WRITERS;
    keep(99, "a", "l", "d");
    for (int i = 0; i < WRITERS; i++)
        if (!(writers[i] = fork())) write_on(i);
    while (running) {
        struct plim_store_found f;
        struct plim_store_question q = question_of("a", "l1", "d");
        cr_assert(eq(int, plim_store_find(&store, &q, &f, NULL), PLIM_OK));
        plim_store_found_finish(&f);
        plim_store_question_finish(&q);
        for (int i = 0; i < WRITERS; i++)
            if (writers[i] && waitpid(writers[i], NULL, WNOHANG) == writers[i])
                writers[i] = 0, running--;
    }
    cr_expect(eq(int, warnings, 0), "%s", warned);
    keep(3, "a", "l2", "d");
    cr_expect(eq(i64, found("a", "l2", "d", PLIM_STORE_HIT, ""), 3));
    expect_nothing_left_over();
}

/* SIGKILL at any moment: what is there is whole. */
Test(store, a_killed_writer_leaves_nothing_half)
{
    keep(99, "a", "l", "d");
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (!child) write_on(1);
        usleep((useconds_t)(i * 53 % 700));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        cr_expect(eq(i64, found("a", "l", "d", PLIM_STORE_HIT, ""), 99));
    }
    cr_expect(eq(int, warnings, 0), "%s", warned);
}
