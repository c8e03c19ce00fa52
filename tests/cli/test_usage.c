/* Help, mistakes, exit codes, and what goes to which stream. */
#include "autotune/base/clock.h"
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (; *text; text += strcspn(text, "\n") + (strchr(text, '\n') != NULL))
        if (strcspn(text, "\n") > longest) longest = strcspn(text, "\n");
    return longest;
}

static void expect_contains(const char *text, const char *part)
{
    cr_expect(strstr(text, part) != NULL, "'%s' is missing in:\n%s", part, text);
}

Test(usage, help_names_every_command_and_exit_code)
{
    static const char *const parts[] = {"tune", "plan",   "explain", "devices", "exec",
                                        "import", "models", "help", "  0  ", "  5  ",   "  6  ", "  7  "};
    struct program p = program_run("--help");
    cr_expect(eq(int, p.exit_code, 0));
    cr_expect(eq(str, p.err, (char *)""));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) expect_contains(p.out, parts[i]);
    cr_expect(le(sz, longest_line(p.out), 80));
    program_finish(&p);
}

/* `plimsoll ARGUMENTS >/dev/full`, whose shell adds "exit N" to its stderr. */
static void expect_full_is_told(const char *arguments)
{
    char command[512], line[512] = "";
    snprintf(command, sizeof(command), "'" PLIM_BINARY "' %s --quiet 2>&1 >/dev/full; echo exit $?",
             arguments);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    cr_expect(fgets(line, sizeof(line), pipe) != NULL);
    expect_contains(line, "cannot be written");
    cr_expect(fgets(line, sizeof(line), pipe) != NULL);
    cr_expect(eq(str, line, (char *)"exit 6\n"), "%s", arguments);
    pclose(pipe);
}

Test(usage, a_result_that_cannot_be_written_is_told)
{
    expect_full_is_told("devices --json");
    expect_full_is_told("devices");
    expect_full_is_told("import gpt2-124m");
    expect_full_is_told("explain gpt2-124m --device sim:T4 --batch 1 --seq 64 --json");
    expect_full_is_told("exec --device sim:T4 --dry-run --batch 1 -- true {batch}");
}

/* The accumulation is that of all GPUs of the job, of which the program may see one. */
Test(usage, a_dry_run_shows_what_a_trial_is_given)
{
    static const struct {
        const char *options, *wanted;
    } cases[] = {{"--batch 4 --effective-batch 64", "4 16 1\n"},
                 {"--batch 4 --effective-batch 64 --gpus 2", "4 8 2\n"},
                 {"--batch 4 --effective-batch 64 --world 4", "4 4 4\n"},
                 {"--batch 4 --effective-batch 64 --gpus 2 --world 4", "4 4 4\n"},
                 {"--batch 4 --gpus 4 --world 2", "of which --gpus runs 4: expected at least as many"},
                 {"--batch 4,6 --effective-batch 7", "no micro-batch that was given leads to an effective batch of 7"},
                 {"--batch 4 --accumulation 5 --effective-batch 24", "leads to an effective batch of 24"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char command[256];
        bool is_refused = strchr(cases[i].wanted, '\n') == NULL;
        snprintf(command, sizeof(command), "exec --device sim:T4 --dry-run %s -- echo {batch} {accumulation} {world}",
                 cases[i].options);
        struct program p = program_run(command);
        cr_expect(eq(int, p.exit_code, is_refused ? 2 : 0), "%s", cases[i].options);
        expect_contains(is_refused ? p.err : p.out, cases[i].wanted);
        program_finish(&p);
    }
}

/* A recording is stored only in its file: if it cannot be written, that is reported before the work begins. */
Test(usage, a_recording_that_could_not_be_written_is_not_begun)
{
    struct program p = program_run("record -o /nosuch/job.plim -- false {batch}");
    cr_expect(eq(int, p.exit_code, 2));
    expect_contains(p.err, "/nosuch/job.plim: cannot be written: No such file or directory");
    cr_expect(eq(str, p.out, (char *)""));
    program_finish(&p);
}

Test(usage, every_command_and_topic_has_its_own_help)
{
    static const struct {
        const char *arguments, *has, *has_not;
    } commands[] = {{"tune --help", "--effective-batch", "--nothing"},
                 {"plan --help", "--objective", "--nothing"},
                 {"explain --help", "--checkpointing", "--objective"},
                 {"devices --help", "--json", "--batch"},
                 {"exec --help", "{batch}", "--optimizer"},
                 {"apply --help", "--accumulation", "--batch"},
                 {"revert --help", "--force", "--check"},
                 {"emit --help", "--gpus-per-node", "--framework"},
                 {"import --help", "--out", "--batch"},
                 {"models --help", "--quiet", "--batch"},
                 {"help explain", "--checkpointing", "--objective"},
                 {"help", "models", "--batch"},
                 {"help spec", "  train.grpo.vllm_sleeps", "--batch"},
                 {"help train.clip", "(a number from 0 to 1e+09, or null; norm; default: null;", "train.lora"},
                 {"help train.zero", "  train.zero.overlap_comm", "train.lora"},
                 {"help train.dropout", "(a number from 0 to 1, or null;", "train.lora"},
                 {"help model", "deepseek_v3", "train."},
                 {"help gpt2", "  n_embd ", "hidden_size  "},
                 {"help internvl", "(qwen2 or qwen3; default: qwen2)", "train.clip"}};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        struct program p = program_run(commands[i].arguments);
        cr_expect(eq(int, p.exit_code, 0));
        expect_contains(p.out, commands[i].has);
        cr_expect(strstr(p.out, commands[i].has_not) == NULL, "%s", commands[i].arguments);
        cr_expect(le(sz, longest_line(p.out), 80), "%s", commands[i].arguments);
        program_finish(&p);
    }
}

