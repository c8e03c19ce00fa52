/* The page of a report, in a browser where one is here, and the files beside it. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64];
};

static struct folder folder_make(void)
{
    struct folder folder = {"/tmp/plimsoll-page-XXXXXX"};
    cr_assert(mkdtemp(folder.path) != NULL);
    return folder;
}

static void folder_remove(const struct folder *folder)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder->path);
    cr_expect(eq(int, system(command), 0));
}

static void expect_run(const char *arguments, int exit_code)
{
    struct program p = program_run(arguments);
    cr_expect(eq(int, p.exit_code, exit_code), "%s: %s", arguments, p.err);
    program_finish(&p);
}

static void expect_size(const struct folder *folder, const char *name, long least)
{
    char path[128];
    struct stat info;
    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    cr_assert(eq(int, stat(path, &info), 0), "%s", path);
    cr_expect(ge(long, (long)info.st_size, least), "%s", path);
}

/* The moments of a timeline are the upper edge: the largest is the peak of the second step. */
Test(page, the_timeline_reaches_the_peak_of_its_step)
{
    struct program p = program_run("explain tiny-gpt2 --batch 2 --seq 64 --device sim:T4 --timeline "
                                   "--accumulation 3 --json");
    json_t *root = program_json(&p), *moment, *bytes, *breakdown;
    const char *key;
    size_t index;
    json_int_t peak = 0;
    cr_expect(eq(i64, json_int_at(root, "timeline_micro_steps"), 2));
    json_array_foreach(json_at(root, "timeline"), index, moment)
    {
        json_int_t sum = 0;
        breakdown = json_object_get(moment, "breakdown");
        json_object_foreach(breakdown, key, bytes)
            if (strcmp(key, "cached_bytes") && strcmp(key, "overhead_bytes"))
                sum += json_integer_value(bytes);
        if (sum > peak) peak = sum;
    }
    cr_expect(eq(i64, peak, json_int_at(root, "steps.1.peak_allocated_bytes")));
    json_decref(root);
    program_finish(&p);
}

Test(page, without_a_chart_no_step_is_recorded)
{
    struct program p = program_run("explain tiny-gpt2 --batch 2 --seq 64 --device sim:T4 --json");
    cr_expect(zero(ptr, strstr(p.out, "timeline")));
    program_finish(&p);
}

Test(page, a_result_is_drawn_later_as_it_would_have_been_at_once)
{
    struct folder f = folder_make();
    char a[512], command[512];
    snprintf(a, sizeof(a), "plan tiny-gpt2 --seq 64 --batch 1,2,4 --device sim:T4 --quiet "
                           "--out %s/r.json --out %s/a.svg --out %s/a.html", f.path, f.path, f.path);
    expect_run(a, 0);
    snprintf(a, sizeof(a), "report %s/r.json -o %s/b.svg -o %s/b.html", f.path, f.path, f.path);
    expect_run(a, 0);
    snprintf(command, sizeof(command), "cmp %s/a.svg %s/b.svg && cmp %s/a.html %s/b.html", f.path,
             f.path, f.path, f.path);
    cr_expect(eq(int, system(command), 0));
    expect_size(&f, "a.svg", 5000);
    folder_remove(&f);
}

Test(page, several_results_become_a_table_with_prices)
{
    struct folder f = folder_make();
    char a[512];
    snprintf(a, sizeof(a), "plan tiny-gpt2 --seq 64 --device sim:T4 --quiet --out %s/a.json", f.path);
    expect_run(a, 0);
    snprintf(a, sizeof(a), "plan tiny-gpt2 --seq 64 --device sim:L4 --quiet --out %s/b.yaml", f.path);
    expect_run(a, 0);
    snprintf(a, sizeof(a), "report --compare %s/a.json %s/b.yaml --price t4=0.5 --price V100=2 -o %s/c.html", f.path,
             f.path, f.path);
    struct program p = program_run(a);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.out, "T4") && strstr(p.out, "L4") && strstr(p.out, "% of the first"), "%s", p.out);
    cr_expect(strstr(p.err, "--price V100: no result is for a GPU of that name") && !strstr(p.err, "t4"), "%s", p.err);
    program_finish(&p);
    expect_size(&f, "c.html", 5000);
    folder_remove(&f);
}

/* A setting that was explained may not fit: nothing is compared with it, nor it with anything. */
Test(page, what_does_not_fit_has_no_speed_beside_others)
{
    struct folder f = folder_make();
    char a[256], b[256], both[256];
    snprintf(a, sizeof(a), "explain gpt2-124m --seq 1024 --batch 32 --device sim:8GiB --out %s/a.json", f.path);
    snprintf(b, sizeof(b), "explain gpt2-124m --seq 1024 --batch 8 --device sim:24GiB --out %s/b.json", f.path);
    snprintf(both, sizeof(both), "report --compare %s/a.json %s/b.json", f.path, f.path);
    expect_run(a, 1);
    expect_run(b, 0);
    struct program p = program_run(both);
    cr_expect(p.out && strstr(p.out, "% of the first that fits\n"), "%s", p.out);
    cr_expect(p.out && strstr(p.out, "32 x 1  does not fit"), "%s", p.out);
    cr_expect(p.out && strstr(p.out, " 100.0\n"), "%s", p.out);
    program_finish(&p);
    folder_remove(&f);
}

