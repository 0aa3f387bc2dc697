/* How far the ranks of a node have come: how many MPI calls each made, and which was its last.
 *
 * All ranks of a node share a small file in /dev/shm, a line of the cache each, where every call
 * makes four stores. A thread of the first of them sleeps, and every CLUSTERGATE_PROOF_EVERY seconds
 * writes what it finds there into the folder of the proof, for the driver of the launch. The file
 * progress-<hostname>-<pid> holds, between two lines with the number of its writing,
 *
 *   <rank> <pid> <calls> <fruitless polls> <1: in the call> <call> <state> <seconds of processor>
 *
 * where the last two, proc_pid_stat(5), are told of ranks that made no call since the last time.
 * Nothing here may fail the benchmark: without /dev/shm nothing is noted.
 *
 * All arguments of MPI are numbers and pointers. Each is handed on as a whole register, or a whole
 * place on the stack, whatever its type is there: handles are numbers in one family of libraries
 * and pointers in the other, and the program may have loaded the wrong one, which its proof is to
 * tell. That holds where these are 64 bits: System V for x86-64, AAPCS64, ELFv2, RISC-V.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

_Static_assert(sizeof(long) == 8 && sizeof(void *) == 8, "an argument is a whole register");

/* The calls by which ranks wait for each other, with the number of their arguments. Who polls has
   come no further until there is something: the argument named last points at what says so. */
#define MPI_CALLS(CALL, POLL)                                                                      \
    CALL(Send, 6) CALL(Ssend, 6) CALL(Bsend, 6) CALL(Rsend, 6) CALL(Recv, 7)                       \
    CALL(Sendrecv, 12) CALL(Sendrecv_replace, 9) CALL(Isend, 7) CALL(Issend, 7)                    \
    CALL(Ibsend, 7) CALL(Irsend, 7) CALL(Irecv, 7) CALL(Probe, 4) CALL(Mprobe, 5)                  \
    CALL(Mrecv, 5) CALL(Imrecv, 5) CALL(Start, 1) CALL(Startall, 2) CALL(Wait, 2)                  \
    CALL(Waitall, 3) CALL(Waitany, 4) CALL(Waitsome, 5) CALL(Barrier, 1) CALL(Bcast, 5)            \
    CALL(Gather, 8) CALL(Gatherv, 9) CALL(Scatter, 8) CALL(Scatterv, 9) CALL(Allgather, 7)         \
    CALL(Allgatherv, 8) CALL(Alltoall, 7) CALL(Alltoallv, 9) CALL(Alltoallw, 9)                    \
    CALL(Reduce, 7) CALL(Allreduce, 6) CALL(Reduce_scatter, 6) CALL(Reduce_scatter_block, 6)       \
    CALL(Scan, 6) CALL(Exscan, 6) CALL(Ibarrier, 2) CALL(Ibcast, 6) CALL(Igather, 9)               \
    CALL(Igatherv, 10) CALL(Iscatter, 9) CALL(Iscatterv, 10) CALL(Iallgather, 8)                   \
    CALL(Iallgatherv, 9) CALL(Ialltoall, 8) CALL(Ialltoallv, 10) CALL(Ialltoallw, 10)              \
    CALL(Ireduce, 8) CALL(Iallreduce, 7) CALL(Ireduce_scatter, 7)                                  \
    CALL(Ireduce_scatter_block, 7) CALL(Iscan, 7) CALL(Iexscan, 7) CALL(Neighbor_allgather, 7)     \
    CALL(Neighbor_allgatherv, 8) CALL(Neighbor_alltoall, 7) CALL(Neighbor_alltoallv, 9)            \
    CALL(Neighbor_alltoallw, 9) CALL(Comm_dup, 2) CALL(Comm_create, 3)                             \
    CALL(Comm_create_group, 4) CALL(Comm_split, 4) CALL(Comm_split_type, 5) CALL(Comm_free, 1)     \
    CALL(Comm_disconnect, 1) CALL(Cart_create, 6) CALL(Cart_sub, 3) CALL(Put, 8) CALL(Get, 8)      \
    CALL(Accumulate, 9) CALL(Get_accumulate, 12) CALL(Fetch_and_op, 7)                             \
    CALL(Compare_and_swap, 7) CALL(Rput, 9) CALL(Rget, 9) CALL(Raccumulate, 10)                    \
    CALL(Win_create, 6) CALL(Win_allocate, 6) CALL(Win_allocate_shared, 6)                         \
    CALL(Win_create_dynamic, 3) CALL(Win_free, 1) CALL(Win_fence, 2) CALL(Win_start, 3)            \
    CALL(Win_complete, 1) CALL(Win_post, 3) CALL(Win_wait, 1) CALL(Win_lock, 4)                    \
    CALL(Win_unlock, 2) CALL(Win_lock_all, 2) CALL(Win_unlock_all, 1) CALL(Win_flush, 2)           \
    CALL(Win_flush_all, 1) CALL(Win_flush_local, 2) CALL(Win_flush_local_all, 1)                   \
    CALL(Win_sync, 1) POLL(Test, 3, b) POLL(Testall, 4, c) POLL(Testany, 5, d)                     \
    POLL(Testsome, 5, c) POLL(Iprobe, 5, d) POLL(Improbe, 6, d) POLL(Request_get_status, 3, b)     \
    POLL(Win_test, 2, b)