Test(usage, models_lists_every_name_of_the_zoo_with_its_size)
{
    static const char *const parts[] = {
        "gpt2-124m                  124 M  gpt2              openai-community/gpt2\n",
        "qwen2.5-vl-3b             3.75 B  qwen2_5_vl        Qwen/Qwen2.5-VL-3B-Instruct\n",
        "tiny-gpt2                  137 K  gpt2              -\n"};
    struct program p = program_run("models");
    cr_expect(eq(int, p.exit_code, 0));
    cr_expect(eq(str, p.err, (char *)""));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) expect_contains(p.out, parts[i]);
    program_finish(&p);
}

/* Which is not that it does not fit: memory would not help. */
Test(usage, settings_that_cannot_be_planned_have_an_exit_code_of_their_own)
{
    static const char *const runs[] = {
        "plan tiny-gpt2 --optimizer adamw-8bit --sharding zero3 --world 2 --quiet --device sim:T4",
        "plan tiny-gpt2 --optimizer adamw-8bit --sharding zero3 --world 2 --quiet --device sim:T4,sim:A10"};
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct program p = program_run(runs[i]);
        cr_expect(eq(int, p.exit_code, 4));
        expect_contains(p.out, i ? "cannot be planned" : "CANNOT BE PLANNED");
        expect_contains(p.out, "Nothing can be planned with these settings: bitsandbytes'");
        cr_expect(strstr(p.out, "FITS") == NULL);
        program_finish(&p);
    }
}

/* A comma ends a device, but for the one in front of its memory. */
Test(usage, devices_may_be_a_list)
{
    struct program one = program_run("plan tiny-gpt2 --device sim:T4,memory=9GiB,sim:A10 --quiet");
    struct program two =
        program_run("plan tiny-gpt2 --device sim:T4,memory=9GiB --device sim:A10 --quiet");
    cr_expect(eq(int, one.exit_code, 0));
    cr_expect(eq(str, one.out, two.out));
    expect_contains(one.out, "9.00 GiB");
    expect_contains(one.out, "A10");
    program_finish(&one);
    program_finish(&two);
}

Test(usage, the_worker_is_in_no_help_and_wants_a_parent)
{
    static const char *const arguments[] = {"--worker", "--worker 1", "--worker x", "--worker -1"};
    struct program help = program_run("--help");
    cr_expect(strstr(help.out, "--worker") == NULL);
    program_finish(&help);
    for (int i = 0; i < 4; i++) {
        struct program p = program_run(arguments[i]);
        cr_expect(eq(int, p.exit_code, 1), "%s", arguments[i]);
        cr_expect(eq(str, p.out, (char *)""));
        program_finish(&p);
    }
}

Test(usage, the_version_is_told)
{
    struct program p = program_run("--version");
    cr_expect(eq(int, p.exit_code, 0));
    cr_expect(eq(int, strncmp(p.out, "plimsoll 0.", 11), 0));
    program_finish(&p);
}

struct mistake { char arguments[128]; int exit_code; char says[96]; };

