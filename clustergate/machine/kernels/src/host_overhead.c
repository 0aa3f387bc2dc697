/* How much of the processor a non-blocking transfer costs, and how much of it is left for work.
 *
 *   mpicc -O3 -o host_overhead host_overhead.c
 *   mpirun -np 2 ./host_overhead [--largest-bytes 8388608] [--trials 5] [--seconds 0.05]
 *
 * Post, work, wait, as the Sandia MPI Micro-Benchmark Suite measures host processor overhead: rank
 * 0 calls MPI_Isend (or MPI_Irecv), computes, and calls MPI_Wait; rank 1 calls the opposite and
 * waits. Of each size and call are told, per message: base_us (no work between), and at the end
 * work_us (the work alone) and iteration_us (with the work). The work is doubled until it takes
 * longer than the transfer and the iteration takes half as long again as the base; p95_us is what
 * one iteration of twenty of the base exceeds. Then
 *
 *   overhead = iteration - work,   application availability = 1 - overhead / base.
 *
 * All is measured --trials times, since surprising figures are to be repeated. Each time is the
 * median of iterations that both ranks begin together, of the part from post to wait alone.
 * Buffers stay in the caches. After each trial the receiver compares the last message with what
 * was sent.
 */
#include "mpi_kernel.h"

enum { SENDER_TAG = 2, FEWEST = 10, MOST = 2000, LARGEST_SHIFT = 40 };

static unsigned char *buffer;
static volatile double sink;

/* Steps that depend on each other, so that no compiler shortens them. */
static void work(long steps)
{
    double x = sink;
    for (long i = 0; i < steps; i++)
        x = x * 0.999999 + 1e-6;
    sink = x;
}

static double times[MOST];

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The median of what rank 0 noted, for both. */
static double median(int iterations)
{
    qsort(times, (size_t)iterations, sizeof times[0], by_value);
    double middle = 0.5 * (times[(iterations - 1) / 2] + times[iterations / 2]);
    MPI_Bcast(&middle, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return middle;
}

static double seconds_of_work(long steps, int iterations)
{
    for (int i = 0; rank == 0 && i < iterations; i++) {
        double start = now();
        work(steps);
        times[i] = now() - start;
    }
    return median(iterations);
}

static unsigned char content(size_t i, int trial) { return (unsigned char)(i % 251 + trial + 1); }

/* Seconds of an iteration on rank 0: from the post to the end of the wait. */
static double transfer(bool rank_0_sends, size_t bytes, long steps, int iterations)
{
    for (int i = 0; i < iterations; i++) {
        MPI_Request request;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        if ((rank == 0) == rank_0_sends)
            MPI_Isend(buffer, (int)bytes, MPI_BYTE, 1 - rank, SENDER_TAG, MPI_COMM_WORLD, &request);
        else
            MPI_Irecv(buffer, (int)bytes, MPI_BYTE, 1 - rank, SENDER_TAG, MPI_COMM_WORLD, &request);
        if (rank == 0)
            work(steps);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        times[i] = now() - start;
    }
    return median(iterations);
}

static void measure(bool rank_0_sends, size_t bytes, int trial, double seconds)
{
    bool sends = (rank == 0) == rank_0_sends;
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = sends ? content(i, trial) : 0;
    double first = transfer(rank_0_sends, bytes, 0, FEWEST);
    double fitting = seconds / (first + 1e-9);
    int iterations = fitting < FEWEST ? FEWEST : fitting > MOST ? MOST : (int)fitting;
    double base = transfer(rank_0_sends, bytes, 0, iterations), alone = 0, together = 0;
    double slow = times[iterations - iterations / 20 - 1]; /* they are sorted by now */
    for (int shift = 4; !(alone >= base && together >= 1.5 * base); shift++) {
        if (shift == LARGEST_SHIFT)
            fail("no work is long enough beside a transfer of %g s", base);
        alone = seconds_of_work(1L << shift, iterations);
        /* Work that is much too short says nothing of the iteration. */
        if (alone >= 0.25 * base)
            together = transfer(rank_0_sends, bytes, 1L << shift, iterations);
    }
    for (size_t i = 0; i < bytes; i++)
        if (buffer[i] != content(i, trial))
            fail("wrong result: byte %zu of %zu is %d where %d was sent; the MPI library or the "
                 "network is faulty",
                 i, bytes, buffer[i], content(i, trial));
    if (rank != 0)
        return;
    measurements_printed++;
    printf("{\"measurement\":\"host_overhead\",\"call\":\"%s\",\"bytes\":%zu,\"trial\":%d,"
           "\"iterations\":%d,\"base_us\":%.4f,\"p95_us\":%.4f,\"work_us\":%.4f,"
           "\"iteration_us\":%.4f}\n",
           rank_0_sends ? "isend" : "irecv", bytes, trial, iterations, 1e6 * base, 1e6 * slow,
           1e6 * alone, 1e6 * together);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    double largest = 8388608, trials = 5, seconds = 0.05;
    const struct option options[] = {{"--largest-bytes", &largest, 1, NULL},
                                     {"--trials", &trials, 1, NULL},
                                     {"--seconds", &seconds, 1e-6, NULL},
                                     {NULL, NULL, 0, NULL}};
    begin(&argc, &argv, "host_overhead", options);
    if (processes != 2)
        fail("it is measured between two processes, and there are %d", processes);
    if (largest > 1 << 30)
        fail("--largest-bytes takes up to %d", 1 << 30);
    buffer = memory((size_t)largest);
    for (int sends = 1; sends >= 0; sends--)
        for (size_t bytes = 1; bytes <= (size_t)largest; bytes *= 2)
            for (int trial = 0; trial < (int)trials; trial++)
                measure(sends, bytes, trial, seconds);
    return end();
}
