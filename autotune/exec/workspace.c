#define _GNU_SOURCE /* pipe2, secure_getenv */
#include "workspace.h"
#include "execution.h"
#include "processes.h"
#include "autotune/base/embed.h"
#include "autotune/base/outfile.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern const struct plim_embedded_file plim_steps_module[];
extern const struct plim_embedded_file plim_triton_module[];

/* Separators of the list in LD_PRELOAD. */
#define SEPARATORS " :"

enum { REMOVALS = 100, MOST_NAMES = 2 };

static const struct {
    const char *build_folder;      /* relative to the folder of the executable */
    const char *names[MOST_NAMES]; /* the first is the name of the file */
} libraries[] = {
    [PLIM_PRELOAD_VIRTUAL_GPU] = {"../devices/virtual", {"libcuda.so.1", "libnvidia-ml.so.1"}},
    [PLIM_PRELOAD_OBSERVER] = {"../devices/observe", {"libplimsoll-observe.so"}}};

static enum plim_status find_library(struct plim_workspace *w, enum plim_preloaded preloaded,
                                     struct plim_error *err)
{
    const char *const folders[] = {libraries[preloaded].build_folder, "../lib/plimsoll",
                                   "../" PLIM_LIBDIR "/plimsoll"};
    const char *name = libraries[preloaded].names[0];
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0) return plim_fail(err, PLIM_INTERNAL, "/proc/self/exe: %s", strerror(errno));
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s/%s", self, folders[i], name);
        if (realpath(path, w->library)) return PLIM_OK;
    }
    return plim_fail(err, PLIM_UNSUPPORTED, "%s is not beside plimsoll (looked for it in %s/%s)",
                     name, self, folders[1]);
}

/* The keeper's only message: the folder that it created, or the error. */
struct kept {
    int problem; /* errno, or 0 */
    char folder[sizeof(((struct plim_workspace *)0)->folder)];
};

/* Runs the keeper: creates the folder and removes it once no process has the other end of the pipe `end` open. Removing
 * is repeated, since ending processes may still create files. Nothing is left at whatever moment plimsoll is killed. */
static _Noreturn void run_keeper(struct kept *kept, int end, int answer)
{
    char none;
    const int files[] = {end, answer};
    plim_processes_detach("trial-keeper", files, 2);
    if (!mkdtemp(kept->folder)) kept->problem = errno;
    ssize_t written = write(answer, kept, sizeof(*kept));
    (void)written; /* if plimsoll has ended already, `end` shows it */
    close(answer);
    while (read(end, &none, 1) < 0 && errno == EINTR) continue;
    if (kept->problem) _exit(1);
    for (int i = 0; i < REMOVALS && !access(kept->folder, F_OK); i++) {
        if (i) nanosleep(&(struct timespec){0, 20000000}, NULL);
        plim_execution_remove_folder(kept->folder);
    }
    _exit(0);
}

/* Receives the keeper's message. It is shorter than PIPE_BUF, so it arrives in one piece. */
static bool receive(int answer, struct kept *kept)
{
    ssize_t count;
    do count = read(answer, kept, sizeof(*kept));
    while (count < 0 && errno == EINTR);
    return count == (ssize_t)sizeof(*kept);
}

/* Called before there are threads, so that the child may use the C library without restrictions. */
static enum plim_status start_keeper(struct plim_workspace *w, struct kept *kept,
                                     struct plim_error *err)
{
    int ends[2], answer[2];
    if (pipe2(ends, O_CLOEXEC)) return plim_fail(err, PLIM_IO, "no pipe: %s", strerror(errno));
    if (pipe2(answer, O_CLOEXEC)) {
        close(ends[0]);
        close(ends[1]);
        return plim_fail(err, PLIM_IO, "no pipe: %s", strerror(errno));
    }
    w->keeper_pid = fork();
    if (!w->keeper_pid) run_keeper(kept, ends[0], answer[1]);
    int problem = errno;
    close(ends[0]);
    close(answer[1]);
    w->keeper = ends[1];
    bool heard = w->keeper_pid > 0 && receive(answer[0], kept);
    close(answer[0]);
    if (w->keeper_pid < 0)
        return plim_fail(err, PLIM_IO, "no process can be started: %s", strerror(problem));
    if (!heard) return plim_fail(err, PLIM_IO, "%s: its keeper was ended", kept->folder);
    if (kept->problem)
        return plim_fail(err, PLIM_IO, "%s: %s", kept->folder, strerror(kept->problem));
    return PLIM_OK;
}

/* Creates the folder of the logs with its parent folders. */
static enum plim_status make_logs(const char *folder, struct plim_error *err)
{
    struct plim_error above = PLIM_ERROR_INIT;
    struct stat info;
    if (plim_outfile_create_folders(folder, &above))
        return plim_fail(err, PLIM_IO, "--logs %s: %s", folder, above.text);
    if (!mkdir(folder, 0777)) return PLIM_OK;
    int problem = errno;
    if (!stat(folder, &info) && S_ISDIR(info.st_mode)) return PLIM_OK;
    return plim_fail(err, PLIM_IO, "--logs %s: it cannot be made: %s", folder,
                     problem == EEXIST ? "this is not a folder" : strerror(problem));
}

