/* The proof of a run: every rank says who it is, where it runs and what it has loaded.
 *
 *   mpicc -O2 -fPIC -shared -pthread -o libproof.so proof.c progress.c -ldl
 *   mpirun … env LD_PRELOAD=<path>/libproof.so CLUSTERGATE_PRELOAD=<path>/libproof.so \
 *                CLUSTERGATE_PROOF_DIR=<dir> CLUSTERGATE_PROOF_NONCE=<word> <benchmark> …
 *
 * It is preloaded into the launch that is measured, not into one like it. By MPI's profiling
 * interface it stands before MPI_Init, MPI_Init_thread, MPI_Finalize and MPI_Abort, and progress.c
 * before the calls by which ranks wait for each other, which cost four stores each. A process
 * writes <dir>/rank-<hostname>-<pid>.json when it is initialised and again when it reaches
 * MPI_Finalize, so that a killed rank leaves a record that says it did not finish. Of a launch that
 * hangs two empty files tell more: entered-<hostname>-<pid> of a process that comes to MPI_Init,
 * from which none returns before all have come, and ended-<hostname>-<pid> of a rank that answers
 * the signal by which a job is ended: one that is stuck does not. Rank 0 writes a line with the
 * word of the launch, CLUSTERGATE_PROOF_NONCE, to standard output, so that the output of another
 * launch is not taken for its own. Nothing here may fail the benchmark: what cannot be found out is
 * null.
 *
 * The loader takes the benchmark's own dependencies before those of a preloaded library: a
 * benchmark that finds the wrong MPI library keeps it, and is found out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "blas.h"
#include "progress.h"

enum { MAX_CPUS = 16384 };

extern char **environ;

static struct {
    int rank, size;
    const char *directory; /* NULL: no proof is asked for */
    char hostname[256];
    /* Large enough for whichever library answers, not only for the one of this mpi.h. */
    char library_version[MPI_MAX_LIBRARY_VERSION_STRING + 16384];
    char *at_init; /* JSON; NULL when memory ran out */
    char ended[PATH_MAX];
} state = {-1, -1, NULL, "", "", NULL, ""};

static void put_text(FILE *out, const char *text, size_t length)
{
    putc('"', out);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    putc('"', out);
}

static void put_string(FILE *out, const char *text)
{
    if (text == NULL)
        fputs("null", out);
    else
        put_text(out, text, strlen(text));
}

static void put_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",\"%s\":", name);
    put_string(out, text);
}

/* A small file of /proc or /sys without its last newline; NULL if it cannot be read. */
static const char *text_of(const char *path, char *buffer, size_t size)
{
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return NULL;
    size_t length = fread(buffer, 1, size - 1, in);
    bool failed = ferror(in) != 0;
    fclose(in);
    while (length > 0 && buffer[length - 1] == '\n')
        length--;
    buffer[length] = '\0';
    return failed ? NULL : buffer;
}

/* The CPUs this process may run on, each with the hardware threads of its core: two ranks on two
   hardware threads of one core have disjoint affinities and share the core all the same.
   Nothing between the braces: the affinity is not known. */
static void put_affinity(FILE *out)
{
    static unsigned long words[MAX_CPUS / (CHAR_BIT * sizeof(unsigned long))];
    cpu_set_t *mask = (cpu_set_t *)words;
    const char *comma = "";
    memset(words, 0, sizeof words);
    fputs(",\"affinity\":{", out);
    (void)sched_getaffinity(0, sizeof words, mask);
    for (size_t cpu = 0; cpu < MAX_CPUS; cpu++) {
        char path[96], buffer[256];
        if (!CPU_ISSET_S(cpu, sizeof words, mask))
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
                 cpu);
        fprintf(out, "%s\"%zu\":", comma, cpu);
        put_string(out, text_of(path, buffer, sizeof buffer));
        comma = ",";
    }
    putc('}', out);
}

