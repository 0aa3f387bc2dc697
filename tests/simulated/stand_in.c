/* A stand-in of a benchmark: real ranks on real nodes, which measure nothing.
 *
 *   mpicc -O2 -DMACHINE='"SOCKET"' -DSTACK='"mpich"' -o xhpl stand_in.c      (hpcc, IMB-MPI1)
 *   cc -O2 -DALONE …                                 -o node_peaks stand_in.c (core_distance)
 *   … -DCORENAME=openblas_get_corename …, linked with the BLAS: xhpl, hpcc, dgemm
 *
 * Called by the name of the program that it stands for, it tells a simulated machine
 * (tests/simulated_machine.py, at the socket) what it was called, with which arguments, on which
 * hosts, with which cores and with which input, and prints the answer. The first line of that says
 * how many seconds the benchmark would have taken; all ranks sleep for so long.
 */
#define _GNU_SOURCE
#ifndef ALONE
#include <mpi.h>
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HOST = 64 };

#ifdef CORENAME
/* As the benchmark it is linked with the BLAS of the stack, and says which kernels that chose. */
extern char *CORENAME(void);
#else
#define CORENAME() "none"
#endif

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *input_of(const char *program)
{
    if (!strcmp(program, "xhpl")) return "HPL.dat";
    return !strcmp(program, "hpcc") ? "hpccinf.txt" : "message-sizes.txt";
}

static FILE *asked(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = MACHINE};
    int machine = socket(AF_UNIX, SOCK_STREAM, 0);
    if (machine < 0 || connect(machine, (struct sockaddr *)&address, sizeof address)) {
        perror("the simulated machine at " MACHINE);
        exit(3);
    }
    return fdopen(machine, "r+");
}

/* Sections of lines, each ended by an empty one: arguments, hosts, cores; then the input. */
static FILE *answer_to(int count, char **words, const char *hosts, int ranks)
{
    FILE *machine = asked(), *input = fopen(input_of(name_of(words[0])), "r");
    cpu_set_t cores;
    char block[4096];
    size_t length;
    fprintf(machine, STACK "\n%s\n%s\n", CORENAME(), name_of(words[0]));
    for (int i = 1; i < count; i++) fprintf(machine, "%s\n", words[i]);
    fputs("\n", machine);
    for (int i = 0; i < ranks; i++) fprintf(machine, "%s\n", hosts + i * HOST);
    fputs("\n", machine);
    sched_getaffinity(0, sizeof cores, &cores);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &cores)) fprintf(machine, "%d\n", i);
    fputs("\n", machine);
    while (input && (length = fread(block, 1, sizeof block, input)) > 0)
        fwrite(block, 1, length, machine);
    fflush(machine);
    shutdown(fileno(machine), SHUT_WR);
    return machine;
}

static int pass_on(FILE *machine, const char *program)
{
    FILE *to = strcmp(program, "hpcc") ? stdout : fopen("hpccoutf.txt", "a");
    char block[65536];
    size_t length, passed = 0;
    while (to && (length = fread(block, 1, sizeof block, machine)) > 0)
        passed += fwrite(block, 1, length, to);
    return to && !fflush(to) && passed > 0 ? 0 : 3;
}

static void last(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))};
    nanosleep(&time, NULL);
}

#ifndef ALONE
/* Asleep, so that ranks which share two cores wait for rank 0 without keeping it from them. */
static void await(MPI_Request *request)
{
    for (int done = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE), !done;) last(0.005);
}
#endif

int main(int argc, char **argv)
{
    char own[HOST] = "", line[64] = "", *hosts = own;
    int rank = 0, ranks = 1, status = 0;
    double seconds = 0;
    FILE *machine = NULL;
#ifndef ALONE
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hosts = calloc((size_t)ranks, HOST);
#endif
    gethostname(own, HOST - 1);
#ifndef ALONE
    MPI_Request request;
    MPI_Igather(own, HOST, MPI_CHAR, hosts, HOST, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    await(&request);
#endif
    if (rank == 0) {
        machine = answer_to(argc, argv, hosts, ranks);
        seconds = fgets(line, sizeof line, machine) ? atof(line) : 0;
    }
#ifndef ALONE
    MPI_Ibcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
    await(&request);
#endif
    last(seconds);
    if (rank == 0) status = pass_on(machine, name_of(argv[0]));
#ifndef ALONE
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    await(&request);
    MPI_Finalize();
#endif
    return status;
}