ParameterizedTestParameters(usage, a_mistake_has_its_exit_code_and_one_clear_line)
{
    static struct mistake mistakes[] = {
        {"", 2, "expected one such as tune"},
        {"plna gpt2-124m", 2, "did you mean plan?"},
        {"plan", 2, "no SPEC was given"},
        {"plan gpt2-124m more", 2, "'more' is one argument too many"},
        {"plan no-such-file.yaml", 2, "no-such-file.yaml: no such file"},
        {"plan gpt2-125m", 2, "gpt2-124m"},
        {"plan gpt2-124m --bacth 4", 2, "did you mean --batch?"},
        {"plan gpt2-124m --batch", 2, "--batch needs a value"},
        {"plan gpt2-124m --batch zero", 2, "--batch"},
        {"plan gpt2-124m --json=yes", 2, "--json takes no value"},
        {"plan gpt2-124m --precision bf17", 2, "bf16-mixed"},
        {"plan gpt2-124m --margin -5", 2, "expected a share such as 5%"},
        {"plan gpt2-124m --margin 101%", 2, "expected a share such as 5%"},
        {"plan gpt2-124m --margin 10", 2, "expected a unit: 10% or 10GiB?"},
        {"plan gpt2-124m --margin 0.1", 2, "expected a unit: 10% or 0.1GiB?"},
        {"plan gpt2-124m --overhead 600", 2, "expected a unit: 600MiB or 600GiB?"},
        {"plan gpt2-124m --overhead lots", 2, "expected auto or a size"},
        {"plan gpt2-124m --budget 0s", 2, "expected a time such as 60s"},
        {"plan gpt2-124m --budget nan", 2, "expected a time such as 60s"},
        {"plan gpt2-124m --budget inf", 2, "expected a time such as 60s"},
        {"plan gpt2-124m --budget 1e300s", 2, "expected a time such as 60s"},
        {"plan gpt2-124m --objective fastest", 2, "expected throughput"},
        {"plan gpt2-124m --tiers --margin 5%", 2, "--tiers and --margin, expected one of them"},
        {"plan gpt2-124m --profile fast", 2, "expected max-memory, balanced or max-speed"},
        {"plan gpt2-124m --device sim:T4 --waterfall seq", 2, "seq has one value only"},
        {"plan gpt2-124m --device sim:T4 --seq 512,256 --waterfall seq --objective longest-sequence", 2,
         "an order of its own"},
        {"exec --device sim:T4 --axis k=1,2 --waterfall K -- true {k}", 2, "K cannot be varied"},
        {"plan gpt2-124m --out report.doc", 2, "known: .json"},
        {"plan gpt2-124m --set train.clip", 2, "expected KEY=VALUE"},
        {"plan gpt2-124m --set train.clup=1", 2, "train.clip"},
        {"plan gpt2-124m --device sim:A100-SXM4-80GB --alloc-conf expandable_segment:True", 2,
         "expandable_segments"},
        {"plan gpt2-124m --batch 3 --effective-batch 256", 2, "256"},
        {"tune gpt2-124m --device all", 2, "one device"},
        {"explain gpt2-124m --device sim:T4", 2, "expected --batch N"},
        {"explain gpt2-124m --objective throughput", 2, "does not go with this command"},
        {"devices gpt2-124m", 2, "takes no argument"},
        {"models gpt2-124m", 2, "takes no argument"},
        {"help plna", 2, "did you mean plan?"},
        {"help train.clp", 2, "did you mean train.clip?"},
        {"help qwen33", 2, "did you mean qwen3?"},
        {"help train.c", 2, "no command, family or key of a spec"},
        {"help llama --man", 2, "no command, family or key"},
        {"exec python train.py", 2, "put -- before your program's command"},
        {"plan gpt2-124m --device sim:T4,,sim:A10", 2, "--device has an empty value"},
        {"plan Qwen/Qwen3-0.6B-FP8", 2, "did you mean qwen3-0.6b?"},
        {"plan ./qwen3-0.6", 2, "hf download OWNER/MODEL config.json"},
        {"plan no-such-model", 2, "hf download OWNER/MODEL config.json"},
        {"plan gpt2-124m --device sim:RTX-4091", 3, "RTX-4090"},
        {"plan gpt2-124m --device rtx-4090", 3, "sim:RTX-4090"},
        {"plan gpt2-124m --device sim:A100-SXM4-80GB,memory=many", 2, "many"},
        {"plan gpt2-124m --device cuda:0", 2, "plan simulates"},
        {"tune gpt2-124m --device host,memory=0", 2, "memory=0"},
    };
    return cr_make_param_array(struct mistake, mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
}

ParameterizedTest(struct mistake *mistake, usage, a_mistake_has_its_exit_code_and_one_clear_line)
{
    struct program p = program_run(mistake->arguments);
    cr_expect(eq(int, p.exit_code, mistake->exit_code), "%s", mistake->arguments);
    cr_expect(eq(str, p.out, (char *)""), "%s", mistake->arguments);
    cr_expect(eq(sz, strcspn(p.err, "\n") + 1, strlen(p.err)), "%s: not one line: %s",
              mistake->arguments, p.err);
    expect_contains(p.err, mistake->says);
    program_finish(&p);
}

Test(usage, a_bad_spec_names_file_line_and_column)
{
    char arguments[256], place[256];
    char *path = program_file("bad.yaml", "model:\n  zoo: gpt2-124m\ntrain:\n  precison: bf16\n");
    snprintf(arguments, sizeof(arguments), "plan %s --device sim:T4", path);
    snprintf(place, sizeof(place), "%s:4:3: ", path);
    struct program p = program_run(arguments);
    cr_expect(eq(int, p.exit_code, 2));
    cr_expect(eq(int, strncmp(p.err, place, strlen(place)), 0), "%s", p.err);
    expect_contains(p.err, "train.precision");
    program_finish(&p);
    program_file_remove(path);
}

Test(usage, a_simulated_stand_in_is_said_on_stderr)
{
    struct program p = program_run("explain gpt2-124m --batch 1 --seq 128 --json");
    cr_expect(eq(int, p.exit_code, 0));
    expect_contains(p.err, "simulating sim:A100-SXM4-80GB");
    json_decref(program_json(&p));
    program_finish(&p);
    p = program_run("explain gpt2-124m --batch 1 --seq 128 --json --quiet");
    cr_expect(eq(str, p.err, (char *)""));
    program_finish(&p);
}

/* The name is taken, and the folder is not passed over in silence. */
Test(usage, a_name_of_the_zoo_does_not_hide_a_file_of_that_name)
{
    char *path = program_file("tiny-gpt2", "not a spec\n"), here[4096];
    cr_assert(ne(ptr, getcwd(here, sizeof(here)), NULL));
    *strrchr(path, '/') = '\0';
    cr_assert(eq(int, chdir(path), 0));
    struct program p = program_run("explain tiny-gpt2 --device sim:T4 --batch 1");
    cr_assert(eq(int, chdir(here), 0));
    path[strlen(path)] = '/';
    cr_expect(eq(int, p.exit_code, 0));
    expect_contains(p.err, "say ./tiny-gpt2");
    program_finish(&p);
    p = program_run("explain tiny-gpt2 --device sim:T4 --batch 1");
    cr_expect(strstr(p.err, "./tiny-gpt2") == NULL);
    program_finish(&p);
    program_file_remove(path);
}

Test(usage, nothing_but_the_result_is_on_stdout_and_no_escapes_in_it)
{
    struct program p = program_run("plan gpt2-124m --device sim:T4 --seq 256");
    cr_expect(eq(int, p.exit_code, 0));
    cr_expect(eq(str, p.err, (char *)""));
    cr_expect(strchr(p.out, '\033') == NULL);
    cr_expect(eq(int, strncmp(p.out, "gpt2-124m on T4", 15), 0), "%s", p.out);
    cr_expect(le(sz, longest_line(p.out), 80));
    program_finish(&p);
}

Test(usage, both_ways_of_writing_an_option_mean_the_same)
{
    struct program apart = program_run("explain gpt2-124m --device sim:T4 --batch 2 --seq 128");
    struct program joined = program_run("explain --batch=2 --seq=128 --device=sim:T4 -- gpt2-124m");
    cr_expect(eq(int, joined.exit_code, 0));
    cr_expect(eq(str, apart.out, joined.out));
    program_finish(&apart);
    program_finish(&joined);
}

Test(usage, tiers_differ_in_what_they_leave_free)
{
    static const char *const names[] = {"safe", "medium", "aggressive", "max"};
    struct program p = program_run("plan gpt2-124m --device sim:8GiB --seq 1024 --objective "
                                   "largest-batch --tiers --json");
    json_t *root = program_json(&p), *before = NULL;
    cr_expect(eq(int, p.exit_code, 0));
    cr_assert(eq(sz, json_array_size(json_at(root, "results")), 4));
    for (size_t i = 0; i < 4; i++) {
        json_t *result = json_array_get(json_at(root, "results"), i);
        json_expect_text(result, "tier", names[i]);
        if (before) {
            cr_expect(lt(i64, json_int_at(result, "limit.margin_bytes"),
                         json_int_at(before, "limit.margin_bytes")));
            cr_expect(ge(i64, json_int_at(result, "choice.micro_batch"),
                         json_int_at(before, "choice.micro_batch")));
        }
        before = result;
    }
    cr_expect(lt(i64, json_int_at(root, "results.0.choice.micro_batch"), json_int_at(before, "choice.micro_batch")));
    json_decref(root);
    program_finish(&p);
}

Test(usage, an_imported_spec_can_be_planned)
{
    char arguments[512];
    char *path = program_file("spec.yaml", "");
    snprintf(arguments, sizeof(arguments), "import gpt2-124m --out %s", path);
    struct program p = program_run(arguments);
    cr_expect(eq(int, p.exit_code, 0));
    program_finish(&p);
    snprintf(arguments, sizeof(arguments), "explain %s --device sim:T4 --batch 1 --seq 128", path);
    p = program_run(arguments);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    program_file_remove(path);
}

Test(usage, the_catalogue_is_listed)
{
    struct program p = program_run("devices --json");
    json_t *root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "schema"), (char *)"plimsoll.devices/1"));
    cr_expect(ge(sz, json_array_size(json_at(root, "devices")), 38));
    cr_expect(lt(i64, 0, json_int_at(root, "devices.0.total_bytes")));
    json_decref(root);
    program_finish(&p);
    p = program_run("devices");
    expect_contains(p.out, "RTX-4090");
    cr_expect(le(sz, longest_line(p.out), 80));
    program_finish(&p);
}

