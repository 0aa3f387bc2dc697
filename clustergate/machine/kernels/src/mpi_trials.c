/* The eleven tests of MPI calls of Luecke et al., each trial timed by their template.
 *
 *   mpicc -O3 -o mpi_trials mpi_trials.c
 *   mpirun -np 4 ./mpi_trials --flush-bytes 33554432 [--trials 51] [--tests bcast,scan]
 *
 * The template: every rank adds 0.1 to each element of an array as large as its cache (0 bytes
 * leave that out: then buffers stay in the caches); a barrier; the timed call; a barrier; an
 * element of the array is added to the first of the message, so that no compiler moves or drops
 * the flush. The time of a trial is the maximum over the ranks. All trials are printed, the first
 * one too: what is left out, and the mean, are for the reader of the lines
 * (clustergate/kernels/outputs.py).
 *
 * Messages are of 1 and of 125000 or 1250 doubles. Send and receive buffers differ. The ping-pong
 * goes from rank 0 to every other and back; its times are those of the round trip.
 *
 * Added to the template: before a trial the receive buffer is filled with NaN, after it what has
 * arrived is compared with what was sent, both outside the timed part and before the next flush.
 */
#include <math.h>

#include "mpi_kernel.h"

enum { SMALL = 1, MEDIUM = 1250, LARGE = 125000, ROOT = 0, TAG = 4, NOBODY = -1 };

static double *send_buffer, *receive_buffer; /* A and B of the paper */
static int count, peer;