/* The aggregate line of /proc/stat as it is; of each CPU only the stolen time (8th figure), or
   the records of a large node would be mostly this. */
static void put_cpu_times(FILE *out)
{
    char line[512];
    const char *comma = "";
    FILE *in = fopen("/proc/stat", "r");
    if (in == NULL || fgets(line, sizeof line, in) == NULL) {
        fputs(",\"cpu_times\":null,\"steal_by_cpu\":null", out);
    } else {
        line[strcspn(line, "\n")] = '\0';
        put_member(out, "cpu_times", line);
        fputs(",\"steal_by_cpu\":{", out);
        while (fgets(line, sizeof line, in) != NULL && strncmp(line, "cpu", 3) == 0) {
            int cpu;
            unsigned long long steal;
            if (sscanf(line, "cpu%d %*s %*s %*s %*s %*s %*s %*s %llu", &cpu, &steal) == 2) {
                fprintf(out, "%s\"%d\":%llu", comma, cpu, steal);
                comma = ",";
            }
        }
        putc('}', out);
    }
    if (in != NULL)
        fclose(in);
}

static long thread_count(void)
{
    char buffer[4096];
    const char *status = text_of("/proc/self/status", buffer, sizeof buffer);
    const char *threads = status != NULL ? strstr(status, "\nThreads:") : NULL;
    if (threads == NULL)
        return -1;
    return strtol(threads + strlen("\nThreads:"), NULL, 10) - progress_threads();
}