Test(usage, what_was_typed_cannot_steer_the_terminal)
{
    struct program p = program_run("plan a\n\x1b[31mb\xc2\x9b");
    cr_expect(strstr(p.err, "a\\x0a\\x1b[31mb\\u009b: no such file") != NULL, "%s", p.err);
    program_finish(&p);
    setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native\x1b]0;x\x07", 1);
    p = program_run("plan gpt2-124m --device sim:T4 --seq 256");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    cr_expect(strchr(p.err, '\x1b') == NULL && strchr(p.out, '\x1b') == NULL, "%s\n%s", p.err,
              p.out);
    program_finish(&p);
}

Test(usage, a_trace_follows_no_link)
{
    char *path = program_file("other", "not ours"), link[128], arguments[256], text[16] = "";
    snprintf(link, sizeof(link), "%s.trace", path);
    cr_assert(eq(int, symlink(path, link), 0));
    snprintf(arguments, sizeof(arguments),
             "explain gpt2-124m --device sim:T4 --batch 1 --seq 64 --trace %s", link);
    struct program p = program_run(arguments);
    cr_expect(le(int, p.exit_code, 1), "%s", p.err);
    FILE *file = fopen(path, "r");
    cr_expect(file && fgets(text, sizeof(text), file));
    cr_expect(eq(str, text, "not ours"));
    if (file) fclose(file);
    program_finish(&p);
    unlink(link);
    program_file_remove(path);
}