Test(page, what_cannot_be_drawn_is_refused)
{
    expect_run("report", 2);
    expect_run("report /nowhere.json", 2);
    expect_run("report /dev/null", 2);
    expect_run("report /nowhere.json --price T4", 2);
    expect_run("report /nowhere.json --price T4=-1", 2);
}

/* Drawn by librsvg where that is here; else said, and what can be drawn is. */
Test(page, a_png_is_an_image_or_a_message)
{
    static const unsigned char start[] = {0x89, 'P', 'N', 'G'};
    struct folder f = folder_make();
    char a[512];
    unsigned char bytes[4] = {0};
    snprintf(a, sizeof(a), "plan tiny-gpt2 --seq 64 --device sim:T4 --quiet --out %s/a.png", f.path);
    struct program p = program_run(a);
    if (p.exit_code == 4) {
        cr_expect(strstr(p.err, "librsvg") != NULL, "%s", p.err);
    } else {
        cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
        expect_size(&f, "a.png", 10000);
        snprintf(a, sizeof(a), "%s/a.png", f.path);
        FILE *file = fopen(a, "rb");
        cr_assert(file && fread(bytes, 1, 4, file) == 4);
        fclose(file);
        cr_expect(zero(int, memcmp(bytes, start, 4)));
    }
    program_finish(&p);
    folder_remove(&f);
}

/* --- in Chromium ------------------------------------------------------------------------------ */

/* Runs in the page, behind its own script, and leaves its findings in the title. */
static const char *const checks =
    "<script>\n"
    "const found = [];\n"
    "const expect = (ok, what) => { if (!ok) found.push(what); };\n"
    "const root = document.documentElement;\n"
    "expect(root.scrollWidth <= root.clientWidth, 'wider than its window: ' + root.scrollWidth);\n"
    "expect(document.querySelectorAll('svg').length >= 2, 'charts');\n"
    "for (const svg of document.querySelectorAll('svg')) expect(svg.getAttribute('aria-label'), 'label');\n"
    "const table = document.querySelector('table.sort');\n"
    "const button = table.querySelector('th.n button');\n"
    "expect(button, 'a button to sort by');\n"
    "button.focus();\n"
    "expect(document.activeElement === button, 'focus');\n"
    "button.click();\n"
    "const column = button.parentElement.cellIndex;\n"
    "const worths = () => [...table.tBodies[0].rows].map(row => worth(row.cells[column])).filter(w => w !== null);\n"
    "expect(button.parentElement.getAttribute('aria-sort') === 'descending', 'aria-sort');\n"
    "expect(worths().every((w, i, all) => !i || all[i - 1] >= w), 'sorted down: ' + worths());\n"
    "button.click();\n"
    "expect(worths().every((w, i, all) => !i || all[i - 1] <= w), 'sorted up: ' + worths());\n"
    "expect(!document.querySelector('[onclick],script[src],link[href^=http],img'), 'nothing from outside');\n"
    "expect(!window.hostile, 'a name was run');\n"
    "document.title = 'CHECKED ' + found.join('; ');\n"
    "</script>\n";

/* Opens the page so wide, with the checks in it; its log may hold no error. */
static void expect_fine_in_browser(const struct folder *f, const char *name, int width)
{
    static char dom[1 << 21];
    char command[1024];
    snprintf(command, sizeof(command),
             "cp %s/%s %s/checked.html && cat %s/checks >> "
             "%s/checked.html && HOME=%s timeout 60 chromium --headless --no-sandbox --disable-gpu "
             "--enable-logging=stderr --user-data-dir=%s/profile --window-size=%d,900 --dump-dom "
             "file://%s/checked.html 2>%s/log",
             f->path, name, f->path, f->path, f->path, f->path, f->path, width, f->path, f->path);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    dom[fread(dom, 1, sizeof(dom) - 1, pipe)] = '\0';
    cr_expect(eq(int, pclose(pipe), 0));
    const char *title = strstr(dom, "<title>");
    cr_assert(title != NULL);
    cr_expect(eq(int, strncmp(title, "<title>CHECKED </title>", 23), 0), "%s at %d: %.300s", name, width,
              title);
    snprintf(command, sizeof(command), "grep -E 'CONSOLE|Uncaught|Refused to' %s/log", f->path);
    cr_expect(ne(int, system(command), 0), "%s: the console has something to say", name);
}

Test(page, a_browser_shows_it_wide_and_narrow_and_sorts_by_keyboard)
{
    if (system("command -v chromium >/dev/null")) cr_skip_test("there is no chromium");
    struct folder f = folder_make();
    char a[512];
    snprintf(a, sizeof(a), "%s/checks", f.path);
    FILE *file = fopen(a, "w");
    cr_assert(file != NULL);
    fputs(checks, file);
    fclose(file);
    snprintf(a, sizeof(a), "plan tiny-gpt2 --seq 32,64 --device sim:T4 --quiet --out %s/one.html", f.path);
    expect_run(a, 0);
    snprintf(a, sizeof(a), "plan tiny-gpt2 --seq 64 --device sim:T4,sim:L4,sim:A10 --quiet --out %s/many.html",
             f.path);
    expect_run(a, 0);
    expect_fine_in_browser(&f, "one.html", 1000);
    expect_fine_in_browser(&f, "one.html", 320);
    expect_fine_in_browser(&f, "many.html", 320);
    folder_remove(&f);
}
