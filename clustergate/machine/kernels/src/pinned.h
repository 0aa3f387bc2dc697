/* Work that is timed on given cores, one pinned worker per core, started together.
 *
 * Workers are processes: several BLAS libraries serialise or misbehave when threads of one process
 * call them at once, and MPI ranks are processes. Those that share memory are threads. The rate of
 * a trial is all the work divided by the time from the first start to the last end, so that one
 * slow core is seen.
 * Define _GNU_SOURCE before any system header.
 */
#ifndef CLUSTERGATE_PINNED_H
#define CLUSTERGATE_PINNED_H

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CPUS = 16384, MAX_TRIALS = 1000 };

struct options {
    double seconds; /* of one trial */
    int trials;
    int cores[MAX_CPUS];
    int core_count;
};

/* An option of one program: a positive integer. */
struct setting {
    const char *name;
    long *value;
};

/* What a core does while nothing is in its way: work per second, cycles per second (0: unknown). */
struct undisturbed {
    double rate, clock;
};

struct task {
    /* In the pinned worker, before the first trial: memory is touched first by who uses it. */
    void *(*prepare)(const void *arguments, int core);
    double (*run)(void *state);        /* one trial; returns the work done */
    const char *(*check)(void *state); /* after the last trial; NULL, or what is wrong */
    const void *arguments;
    /* After each trial, outside its time; rate: by the processor time, all there is without it. */
    struct undisturbed (*look)(void *state, double rate);
    bool threads; /* for want of processes that share huge pages */
};

struct timing {
    double rate, seconds; /* work per second; from the first start to the last end */
    double cpu_share;     /* of that time, what the kernel gave to the measuring processes */
    struct undisturbed undisturbed; /* of all cores: the sum of rates, the mean of clocks */
};

static int lines_printed;

static inline void fail(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static inline double seconds_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline double now(void) { return seconds_of(CLOCK_MONOTONIC); }

/* A list as the kernel and taskset write it (0,2-5) into cpus[], or false. */
static inline bool parse_cpus(const char *text, bool cpus[MAX_CPUS])
{
    memset(cpus, 0, MAX_CPUS * sizeof cpus[0]);
    for (;; text++) {
        char *end = NULL;
        long first = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1, last = first;
        if (first < 0)
            return false;
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtol(end + 1, &end, 10);
        if (last < first || last >= MAX_CPUS)
            return false;
        for (long cpu = first; cpu <= last; cpu++)
            cpus[cpu] = true;
        if (*end != ',')
            return *end == '\0' || *end == '\n';
        text = end;
    }
}

static inline bool read_line(char *line, int size, const char *path)
{
    FILE *in = fopen(path, "r");
    bool found = in != NULL && fgets(line, size, in) != NULL;
    if (in != NULL)
        fclose(in);
    return found;
}

/* The CPUs this process may use, one of each core: a second hardware thread adds no arithmetic
   unit and no path to memory. */
static inline void find_cores(struct options *options)
{
    static unsigned long words[MAX_CPUS / (CHAR_BIT * sizeof(unsigned long))];
    static bool siblings[MAX_CPUS], taken[MAX_CPUS];
    if (sched_getaffinity(0, sizeof words, (cpu_set_t *)words) != 0)
        fail("cannot tell which CPUs may be used: %s; name them by --cores", strerror(errno));
    for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
        char path[96], line[4096];
        if (!CPU_ISSET_S((size_t)cpu, sizeof words, (cpu_set_t *)words) || taken[cpu])
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        if (read_line(line, sizeof line, path) && parse_cpus(line, siblings))
            for (int other = 0; other < MAX_CPUS; other++)
                taken[other] |= siblings[other];
        options->cores[options->core_count++] = cpu;
    }
}

static inline void take_option(struct options *options, const char *name, const char *text,
                               const struct setting *settings)
{
    static bool cpus[MAX_CPUS];
    char *end = NULL;
    if (text == NULL)
        fail("%s needs a value", name);
    if (strcmp(name, "--seconds") == 0) {
        options->seconds = strtod(text, &end);
        if (*end != '\0' || !(options->seconds > 0 && options->seconds <= 3600))
            fail("--seconds takes a number above 0 and up to 3600, not '%s'", text);
        return;
    }
    if (strcmp(name, "--cores") == 0) {
        if (!parse_cpus(text, cpus))
            fail("--cores takes a list like 0,2-5, not '%s'", text);
        for (int cpu = 0; cpu < MAX_CPUS; cpu++)
            if (cpus[cpu])
                options->cores[options->core_count++] = cpu;
        return;
    }
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > INT_MAX)
        fail("%s takes a whole number above 0, not '%s'", name, text);
    if (strcmp(name, "--trials") == 0 && value <= MAX_TRIALS) {
        options->trials = (int)value;
        return;
    }
    for (; settings->name != NULL; settings++) {
        if (strcmp(name, settings->name) == 0) {
            *settings->value = value;
            return;
        }
    }
    fail("'%s %s' is not understood; see the head of the source", name, text);
}

/* --seconds S, --trials N, --cores LIST and the program's own settings, ended by {NULL, NULL}. */
static inline void parse_options(struct options *options, int argc, char **argv,
                                 const struct setting *settings)
{
    for (int i = 1; i < argc; i += 2)
        take_option(options, argv[i], i + 1 < argc ? argv[i + 1] : NULL, settings);
    if (options->core_count == 0)
        find_cores(options);
}

struct span {
    double start, end, work, cpu;
    struct undisturbed undisturbed;
};

struct worker {
    const struct task *task;
    int core, trials;
    pthread_barrier_t *barrier;
    struct span *spans;
};