static long lines_of_trace(const char *options)
{
    char path[64], arguments[320];
    snprintf(path, sizeof(path), "/tmp/plimsoll-trace-%ld", (long)getpid());
    snprintf(arguments, sizeof(arguments),
             "explain tiny-gpt2 --device sim:24GiB --batch 2 --seq 64 --world 4 --sharding zero2 "
             "--precision bf16-mixed --trace %s %s", path, options);
    struct program p = program_run(arguments);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    FILE *file = fopen(path, "r");
    cr_assert(ne(ptr, file, NULL));
    long lines = 0;
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    unlink(path);
    return lines;
}

/* Ranks are gone through to find the one that needs the most; what is written is one run of that. */
Test(usage, a_trace_is_that_of_one_rank)
{
    long one = lines_of_trace("--steps 2 --set train.zero.rank=0"), told = lines_of_trace("--steps 2");
    cr_expect(lt(long, 0, told));
    cr_expect(lt(long, labs(told - one), one / 4), "%ld lines, and %ld of rank 0", told, one);
}

Test(usage, a_time_may_be_in_minutes)
{
    struct program p = program_run("plan gpt2-124m --device sim:A100-SXM4-80GB --batch 1 --seq 64 --budget 5min");
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
}

#define LONG_STEP " gpt2-124m --device sim:A100-SXM4-80GB --seq 64 --accumulation 1048576 "

/* A whole replay of such steps would take minutes. */
Test(usage, a_long_replay_is_ended_at_once)
{
    double start = plim_clock_seconds();
    struct program p = program_run("plan" LONG_STEP "--batch 1:4 --budget 100ms");
    cr_expect(lt(dbl, plim_clock_seconds() - start, 3));
    program_finish(&p);
    start = plim_clock_seconds();
    p = program_run_and_signal("explain" LONG_STEP "--batch 1", SIGTERM, 100);
    cr_expect(lt(dbl, plim_clock_seconds() - start, 3));
    program_finish(&p);
}