static void ping_pong(void)
{
    if (rank == ROOT) {
        MPI_Send(send_buffer, count, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(receive_buffer, count, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == peer) {
        MPI_Recv(receive_buffer, count, MPI_DOUBLE, ROOT, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(send_buffer, count, MPI_DOUBLE, ROOT, TAG, MPI_COMM_WORLD);
    }
}

static int left(void) { return (rank + processes - 1) % processes; }

static void right_shift(void)
{
    MPI_Sendrecv(send_buffer, count, MPI_DOUBLE, (rank + 1) % processes, TAG, receive_buffer, count,
                 MPI_DOUBLE, left(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void bcast(void)
{
    MPI_Bcast(rank == ROOT ? send_buffer : receive_buffer, count, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
}

static void scatter(void)
{
    MPI_Scatter(send_buffer, count, MPI_DOUBLE, receive_buffer, count, MPI_DOUBLE, ROOT,
                MPI_COMM_WORLD);
}

static void gather(void)
{
    MPI_Gather(send_buffer, count, MPI_DOUBLE, receive_buffer, count, MPI_DOUBLE, ROOT,
               MPI_COMM_WORLD);
}

static void allgather(void)
{
    MPI_Allgather(send_buffer, count, MPI_DOUBLE, receive_buffer, count, MPI_DOUBLE,
                  MPI_COMM_WORLD);
}

static void alltoall(void)
{
    MPI_Alltoall(send_buffer, count, MPI_DOUBLE, receive_buffer, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void reduce(void)
{
    MPI_Reduce(send_buffer, receive_buffer, count, MPI_DOUBLE, MPI_SUM, ROOT, MPI_COMM_WORLD);
}

static void allreduce(void)
{
    MPI_Allreduce(send_buffer, receive_buffer, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void scan(void)
{
    MPI_Scan(send_buffer, receive_buffer, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* The sum that all ranks' first elements have grown by. */
static double added;

static double sent(int from, size_t i)
{
    return from + 1 + (double)(i % 13) + (i == 0 ? added : 0);
}

/* Sum of what the ranks 0 to `last` sent. */
static double summed(int last, size_t i)
{
    double ranks = last + 1;
    return ranks * sent(0, i) + 0.5 * last * ranks;
}

/* What a rank must find at place i of its receive buffer. */
static double from_peer(size_t i) { return sent(rank == ROOT ? peer : ROOT, i); }
static double from_left(size_t i) { return sent(left(), i); }
static double from_root(size_t i) { return sent(ROOT, i); }
static double own_part_of_root(size_t i) { return sent(ROOT, (size_t)(rank * count) + i); }
static double part_of_each(size_t i)
{
    size_t n = (size_t)count;
    return sent((int)(i / n), i % n);
}
static double own_part_of_each(size_t i)
{
    size_t n = (size_t)count;
    return sent((int)(i / n), (size_t)rank * n + i % n);
}
static double sum_of_all(size_t i) { return summed(processes - 1, i); }
static double sum_so_far(size_t i) { return summed(rank, i); }

static bool by_all(void) { return true; }
static bool by_root(void) { return rank == ROOT; }
static bool by_others(void) { return rank != ROOT; }
static bool by_the_pair(void) { return rank == ROOT || rank == peer; }

struct test {
    const char *name;
    void (*call)(void);
    int sizes[3];              /* in doubles; ended by 0 where there are fewer */
    bool sends_all, takes_all; /* a part for each rank, from each rank */
    bool (*receives)(void);
    double (*expected)(size_t i);
};

static const struct test tests[] = {
    {"ping_pong", ping_pong, {SMALL, LARGE}, false, false, by_the_pair, from_peer},
    {"right_shift", right_shift, {SMALL, MEDIUM}, false, false, by_all, from_left},
    {"barrier", barrier, {0, 0}, false, false, by_all, NULL},
    {"bcast", bcast, {SMALL, MEDIUM, LARGE}, false, false, by_others, from_root},
    {"scatter", scatter, {SMALL, MEDIUM}, true, false, by_all, own_part_of_root},
    {"gather", gather, {SMALL, MEDIUM}, false, true, by_root, part_of_each},
    {"allgather", allgather, {SMALL, MEDIUM}, false, true, by_all, part_of_each},
    {"alltoall", alltoall, {SMALL, MEDIUM}, true, true, by_all, own_part_of_each},
    {"reduce", reduce, {SMALL, LARGE}, false, false, by_root, sum_of_all},
    {"allreduce", allreduce, {SMALL, LARGE}, false, false, by_all, sum_of_all},
    {"scan", scan, {SMALL, LARGE}, false, false, by_all, sum_so_far},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

static double *flush;
static size_t flush_count;

static void check(const struct test *test, size_t received, int trial)
{
    if (test->expected == NULL || !test->receives())
        return;
    for (size_t i = 0; i < received; i++) {
        double expected = test->expected(i);
        /* Only what was added is rounded; NaN, which nothing overwrote, compares with nothing. */
        if (!(fabs(receive_buffer[i] - expected) <= 1e-12 * expected))
            fail("wrong result of %s in trial %d: element %zu is %.17g where %.17g was sent; the "
                 "MPI library or the network is faulty",
                 test->name, trial, i, receive_buffer[i], expected);
    }
}

static void measure(const struct test *test, int trials, double *times, double *slowest)
{
    size_t sends = (size_t)count * (size_t)(test->sends_all ? processes : 1);
    size_t takes = (size_t)count * (size_t)(test->takes_all ? processes : 1);
    send_buffer = memory((sends + 1) * sizeof(double));
    receive_buffer = memory((takes + 1) * sizeof(double));
    added = 0;
    send_buffer[0] = rank + 1;
    for (size_t i = 0; i < sends; i++)
        send_buffer[i] = sent(rank, i);
    for (size_t i = 0; i < flush_count; i++)
        flush[i] = 0;
    for (int k = 0; k < trials; k++) {
        for (size_t i = 0; i < takes; i++)
            receive_buffer[i] = NAN;
        for (size_t i = 0; i < flush_count; i++)
            flush[i] += 0.1;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        test->call();
        times[k] = now() - start;
        MPI_Barrier(MPI_COMM_WORLD);
        check(test, takes, k);
        double one = flush_count > 0 ? flush[(size_t)k % flush_count] : 0;
        send_buffer[0] += one;
        added += one;
    }
    MPI_Reduce(times, slowest, trials, MPI_DOUBLE, MPI_MAX, ROOT, MPI_COMM_WORLD);
    if (rank == ROOT) {
        measurements_printed++;
        printf("{\"measurement\":\"trials\",\"test\":\"%s\",\"bytes\":%zu", test->name,
               (size_t)count * sizeof(double));
        if (peer != NOBODY)
            printf(",\"peer\":%d", peer);
        printf(",\"flush_bytes\":%zu,\"first_sent\":%.6f,\"first_flushed\":%.6f",
               flush_count * sizeof(double), send_buffer[0], flush_count > 0 ? flush[0] : 0);
        print_times("times_us", slowest, trials);
        printf("}\n");
        fflush(stdout);
    }
    free(send_buffer);
    free(receive_buffer);
}

/* Whether a name stands in a list such as "bcast,scan"; an empty list names all. */
static bool is_named(const char *list, const char *name)
{
    size_t length = strlen(name);
    if (*list == '\0')
        return true;
    for (const char *word = list; word != NULL; word = strchr(word, ',')) {
        word += *word == ',';
        if (strncmp(word, name, length) == 0 && (word[length] == ',' || word[length] == '\0'))
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    double flush_bytes = -1, asked_trials = 51;
    const char *list = "";
    const struct option options[] = {{"--flush-bytes", &flush_bytes, 0, NULL},
                                     {"--trials", &asked_trials, 2, NULL},
                                     {"--tests", NULL, 0, &list},
                                     {NULL, NULL, 0, NULL}};
    begin(&argc, &argv, "mpi_trials", options);
    if (flush_bytes < 0)
        fail("--flush-bytes must say how large the caches of a rank are, or 0 for no flush");
    if (processes < 2)
        fail("there is nobody to send to: start at least 2 processes");
    int trials = (int)asked_trials;
    flush_count = (size_t)flush_bytes / sizeof(double);
    flush = memory(flush_count * sizeof(double));
    double *times = memory((size_t)trials * sizeof(double));
    double *slowest = memory((size_t)trials * sizeof(double));
    for (int t = 0; t < TESTS; t++) {
        if (!is_named(list, tests[t].name))
            continue;
        for (int s = 0; s == 0 || (s < 3 && tests[t].sizes[s] > 0); s++) {
            bool pairs = tests[t].call == ping_pong;
            count = tests[t].sizes[s];
            for (peer = pairs ? 1 : NOBODY; peer < (pairs ? processes : 0); peer++)
                measure(&tests[t], trials, times, slowest);
        }
    }
    return end();
}