enum { MAX_RANKS = 1023, LONGEST_LINE = 120, STACK = 256 << 10 };
/* So many writings after the first rank came nothing is left of ranks that are killed before all
   others came; whoever comes later tells of itself. */
enum { LONGEST_START = 12 };

#define NUMBERED(name, ...) CALL_##name,
enum { NOTHING, CALL_Init, CALL_Finalize, MPI_CALLS(NUMBERED, NUMBERED) };
#define NAMED(name, ...) "MPI_" #name,
static const char *const names[] = {"-", "MPI_Init", "MPI_Finalize", MPI_CALLS(NAMED, NAMED)};

/* Where a rank is. */
struct line {
    _Atomic uint64_t calls, fruitless; /* polls that told nothing do not count as calls */
    _Atomic int pid, rank, call, inside;
    char apart[96]; /* processors fetch lines in pairs */
};

struct node {
    _Atomic unsigned ranks; /* that have a line, or found none left */
    char apart[124];
    struct line lines[MAX_RANKS];
};

static struct line no_line;
static struct line *mine = &no_line;
static struct {
    struct node *node;
    char shared[PATH_MAX], told[PATH_MAX], hostname[256];
    double every_s;
    int size;
    bool tells;
    uint64_t before[MAX_RANKS];
    char text[(MAX_RANKS + 2) * LONGEST_LINE];
} state = {.size = 1};

/* No more than a store each; where several threads are in MPI at once one may be lost. */
#define SET(what, value) atomic_store_explicit(&mine->what, value, memory_order_relaxed)
#define ONE_MORE(what) SET(what, atomic_load_explicit(&mine->what, memory_order_relaxed) + 1)

static inline void enter(int call)
{
    SET(call, call);
    SET(inside, 1);
}

static inline void leave(void)
{
    SET(inside, 0);
}

#define P1 long a
#define P2 P1, long b
#define P3 P2, long c
#define P4 P3, long d
#define P5 P4, long e
#define P6 P5, long f
#define P7 P6, long g
#define P8 P7, long h
#define P9 P8, long i
#define P10 P9, long j
#define P11 P10, long k
#define P12 P11, long l
#define A1 a
#define A2 A1, b
#define A3 A2, c
#define A4 A3, d
#define A5 A4, e
#define A6 A5, f
#define A7 A6, g
#define A8 A7, h
#define A9 A8, i
#define A10 A9, j
#define A11 A10, k
#define A12 A11, l

/* Where a call goes on: to what would have had it without this library, another tool or MPI itself,
   as found by progress_begin. Weak: an older library lacks some, and then nobody calls them. */