static enum plim_status make_folders(struct plim_workspace *w, const char *logs,
                                     struct plim_error *err)
{
    struct kept kept = {0};
    const char *base = secure_getenv("TMPDIR");
    bool is_fit = base && base[0] == '/' && strlen(base) < sizeof(w->folder) - 20 &&
                  !base[strcspn(base, SEPARATORS)];
    snprintf(kept.folder, sizeof(kept.folder), "%s/plimsoll-XXXXXX", is_fit ? base : "/tmp");
    enum plim_status st = start_keeper(w, &kept, err);
    if (st) return st;
    memcpy(w->folder, kept.folder, sizeof(w->folder));
    w->logs = logs ? logs : w->folder;
    return logs ? make_logs(logs, err) : PLIM_OK;
}

/* Links the library into the workspace under every name that programs load it by. Its path there has no blanks and
 * colons, which LD_PRELOAD does not allow. */
static enum plim_status link_library(struct plim_workspace *w, enum plim_preloaded preloaded,
                                     struct plim_error *err)
{
    const char *const *names = libraries[preloaded].names;
    char folder[sizeof(w->folder) + 8], link[sizeof(folder) + 64];
    snprintf(folder, sizeof(folder), "%s/lib", w->folder);
    if (mkdir(folder, 0700)) return plim_fail(err, PLIM_IO, "%s: %s", folder, strerror(errno));
    for (size_t i = 0; i < MOST_NAMES && names[i]; i++) {
        snprintf(link, sizeof(link), "%s/%s", folder, names[i]);
        if (symlink(w->library, link))
            return plim_fail(err, PLIM_IO, "%s: %s", link, strerror(errno));
    }
    snprintf(w->library, sizeof(w->library), "%s/%s", folder, names[0]);
    return PLIM_OK;
}

/* Writes the Python modules: plimsoll_steps.py with an entry point through which PyTorch loads it, and
 * plimsoll_triton.py, which it uses. */
static enum plim_status write_module(struct plim_workspace *w, struct plim_error *err)
{
    static const char entry_points[] = "[torch.backends]\nplimsoll = plimsoll_steps:register\n";
    static const char metadata[] = "Metadata-Version: 2.1\nName: plimsoll-steps\nVersion: 1\n";
    const struct {
        const char *name, *text; /* text is NULL for a folder */
    } entries[] = {{PLIM_WORKSPACE_MODULES, NULL},
                   {PLIM_WORKSPACE_MODULES "/plimsoll_steps.py", plim_steps_module[0].text},
                   {PLIM_WORKSPACE_MODULES "/plimsoll_triton.py", plim_triton_module[0].text},
                   {PLIM_WORKSPACE_MODULES "/plimsoll_steps-1.dist-info", NULL},
                   {PLIM_WORKSPACE_MODULES "/plimsoll_steps-1.dist-info/METADATA", metadata},
                   {PLIM_WORKSPACE_MODULES "/plimsoll_steps-1.dist-info/entry_points.txt",
                    entry_points}};
    char path[sizeof(w->folder) + 80];
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", w->folder, entries[i].name);
        if (!entries[i].text && !mkdir(path, 0700)) continue;
        FILE *file = entries[i].text ? fopen(path, "wx") : NULL;
        bool wrote = file && fputs(entries[i].text, file) >= 0;
        if (file && fclose(file)) wrote = false;
        if (!wrote) return plim_fail(err, PLIM_IO, "%s: %s", path, strerror(errno));
    }
    return PLIM_OK;
}

/* Links nvidia-smi, which lies beside the virtual GPU's library; does nothing if it is missing. */
static enum plim_status link_programs(struct plim_workspace *w, struct plim_error *err)
{
    static const char name[] = "nvidia-smi";
    char program[PATH_MAX + sizeof(name)], path[sizeof(w->folder) + sizeof(name) + 8];
    int folder = (int)(strrchr(w->library, '/') - w->library);
    snprintf(program, sizeof(program), "%.*s/%s", folder, w->library, name);
    snprintf(path, sizeof(path), "%s/" PLIM_WORKSPACE_PROGRAMS, w->folder);
    if (mkdir(path, 0700)) return plim_fail(err, PLIM_IO, "%s: %s", path, strerror(errno));
    snprintf(path, sizeof(path), "%s/" PLIM_WORKSPACE_PROGRAMS "/%s", w->folder, name);
    if (!access(program, X_OK) && symlink(program, path))
        return plim_fail(err, PLIM_IO, "%s: %s", path, strerror(errno));
    return PLIM_OK;
}

enum plim_status plim_workspace_create(struct plim_workspace *w, enum plim_preloaded preloaded,
                                       const char *logs, struct plim_error *err)
{
    *w = (struct plim_workspace){.keeper = -1};
    enum plim_status st = find_library(w, preloaded, err);
    if (!st) st = make_folders(w, logs, err);
    if (!st && preloaded == PLIM_PRELOAD_VIRTUAL_GPU) st = link_programs(w, err);
    if (!st) st = link_library(w, preloaded, err);
    return st ? st : write_module(w, err);
}

/* Removes the folder and kills the keeper, which has nothing left to do. */
void plim_workspace_finish(struct plim_workspace *w)
{
    if (!w) return;
    if (w->folder[0]) plim_execution_remove_folder(w->folder);
    if (w->keeper_pid > 0) {
        kill(w->keeper_pid, SIGKILL);
        while (waitpid(w->keeper_pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (w->keeper >= 0) close(w->keeper);
}