static inline void *work_pinned(void *worker_)
{
    const struct worker *worker = worker_;
    const struct task *task = worker->task;
    unsigned long words[MAX_CPUS / (CHAR_BIT * sizeof(unsigned long))] = {0};
    CPU_SET_S((size_t)worker->core, sizeof words, (cpu_set_t *)words);
    if (sched_setaffinity(0, sizeof words, (cpu_set_t *)words) != 0)
        fail("cannot run on CPU %d: %s; it is offline or not allowed to this job", worker->core,
             strerror(errno));
    /* A BLAS that starts threads of its own after all is not to have their time for nothing. */
    clockid_t used = task->threads ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
    void *state = task->prepare(task->arguments, worker->core);
    for (int trial = 0; trial < worker->trials; trial++) {
        struct span span;
        pthread_barrier_wait(worker->barrier);
        double cpu = seconds_of(used);
        span.start = now();
        span.work = task->run(state);
        span.end = now();
        span.cpu = seconds_of(used) - cpu;
        double rate = span.work / span.cpu;
        span.undisturbed =
            task->look != NULL ? task->look(state, rate) : (struct undisturbed){rate, 0};
        worker->spans[trial] = span;
    }
    const char *wrong = task->check(state);
    if (wrong != NULL)
        fail("wrong result on CPU %d: %s; if another node does not show it, this one is faulty",
             worker->core, wrong);
    return NULL;
}

/* Wait for all workers; one that fails would leave the others waiting for it for ever. */
static inline void join_processes(const pid_t *workers, int count)
{
    for (int left = count; left > 0; left--) {
        int status = 0;
        pid_t ended = wait(&status);
        if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        for (int i = 0; i < count; i++)
            if (workers[i] != ended)
                kill(workers[i], SIGKILL);
        if (WIFSIGNALED(status))
            fail("a measuring process was ended by signal %d (%s); with signal 9 the node "
                 "probably ran out of memory",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
        exit(2); /* the worker has said why */
    }
}

static inline void run_processes(const struct worker *workers, int count)
{
    pid_t *processes = malloc((size_t)count * sizeof processes[0]);
    if (processes == NULL)
        fail("no memory for %d measuring processes", count);
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        processes[i] = fork();
        if (processes[i] == 0) {
            /* A stopped measurement leaves no process behind that disturbs the next one. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            work_pinned((void *)(workers + i));
            _exit(0);
        }
        if (processes[i] < 0) {
            for (int started = 0; started < i; started++)
                kill(processes[started], SIGKILL);
            fail("cannot start %d measuring processes: %s", count, strerror(errno));
        }
    }
    join_processes(processes, count);
    free(processes);
}

static inline void run_threads(const struct worker *workers, int count)
{
    pthread_t *threads = malloc((size_t)count * sizeof threads[0]);
    int error = threads == NULL ? ENOMEM : 0;
    for (int i = 0; i < count && error == 0; i++)
        error = pthread_create(threads + i, NULL, work_pinned, (void *)(workers + i));
    if (error != 0)
        fail("cannot start %d measuring threads: %s", count, strerror(error));
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

static inline void measure(const struct task *task, const int *cores, int count, int trials,
                           struct timing *timings)
{
    pthread_barrierattr_t attributes;
    size_t spans_size = (size_t)count * (size_t)trials * sizeof(struct span);
    size_t size = sizeof(pthread_barrier_t) + spans_size;
    struct worker *workers = malloc((size_t)count * sizeof workers[0]);
    pthread_barrier_t *barrier =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (workers == NULL || barrier == MAP_FAILED)
        fail("no memory for %d measuring workers", count);
    struct span *spans = (struct span *)(barrier + 1);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier, &attributes, (unsigned)count);
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){task, cores[i], trials, barrier, spans + i * trials};
    (task->threads ? run_threads : run_processes)(workers, count);
    for (int trial = 0; trial < trials; trial++) {
        struct span all = spans[trial];
        double wall = all.end - all.start;
        for (int i = 1; i < count; i++) {
            struct span one = spans[i * trials + trial];
            all.start = one.start < all.start ? one.start : all.start;
            all.end = one.end > all.end ? one.end : all.end;
            all.work += one.work;
            all.cpu += one.cpu;
            all.undisturbed.rate += one.undisturbed.rate;
            all.undisturbed.clock += one.undisturbed.clock;
            wall += one.end - one.start;
        }
        all.undisturbed.clock /= count;
        timings[trial].undisturbed = all.undisturbed;
        timings[trial].cpu_share = all.cpu < wall ? all.cpu / wall : 1.0;
        timings[trial].seconds = all.end - all.start;
        timings[trial].rate = all.work / timings[trial].seconds;
    }
    free(workers);
    munmap(barrier, size);
}

/* The beginning of a line of output; the caller adds its own members and ends it. */
static inline void print_measurement(const char *name, const int *cores, int count, int trial,
                                     double seconds)
{
    lines_printed++;
    printf("{\"measurement\":\"%s\",\"cores\":[", name);
    for (int i = 0; i < count; i++)
        printf("%s%d", i == 0 ? "" : ",", cores[i]);
    printf("],\"trial\":%d,\"seconds\":%.6f", trial, seconds);
}

/* The end of a line of a trial: its rate without what other processes took, in units of 10^9, and
   how much was left to it. */
static inline void print_undisturbed(const struct timing *timing)
{
    printf(",\"undisturbed\":%.3f,\"cpu_share\":%.6f}\n", 1e-9 * timing->undisturbed.rate,
           timing->cpu_share);
}

/* The last line: without it, or with another count, the output was cut off. */
static inline void print_end(void)
{
    printf("{\"measurement\":\"end\",\"count\":%d}\n", lines_printed);
    if (fflush(stdout) != 0 || ferror(stdout))
        fail("the output could not be written: %s", strerror(errno));
}

#endif