#define GOING_ON(name, count)                                                                      \
    int PMPI_##name(P##count) __attribute__((weak));                                               \
    int MPI_##name(P##count);                                                                      \
    static int (*next_##name)(P##count) = PMPI_##name;
#define CALL(name, count)                                                                          \
    GOING_ON(name, count)                                                                          \
    int MPI_##name(P##count)                                                                       \
    {                                                                                              \
        ONE_MORE(calls);                                                                           \
        enter(CALL_##name);                                                                        \
        int status = next_##name(A##count);                                                        \
        leave();                                                                                   \
        return status;                                                                             \
    }
/* Who polls has come no further until there is something. */
#define POLL(name, count, told)                                                                    \
    GOING_ON(name, count)                                                                          \
    int MPI_##name(P##count)                                                                       \
    {                                                                                              \
        enter(CALL_##name);                                                                        \
        int status = next_##name(A##count);                                                        \
        leave();                                                                                   \
        if (status == 0 && *(const int *)told > 0)                                                 \
            ONE_MORE(calls);                                                                       \
        else                                                                                       \
            ONE_MORE(fruitless);                                                                   \
        return status;                                                                             \
    }

MPI_CALLS(CALL, POLL)

static void find_next(void)
{
    void *found;
#define NEXT(name, ...)                                                                            \
    if ((found = dlsym(RTLD_NEXT, "MPI_" #name)) != NULL)                                          \
        *(void **)&next_##name = found;
    MPI_CALLS(NEXT, NEXT)
}

void progress_enter_init(void)
{
    ONE_MORE(calls);
    enter(CALL_Init);
}

void progress_enter_finalize(void)
{
    ONE_MORE(calls);
    enter(CALL_Finalize);
}

void progress_leave(void)
{
    leave();
}

/* The state of a process and the seconds of processor that it took; '-' of one that is gone. */
static double used_s(int pid, char *how)
{
    char path[64], text[1024];
    unsigned long user = 0, kernel = 0;
    *how = '-';
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    /* A program's name may hold anything. */
    const char *behind = strrchr(text, ')');
    if (behind == NULL || sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                 how, &user, &kernel) != 3)
        return 0;
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static size_t put_line(char *out, unsigned which)
{
    const struct line *line = &state.node->lines[which];
    uint64_t calls = atomic_load(&line->calls);
    int pid = atomic_load(&line->pid);
    char how = '?';
    double seconds = calls == state.before[which] ? used_s(pid, &how) : 0;
    state.before[which] = calls;
    return (size_t)snprintf(out, LONGEST_LINE, "%d %d %llu %llu %d %s %c %.2f\n",
                            atomic_load(&line->rank), pid, (unsigned long long)calls,
                            (unsigned long long)atomic_load(&line->fruitless),
                            atomic_load(&line->inside), names[atomic_load(&line->call)], how,
                            seconds);
}

static unsigned known_ranks(void)
{
    unsigned ranks = atomic_load(&state.node->ranks);
    return ranks < MAX_RANKS ? ranks : MAX_RANKS;
}

/* Opened and closed each time: then other nodes see it, nfs(5). */
static void tell(unsigned long time, double every_s)
{
    unsigned ranks = known_ranks();
    size_t length = (size_t)snprintf(state.text, sizeof state.text, "%lu %.3f %s\n", time, every_s,
                                     state.hostname);
    for (unsigned i = 0; i < ranks; i++)
        length += put_line(state.text + length, i);
    length += (size_t)snprintf(state.text + length, LONGEST_LINE, "%lu\n", time);
    int file = open(state.told, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return;
    if (pwrite(file, state.text, length, 0) == (ssize_t)length)
        (void)!ftruncate(file, (off_t)length);
    close(file);
}

/* Of a hundred nodes one file server gets ten writes a second, of more nodes no more. */
static void *keep_telling(void *nothing)
{
    const double most_a_second = 10;
    for (unsigned long time = 1;; time++) {
        unsigned here = known_ranks();
        double nodes = (double)state.size / (double)(here > 0 ? here : 1);
        double every_s = state.every_s;
        if (every_s >= 1 && nodes / most_a_second > every_s)
            every_s = nodes / most_a_second;
        struct timespec pause = {(time_t)every_s, (long)(1e9 * (every_s - (double)(time_t)every_s))};
        while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
            ;
        tell(time, every_s);
        if (time == LONGEST_START)
            unlink(state.shared);
    }
    return nothing;
}

static void start_telling(void)
{
    pthread_attr_t small;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&small) != 0)
        return;
    /* The program's signals are for the program. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    state.tells = pthread_attr_setstacksize(&small, STACK) == 0 &&
                  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED) == 0 &&
                  pthread_create(&thread, &small, keep_telling, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
}

void progress_begin(const char *directory, const char *hostname)
{
    const char *every = getenv("CLUSTERGATE_PROOF_EVERY");
    const char *word = getenv("CLUSTERGATE_PROOF_NONCE");
    find_next();
    state.every_s = every != NULL ? atof(every) : 0;
    if (!(state.every_s > 0) || word == NULL || strchr(word, '/') != NULL)
        return;
    snprintf(state.hostname, sizeof state.hostname, "%s", hostname);
    snprintf(state.shared, sizeof state.shared, "/dev/shm/clustergate-%s", word);
    if (snprintf(state.told, sizeof state.told, "%s/progress-%s-%ld", directory, hostname,
                 (long)getpid()) >= (int)sizeof state.told)
        return;
    int file = open(state.shared, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    /* Its memory is there from now on, or nowhere: a store must not fail later. */
    void *node = posix_fallocate(file, 0, sizeof *state.node) == 0
                     ? mmap(NULL, sizeof *state.node, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
    close(file);
    if (node == MAP_FAILED)
        return;
    state.node = node;
    unsigned place = atomic_fetch_add(&state.node->ranks, 1);
    if (place >= MAX_RANKS)
        return;
    mine = &state.node->lines[place];
    atomic_store(&mine->rank, -1);
    atomic_store(&mine->pid, (int)getpid());
    if (place == 0) {
        /* Who is stopped right afterwards is known, and missed. */
        tell(0, state.every_s);
        start_telling();
    }
}

void progress_of_rank(int rank, int size)
{
    atomic_store(&mine->rank, rank);
    /* All ranks have it by now. */
    if (state.tells) {
        state.size = size;
        unlink(state.shared);
    }
}

int progress_threads(void)
{
    return state.tells;
}