static double seconds_of(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A clock as the kernel has it. A library that stands before the C library's clocks may stand
   before its syscall() as well: where it can be avoided, nothing is called. -1: there is none. */
static double kernel_seconds_of(clockid_t clock)
{
    struct timespec now = {0, 0};
    long failed;
#if defined(__x86_64__) && defined(__LP64__)
    __asm__ volatile("syscall"
                     : "=a"(failed)
                     : "0"((long)SYS_clock_gettime), "D"((long)clock), "S"(&now)
                     : "rcx", "r11", "cc", "memory");
#elif defined(__aarch64__) && defined(__LP64__)
    register long number __asm__("x8") = SYS_clock_gettime;
    register long first __asm__("x0") = clock;
    register long second __asm__("x1") = (long)&now;
    __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
    failed = first;
#else
    failed = syscall(SYS_clock_gettime, clock, &now);
#endif
    return failed ? -1 : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What the program's clocks show while CLOCK_MONOTONIC_RAW passes from raw_s to raw_s + apart_s:
   MPI_Wtime and the C library's, whoever answers to their names, and the kernel's time of day. */
struct clocks {
    double raw_s, apart_s, wtime_s, monotonic_s, time_of_day_s, kernel_time_of_day_s;
};

static struct clocks read_clocks(void)
{
    enum { ATTEMPTS = 32 };
    const double close_enough_s = 20e-6;
    struct clocks best = {-1, 0, 0, 0, 0, 0};
    for (int i = 0; i < ATTEMPTS && (best.raw_s < 0 || best.apart_s > close_enough_s); i++) {
        struct clocks now;
        struct timeval of_day = {0, 0};
        now.raw_s = kernel_seconds_of(CLOCK_MONOTONIC_RAW);
        now.kernel_time_of_day_s = kernel_seconds_of(CLOCK_REALTIME);
        now.wtime_s = MPI_Wtime();
        now.monotonic_s = seconds_of(CLOCK_MONOTONIC);
        gettimeofday(&of_day, NULL);
        now.time_of_day_s = (double)of_day.tv_sec + 1e-6 * (double)of_day.tv_usec;
        now.apart_s = kernel_seconds_of(CLOCK_MONOTONIC_RAW) - now.raw_s;
        if (now.raw_s < 0)
            break;
        if (best.raw_s < 0 || now.apart_s < best.apart_s)
            best = now;
    }
    return best;
}

static void put_clocks(FILE *out)
{
    struct clocks now = read_clocks();
    if (now.raw_s < 0)
        fputs(",\"clocks\":null", out);
    else
        fprintf(out,
                ",\"clocks\":{\"raw_s\":%.9f,\"apart_s\":%.9f,\"wtime_s\":%.9f,"
                "\"monotonic_s\":%.9f,\"time_of_day_s\":%.6f,\"kernel_time_of_day_s\":%.6f}",
                now.raw_s, now.apart_s, now.wtime_s, now.monotonic_s, now.time_of_day_s,
                now.kernel_time_of_day_s);
}

/* By how much local time, in which programs print dates, is ahead of UTC. */
static void put_utc_offset(FILE *out)
{
    struct tm local;
    time_t now = time(NULL);
    if (localtime_r(&now, &local) != NULL)
        fprintf(out, ",\"utc_offset_s\":%ld", local.tm_gmtoff);
}

static void put_moment(FILE *out)
{
    struct rusage usage;
    char buffer[1024];
    fprintf(out, "{\"monotonic_s\":%.9f,\"realtime_s\":%.6f,\"cpu\":%d,\"threads\":%ld",
            seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_REALTIME), sched_getcpu(),
            thread_count());
    put_clocks(out);
    put_affinity(out);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        fprintf(out,
                ",\"user_s\":%ld.%06ld,\"system_s\":%ld.%06ld,\"voluntary_switches\":%ld,"
                "\"involuntary_switches\":%ld,\"max_rss_kib\":%ld",
                (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec,
                (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec, usage.ru_nvcsw,
                usage.ru_nivcsw, usage.ru_maxrss);
    put_cpu_times(out);
    put_member(out, "loadavg", text_of("/proc/loadavg", buffer, sizeof buffer));
    put_member(out, "pressure_cpu", text_of("/proc/pressure/cpu", buffer, sizeof buffer));
    put_utc_offset(out);
    putc('}', out);
}

/* One more element of an array: the program itself has no name here, the kernel's vdso no file. */
static int put_object(struct dl_phdr_info *object, size_t size, void *data)
{
    char path[PATH_MAX];
    FILE *out = data;
    (void)size;
    if (object->dlpi_name[0] == '/') {
        putc(',', out);
        put_string(out, realpath(object->dlpi_name, path) != NULL ? path : object->dlpi_name);
    }
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Whether this file was to be preloaded, by whoever started the program: CLUSTERGATE_PRELOAD is
   what LD_PRELOAD was meant to be. ld.so(8): spaces and colons divide. */
static bool asked_for(const char *name)
{
    const char *meant = getenv("CLUSTERGATE_PRELOAD");
    const char *list = meant != NULL ? meant : getenv("LD_PRELOAD");
    char copy[4 * PATH_MAX], *rest = copy, *one;
    snprintf(copy, sizeof copy, "%s", list != NULL ? list : "");
    while ((one = strsep(&rest, ": ")) != NULL)
        if (strcmp(base_name(one), base_name(name)) == 0)
            return true;
    return false;
}

/* Whether the program itself names this file among its dependencies. */
static bool needed(const struct link_map *program, const char *name)
{
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = program->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            /* Some architectures leave the section as it is in the file. */
            strings = (const char *)(entry->d_un.d_ptr < program->l_addr
                                         ? entry->d_un.d_ptr + program->l_addr
                                         : entry->d_un.d_ptr);
    for (const ElfW(Dyn) *entry = program->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && strings != NULL &&
            strcmp(base_name(strings + entry->d_un.d_val), base_name(name)) == 0)
            return true;
    return false;
}

/* What was loaded before the program's own dependencies and was not asked for. The loader puts it
   right behind the program: from LD_PRELOAD, then from /etc/ld.so.preload, ld.so(8); whatever a
   program or library loads by itself comes behind the dependencies. */
static void put_foreign_preloads(FILE *out)
{
    const struct link_map *program = _r_debug.r_map;
    const char *comma = "";
    fputs(",\"foreign_preloads\":[", out);
    for (const struct link_map *one = program != NULL ? program->l_next : NULL;
         one != NULL && !needed(program, one->l_name); one = one->l_next) {
        if (one->l_name[0] != '/' || asked_for(one->l_name))
            continue;
        fputs(comma, out);
        put_string(out, one->l_name);
        comma = ",";
    }
    putc(']', out);
}

/* Whether this NAME=value can change a figure, or tells which launcher gave it. */
static bool telling(const char *variable)
{
    static const char *const beginnings[] = {
        "OMP_",  "GOMP_",   "KMP_",      "OPENBLAS_", "GOTO_",   "MKL_",             "BLIS_",
        "FI_",   "UCX_",    "I_MPI_",    "MPICH_",    "MPIR_",   "HYDRA_",           "MV2_",
        "OMPI_", "MALLOC_", "PMIX_MCA_", "PRTE_MCA_", "LD_PRELOAD=", "LD_LIBRARY_PATH=",
        "GLIBC_TUNABLES=", "MPI_LOCALRANKID=", "LD_AUDIT="};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* The names alone: a value may be a secret, and nobody needs it. */
static void put_environment(FILE *out)
{
    const char *comma = "";
    fputs(",\"environment\":[", out);
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        const char *equals = strchr(*variable, '=');
        if (equals == NULL || !telling(*variable))
            continue;
        fputs(comma, out);
        put_text(out, *variable, (size_t)(equals - *variable));
        comma = ",";
    }
    putc(']', out);
}

/* A path as the loader names it and, since it may lead there through links, where it ends. */
static void put_path(FILE *out, const char *name, const char *path)
{
    char resolved[PATH_MAX];
    fprintf(out, ",\"%s\":[", name);
    put_string(out, path);
    putc(',', out);
    put_string(out, path != NULL ? realpath(path, resolved) : NULL);
    putc(']', out);
}

static void put_blas(FILE *out)
{
    struct blas blas = blas_identity();
    if (blas.name == NULL && blas.library == NULL) {
        fputs(",\"blas\":null", out);
        return;
    }
    fprintf(out, ",\"blas\":{\"threads\":%d", blas.threads);
    put_path(out, "library", blas.library);
    put_member(out, "name", blas.name);
    put_member(out, "version", blas.version);
    put_member(out, "kernel", blas.kernel);
    putc('}', out);
}

static void put_record(FILE *out, bool finalized, bool aborted)
{
    char path[PATH_MAX];
    const char *executable = realpath("/proc/self/exe", path);
    int version = 0, subversion = 0;
    PMPI_Get_version(&version, &subversion);
    fprintf(out, "{\"rank\":%d,\"size\":%d,\"pid\":%ld,\"finalized\":%s,\"aborted\":%s",
            state.rank, state.size, (long)getpid(), finalized ? "true" : "false",
            aborted ? "true" : "false");
    put_member(out, "nonce", getenv("CLUSTERGATE_PROOF_NONCE"));
    put_member(out, "hostname", state.hostname);
    fprintf(out, ",\"mpi_version\":\"%d.%d\"", version, subversion);
    put_member(out, "library_version", state.library_version);
    put_path(out, "mpi_library", blas_file_of(dlsym(RTLD_DEFAULT, "PMPI_Init")));
    put_member(out, "executable", executable);
    fputs(",\"objects\":[", out);
    put_string(out, executable);
    dl_iterate_phdr(put_object, out);
    putc(']', out);
    put_foreign_preloads(out);
    put_blas(out);
    put_environment(out);
    fprintf(out, ",\"at_init\":%s,\"at_finalize\":",
            state.at_init != NULL ? state.at_init : "null");
    finalized ? put_moment(out) : put_string(out, NULL);
    fputs("}\n", out);
}

/* Written beside and renamed: whoever reads finds a whole record or none. */
static void write_record(bool finalized, bool aborted)
{
    char path[PATH_MAX], beside[PATH_MAX + 8];
    if (state.directory == NULL)
        return;
    snprintf(path, sizeof path, "%s/rank-%s-%ld.json", state.directory, state.hostname,
             (long)getpid());
    snprintf(beside, sizeof beside, "%s.part", path);
    FILE *out = fopen(beside, "w");
    bool failed = out == NULL;
    if (!failed) {
        put_record(out, finalized, aborted);
        failed = ferror(out) != 0;
        failed = fclose(out) != 0 || failed || rename(beside, path) != 0;
    }
    if (failed)
        fprintf(stderr, "clustergate: cannot write %s, the proof of rank %d: %s\n", path,
                state.rank, strerror(errno));
}

static void touch(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0)
        close(file);
}

static void entering(void)
{
    char path[PATH_MAX];
    state.directory = getenv("CLUSTERGATE_PROOF_DIR");
    if (state.directory == NULL)
        return;
    gethostname(state.hostname, sizeof state.hostname - 1);
    snprintf(path, sizeof path, "%s/entered-%s-%ld", state.directory, state.hostname,
             (long)getpid());
    touch(path);
    progress_begin(state.directory, state.hostname);
    progress_enter_init();
}

/* Nothing but what a signal handler may call, signal-safety(7); then the signal does its work. */
static void ended(int number)
{
    touch(state.ended);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_for_the_end(void)
{
    struct sigaction now;
    snprintf(state.ended, sizeof state.ended, "%s/ended-%s-%ld", state.directory, state.hostname,
             (long)getpid());
    /* A program or library that has a handler of its own keeps it. */
    if (sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(SIGTERM, ended);
}

/* In one write, and not through stdio, whose buffer is the program's. */
static void mark_the_output(void)
{
    char line[256];
    const char *word = getenv("CLUSTERGATE_PROOF_NONCE");
    int length = snprintf(line, sizeof line, "clustergate-launch %s\n", word != NULL ? word : "");
    if (length > 0 && (size_t)length < sizeof line && write(STDOUT_FILENO, line, (size_t)length) < 0)
        fprintf(stderr, "clustergate: cannot write to standard output: %s\n", strerror(errno));
}

static void initialised(void)
{
    int length = 0;
    size_t size = 0;
    bool usable = true;
    progress_leave();
    if (state.directory == NULL)
        return;
    watch_for_the_end();
    PMPI_Get_library_version(state.library_version, &length);
    /* MPI_COMM_WORLD is a pointer to one family of libraries and a number to the other: handing
       over the wrong kind would kill the run instead of telling why. */
#if defined(OPEN_MPI)
    usable = strncmp(state.library_version, "Open MPI", 8) == 0;
#elif defined(MPICH) || defined(MPICH_NAME) || defined(I_MPI_VERSION)
    usable = strncmp(state.library_version, "Open MPI", 8) != 0;
#endif
    if (usable) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &state.rank);
        PMPI_Comm_size(MPI_COMM_WORLD, &state.size);
    }
    progress_of_rank(state.rank, state.size);
    if (state.rank == 0)
        mark_the_output();
    FILE *out = open_memstream(&state.at_init, &size);
    if (out != NULL) {
        put_moment(out);
        fclose(out);
    }
    write_record(false, false);
}

int MPI_Init(int *argc, char ***argv)
{
    entering();
    int status = PMPI_Init(argc, argv);
    if (status == MPI_SUCCESS)
        initialised();
    return status;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    entering();
    int status = PMPI_Init_thread(argc, argv, required, provided);
    if (status == MPI_SUCCESS)
        initialised();
    return status;
}

int MPI_Finalize(void)
{
    /* Before, not after: only rank 0 is sure to return from MPI_Finalize. */
    write_record(true, false);
    progress_enter_finalize();
    int status = PMPI_Finalize();
    progress_leave();
    return status;
}

int MPI_Abort(MPI_Comm communicator, int status)
{
    write_record(false, true);
    return PMPI_Abort(communicator, status);
}
